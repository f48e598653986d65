//! With which access mode a step is asked for: one that the plugin knows, and the same in all steps (C013, C138, C154).

use callboard_machines::csi::AccessMode;
use callboard_machines::volume::VolumeCall;

use super::super::super::law::Law;
use super::{Node, step_of};

impl Node {
    /// What is wrong with the access mode of a call, if so.
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

/// With which mode a step of a claim is asked for.
const fn mode_of(call: &VolumeCall) -> Option<AccessMode> {
    match call {
        VolumeCall::Attach(_, _, args, _) => Some(args.capability.access_mode),
        VolumeCall::Stage(_, _, args, ..) => Some(args.capability.access_mode),
        VolumeCall::Publish(_, _, args, _) => Some(args.usage.capability.access_mode),
        _ => None,
    }
}
