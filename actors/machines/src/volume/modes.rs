//! With which access mode a plugin is asked for what is claimed: the finer one that it knows (C154), and the same in all steps of a volume.

use super::existence::NewVolume;
use super::outcome::Route;
use super::record::Usage;
use super::state::Volume;
use crate::csi::{AccessMode, VolumeCapability};

impl Volume {
    /// A usage as the plugin is asked for it: with the mode that the steps have which are set up, or may be (C013, C138), as long as the
    /// plugin knows that one; else with the mode that the present generation prefers (V16).
    pub(super) fn asked_as(&self, usage: &Usage) -> Usage {
        let set_up = self.shared_capability().filter(|shared| {
            shared.serves(&usage.capability)
                && self.may_know(shared.access_mode, usage.capability.access_mode)
        });
        let capability = match set_up {
            Some(shared) => shared.clone(),
            None => usage.capability.for_plugin(self.route.as_ref().is_some_and(Route::knows_alpha_modes)),
        };
        Usage { capability, read_only: usage.read_only }
    }

    /// Whether the plugin may know a mode that has replaced the claimed one; one that is away may (V16).
    fn may_know(&self, mode: AccessMode, claimed: AccessMode) -> bool {
        let is_away = self.route.as_ref().is_none_or(|route| route.node.is_none());
        mode == claimed || is_away || self.route.as_ref().is_some_and(Route::knows_alpha_modes)
    }

    /// The capability of what is staged, attached or published, or may be: all claims share one (C138).
    pub(super) fn shared_capability(&self) -> Option<&VolumeCapability> {
        let attached = || self.record.attach.intent().map(|intent| &intent.args.capability);
        let staged = self.record.stage.intent().map(|intent| &intent.args.capability);
        let published = || self.claims.values().find_map(|claim| claim.record.publish.intent());
        staged.or_else(attached).or_else(|| published().map(|intent| &intent.args.usage.capability))
    }
}

impl Route {
    /// Whether each half that the steps of a volume go to knows the modes of several writers on one node.
    fn knows_alpha_modes(&self) -> bool {
        let controller = self.controller.as_ref().filter(|controller| controller.attaches);
        self.node.as_ref().is_some_and(|node| node.knows_alpha_modes)
            && controller.is_none_or(|controller| controller.knows_alpha_modes)
    }
}

impl NewVolume {
    /// This one as its controller is asked for it.
    pub(super) fn for_plugin(&self, knows_alpha: bool) -> Self {
        let capabilities = self.capabilities.iter().map(|asked| asked.for_plugin(knows_alpha)).collect();
        Self { capabilities, ..self.clone() }
    }

    /// Whether it has the capabilities that are asked for, with their modes replaced or not.
    pub(super) fn is_usable_as(&self, asked: &Self) -> bool {
        let (own, others) = (&self.capabilities, &asked.capabilities);
        own.len() == others.len() && own.iter().zip(others).all(|(own, asked)| own.serves(asked))
    }

    /// Whether its controller was asked for it, or would be, because this was asked for.
    pub(super) fn serves(&self, asked: &Self) -> bool {
        self.is_usable_as(asked)
            && Self { capabilities: asked.capabilities.clone(), ..self.clone() } == *asked
    }
}
