//! Checks the access mode of each step: the plugin knows it, and it is the same in all steps (C013, C138, C154).

use callboard_machines::csi::AccessMode;
use callboard_machines::volume::VolumeCall;

use super::super::super::law::Law;
use super::{Node, step_of};

impl Node {
    /// The violation in the access mode of a call, if there is one.
    pub(in super::super) fn wrong_mode(&self, call: &VolumeCall) -> Option<(Law, &'static str)> {
        let mode = mode_of(call)?;
        let is_first = self.modes.is_empty();
        match mode {
            _ if mode.is_alpha() && self.lacks_modes => {
                Some((Law::V16, "and its plugin does not know that mode"))
            }
            AccessMode::SingleNodeWriter if is_first && !self.lacks_modes => {
                Some((Law::V16, "and its plugin knows a finer mode"))
            }
            _ if self.modes.values().any(|asked| *asked != mode) => {
                Some((Law::V3, "and the volume may be set up with another mode"))
            }
            _ => None,
        }
    }

    pub(super) fn note_mode(&mut self, call: &VolumeCall) {
        if let (Some(mode), Some((step, _))) = (mode_of(call), step_of(call)) {
            self.modes.insert(step, mode);
        }
    }
}

/// The access mode that a step of a claim requests.
const fn mode_of(call: &VolumeCall) -> Option<AccessMode> {
    match call {
        VolumeCall::Attach(_, _, args, _) => Some(args.capability.access_mode),
        VolumeCall::Stage(_, _, args, ..) => Some(args.capability.access_mode),
        VolumeCall::Publish(_, _, args, _) => Some(args.usage.capability.access_mode),
        _ => None,
    }
}
