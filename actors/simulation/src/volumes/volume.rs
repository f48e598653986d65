//! The true state of one volume: its ledger, its state at the plugin, and its actors with their messages in flight.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use callboard_actors::shell::{AskError, Ending};
use callboard_actors::vocabulary::Attempt;
use callboard_machines::volume::{VolumeAnswer, VolumeConfig, VolumeNews, VolumeSpec};
use callboard_machines::volumes::ChildEnded;

use super::child::Child;
use super::event::VolumeAct;
use super::status::{id_of, key, spec, status};

/// The answer of a volume, or the reason why it cannot answer.
pub(super) type Answered = Result<VolumeAnswer, AskError>;

/// The progress of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Phase {
    GoingUp,
    Up,
    GoingDown,
}

/// A claim in the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Claim {
    pub(super) phase: Phase,
    /// The run of the host that made or confirmed it.
    pub(super) run: u64,
}

/// The existence of a volume that was created here or is deleted, in the ledger, with its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Existence {
    BeingCreated,
    Created(u8),
    BeingDeleted(Option<u8>),
}

/// The true state of one volume.
#[derive(Debug, Clone, Hash)]
pub(super) struct VolumeModel {
    pub(super) place: usize,
    // === In the ledger ===
    pub(super) claims: BTreeMap<u8, Claim>,
    pub(super) is_staged: bool,
    pub(super) existence: Option<Existence>,
    /// Whether it has an unfinished order.
    pub(super) is_ordered: bool,
    /// Whether a group of snapshots of it and others is ordered and not taken yet.
    pub(super) has_group: bool,
    /// The id under which it is claimed.
    claimed_as: Option<u8>,
    // === At the plugin ===
    /// Its id, if it exists.
    pub(super) there: Option<u8>,
    /// How many ids the plugin has given.
    pub(super) ids: u8,
    // === The actors ===
    pub(super) child: Option<Child>,
    /// Whether its actor had the volume forgotten by force.
    pub(super) is_forced: bool,
    pub(super) answers: VecDeque<(u64, Answered)>,
    pub(super) news: VecDeque<(Attempt, VolumeNews)>,
    /// The part of its ledger that is on disk, while the disk is sick.
    pub(super) written: Option<Ledger>,
}

/// The rows of a volume.
#[derive(Debug, Clone, Hash)]
pub(super) struct Ledger {
    claims: BTreeMap<u8, Claim>,
    is_staged: bool,
    existence: Option<Existence>,
    is_ordered: bool,
    has_group: bool,
    claimed_as: Option<u8>,
}

impl VolumeModel {
    /// A volume that exists, or one that is yet to be created.
    pub(super) fn new(place: usize, exists: bool) -> Self {
        Self {
            place,
            claims: BTreeMap::new(),
            is_staged: false,
            existence: None,
            is_ordered: false,
            has_group: false,
            claimed_as: None,
            there: exists.then_some(0),
            ids: 0,
            child: None,
            is_forced: false,
            answers: VecDeque::new(),
            news: VecDeque::new(),
            written: None,
        }
    }

    /// An earlier run of the host left this claim.
    pub(super) fn leave_claim(&mut self, number: u8) {
        self.claims.insert(number, Claim { phase: Phase::Up, run: 0 });
        (self.is_staged, self.claimed_as) = (true, self.there);
    }

    /// Whether it is claimed or set up on this node.
    pub(super) fn is_on_node(&self) -> bool {
        self.is_staged || !self.claims.is_empty()
    }

    /// Whether its creation or deletion is in progress.
    pub(super) const fn is_changing(&self) -> bool {
        matches!(self.existence, Some(Existence::BeingCreated | Existence::BeingDeleted(_)))
    }

    /// Whether it has work to do, or to undo later.
    pub(super) fn is_used(&self) -> bool {
        self.is_on_node() || self.is_changing() || self.has_orders()
    }

    /// Whether it has any unfinished order.
    pub(super) const fn has_orders(&self) -> bool {
        self.is_ordered || self.has_group
    }

    /// Whether it has claims that are neither confirmed nor released in this run.
    pub(super) fn has_unconfirmed(&self, run: u64) -> bool {
        self.claims.values().any(|claim| claim.run != run && claim.phase != Phase::GoingDown)
    }

    /// The spec in its ledger, if it has rows there.
    pub(super) fn in_ledger(&self) -> Option<Arc<VolumeSpec>> {
        let id = match self.existence {
            Some(Existence::Created(id)) => Some(id),
            Some(Existence::BeingDeleted(id)) => id,
            Some(Existence::BeingCreated) => None,
            None => self.claimed_as,
        };
        (self.is_used() || self.existence.is_some()).then(|| spec(self.place, id))
    }

    // === Its actors ===

    /// Starts an actor. False if another one lives.
    pub(super) fn start(&mut self, life: Attempt, config: &VolumeConfig) -> bool {
        let is_alone = self.child.is_none();
        let id = self.in_ledger().map_or_else(|| id_of(&config.spec), |spec| id_of(&spec));
        self.child = Some(Child::new(life, config.run.get(), id));
        self.tell();
        is_alone
    }

    /// The life of its actor, if one lives.
    pub(super) fn life(&self) -> Option<Attempt> {
        self.child.as_ref().map(|child| child.life)
    }

    /// Whether the actor of this life crashes at its next message.
    pub(super) fn crashes_next(&self, life: Attempt) -> bool {
        self.child.as_ref().is_some_and(|child| child.life == life && child.crashes_next)
    }

    /// The actor of this life.
    pub(super) fn living(&mut self, life: Attempt) -> Option<&mut Child> {
        self.child.as_mut().filter(|child| child.life == life)
    }

    /// The actor is asked to stop. It sets nothing up from now on.
    pub(super) fn stop(&mut self, life: Attempt) {
        if self.living(life).is_some() {
            self.refuse_stopping();
            self.tell();
        }
    }

    /// The actor of this life ends, if it lives.
    pub(super) fn kill(&mut self, life: Attempt) -> Option<ChildEnded> {
        self.living(life)?;
        self.end(Ending::Killed)
    }

    /// The actor ends; its waiting callers receive an error.
    pub(super) fn end(&mut self, ending: Ending) -> Option<ChildEnded> {
        let child = self.child.take()?;
        let calls = child.waiting.iter().map(|(call, _)| (*call, Err(not_running())));
        self.answers.extend(calls);
        Some(ChildEnded { volume: key(self.place), life: child.life, ending })
    }

    /// The host is gone. Messages of its actors in flight are lost, and so are writes that a sick disk has not taken, unless they have
    /// `reached` the disk.
    pub(super) fn begin_run(&mut self, reached: bool) {
        if let Some(written) = self.written.take().filter(|_| !reached) {
            self.lose(written);
        }
        self.child = None;
        self.answers.clear();
        self.news.clear();
    }

    // === Its disk ===

    /// Whether its ledger is on a sick disk.
    pub(super) const fn is_sick(&self) -> bool {
        self.written.is_some()
    }

    /// The disk becomes sick, or becomes sound again and has taken all writes.
    pub(super) fn disk(&mut self, is_sick: bool) {
        self.written = is_sick.then(|| Ledger {
            claims: self.claims.clone(),
            is_staged: self.is_staged,
            existence: self.existence,
            is_ordered: self.is_ordered,
            has_group: self.has_group,
            claimed_as: self.claimed_as,
        });
    }

    /// Writes that the disk has not taken are lost.
    fn lose(&mut self, written: Ledger) {
        let was_created = match self.existence {
            Some(Existence::Created(_)) => true,
            Some(Existence::BeingDeleted(id)) => id.is_some_and(|id| id > 0),
            Some(Existence::BeingCreated) | None => false,
        };
        let Ledger { claims, is_staged, existence, is_ordered, has_group, claimed_as } = written;
        let is_unnamed = matches!(existence, Some(Existence::BeingCreated | Existence::BeingDeleted(None)));
        if was_created && is_unnamed {
            // It is created again under the same name: the plugin gives the same id.
            (self.there, self.ids) = (None, self.ids - 1);
        }
        (self.claims, self.is_staged, self.existence) = (claims, is_staged, existence);
        (self.is_ordered, self.has_group, self.claimed_as) = (is_ordered, has_group, claimed_as);
    }

    /// Keeps the id under which it is claimed, while it is claimed.
    pub(super) fn keep_id(&mut self, id: Option<u8>) {
        self.claimed_as = if self.is_on_node() || self.has_orders() { self.claimed_as.or(id) } else { None };
    }

    /// Reports the status if it has changed.
    pub(super) fn tell(&mut self) {
        let Some(child) = &self.child else { return };
        let (life, status) = (child.life, Arc::new(status(self.place, self, child.id)));
        if child.told.as_ref() == Some(&status) {
            return;
        }
        // Of the statuses in flight only the oldest and the newest are kept.
        if self.has_two_of(life) {
            self.news.pop_back();
        }
        self.news.push_back((life, VolumeNews::Changed(Arc::clone(&status))));
        if let Some(child) = &mut self.child {
            child.told = Some(status);
        }
    }

    /// Whether the last two news are statuses of this life.
    fn has_two_of(&self, of: Attempt) -> bool {
        let mut last = self.news.iter().rev().take(2);
        let is_status =
            |(life, news): &(Attempt, VolumeNews)| *life == of && matches!(news, VolumeNews::Changed(_));
        last.len() == 2 && last.all(is_status)
    }

    /// Whether its actor can do this now.
    pub(super) fn can(&self, act: VolumeAct) -> bool {
        let Some(child) = &self.child else { return false };
        match act {
            VolumeAct::Works => self.next_step(child).is_some(),
            VolumeAct::Fails => self.next_step(child).is_some_and(|step| self.may_fail(step)),
            VolumeAct::GivesUp | VolumeAct::IsSilent => !child.waiting.is_empty(),
            VolumeAct::Falls => true,
            VolumeAct::FallsOverNext => !child.crashes_next,
            VolumeAct::Ends => child.is_stopping,
        }
    }
}

pub(super) fn not_running() -> AskError {
    AskError::NotRunning { actor: "volume".to_owned() }
}

/// The disk is sick: the work to be written was begun, or not.
pub(super) fn not_durable(is_begun: bool) -> AskError {
    AskError::NotDurable { actor: "volume".to_owned(), error: "the disk hangs".to_owned(), is_begun }
}
