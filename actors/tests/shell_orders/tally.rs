//! A tiny machine that keeps numbers in the order in which they came, and a disk that is controlled by the test.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix::Recipient;
use callboard_actors::conversation;
use callboard_actors::persister::{Settled, WriteError};
use callboard_actors::shell::{
    Address, AskId, CallKey, EffectHandler, Input, Machine, Running, Settings, Started, StepContext,
    StopMode, Store, Ticket, Written, start,
};
use callboard_actors::vocabulary::{Moment, RestartBudget, Timestamp};
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use tokio::sync::Notify;

pub(crate) use super::story::story;

// === The machine ===

/// Keeps a number; the answer is its place.
#[derive(Debug, Clone)]
pub(crate) struct Keep(pub(crate) u64);
/// Keeps two numbers with one write each; the answer, given between the writes, is the place of the first.
#[derive(Debug, Clone)]
pub(crate) struct KeepTwo(pub(crate) u64, pub(crate) u64);
/// Asks for all numbers.
#[derive(Debug, Clone)]
pub(crate) struct All;
/// Waits until a number is kept.
#[derive(Debug, Clone)]
pub(crate) struct Await(pub(crate) u64);
/// Makes the step panic in the middle of its work.
#[derive(Debug, Clone)]
pub(crate) struct Stumble;
/// Makes a call, and then keeps a number.
#[derive(Debug, Clone)]
pub(crate) struct Fetch(pub(crate) u64);
/// Keeps a number after a pause.
#[derive(Debug, Clone)]
pub(crate) struct KeepLater(pub(crate) u64, pub(crate) Duration);
/// Asks for the time at which this question was asked.
#[derive(Debug, Clone)]
pub(crate) struct AskedAt;

conversation! {
    /// The messages to the tally.
    pub(crate) enum Ask -> Answer {
        Keep => usize,
        KeepTwo => usize,
        All => Vec<u64>,
        Await => (),
        Stumble => (),
        Fetch => usize,
        KeepLater => usize,
        AskedAt => Timestamp,
    }
}

/// Faults outside of steps, counted down: a fault happens while its count is above zero.
#[derive(Debug, Default)]
pub(crate) struct Mischief {
    pub(crate) restore_panics: Cell<u32>,
    pub(crate) view_panics: Cell<u32>,
    pub(crate) resume_panics: Cell<u32>,
    pub(crate) stop_panics: Cell<u32>,
    pub(crate) call_panics: Cell<u32>,
    pub(crate) drop_panics: Cell<u32>,
    pub(crate) publish_panics: Cell<u32>,
    pub(crate) stops_seen: RefCell<Vec<StopMode>>,
    pub(crate) inputs_seen: RefCell<Vec<String>>,
}

impl Mischief {
    fn strike(count: &Cell<u32>, what: &str) {
        if let Some(left) = count.get().checked_sub(1) {
            count.set(left);
            panic!("{what} panics on purpose");
        }
    }

    pub(crate) fn calm(&self) {
        for count in [
            &self.restore_panics,
            &self.view_panics,
            &self.resume_panics,
            &self.stop_panics,
            &self.call_panics,
            &self.drop_panics,
            &self.publish_panics,
        ] {
            count.set(0);
        }
    }
}

#[derive(Debug)]
pub(crate) struct Tally {
    numbers: Vec<u64>,
    waiting: Vec<(AskId, u64)>,
    fetching: Vec<(AskId, u64)>,
    later: Vec<(AskId, u64)>,
    mischief: Rc<Mischief>,
}

impl Machine for Tally {
    const KIND: &'static str = "tally";
    type Config = Rc<Mischief>;
    type Image = Vec<u64>;
    type Ask = Ask;
    type Answer = Answer;
    type Call = u64;
    type Outcome = ();
    type Timer = u64;
    type Change = u64;
    type News = u64;
    type View = Vec<u64>;

    fn restore(mischief: &Rc<Mischief>, numbers: Vec<u64>, _: Moment) -> Self {
        Mischief::strike(&mischief.restore_panics, "restore");
        let mischief = Rc::clone(mischief);
        Self { numbers, waiting: vec![], fetching: vec![], later: vec![], mischief }
    }

    fn step(&mut self, input: &Input<Self>, cx: &mut StepContext<Self>) {
        self.mischief.inputs_seen.borrow_mut().push(name_of(input));
        match input {
            Input::Resumed => Mischief::strike(&self.mischief.resume_panics, "resuming"),
            Input::Asked { id, asked_at, ask } => self.asked(*id, *asked_at, ask, cx),
            Input::Returned { call, .. } => {
                let place = self.fetching.iter().position(|(_, number)| number == call);
                let (id, number) = self.fetching.remove(place.expect("it was asked for"));
                let place = self.keep(number, cx);
                cx.reply(id, Answer::Fetch(place));
            }
            Input::Elapsed(number) => {
                let place = self.later.iter().position(|(_, other)| other == number);
                let (id, number) = self.later.remove(place.expect("it was asked for"));
                let place = self.keep(number, cx);
                cx.reply(id, Answer::KeepLater(place));
            }
            Input::StopRequested(mode) => {
                self.mischief.stops_seen.borrow_mut().push(*mode);
                Mischief::strike(&self.mischief.stop_panics, "stopping");
                cx.stop();
            }
        }
    }

    fn view(&self) -> Vec<u64> {
        Mischief::strike(&self.mischief.view_panics, "the view");
        self.numbers.clone()
    }
}

fn name_of(input: &Input<Tally>) -> String {
    match input {
        Input::Resumed => "resumed".to_owned(),
        Input::Asked { ask, .. } => format!("{ask:?}"),
        Input::Returned { call, .. } => format!("returned {call}"),
        Input::Elapsed(number) => format!("elapsed {number}"),
        Input::StopRequested(mode) => format!("{mode:?}"),
    }
}

impl Tally {
    fn asked(&mut self, id: AskId, asked_at: Timestamp, ask: &Ask, cx: &mut StepContext<Self>) {
        match ask {
            Ask::Keep(Keep(number)) => {
                let place = self.keep(*number, cx);
                cx.reply(id, Answer::Keep(place));
            }
            Ask::KeepTwo(KeepTwo(first, second)) => {
                let place = self.keep(*first, cx);
                cx.reply(id, Answer::KeepTwo(place));
                self.keep(*second, cx);
            }
            Ask::AskedAt(AskedAt) => cx.reply(id, Answer::AskedAt(asked_at)),
            Ask::All(All) => cx.reply(id, Answer::All(self.numbers.clone())),
            Ask::Await(Await(number)) if self.numbers.contains(number) => {
                cx.reply(id, Answer::Await(()));
            }
            Ask::Await(Await(number)) => self.waiting.push((id, *number)),
            Ask::Stumble(Stumble) => {
                self.keep(u64::MAX, cx);
                cx.reply(id, Answer::Stumble(()));
                panic!("stumbled on purpose");
            }
            Ask::Fetch(Fetch(number)) => {
                self.fetching.push((id, *number));
                cx.call(CallKey::default(), Duration::from_secs(5), *number);
            }
            Ask::KeepLater(KeepLater(number, pause)) => {
                self.later.push((id, *number));
                cx.start_timer(*number, cx.now() + *pause);
            }
        }
    }

    fn keep(&mut self, number: u64, cx: &mut StepContext<Self>) -> usize {
        self.numbers.push(number);
        cx.persist(number);
        cx.publish(number);
        for (waiter, _) in self.waiting.extract_if(.., |(_, awaited)| *awaited == number) {
            cx.reply(waiter, Answer::Await(()));
        }
        self.numbers.len()
    }
}

/// Calls take a moment.
pub(crate) struct Handler(pub(crate) Rc<Mischief>);

impl EffectHandler<Tally> for Handler {
    fn call(&mut self, _: u64) -> Started<()> {
        Mischief::strike(&self.0.call_panics, "calling");
        let clumsy = Rc::clone(&self.0);
        Started::running(async move {
            let is_hanging = clumsy.drop_panics.get() > 0;
            let _clumsy = Clumsy(clumsy);
            tokio::time::sleep(Duration::from_millis(if is_hanging { 60_000 } else { 3 })).await;
        })
    }

    fn published(&mut self, _: &u64) {
        Mischief::strike(&self.0.publish_panics, "publishing");
    }
}

/// A value that a call holds, with a drop that may panic.
struct Clumsy(Rc<Mischief>);

impl Drop for Clumsy {
    fn drop(&mut self) {
        Mischief::strike(&self.0.drop_panics, "letting go");
    }
}

// === The disk ===

/// The outcome of the next write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NextWrite {
    /// It waits for [`Disk::settle`].
    Waits,
    /// It is on disk at once, if nothing waits before it.
    Now,
    /// It fails at once.
    Fails,
    /// The store panics.
    Panics,
}

/// How waiting writes are settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It is on disk.
    Written,
    /// It is not.
    Failed,
    /// The commit reported a failure, and yet it is on disk.
    FailedButWritten,
}

/// The outcome of the next load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NextLoad {
    Fails,
    Panics,
    PanicsLater,
}

#[derive(Default)]
struct State {
    numbers: Vec<u64>,
    waiting: VecDeque<(Ticket, u64)>,
    failed_epoch: Option<u64>,
    refused: Option<Ticket>,
    settled: Option<Recipient<Settled>>,
    writes: VecDeque<NextWrite>,
    loads: VecDeque<NextLoad>,
    written_after_failure: bool,
    is_manual: bool,
}

/// A disk that settles writes when the test requests it, as the real persister does: in order, and without the writes of an
/// epoch after its first failure.
#[derive(Clone, Default)]
pub(crate) struct Disk {
    state: Rc<RefCell<State>>,
    moved: Rc<Notify>,
}

impl Disk {
    /// A disk whose writes wait for [`Disk::settle`].
    pub(crate) fn manual() -> Self {
        let disk = Self::default();
        disk.state.borrow_mut().is_manual = true;
        disk
    }

    pub(crate) fn numbers(&self) -> Vec<u64> {
        self.state.borrow().numbers.clone()
    }

    pub(crate) fn waiting(&self) -> usize {
        self.state.borrow().waiting.len()
    }

    pub(crate) fn next_write(&self, next: NextWrite) {
        self.state.borrow_mut().writes.push_back(next);
    }

    pub(crate) fn next_load(&self, next: NextLoad) {
        self.state.borrow_mut().loads.push_back(next);
    }

    /// Whether the shell handed over a write behind another one of the same epoch that had failed at once.
    pub(crate) fn has_written_after_failure(&self) -> bool {
        self.state.borrow().written_after_failure
    }

    /// From now on nothing fails, and writes are on disk at once.
    pub(crate) fn calm(&self) {
        let mut state = self.state.borrow_mut();
        state.is_manual = false;
        state.writes.clear();
        state.loads.clear();
        drop(state);
        while self.settle(1, Outcome::Written) {}
    }

    /// Settles this many of the waiting writes, up to the end of the first epoch among them, as one commit. False if none waits.
    pub(crate) fn settle(&self, count: usize, outcome: Outcome) -> bool {
        let mut state = self.state.borrow_mut();
        let Some((first, _)) = state.waiting.front().copied() else { return false };
        let mut through = first.sequence;
        for _ in 0..count.max(1) {
            match state.waiting.front().copied() {
                Some((ticket, number)) if ticket.epoch == first.epoch => {
                    through = ticket.sequence;
                    if outcome != Outcome::Failed {
                        state.keep(number);
                    }
                    state.waiting.pop_front();
                }
                Some(_) | None => break,
            }
        }
        let outcome = match outcome {
            Outcome::Written => Ok(()),
            Outcome::Failed | Outcome::FailedButWritten => {
                state.fail(first.epoch);
                Err(disk_full())
            }
        };
        let settled = Settled { epoch: first.epoch, through, outcome };
        state.settled.as_ref().expect("it is open").do_send(settled);
        drop(state);
        self.moved.notify_waiters();
        true
    }
}

impl State {
    /// A number that took effect and was reported as lost is handed over again.
    fn keep(&mut self, number: u64) {
        if !self.numbers.contains(&number) {
            self.numbers.push(number);
        }
    }

    fn fail(&mut self, epoch: u64) {
        self.failed_epoch = self.failed_epoch.max(Some(epoch));
        self.waiting.retain(|(ticket, _)| ticket.epoch > epoch);
    }
}

impl Store<Tally> for Disk {
    fn open(&mut self, settled: Recipient<Settled>) {
        let mut state = self.state.borrow_mut();
        state.settled = Some(settled);
        state.failed_epoch = None;
        state.refused = None;
        // As with the real persister, the writes that an earlier life handed over still reach the disk.
        let left: Vec<u64> = state.waiting.drain(..).map(|(_, number)| number).collect();
        left.into_iter().for_each(|number| state.keep(number));
    }

    fn write(&mut self, ticket: Ticket, number: u64) -> Written {
        let mut state = self.state.borrow_mut();
        let is_on_top = |refused: Ticket| refused.epoch >= ticket.epoch && refused.sequence < ticket.sequence;
        let refused = state.refused.take();
        state.written_after_failure |= refused.is_some_and(is_on_top);
        if state.failed_epoch >= Some(ticket.epoch) {
            // Its owner will be notified that this epoch has failed.
            return Written::Later;
        }
        let calm = if state.is_manual { NextWrite::Waits } else { NextWrite::Now };
        let next = state.writes.pop_front().unwrap_or(calm);
        match next {
            NextWrite::Now if state.waiting.is_empty() => {
                state.keep(number);
                Written::Now
            }
            NextWrite::Now | NextWrite::Waits => {
                state.waiting.push_back((ticket, number));
                Written::Later
            }
            NextWrite::Fails => {
                state.refused = Some(ticket);
                Written::Failed("the disk is full at once".to_owned())
            }
            NextWrite::Panics => {
                state.refused = Some(ticket);
                drop(state);
                panic!("the store panics on purpose")
            }
        }
    }

    fn load(&mut self) -> LocalBoxFuture<'static, Result<Vec<u64>, String>> {
        let next = self.state.borrow_mut().loads.pop_front();
        let disk = self.clone();
        match next {
            Some(NextLoad::Panics) => panic!("loading panics on purpose"),
            Some(NextLoad::PanicsLater) => {
                Box::pin(async { panic!("loading panics on purpose, a little later") })
            }
            Some(NextLoad::Fails) => Box::pin(async { Err("the disk does not answer".to_owned()) }),
            None => Box::pin(async move {
                while disk.waiting() > 0 {
                    disk.moved.notified().await;
                }
                Ok(disk.numbers())
            }),
        }
    }
}

fn disk_full() -> WriteError {
    let source = Arc::new(std::io::Error::from(std::io::ErrorKind::StorageFull));
    WriteError::NoSpace { path: "/data/callboard.redb".into(), source }
}

// === The stage ===

/// A tally at an address, with its surroundings.
pub(crate) struct Stage {
    pub(crate) tally: Address<Tally>,
    pub(crate) running: Running,
    pub(crate) disk: Disk,
    pub(crate) mischief: Rc<Mischief>,
    pub(crate) settings: Settings,
}

impl Stage {
    pub(crate) fn new(disk: Disk, limit: usize) -> Self {
        let budget = RestartBudget { limit: 1_000, window: Duration::from_secs(60) };
        Self::with(disk, limit, Settings { seed: Some(7), budget, ..Settings::default() })
    }

    pub(crate) fn with(disk: Disk, limit: usize, settings: Settings) -> Self {
        let tally = Address::vacant("tally", limit);
        let mischief = Rc::new(Mischief::default());
        let running = begin(&tally, &mischief, &disk, &settings);
        Self { tally, running, disk, mischief, settings }
    }

    /// Starts another life at the same address.
    pub(crate) fn start_again(&mut self) {
        self.running = self.another_life();
    }

    /// Starts another life at the same address, and returns its parent's view.
    pub(crate) fn another_life(&self) -> Running {
        begin(&self.tally, &self.mischief, &self.disk, &self.settings)
    }

    /// How it ended, if it has ended.
    pub(crate) fn ending(&self) -> Option<callboard_actors::shell::Ending> {
        self.running.ended().now_or_never()
    }
}

fn begin(tally: &Address<Tally>, mischief: &Rc<Mischief>, disk: &Disk, settings: &Settings) -> Running {
    start(tally, Rc::clone(mischief), Handler(Rc::clone(mischief)), disk.clone(), settings.clone())
}

/// Lets everything that is ready now run.
pub(crate) async fn settle_down() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}
