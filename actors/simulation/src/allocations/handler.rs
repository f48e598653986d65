//! The state of the owner's shell: the actors of the supervisors, and their endings.

use callboard_actors::allocation::{AllocationConfig, AllocationStatus};
use callboard_actors::allocations::SupervisorEnded;
use callboard_actors::shell::{AskError, Ending, StopMode};
use callboard_actors::vocabulary::{AllocationId, Attempt};

use super::event::SupervisorAct;
use super::scene::allocation;
use super::supervisor::{Entry, Supervisor};

/// Everything that the owner's shell holds.
#[derive(Debug, Clone, Hash)]
pub(super) struct Handler {
    pub(super) entries: Vec<Entry>,
    /// The ended supervisors that were not reported to their owner.
    endings: Vec<SupervisorEnded>,
}

impl Handler {
    pub(super) fn new(allocations: usize) -> Self {
        Self { entries: vec![Entry::default(); allocations], endings: Vec::new() }
    }

    /// The place of an allocation.
    pub(super) fn place(&self, of: &AllocationId) -> usize {
        (0..self.entries.len()).find(|place| allocation(*place) == *of).unwrap_or_default()
    }

    fn ended(&mut self, place: usize, life: Attempt, ending: Option<Ending>) {
        let ended = ending.map(|ending| SupervisorEnded { allocation: allocation(place), life, ending });
        self.endings.extend(ended);
    }

    fn life(&self, place: usize) -> Attempt {
        self.entries[place].supervisor.as_ref().map_or(Attempt::default(), |supervisor| supervisor.life)
    }

    /// Starts a supervisor, unless this life of it exists. False if another one lives.
    pub(super) fn start(&mut self, life: Attempt, config: AllocationConfig) -> bool {
        let place = self.place(&config.spec.allocation);
        if self.life(place) == life {
            return true;
        }
        let is_alone = self.entries[place].supervisor.is_none();
        // The old ending would be taken for the end of the new one.
        self.endings.retain(|ended| (&ended.allocation, ended.life) != (&config.spec.allocation, life));
        self.entries[place].supervisor = Some(Supervisor::born(life, config));
        is_alone
    }

    /// The status of the supervisor of this life.
    pub(super) fn look(&self, place: usize, life: Attempt) -> Result<AllocationStatus, AskError> {
        let supervisor = self.entries[place].supervisor.as_ref().filter(|supervisor| supervisor.life == life);
        let missing = || AskError::NotRunning { actor: "allocation".to_owned() };
        supervisor.map(Supervisor::status).ok_or_else(missing)
    }

    /// The supervisor of this life is asked to end.
    pub(super) fn stop(&mut self, place: usize, life: Attempt, mode: StopMode) {
        let ending = self.entries[place].stop(life, mode);
        self.ended(place, life, ending);
    }

    /// The supervisor of this life is ended by force.
    pub(super) fn kill(&mut self, place: usize, life: Attempt) {
        if self.life(place) == life {
            let ending = self.entries[place].end(Ending::Killed);
            self.ended(place, life, ending);
        }
    }

    /// A supervisor acts.
    pub(super) fn act(&mut self, place: usize, act: SupervisorAct) {
        let life = self.life(place);
        let ending = self.entries[place].act(act);
        self.ended(place, life, ending);
    }

    /// Its owner is gone with all supervisors; the registry keeps its registrations.
    pub(super) fn let_go(&mut self) {
        for entry in &mut self.entries {
            entry.supervisor = None;
            entry.answers.clear();
            entry.news.clear();
        }
        self.endings.clear();
    }

    /// The host is killed: its registrations leave after a grace.
    pub(super) fn forget_all(&mut self) {
        self.let_go();
        self.entries.iter_mut().for_each(|entry| *entry = Entry::default());
    }

    /// Whether a supervisor has ended and its owner has not received that.
    pub(super) fn has_endings(&self) -> bool {
        !self.endings.is_empty()
    }

    /// The supervisors that have ended since the last call.
    pub(super) fn take_endings(&mut self) -> Vec<SupervisorEnded> {
        std::mem::take(&mut self.endings)
    }
}
