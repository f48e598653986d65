//! A disk for registrations that fails, waits and crashes as it is told to, in the way of the real persister.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use actix::Recipient;
use callboard_actors::persister::{Settled, WriteError};
use callboard_actors::registry::{Image, Stored, StoredChange};
use callboard_actors::shell::{Store, Ticket, Written};
use callboard_actors::vocabulary::{RegistrationNumber, RunNumber};
use futures_util::future::LocalBoxFuture;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::fragile::Fragile;

/// What lies on the disk.
pub(crate) type Rows = BTreeMap<RegistrationNumber, Stored>;

/// How waiting writes are settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// They are on disk.
    Written,
    /// They are not.
    Failed,
    /// The commit says that it failed, and yet they are on disk.
    FailedButWritten,
}

struct State {
    rows: Rows,
    ceiling: u64,
    run: RunNumber,
    begun: Instant,
    waiting: VecDeque<(Ticket, StoredChange)>,
    failed_epoch: Option<u64>,
    settled: Option<Recipient<Settled>>,
    fails_at_once: u32,
    loads_fail: u32,
    is_manual: bool,
    is_ambiguous: bool,
    history: Vec<Rows>,
}

/// The disk. Clones share it.
#[derive(Clone)]
pub(crate) struct Disk {
    state: Rc<RefCell<State>>,
    moved: Rc<Notify>,
}

impl Disk {
    pub(crate) fn new() -> Self {
        let state = State {
            rows: Rows::new(),
            ceiling: 0,
            run: RunNumber::new(1),
            begun: Instant::now(),
            waiting: VecDeque::new(),
            failed_epoch: None,
            settled: None,
            fails_at_once: 0,
            loads_fail: 0,
            is_manual: true,
            is_ambiguous: false,
            history: vec![Rows::new()],
        };
        Self { state: Rc::new(RefCell::new(state)), moved: Rc::default() }
    }

    /// What lies on it now, and the run of the host.
    pub(crate) fn rows(&self) -> (Rows, RunNumber) {
        let state = self.state.borrow();
        (state.rows.clone(), state.run)
    }

    /// Whether it has ever held what satisfies this.
    pub(crate) fn has_held(&self, is_it: impl Fn(&Rows, RunNumber) -> bool) -> bool {
        let state = self.state.borrow();
        state.history.iter().rev().any(|rows| is_it(rows, state.run))
    }

    /// How long the present run has lasted.
    pub(crate) fn run_age(&self) -> std::time::Duration {
        self.state.borrow().begun.elapsed()
    }

    pub(crate) fn fail_next_at_once(&self) {
        self.state.borrow_mut().fails_at_once += 1;
    }

    pub(crate) fn fail_next_load(&self) {
        self.state.borrow_mut().loads_fail += 1;
    }

    /// Whether a commit failed and took effect since this was asked before: then nobody can tell from the answers what is on
    /// disk.
    pub(crate) fn was_ambiguous(&self) -> bool {
        std::mem::take(&mut self.state.borrow_mut().is_ambiguous)
    }

    /// Settles so many of the waiting writes as one commit.
    pub(crate) fn settle(&self, count: usize, outcome: Outcome) -> bool {
        let mut state = self.state.borrow_mut();
        let Some((first, _)) = state.waiting.front() else { return false };
        let (epoch, mut through) = (first.epoch, first.sequence);
        for _ in 0..count.max(1) {
            if state.waiting.front().is_none_or(|(ticket, _)| ticket.epoch != epoch) {
                break;
            }
            let Some((ticket, change)) = state.waiting.pop_front() else { break };
            through = ticket.sequence;
            if outcome != Outcome::Failed {
                state.apply(change);
            }
        }
        state.is_ambiguous |= outcome == Outcome::FailedButWritten;
        let outcome = match outcome {
            Outcome::Written => Ok(()),
            Outcome::Failed | Outcome::FailedButWritten => {
                state.failed_epoch = state.failed_epoch.max(Some(epoch));
                state.waiting.retain(|(ticket, _)| ticket.epoch > epoch);
                Err(disk_full())
            }
        };
        state.settled.as_ref().expect("it is open").do_send(Settled { epoch, through, outcome });
        drop(state);
        self.moved.notify_waiters();
        true
    }

    /// From now on nothing fails, and whatever waits is written.
    pub(crate) fn calm(&self) {
        let mut state = self.state.borrow_mut();
        state.fails_at_once = 0;
        state.loads_fail = 0;
        state.is_manual = false;
        drop(state);
        while self.settle(3, Outcome::Written) {}
    }

    /// Writes wait again.
    pub(crate) fn trouble(&self) {
        self.state.borrow_mut().is_manual = true;
    }

    /// The host was killed: so many of the waiting writes had reached the disk. The next run begins.
    pub(crate) fn begin_run(&self, reached: usize) {
        let mut state = self.state.borrow_mut();
        let waiting = std::mem::take(&mut state.waiting);
        waiting.into_iter().take(reached).for_each(|(_, change)| state.apply(change));
        state.run = state.run.next();
        state.begun = Instant::now();
        state.history = vec![state.rows.clone()];
    }
}

impl State {
    fn apply(&mut self, change: StoredChange) {
        for number in &change.delete {
            assert!(self.rows.remove(number).is_some(), "{number} is removed and was not there");
        }
        self.rows.extend(change.put.into_iter().map(|stored| (stored.number, stored)));
        self.ceiling = self.ceiling.max(change.ceiling.unwrap_or(0));
        self.history.push(self.rows.clone());
    }
}

impl Store<Fragile> for Disk {
    fn open(&mut self, settled: Recipient<Settled>) {
        let mut state = self.state.borrow_mut();
        state.settled = Some(settled);
        state.failed_epoch = None;
        // What an earlier life of the actor handed over still reaches the disk.
        let left = std::mem::take(&mut state.waiting);
        left.into_iter().for_each(|(_, change)| state.apply(change));
    }

    fn write(&mut self, ticket: Ticket, change: StoredChange) -> Written {
        let mut state = self.state.borrow_mut();
        if state.failed_epoch >= Some(ticket.epoch) {
            // Its owner is about to hear of it.
            return Written::Later;
        }
        if let Some(left) = state.fails_at_once.checked_sub(1) {
            state.fails_at_once = left;
            return Written::Failed("the disk is full at once".to_owned());
        }
        if state.is_manual || !state.waiting.is_empty() {
            state.waiting.push_back((ticket, change));
            return Written::Later;
        }
        state.apply(change);
        Written::Now
    }

    fn load(&mut self) -> LocalBoxFuture<'static, Result<Image, String>> {
        let left = self.state.borrow().loads_fail.checked_sub(1);
        if let Some(left) = left {
            self.state.borrow_mut().loads_fail = left;
            return Box::pin(async { Err("the disk does not answer".to_owned()) });
        }
        let disk = self.clone();
        Box::pin(async move {
            while !disk.state.borrow().waiting.is_empty() {
                disk.moved.notified().await;
            }
            let state = disk.state.borrow();
            let (run, run_age) = (state.run, state.begun.elapsed());
            Ok(Image { stored: state.rows.values().cloned().collect(), ceiling: state.ceiling, run, run_age })
        })
    }
}

fn disk_full() -> WriteError {
    let source = Arc::new(std::io::Error::from(std::io::ErrorKind::StorageFull));
    WriteError::NoSpace { path: "/data/callboard.redb".into(), source }
}
