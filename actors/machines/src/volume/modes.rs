//! Chooses the access mode with which a plugin is asked: the finest one that it knows (C154), and the same one in all steps of a volume.

use super::existence::NewVolume;
use super::outcome::Route;
use super::record::Usage;
use super::state::Volume;
use crate::csi::VolumeCapability;

impl Volume {
    /// A usage as it is requested from the plugin: with the mode of the steps that are set up, or may be (C013, C138), unless the plugin no
    /// longer knows that mode; else with the mode that the present generation prefers (V16).
    pub(super) fn asked_as(&self, usage: &Usage) -> Usage {
        let claimed = &usage.capability;
        // Unknown while the plugin is away: it may know the modes when it returns.
        let knows_alpha = self.route.as_ref().and_then(Route::knows_alpha_modes);
        let set_up = self
            .shared_capability()
            .filter(|shared| *shared == claimed || shared.serves(claimed) && knows_alpha.unwrap_or(true));
        let capability = set_up.cloned().unwrap_or_else(|| claimed.for_plugin(knows_alpha.unwrap_or(false)));
        Usage { capability, read_only: usage.read_only }
    }

    /// The capability of the staging, attachment or publication that is up, or may be: all claims share one (C138).
    pub(super) fn shared_capability(&self) -> Option<&VolumeCapability> {
        let attached = || self.record.attach.intent().map(|intent| &intent.args.capability);
        let staged = self.record.stage.intent().map(|intent| &intent.args.capability);
        let published = || self.claims.values().find_map(|claim| claim.record.publish.intent());
        staged.or_else(attached).or_else(|| published().map(|intent| &intent.args.usage.capability))
    }
}

impl Route {
    /// Whether each half that serves the steps of a volume knows the modes of several writers on one node; `None` without a node half.
    fn knows_alpha_modes(&self) -> Option<bool> {
        let node = self.node.as_ref()?;
        let controller = self.controller.as_ref().filter(|controller| controller.attaches);
        Some(node.knows_alpha_modes && controller.is_none_or(|controller| controller.knows_alpha_modes))
    }
}

impl NewVolume {
    /// This volume, with the modes in which it is requested from its controller.
    pub(super) fn for_plugin(&self, knows_alpha: bool) -> Self {
        let capabilities = self.capabilities.iter().map(|asked| asked.for_plugin(knows_alpha)).collect();
        Self { capabilities, ..self.clone() }
    }

    /// This volume, with the modes of the kept one if those replace its own.
    pub(super) fn as_in(&self, kept: &Self) -> Self {
        let replaced = self.for_plugin(true);
        if replaced.capabilities == kept.capabilities { replaced } else { self.clone() }
    }
}
