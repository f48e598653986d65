//! A disk for registrations that fails, waits and crashes on request, as the real persister does.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix::Recipient;
use callboard_actors::persister::{Settled, WriteError};
use callboard_actors::registry::{Image, Stored, StoredChange};
use callboard_actors::shell::{Store, Ticket, Written};
use callboard_actors::vocabulary::{RegistrationNumber, RunNumber};
use futures_util::future::LocalBoxFuture;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::fragile::Fragile;

/// More numbers than can be reported without being handed over.
const NUMBERS_TOLD: u64 = 1_000;

/// The rows on the disk.
pub(crate) type Rows = BTreeMap<RegistrationNumber, Stored>;

/// How waiting writes are settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// They are on disk.
    Written,
    /// They are not.
    Failed,
    /// The commit reports a failure, and yet they are on disk.
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
    /// Whether lost writes have not been handed over again.
    is_behind: bool,
    /// The epoch in which the last lost writes are handed over again.
    again_in: Option<u64>,
    has_lost: bool,
    /// The rows on the disk once everything that was handed over is on it.
    believed: Rows,
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
            is_behind: false,
            again_in: None,
            has_lost: false,
            believed: Rows::new(),
            history: vec![Rows::new()],
        };
        Self { state: Rc::new(RefCell::new(state)), moved: Rc::default() }
    }

    /// The rows on the disk now, and the run of the host.
    pub(crate) fn rows(&self) -> (Rows, RunNumber) {
        let state = self.state.borrow();
        (state.rows.clone(), state.run)
    }

    /// Whether rows that satisfy this were ever on the disk or handed over to it.
    pub(crate) fn has_held(&self, is_it: impl Fn(&Rows, RunNumber) -> bool) -> bool {
        let state = self.state.borrow();
        state.history.iter().rev().any(|rows| is_it(rows, state.run))
    }

    /// How long the present run has lasted.
    pub(crate) fn run_age(&self) -> Duration {
        self.state.borrow().begun.elapsed()
    }

    pub(crate) fn fail_next_at_once(&self) {
        self.state.borrow_mut().fails_at_once += 1;
    }

    pub(crate) fn fail_next_load(&self) {
        self.state.borrow_mut().loads_fail += 1;
    }

    /// Whether writes were lost and not yet handed over again.
    pub(crate) fn is_behind(&self) -> bool {
        self.state.borrow().is_behind
    }

    /// Whether writes were lost since the last call of this function: then a deregistration that was answered may be taken back.
    pub(crate) fn has_lost(&self) -> bool {
        std::mem::take(&mut self.state.borrow_mut().has_lost)
    }

    /// Its owner is killed. Lost writes are not handed over again, and the numbers in them were reported.
    pub(crate) fn forget_what_was_lost(&self) {
        let mut state = self.state.borrow_mut();
        if std::mem::take(&mut state.is_behind) {
            state.has_lost = true;
            let known = Image::of(vec![], state.ceiling, state.run, Duration::ZERO);
            state.ceiling = known.ceiling + NUMBERS_TOLD;
        }
    }

    /// Settles this many of the waiting writes as one commit.
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
        state.is_behind |= outcome != Outcome::Written;
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

    /// From now on nothing fails, and all waiting writes are written.
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

    /// The host was killed, and at most this many of the waiting writes reach the disk.
    pub(crate) fn lose_all_but(&self, reached: usize) {
        let mut state = self.state.borrow_mut();
        state.has_lost |= reached < state.waiting.len();
    }

    /// The host was killed: this many of the waiting writes had reached the disk. The next run begins.
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
    /// Records the rows that its owner believes to be on it.
    fn believe(&mut self, change: &StoredChange) {
        change.delete.iter().for_each(|number| drop(self.believed.remove(number)));
        self.believed.extend(change.put.iter().map(|stored| (stored.number, stored.clone())));
        self.history.push(self.believed.clone());
    }

    fn apply(&mut self, change: StoredChange) {
        // A change that took effect and was reported as lost is handed over again.
        for number in &change.delete {
            self.rows.remove(number);
        }
        self.rows.extend(change.put.into_iter().map(|stored| (stored.number, stored)));
        self.history.push(self.rows.clone());
    }
}

impl Store<Fragile> for Disk {
    fn open(&mut self, settled: Recipient<Settled>) {
        let mut state = self.state.borrow_mut();
        state.settled = Some(settled);
        state.failed_epoch = None;
        // The writes that an earlier life of the actor handed over still reach the disk.
        let left = std::mem::take(&mut state.waiting);
        left.into_iter().for_each(|(_, change)| state.apply(change));
    }

    fn write(&mut self, ticket: Ticket, change: StoredChange) -> Written {
        let mut state = self.state.borrow_mut();
        state.ceiling = state.ceiling.max(change.ceiling());
        if state.fails_at_once == 0 || state.failed_epoch >= Some(ticket.epoch) {
            state.believe(&change);
        }
        if state.failed_epoch < Some(ticket.epoch) && std::mem::take(&mut state.is_behind) {
            state.again_in = Some(ticket.epoch);
        }
        if state.failed_epoch >= Some(ticket.epoch) {
            // Its owner will be notified of the failure.
            return Written::Later;
        }
        if let Some(left) = state.fails_at_once.checked_sub(1) {
            state.fails_at_once = left;
            state.is_behind |= state.again_in == Some(ticket.epoch);
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
            let mut state = disk.state.borrow_mut();
            state.believed = state.rows.clone();
            let (run, run_age) = (state.run, state.begun.elapsed());
            Ok(Image::of(state.rows.values().cloned().collect(), state.ceiling, run, run_age))
        })
    }
}

fn disk_full() -> WriteError {
    let source = Arc::new(std::io::Error::from(std::io::ErrorKind::StorageFull));
    WriteError::NoSpace { path: "/data/callboard.redb".into(), source }
}
