//! Determines which plugins a step of the owner of the instances may have changed. The laws still hold for all other plugins.

use std::collections::{BTreeMap, BTreeSet};

use callboard_actors::instances::{
    Instances, InstancesAsk, InstancesCall, InstancesNews, InstancesOutcome, RegistryItem,
};
use callboard_actors::registry::RegistryNews;
use callboard_actors::shell::{Effect, FeedItem, Input};
use callboard_actors::vocabulary::PluginKey;

/// The plugins that a step concerns.
pub(super) enum Touched {
    /// It may concern any plugin.
    All,
    Only(BTreeSet<PluginKey>),
}

impl Touched {
    /// From inputs and effects. Of other inputs than these the laws record nothing, so only the effects of the step count.
    pub(super) fn by(input: &Input<Instances>, effects: &[Effect<Instances>]) -> Self {
        let mut touched = match input {
            Input::Resumed | Input::StopRequested(_) => return Self::All,
            Input::Asked { ask: InstancesAsk::InstanceReported(reported), .. } => {
                BTreeSet::from([reported.report.plugin.clone()])
            }
            Input::Returned { outcome: Ok(InstancesOutcome::Followed(Ok(items))), .. } => {
                match items.iter().map(changed).collect::<Option<_>>() {
                    Some(touched) => touched,
                    None => return Self::All,
                }
            }
            Input::Returned { outcome: Ok(InstancesOutcome::Ended(endings)), .. } => {
                endings.iter().map(|ended| ended.plugin.clone()).collect()
            }
            Input::Returned { call: InstancesCall::Start { config, .. }, .. } => {
                BTreeSet::from([config.plugin.clone()])
            }
            Input::Asked { .. } | Input::Returned { .. } | Input::Elapsed(_) => BTreeSet::new(),
        };
        touched.extend(effects.iter().filter_map(told_of).cloned());
        Self::Only(touched)
    }

    /// The values of the plugins that the step concerns.
    pub(super) fn among<'a, T>(&self, known: &'a BTreeMap<PluginKey, T>) -> Vec<(&'a PluginKey, &'a T)> {
        match self {
            Self::All => known.iter().collect(),
            Self::Only(touched) => touched.iter().filter_map(|plugin| known.get_key_value(plugin)).collect(),
        }
    }
}

/// The plugin of one change in the registry; `None` if it may be any plugin.
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

/// The plugin of an effect that the laws record.
fn told_of(effect: &Effect<Instances>) -> Option<&PluginKey> {
    match effect {
        Effect::Call { call: InstancesCall::Start { config, .. }, .. } => Some(&config.plugin),
        Effect::Publish(
            InstancesNews::Reported(report) | InstancesNews::Standby(report) | InstancesNews::Left(report),
        ) => Some(&report.plugin),
        _ => None,
    }
}
