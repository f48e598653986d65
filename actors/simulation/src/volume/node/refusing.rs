//! Calls that do not reach the plugin.

use callboard_machines::mounts::Made;
use callboard_machines::volume::{Failure, Known, Seen, VolumeCall, VolumeOutcome};

use super::{Node, StepOf, step_of};

impl Node {
    /// A call to a retired generation is not made: its lease no longer exists.
    pub(in crate::volume) fn refuse_retired(&self, call: &VolumeCall) -> Option<VolumeOutcome> {
        let generation = call.generation().filter(|generation| generation.get() != self.generation)?;
        let reason = format!("generation {generation} is retired");
        let failure = Failure { known: Known::NotMade, reason: reason.clone() };
        if matches!(call, VolumeCall::Order(..)) {
            return Some(VolumeOutcome::Ordered(Err(failure)));
        }
        let (step, is_up) = step_of(call)?;
        Some(match step {
            StepOf::Exist if is_up => VolumeOutcome::Created(Err(failure)),
            StepOf::Exist | StepOf::Attach => VolumeOutcome::Controller(Err(failure)),
            StepOf::Stage(_) | StepOf::Publish(_) => VolumeOutcome::Node(Err(failure), Seen::Unclear(reason)),
        })
    }

    /// No call is made for a step that is down where something is mounted: the mount belongs to no claim, or was given up by force.
    pub(in crate::volume) fn refuse_mounted(&self, call: &VolumeCall) -> Option<VolumeOutcome> {
        let (path, before) = match call {
            VolumeCall::Stage(_, _, args, before, _) => (&args.staging_path, before),
            VolumeCall::Publish(_, _, args, before) => (&args.target_path, before),
            _ => return None,
        };
        let made = if self.mounts.contains_key(path) { Made::Mounted } else { Made::New };
        let failure = before.admit(path, made).err()?;
        let seen = Seen::Unclear(failure.reason.clone());
        Some(VolumeOutcome::Node(Err(failure), seen))
    }
}
