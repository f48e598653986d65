//! A plain model of the children of one supervisor, and of the effect handlers that start, watch and stop them.

use std::collections::BTreeMap;
use std::time::Duration;

use callboard_actors::shell::{CallLost, Ending, StopMode};
use callboard_actors::supervisor::{Call, FoundChild, Outcome, StopOutcome};
use callboard_actors::vocabulary::Timestamp;

use super::super::allocation::Reply;
use super::super::law::Law;
use super::super::law_checker::Verdict;

/// How long a child that was killed may still live before it counts as stuck.
const KILL_TIMEOUT: Duration = Duration::from_secs(2);

/// The children, their lives, and the calls in flight for them.
#[derive(Debug, Clone, Hash)]
pub(in super::super) struct Environment {
    slots: Vec<Slot>,
    lives: BTreeMap<u64, Life>,
    lives_ever: u64,
    pub(super) work: BTreeMap<u64, Work>,
    pub(super) verdict: Verdict,
}

/// The state of a child.
#[derive(Debug, Clone, Hash, Default)]
struct Slot {
    starting: Option<u64>,
    life: Option<u64>,
    has_run: bool,
}

/// One life of a child.
#[derive(Debug, Clone, Hash)]
struct Life {
    is_up: bool,
    told: Option<StopMode>,
    ending: Option<Ending>,
    is_stuck: bool,
}

/// A call in flight.
#[derive(Debug, Clone, Hash)]
pub(super) enum Work {
    Found(Vec<FoundChild>),
    Start { child: usize, is_called_back: bool, until: Timestamp },
    Watch { child: usize, life: Option<u64> },
    Stop { child: usize, life: Option<u64>, had_ended: bool, deadline: Duration, kill_at: Timestamp },
    Describe,
}

/// A call, by its purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Task {
    /// To look which children live.
    Found,
    /// To start a child.
    Start(usize),
    /// To watch a child until it ends.
    Watch(usize),
    /// To stop a child.
    Stop(usize),
    /// To let the children describe themselves.
    Describe,
}

impl Work {
    pub(super) const fn task(&self) -> Task {
        match self {
            Self::Found(_) => Task::Found,
            Self::Start { child, .. } => Task::Start(*child),
            Self::Watch { child, .. } => Task::Watch(*child),
            Self::Stop { child, .. } => Task::Stop(*child),
            Self::Describe => Task::Describe,
        }
    }
}

impl Environment {
    pub(super) fn new(children: usize) -> Self {
        Self {
            slots: vec![Slot::default(); children],
            lives: BTreeMap::new(),
            lives_ever: 0,
            work: BTreeMap::new(),
            verdict: Verdict::NONE,
        }
    }

    // === The observable state ===

    fn life_of(&self, child: usize) -> Option<&Life> {
        self.lives.get(&self.slots[child].life?)
    }

    /// Whether a child lives, up or not.
    pub(in super::super) fn is_alive(&self, child: usize) -> bool {
        self.life_of(child).is_some_and(|life| life.ending.is_none())
    }

    /// Whether a child lives that could not be ended.
    pub(super) fn is_stuck(&self, child: usize) -> bool {
        self.life_of(child).is_some_and(|life| life.is_stuck)
    }

    /// The mode in which a living child was asked to stop, if it was.
    pub(in super::super) fn told(&self, child: usize) -> Option<StopMode> {
        self.life_of(child).filter(|life| life.ending.is_none())?.told
    }

    /// Whether a caller waits for the end of a child that was asked to stop.
    pub(in super::super) fn is_being_stopped(&self, child: usize) -> bool {
        let stops = |work: &Work| matches!(work, Work::Stop { child: stopped, .. } if *stopped == child);
        self.work.values().any(stops)
    }

    /// Whether a child is being started, and does not live yet.
    pub(in super::super) fn is_being_made(&self, child: usize) -> bool {
        let slot = &self.slots[child];
        slot.starting.is_some() && slot.life.is_none()
    }

    fn has_died_early(&self, child: usize) -> bool {
        self.life_of(child).is_some_and(|life| !life.is_up)
    }

    /// The state of a child as a new supervisor finds it.
    fn found(&self, child: usize) -> FoundChild {
        let has_run = self.slots[child].has_run;
        let gone = |in_order| if has_run { FoundChild::Stopped { in_order } } else { FoundChild::Absent };
        match self.life_of(child) {
            None => gone(true),
            Some(Life { is_up: true, told: None, ending: None, .. }) => FoundChild::Alive,
            Some(Life { ending: None, .. }) => FoundChild::CutOff { has_run },
            Some(Life { is_up: true, told: None, ending: Some(ending), .. }) => {
                FoundChild::Ended(ending.clone())
            }
            Some(Life { ending: Some(ending), .. }) => gone(*ending == Ending::Normal),
        }
    }

    // === The effect handler ===

    pub(super) fn begin(&mut self, now: Timestamp, number: u64, within: Duration, call: Call) {
        let work = match call {
            Call::FindChildren => Work::Found((0..self.slots.len()).map(|child| self.found(child)).collect()),
            Call::StartChild { child } => {
                if self.is_alive(child) {
                    self.verdict.violation(Law::S2, || format!("c{child} is started while it lives"));
                }
                self.slots[child].starting = Some(number);
                self.slots[child].life = None;
                Work::Start { child, is_called_back: false, until: now + within }
            }
            Call::AwaitEnd { child } => Work::Watch { child, life: self.slots[child].life },
            Call::StopChild { child, mode, deadline, .. } => self.begin_stop(now, child, mode, deadline),
            Call::DescribeChildren { .. } => Work::Describe,
        };
        self.work.insert(number, work);
    }

    fn begin_stop(&mut self, now: Timestamp, child: usize, mode: StopMode, deadline: Duration) -> Work {
        let starting = self.slots[child].starting.take();
        if let Some(Work::Start { is_called_back, .. }) =
            starting.and_then(|number| self.work.get_mut(&number))
        {
            *is_called_back = true;
        }
        let life = self.slots[child].life;
        let mut had_ended = false;
        if let Some(life) = life.and_then(|number| self.lives.get_mut(&number)) {
            had_ended = life.ending.is_some();
            life.told = Some(mode);
        }
        Work::Stop { child, life, had_ended, deadline, kill_at: now + deadline }
    }

    /// The supervisor's step crashed: no call is awaited any longer, and the children continue to live.
    pub(super) fn cut_off(&mut self) {
        self.work.clear();
        self.slots.iter_mut().for_each(|slot| slot.starting = None);
        self.tidy();
    }

    /// The effect handlers are gone: all living children are killed.
    pub(super) fn drop_all(&mut self) {
        self.work.clear();
        let alive: Vec<usize> = (0..self.slots.len()).filter(|child| self.is_alive(*child)).collect();
        for child in alive {
            if !self.is_stuck(child) {
                self.ends(child, Ending::Killed);
            }
        }
    }

    // === The children ===

    /// A child that is being started lives, and is not up yet.
    pub(in super::super) fn make(&mut self, child: usize) {
        self.lives_ever += 1;
        let life = Life { is_up: false, told: None, ending: None, is_stuck: false };
        self.lives.insert(self.lives_ever, life);
        self.slots[child].life = Some(self.lives_ever);
    }

    /// A child ends, whatever its state.
    pub(in super::super) fn ends(&mut self, child: usize, ending: Ending) {
        let Some(life) = self.slots[child].life.and_then(|number| self.lives.get_mut(&number)) else {
            return;
        };
        life.ending.get_or_insert(ending);
    }

    // === Calls that return ===

    /// The time at which a call returns at the latest, if it has a relevant deadline.
    pub(super) fn due_of(&self, work: &Work) -> Option<Timestamp> {
        match work {
            Work::Start { is_called_back: false, until, .. } => Some(*until),
            Work::Stop { life: Some(_), had_ended: false, kill_at, .. } => Some(*kill_at),
            Work::Found(_) | Work::Start { .. } | Work::Watch { .. } | Work::Stop { .. } | Work::Describe => {
                None
            }
        }
    }

    fn ending_of(&self, life: Option<u64>) -> Option<&Ending> {
        self.lives.get(&life?)?.ending.as_ref()
    }

    /// Whether a call can return in this way.
    pub(super) fn can_return(&self, work: &Work, reply: Reply) -> bool {
        match (work, reply) {
            (Work::Found(_) | Work::Describe, Reply::Good | Reply::Bad)
            | (Work::Start { .. }, Reply::Good) => true,
            // The start of a child that has already died fails, whatever else could have been its result.
            (Work::Start { child, is_called_back: false, .. }, Reply::Bad | Reply::Odd | Reply::Late) => {
                self.life_of(*child).is_none_or(|life| life.ending.is_none())
            }
            (Work::Watch { life, .. }, Reply::Good) => self.ending_of(*life).is_some(),
            (Work::Watch { life, .. }, Reply::Bad) => self.ending_of(*life).is_none(),
            (Work::Stop { .. }, Reply::Good) => true,
            (Work::Stop { life, had_ended: false, .. }, Reply::Odd | Reply::Late | Reply::Bad) => {
                life.is_some() && self.ending_of(*life).is_none()
            }
            (Work::Found(_) | Work::Describe | Work::Watch { .. }, Reply::Odd | Reply::Late)
            | (Work::Start { .. } | Work::Stop { .. }, Reply::Bad | Reply::Odd | Reply::Late) => false,
        }
    }

    /// A call returns: changes the children, and returns the time it took until and its outcome.
    pub(super) fn give_back(
        &mut self,
        number: u64,
        reply: Reply,
    ) -> (Option<Timestamp>, Option<Result<Outcome, CallLost>>) {
        let Some(work) = self.work.remove(&number) else { return (None, None) };
        let lost = |within| Some(Err(CallLost::DeadlineExceeded(within)));
        let (until, said) = match work {
            Work::Found(children) if reply == Reply::Good => (None, Some(Ok(Outcome::Found(children)))),
            Work::Found(_) => (None, lost(KILL_TIMEOUT)),
            Work::Start { child, is_called_back: true, .. } => {
                (None, Some(Ok(failed(child, "the start was cancelled"))))
            }
            Work::Start { child, until, .. } => self.start_returns(child, until, reply),
            Work::Watch { child, life } => (None, self.watch_returns(child, life, reply)),
            Work::Stop { child, life, had_ended, deadline, kill_at } => {
                let outcome = match life {
                    Some(life) => self.stop_returns(life, had_ended, deadline, reply),
                    None if self.slots[child].has_run => ended_before(),
                    None => StopOutcome::NotStarted,
                };
                let until = match outcome {
                    StopOutcome::Killed { .. } => Some(kill_at),
                    StopOutcome::Stuck { .. } => Some(kill_at + KILL_TIMEOUT),
                    StopOutcome::Stopped
                    | StopOutcome::Crashed { .. }
                    | StopOutcome::EndedBefore { .. }
                    | StopOutcome::NotStarted => None,
                };
                if life.is_some() && !matches!(outcome, StopOutcome::Stuck { .. }) {
                    self.slots[child].life = None;
                }
                (until, Some(Ok(Outcome::Stopped { child, outcome, below: vec![] })))
            }
            Work::Describe if reply == Reply::Good => {
                (None, Some(Ok(Outcome::Described { own: Default::default(), children: Vec::new() })))
            }
            Work::Describe => (None, lost(KILL_TIMEOUT)),
        };
        self.tidy();
        (until, said)
    }

    fn start_returns(
        &mut self,
        child: usize,
        until: Timestamp,
        reply: Reply,
    ) -> (Option<Timestamp>, Option<Result<Outcome, CallLost>>) {
        self.slots[child].starting = None;
        if self.has_died_early(child) && !self.is_alive(child) {
            return (None, Some(Ok(failed(child, "it ended"))));
        }
        match reply {
            Reply::Good => {
                self.bring_up(child);
                (None, Some(Ok(Outcome::Started { child, result: Ok(()) })))
            }
            // A living child continues to live and does not become ready.
            Reply::Bad => (None, Some(Ok(failed(child, "no luck")))),
            Reply::Odd => {
                if !self.is_alive(child) {
                    self.make(child);
                }
                self.ends(child, Ending::Failed("no luck".to_owned()));
                (None, Some(Ok(failed(child, "it gave up"))))
            }
            Reply::Late => (Some(until), Some(Err(CallLost::DeadlineExceeded(Duration::from_secs(10))))),
        }
    }

    fn bring_up(&mut self, child: usize) {
        if !self.is_alive(child) {
            self.make(child);
        }
        self.slots[child].has_run = true;
        if let Some(life) = self.slots[child].life.and_then(|number| self.lives.get_mut(&number)) {
            life.is_up = true;
        }
    }

    fn watch_returns(
        &self,
        child: usize,
        life: Option<u64>,
        reply: Reply,
    ) -> Option<Result<Outcome, CallLost>> {
        if reply != Reply::Good {
            return Some(Err(CallLost::Busy(1)));
        }
        let ending = self.ending_of(life)?.clone();
        Some(Ok(Outcome::Ended { child, ending }))
    }

    fn stop_returns(&mut self, life: u64, had_ended: bool, deadline: Duration, reply: Reply) -> StopOutcome {
        let Some(life) = self.lives.get_mut(&life) else { return ended_before() };
        let reason = || "not in order".to_owned();
        match (&life.ending, reply) {
            (Some(_), _) if had_ended => ended_before(),
            (Some(Ending::Normal), _) => StopOutcome::Stopped,
            (Some(_), _) => StopOutcome::Crashed { reason: reason() },
            (None, Reply::Good) => {
                life.ending = Some(Ending::Normal);
                StopOutcome::Stopped
            }
            (None, Reply::Odd) => {
                life.ending = Some(Ending::Panicked("boom".to_owned()));
                StopOutcome::Crashed { reason: reason() }
            }
            (None, Reply::Late) => {
                life.ending = Some(Ending::Killed);
                StopOutcome::Killed { deadline }
            }
            (None, Reply::Bad) => {
                life.is_stuck = true;
                StopOutcome::Stuck { reason: reason() }
            }
        }
    }

    /// Forgets lives that have ended and that no call refers to.
    fn tidy(&mut self) {
        let (slots, work) = (&self.slots, &self.work);
        self.lives.retain(|number, _| {
            let is_held = slots.iter().any(|slot| slot.life == Some(*number));
            is_held
                || work.values().any(|work| match work {
                    Work::Watch { life, .. } | Work::Stop { life, .. } => *life == Some(*number),
                    Work::Found(_) | Work::Start { .. } | Work::Describe => false,
                })
        });
    }
}

fn ended_before() -> StopOutcome {
    StopOutcome::EndedBefore { reason: "it was over".to_owned(), in_order: true }
}

fn failed(child: usize, reason: &str) -> Outcome {
    Outcome::Started { child, result: Err(reason.to_owned()) }
}
