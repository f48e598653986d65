//! The volumes of the small world: the allocations that hold them, and those whose claim was proven since their last start.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use callboard_actors::agent::{AgentCall, AgentOutcome, AllocationVolume, ClaimTrouble, Unreleased};
use callboard_actors::vocabulary::{Timestamp, VolumeName, VolumeNamespace};
use callboard_actors::volume::VolumeKey;

use super::event::Who;
use super::parts::violation;
use crate::{Law, Violation};

#[derive(Debug, Clone, Hash, Default)]
pub(super) struct Volumes {
    /// The allocations that may hold them.
    pub(super) held: BTreeSet<Who>,
    /// The allocations whose claim was proven and has not been used to start a process.
    pub(super) proven: BTreeSet<Who>,
    /// Whether a stopped allocation may keep its claims: an end was never reported to the agent.
    pub(super) may_stay_held: bool,
    /// Whether a release was refused after its deadline: a host that stops leaves it to the next run.
    pub(super) is_given_up: bool,
    /// The allocations that use volumes.
    users: BTreeSet<Who>,
    /// The deadline of the release in flight.
    pub(super) late_at: Option<Timestamp>,
}

impl Volumes {
    /// Volumes used by this allocation, if any. An earlier run has left its claims if it has left its process.
    pub(super) fn used_by(user: Option<Who>, survives: bool) -> Self {
        let held = user.filter(|_| survives);
        Self { users: user.into_iter().collect(), held: held.into_iter().collect(), ..Self::default() }
    }

    /// A process is started: each start needs a claim that was proven for it.
    pub(super) fn launch(&mut self, who: Who) -> Result<(), Violation> {
        if self.users.contains(&who) && !self.proven.remove(&who) {
            return violation(Law::V7, format!("{} is started without its volumes", who.as_str()));
        }
        Ok(())
    }

    /// None of these stopped allocations still has claims.
    pub(super) fn check_released(&self, stopped: impl IntoIterator<Item = Who>) -> Result<(), Violation> {
        match stopped.into_iter().find(|who| !self.may_stay_held && self.held.contains(who)) {
            Some(who) => violation(Law::S4, format!("{} has stopped and holds volumes", who.as_str())),
            None => Ok(()),
        }
    }

    pub(super) fn claim(&mut self, who: Who, volumes: &[AllocationVolume]) -> BTreeMap<VolumeKey, PathBuf> {
        self.held.insert(who);
        self.proven.insert(who);
        volumes.iter().map(|volume| (volume.volume.clone(), PathBuf::from("/volume"))).collect()
    }

    /// A claim that is refused may hold some of the volumes.
    pub(super) fn refuse(&mut self, who: Who, call: &AgentCall, is_transient: bool) -> AgentOutcome {
        let reason = "the volume is not ready".to_owned();
        match call {
            AgentCall::Claim { .. } => {
                self.held.insert(who);
                AgentOutcome::Claimed(Err(ClaimTrouble { reason, is_transient }))
            }
            _ => {
                self.is_given_up |= self.late_at.take().is_none();
                AgentOutcome::Released(Err(Unreleased { reason, goes_on: false }))
            }
        }
    }
}

/// The only volume.
pub(super) fn volume() -> AllocationVolume {
    let volume = VolumeKey {
        namespace: VolumeNamespace::new("default").expect("it is a name"),
        name: VolumeName::new("data").expect("it is a name"),
    };
    AllocationVolume { volume, variable: "DATA".to_owned(), read_only: false }
}
