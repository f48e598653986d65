//! Of which plugins a step of the owner of the instances may have changed something. Of the others every law holds that held before it.

use std::collections::BTreeSet;

use callboard_actors::instances::{
    Instances, InstancesAsk, InstancesCall, InstancesNews, InstancesOutcome, RegistryItem,
};
use callboard_actors::registry::RegistryNews;
use callboard_actors::shell::{Effect, FeedItem, Input};
use callboard_actors::vocabulary::PluginKey;

/// The plugins that a step is about.
pub(super) enum Touched {
    /// It may be about any.
    All,
    Only(BTreeSet<PluginKey>),
}

impl Touched {
    /// By what came in and went out: the inputs that come often name their plugins.
    pub(super) fn by(input: &Input<Instances>, effects: &[Effect<Instances>]) -> Self {
        let mut touched = match input {
            Input::Asked { ask: InstancesAsk::InstanceReported(reported), .. } => {
                BTreeSet::from([reported.report.plugin.clone()])
            }
            Input::Returned { outcome: Ok(InstancesOutcome::Followed(Ok(items))), .. } => {
                match items.iter().map(changed).collect::<Option<_>>() {
                    Some(touched) => touched,
                    None => return Self::All,
                }
            }
            _ => return Self::All,
        };
        touched.extend(effects.iter().filter_map(told_of).cloned());
        Self::Only(touched)
    }

    pub(super) fn has(&self, plugin: &PluginKey) -> bool {
        match self {
            Self::All => true,
            Self::Only(touched) => touched.contains(plugin),
        }
    }
}

/// The plugin of one change in the registry; `None` if it may be any.
fn changed(item: &RegistryItem) -> Option<PluginKey> {
    let FeedItem::Change { news, .. } = item else { return None };
    Some(match news {
        RegistryNews::ActiveChanged { plugin, .. } => plugin.clone(),
        RegistryNews::Registered(entry)
        | RegistryNews::Updated(entry)
        | RegistryNews::Renewed(entry)
        | RegistryNews::Deregistered(entry, _) => entry.registration.plugin.clone(),
    })
}

/// The plugin of an effect that the laws learn something from.
fn told_of(effect: &Effect<Instances>) -> Option<&PluginKey> {
    match effect {
        Effect::Call { call: InstancesCall::Start { config, .. }, .. } => Some(&config.plugin),
        Effect::Publish(
            InstancesNews::Reported(report) | InstancesNews::Standby(report) | InstancesNews::Left(report),
        ) => Some(&report.plugin),
        _ => None,
    }
}
