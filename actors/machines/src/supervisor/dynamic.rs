//! A child of a dynamic supervisor, as OTP calls the owner of children that are started and stopped while it runs. Its lifecycle is the
//! same for each such owner.
//!
//! ```text
//!                   ┌────────── the pause is over ──────────┐
//!                   ▼                                       │
//!   waiting ──► running ── it fell ──► within the budget ─► pausing
//!                   │                  └─ exhausted ──────► given up
//!                   └── stopping ── ended, or killed at its deadline
//! ```
//!
//! Each life has its own number, so that an ending of an earlier life is recognized (REG-08). The owner decides which children
//! it wants and what follows an ending, and makes the calls that start, stop and kill.

use std::convert::Infallible;
use std::time::Duration;

use crate::kernel::{Machine, StepContext};
use crate::vocabulary::{Attempt, Backoff, BackoffState, Moment, RestartBudget, RestartHistory, Timestamp};

/// The state of a child of a dynamic supervisor. `W` is the event that an owner waits for before a child may start, if any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChildState<W = Infallible> {
    /// It does not run; it starts after this event.
    Waiting(W),
    /// It runs.
    Running(Attempt),
    /// It was asked to stop, and is killed at its deadline.
    Stopping(Attempt),
    /// It has fallen; a timer restarts it.
    Pausing,
    /// It has fallen too often. Only its owner can decide to start it again.
    GivenUp,
}

/// How the life of a child has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It was asked to stop.
    OnRequest,
    /// By itself.
    ByItself,
}

/// A child of a dynamic supervisor: its present life, and its restarts.
#[derive(Debug, Clone, Hash)]
pub struct DynamicChild<W = Infallible> {
    state: ChildState<W>,
    restarts: RestartHistory,
    backoff: BackoffState,
}

impl<W: Copy> DynamicChild<W> {
    /// A child without a life, in this state.
    #[must_use]
    pub fn new(state: ChildState<W>) -> Self {
        Self { state, restarts: RestartHistory::default(), backoff: BackoffState::default() }
    }

    /// The present state.
    pub const fn state(&self) -> ChildState<W> {
        self.state
    }

    /// The number of its life, if it has not ended.
    pub const fn life(&self) -> Option<Attempt> {
        match self.state {
            ChildState::Running(life) | ChildState::Stopping(life) => Some(life),
            ChildState::Waiting(_) | ChildState::Pausing | ChildState::GivenUp => None,
        }
    }

    /// The number of all restarts after a fall.
    pub const fn restarts(&self) -> u64 {
        self.restarts.total()
    }

    /// A new life has begun.
    pub const fn start(&mut self, life: Attempt) {
        self.state = ChildState::Running(life);
    }

    /// It does not run and waits for this event.
    pub const fn wait_for(&mut self, awaited: W) {
        self.state = ChildState::Waiting(awaited);
    }

    /// Forgets its falls: the budget is full again, and the next pause is the first one.
    pub fn forgive(&mut self) {
        *self = Self::new(self.state);
    }

    /// Continues the count of falls of the child before it.
    pub fn inherit(&mut self, former: Self) {
        (self.restarts, self.backoff) = (former.restarts, former.backoff);
    }

    /// It is asked to stop until `due`, when this timer elapses. `None` if it does not run, or was asked before.
    pub fn stop<M: Machine>(
        &mut self,
        deadline: M::Timer,
        due: Timestamp,
        cx: &mut StepContext<M>,
    ) -> Option<Attempt> {
        let ChildState::Running(life) = self.state else { return None };
        self.state = ChildState::Stopping(life);
        cx.start_timer(deadline, due);
        Some(life)
    }

    /// The deadline of its stop has elapsed: the life to kill, until `due` again. `None` if it ended in time.
    pub fn overdue<M: Machine>(
        &self,
        deadline: M::Timer,
        due: Timestamp,
        cx: &mut StepContext<M>,
    ) -> Option<Attempt> {
        let ChildState::Stopping(life) = self.state else { return None };
        cx.start_timer(deadline, due);
        Some(life)
    }

    /// How this life has ended. `None` for an earlier life, which has a successor or was killed by the owner when the owner was rebuilt
    /// (REG-08).
    pub fn ended(&self, life: Attempt) -> Option<Ended> {
        match self.state {
            ChildState::Running(current) if current == life => Some(Ended::ByItself),
            ChildState::Stopping(current) if current == life => Some(Ended::OnRequest),
            _ => None,
        }
    }

    /// It is restarted after a pause, when this timer elapses. Returns the pause.
    pub fn pause<M: Machine>(
        &mut self,
        restart: M::Timer,
        backoff: &Backoff,
        cx: &mut StepContext<M>,
    ) -> Duration {
        let pause = self.backoff.failed(backoff, cx.moment());
        cx.start_timer(restart, cx.now() + pause);
        self.state = ChildState::Pausing;
        pause
    }

    /// Its work has ended, which does not use its budget: the first time after a calm period it may start at once (`None`), later after a
    /// pause. Returns how often that happened, and the pause.
    pub fn lost<M: Machine>(
        &mut self,
        restart: M::Timer,
        backoff: &Backoff,
        cx: &mut StepContext<M>,
    ) -> Option<(u32, Duration)> {
        let pause = self.backoff.failed(backoff, cx.moment());
        if self.backoff.failures() <= 1 {
            return None;
        }
        cx.start_timer(restart, cx.now() + pause);
        self.state = ChildState::Pausing;
        Some((self.backoff.failures(), pause))
    }

    /// Counts a fall after which its owner starts it again by itself. False if its budget is exhausted.
    pub fn may_restart(&mut self, budget: &RestartBudget, moment: Moment) -> bool {
        self.restarts.charge(budget, moment.now)
    }

    /// It has fallen. True if it is restarted after a pause; false if its budget is exhausted, so that it is given up (S1).
    pub fn fell<M: Machine>(
        &mut self,
        restart: M::Timer,
        (budget, backoff): (&RestartBudget, &Backoff),
        cx: &mut StepContext<M>,
    ) -> bool {
        let may_restart = self.restarts.charge(budget, cx.now());
        if may_restart {
            self.pause(restart, backoff, cx);
        } else {
            self.state = ChildState::GivenUp;
        }
        may_restart
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Effect;
    use crate::supervisor::{RestartNumber, Supervisor, Timer};

    const TIMER: Timer = Timer::Pause(RestartNumber(0));
    const SECOND: Duration = Duration::from_secs(1);
    const BUDGET: RestartBudget = RestartBudget { limit: 2, window: Duration::from_secs(10) };
    const BACKOFF: Backoff =
        Backoff { first: SECOND, longest: Duration::from_secs(8), jitter_percent: 0, reset_after: SECOND };

    fn moment(seconds: u64) -> Moment {
        Moment { now: Timestamp::from_epoch(Duration::from_secs(seconds)), random: 0 }
    }

    fn running(life: u64) -> DynamicChild {
        let mut child = DynamicChild::new(ChildState::Pausing);
        child.start(Attempt::new(life));
        child
    }

    /// When the timers that were started elapse, in seconds.
    fn timers(cx: &StepContext<Supervisor>) -> Vec<u64> {
        let at = |effect: &Effect<Supervisor>| match effect {
            Effect::StartTimer(_, at) => Some(at.since_epoch().as_secs()),
            _ => None,
        };
        cx.as_slice().iter().filter_map(at).collect()
    }

    #[test]
    fn a_child_is_restarted_after_growing_pauses_until_its_budget_is_exhausted_s1() {
        let (mut child, mut cx) = (running(1), StepContext::new(moment(0)));
        let mut fall = |child: &mut DynamicChild, at| {
            cx.begin(moment(at));
            child.fell(TIMER, (&BUDGET, &BACKOFF), &mut cx)
        };
        assert!(fall(&mut child, 0) && fall(&mut child, 1));
        assert_eq!((child.state(), child.restarts()), (ChildState::Pausing, 2));
        assert!(!fall(&mut child, 3), "two within ten seconds are the budget");
        assert_eq!(child.state(), ChildState::GivenUp);
        child.forgive();
        assert!(fall(&mut child, 4), "the budget is full again");
        assert_eq!(timers(&cx), [1, 3, 5]);
    }

    #[test]
    fn an_ending_of_an_earlier_life_changes_nothing_reg_08() {
        let (mut child, mut cx) = (running(2), StepContext::<Supervisor>::new(moment(0)));
        assert_eq!(child.ended(Attempt::new(1)), None);
        assert_eq!(child.ended(Attempt::new(2)), Some(Ended::ByItself));
        child.stop(TIMER, moment(1).now, &mut cx);
        assert_eq!(child.ended(Attempt::new(1)), None);
        assert_eq!(child.ended(Attempt::new(2)), Some(Ended::OnRequest));
    }

    #[test]
    fn a_child_is_asked_to_stop_once_and_killed_at_each_deadline_until_it_has_ended_s3() {
        let (mut child, mut cx) = (running(7), StepContext::<Supervisor>::new(moment(0)));
        let (life, timer) = (Some(Attempt::new(7)), TIMER);
        assert_eq!(child.overdue(timer, moment(1).now, &mut cx), None, "it was not asked to stop");
        assert_eq!(child.stop(timer, moment(5).now, &mut cx), life);
        assert_eq!(child.stop(timer, moment(6).now, &mut cx), None);
        assert_eq!(child.overdue(timer, moment(10).now, &mut cx), life);
        assert_eq!(child.overdue(timer, moment(15).now, &mut cx), life);
        assert_eq!(timers(&cx), [5, 10, 15]);
    }

    #[test]
    fn a_child_that_is_lost_starts_at_once_the_first_time_and_after_a_pause_when_that_happens_again() {
        let (mut child, mut cx) = (running(1), StepContext::<Supervisor>::new(moment(0)));
        let mut lost = |at| {
            cx.begin(moment(at));
            child.lost(TIMER, &BACKOFF, &mut cx)
        };
        assert_eq!(lost(0), None);
        assert_eq!(lost(1), Some((2, 2 * SECOND)));
        assert_eq!(lost(30), None, "it was calm for long enough");
        assert_eq!(timers(&cx), [3]);
    }
}
