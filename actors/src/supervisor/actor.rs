//! The effect handler of the supervisor: holds the children, starts, watches, stops and kills them.

use std::cell::RefCell;
use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{AbortHandle, Abortable, LocalBoxFuture, join_all};
use tokio::time::Instant;

use super::child::{Child, Describe, EndRest, Ready, Start};
use super::{
    Call, ChildDescription, ChildSeen, ChildSpec, FoundChild, Outcome, Plan, StopOutcome, Supervisor,
    SupervisorNews, SupervisorSpec,
};
use crate::pauses;
use crate::shell::{
    self, Address, EffectHandler, Ending, NoStore, Running, Settings, Started, StopMode, StopStep,
};
use crate::vocabulary::milliseconds;

/// The timeout for a killed child to be gone. Only a child that blocks the thread takes that long.
const KILL_TIMEOUT: Duration = Duration::from_secs(2);

/// The timeout for the ending of a child that does not get ready. A child that ends drops its callers right before that, so the
/// errors that they receive are less informative than its ending.
const ENDING_TIMEOUT: Duration = Duration::from_millis(100);

/// The margin added to the stop bound that a child reports.
const SAID_MARGIN: Duration = Duration::from_secs(5);

/// The limit of concurrent calls per child: a start, a watch and the stops that overlap: for a restart, to detach, to stop.
const CALLS_PER_CHILD: usize = 5;

/// Starts a supervisor at a vacant address; it starts its children in order and at once. It ends as [`Ending::Failed`] when
/// the first start of a child fails, or when its restart budget is exhausted.
///
/// # Panics
/// If two children have the same name, and outside of an actix system.
pub fn start(
    address: &Address<Supervisor>,
    spec: SupervisorSpec,
    children: Vec<Child>,
    settings: Settings,
) -> Running {
    let specs: Vec<ChildSpec> = children.iter().map(|child| child.spec.clone()).collect();
    for (place, spec) in specs.iter().enumerate() {
        let is_known = specs[..place].iter().any(|earlier| earlier.name == spec.name);
        assert!(!is_known, "two children of {} are named {}", address.name(), spec.name);
    }
    let calls_running_max = settings.calls_running_max.max(CALLS_PER_CHILD * specs.len() + 2);
    let settings = Settings { calls_running_max, ..settings };
    let plan = Plan { name: address.name().to_owned(), spec, children: specs.into() };
    let slots = children.into_iter().map(Slot::new).collect();
    shell::start(address, plan, Handler { address: address.clone(), slots }, NoStore, settings)
}

/// The effect handler of a supervisor. Dropping it kills the children: no child outlives its parent (SCL-06).
struct Handler {
    address: Address<Supervisor>,
    slots: Vec<Slot>,
}

struct Slot {
    start: Rc<RefCell<Start>>,
    ready: Rc<Option<Ready>>,
    describe: Option<Describe>,
    end_rest: Option<EndRest>,
    held: Rc<RefCell<Held>>,
    stop_longest: Duration,
}

/// The runtime state of a child, from which a crashed supervisor recovers.
#[derive(Default)]
struct Held {
    starting: Option<AbortHandle>,
    running: Option<Rc<Running>>,
    /// Whether it became ready in this life, and was not asked to stop.
    is_up: bool,
    /// Whether it became ready in any life.
    has_run: bool,
    /// Whether its last stop was not in order.
    is_disorderly: bool,
    /// When it was asked to stop, and its own deadline.
    stopping: Option<(Instant, Duration)>,
}

impl EffectHandler<Supervisor> for Handler {
    fn call(&mut self, call: Call) -> Started<Outcome> {
        match call {
            Call::FindChildren => {
                let found = self.slots.iter().map(Slot::found).collect();
                Started::Done(Outcome::Found(found))
            }
            Call::StartChild { child } => {
                let started = self.slots[child].start();
                Started::running(started.map(move |result| Outcome::Started { child, result }))
            }
            Call::AwaitEnd { child } => {
                let ended = self.slots[child].ended();
                Started::running(ended.map(move |ending| Outcome::Ended { child, ending }))
            }
            Call::StopChild { child, mode, deadline, is_final } => {
                let stopped = self.slots[child].stop(mode, deadline, is_final);
                Started::running(stopped.map(move |(outcome, below)| Outcome::Stopped {
                    child,
                    outcome,
                    below,
                }))
            }
            Call::DescribeChildren { within } => {
                let children = join_all(self.slots.iter().map(|slot| slot.see(within)));
                let own = self.address.vitals();
                Started::running(children.map(move |children| Outcome::Described { own, children }))
            }
        }
    }

    fn published(&mut self, news: &SupervisorNews) {
        let supervisor = self.address.name();
        match news {
            SupervisorNews::ChildStarted { name, restarts } => {
                tracing::info!(supervisor, child = %name, restarts, "child started");
            }
            SupervisorNews::ChildStartFailed { name, reason } => {
                tracing::warn!(supervisor, child = %name, error = %reason, "child did not start");
            }
            SupervisorNews::ChildEnded { name, ending } => {
                let ending = ending.to_string();
                tracing::info!(supervisor, child = %name, ending, "child ended");
            }
            SupervisorNews::ChildRestarting { name, pause } => {
                let pause_ms = milliseconds(*pause);
                tracing::warn!(supervisor, child = %name, pause_ms, "child will be restarted");
            }
            SupervisorNews::ChildStopped(ending) => {
                let (name, took_ms) = (&ending.name, milliseconds(ending.took));
                tracing::info!(supervisor, child = %name, ending = %ending.ending, took_ms, "child stopped");
            }
            SupervisorNews::Escalated { reason } => {
                tracing::error!(supervisor, error = %reason, "restart budget exhausted; escalating to the parent");
            }
        }
    }
}

impl Slot {
    fn new(child: Child) -> Self {
        let Child { spec, start, ready, describe, end_rest } = child;
        let (ready, held, stop_longest) = (Rc::new(ready), Rc::default(), spec.stop_longest);
        Self { start, ready, describe, end_rest, held, stop_longest }
    }

    fn found(&self) -> FoundChild {
        let held = self.held.borrow();
        let (has_run, in_order) = (held.has_run, !held.is_disorderly);
        let gone = |in_order| if has_run { FoundChild::Stopped { in_order } } else { FoundChild::Absent };
        let Some(running) = &held.running else { return gone(in_order) };
        match (running.ended().now_or_never(), held.is_up) {
            (None, true) => FoundChild::Alive,
            (None, false) => FoundChild::CutOff { has_run },
            (Some(ending), true) => FoundChild::Ended(ending),
            (Some(ending), false) => gone(in_order && ending == Ending::Normal),
        }
    }

    fn start(&self) -> LocalBoxFuture<'static, Result<(), String>> {
        let (handle, registration) = AbortHandle::new_pair();
        {
            let mut held = self.held.borrow_mut();
            (held.starting, held.is_up) = (Some(handle), false);
        }
        let (start, ready) = (Rc::clone(&self.start), Rc::clone(&self.ready));
        let held = Rc::clone(&self.held);
        let started = async move {
            let making = (start.borrow_mut())();
            let running = Rc::new(making.await?);
            // From now on a stop can reach it, whether or not it becomes ready.
            held.borrow_mut().running = Some(Rc::clone(&running));
            if let Some(ready) = &*ready {
                let outcome = tokio::select! {
                    biased;
                    outcome = ready() => outcome,
                    ending = running.ended() => Err(ending.to_string()),
                };
                if let Err(reason) = outcome {
                    return Err(not_ready(&running, reason).await);
                }
            }
            let mut held = held.borrow_mut();
            (held.is_up, held.has_run) = (true, true);
            Ok(())
        };
        let called_back = |_aborted| Err("the start was cancelled".to_owned());
        Box::pin(Abortable::new(started, registration).map(move |result| result.unwrap_or_else(called_back)))
    }

    fn ended(&self) -> LocalBoxFuture<'static, Ending> {
        match &self.held.borrow().running {
            Some(running) => Box::pin(running.ended()),
            // It was stopped in the same instant, and the stop reports that.
            None => Box::pin(std::future::pending()),
        }
    }

    fn stop(
        &self,
        mode: StopMode,
        deadline: Duration,
        is_final: bool,
    ) -> LocalBoxFuture<'static, (StopOutcome, Vec<StopStep>)> {
        let (held, longest) = (Rc::clone(&self.held), self.stop_longest);
        let end_rest = self.end_rest.clone().filter(|_| is_final);
        let (running, has_run, in_order) = {
            let mut held = held.borrow_mut();
            held.is_up = false;
            if let Some(starting) = held.starting.take() {
                starting.abort();
            }
            (held.running.clone(), held.has_run, !held.is_disorderly)
        };
        let Some(running) = running else {
            let reason = || "it was stopped before".to_owned();
            let before = || StopOutcome::EndedBefore { reason: reason(), in_order };
            let outcome = if has_run { before() } else { StopOutcome::NotStarted };
            return Box::pin(with_rest(outcome, vec![], end_rest, mode));
        };
        held.borrow_mut().stopping = Some((Instant::now(), deadline));
        Box::pin(async move {
            let outcome = end(&running, mode, deadline, longest).await;
            {
                let mut held = held.borrow_mut();
                held.stopping = None;
                held.is_disorderly = !outcome.is_in_order();
                if !matches!(outcome, StopOutcome::Stuck { .. }) {
                    held.running = None;
                }
            }
            with_rest(outcome, running.stop_steps(), end_rest, mode).await
        })
    }

    /// The observed state of the child: its own description, if that comes in time, and the bound of its stop, in either case.
    fn see(&self, within: Duration) -> impl Future<Output = ChildSeen> + use<> {
        let (held, longest) = (Rc::clone(&self.held), self.stop_longest);
        self.described(within).map(move |description| ChildSeen {
            description,
            stops_within: held.borrow().stops_within(longest),
        })
    }

    fn described(&self, within: Duration) -> LocalBoxFuture<'static, Option<ChildDescription>> {
        let Some(describe) = &self.describe else { return Box::pin(std::future::ready(None)) };
        // A description that panics, now or later, counts as none.
        let Ok(described) = std::panic::catch_unwind(AssertUnwindSafe(describe)) else {
            return Box::pin(std::future::ready(None));
        };
        let described = tokio::time::timeout(within, AssertUnwindSafe(described).catch_unwind());
        Box::pin(described.map(|outcome| outcome.ok()?.ok()?))
    }
}

impl Held {
    /// The time that its stop may still take before it is killed.
    fn stops_within(&self, longest: Duration) -> Option<Duration> {
        let ((began, deadline), running) = (self.stopping?, self.running.as_ref()?);
        let waited = longest_wait(deadline, longest, running.stop_bound(began));
        Some(waited.saturating_sub(began.elapsed()))
    }
}

/// The reason why a child does not get ready: how it has ended, or else this reason.
async fn not_ready(running: &Running, reason: String) -> String {
    match tokio::time::timeout(ENDING_TIMEOUT, running.ended()).await {
        Ok(ending @ (Ending::Panicked(_) | Ending::BudgetSpent(_) | Ending::Failed(_))) => ending.to_string(),
        Ok(Ending::Normal | Ending::Killed) | Err(_) => reason,
    }
}

/// Ends what is left of a child that has ended and did not stop in order.
async fn with_rest(
    outcome: StopOutcome,
    mut steps: Vec<StopStep>,
    end_rest: Option<EndRest>,
    mode: StopMode,
) -> (StopOutcome, Vec<StopStep>) {
    let may_remain = match outcome {
        StopOutcome::Stopped | StopOutcome::NotStarted | StopOutcome::Stuck { .. } => false,
        StopOutcome::Killed { .. } | StopOutcome::Crashed { .. } | StopOutcome::EndedBefore { .. } => true,
    };
    if let Some(end_rest) = end_rest.filter(|_| may_remain) {
        steps.extend(end_rest(mode).await);
    }
    (outcome, steps)
}

/// Asks a child to stop, waits, and kills it at the deadline.
async fn end(running: &Running, mode: StopMode, deadline: Duration, longest: Duration) -> StopOutcome {
    if let Some(ending) = running.ended().now_or_never() {
        let in_order = ending == Ending::Normal;
        return StopOutcome::EndedBefore { reason: ending.to_string(), in_order };
    }
    let began = Instant::now();
    running.request_stop(mode);
    let mut waited = deadline;
    loop {
        let left = waited.saturating_sub(began.elapsed());
        match pauses::within(left, running.ended()).await {
            Ok(Ending::Normal) => return StopOutcome::Stopped,
            Ok(ending) => return StopOutcome::Crashed { reason: ending.to_string() },
            Err(_elapsed) => {}
        }
        // Its own children may need longer, as it has reported by now, and may report again during the stop.
        let longer = longest_wait(waited, longest, running.stop_bound(began));
        if longer == waited {
            break;
        }
        waited = longer;
    }
    running.kill();
    match tokio::time::timeout(KILL_TIMEOUT, running.ended()).await {
        Ok(_) => StopOutcome::Killed { deadline: waited },
        Err(_elapsed) => StopOutcome::Stuck { reason: "it still runs although it was killed".to_owned() },
    }
}

/// The total time that a child may take to stop: the time so far, or the bound that it reports, limited by `longest`.
fn longest_wait(so_far: Duration, longest: Duration, said: Option<Duration>) -> Duration {
    said.map_or(so_far, |said| said.saturating_add(SAID_MARGIN).min(longest).max(so_far))
}

impl Drop for Handler {
    fn drop(&mut self) {
        for slot in &self.slots {
            let mut held = slot.held.borrow_mut();
            if let Some(starting) = held.starting.take() {
                starting.abort();
            }
            if let Some(running) = held.running.take() {
                running.kill();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::watch;

    use super::*;

    fn task() -> Child {
        Child::new(ChildSpec::new("task", "task"), || {
            let (tell, ended) = watch::channel(None);
            let task = actix_rt::spawn(async move {
                std::future::pending::<()>().await;
                tell.send_replace(Some(Ending::Normal));
            });
            std::future::ready(Ok(Running::new(|_| {}, task.abort_handle(), ended)))
        })
    }

    #[test]
    fn after_a_crash_of_the_supervisor_its_children_are_found_as_they_are() {
        actix::System::new().block_on(async {
            let slot = Slot::new(task());
            assert_eq!(slot.found(), FoundChild::Absent);
            assert_eq!(slot.start().await, Ok(()));
            assert_eq!(slot.found(), FoundChild::Alive);
            slot.held.borrow().running.as_ref().expect("it was started").kill();
            assert_eq!(slot.ended().await, Ending::Killed);
            assert_eq!(slot.found(), FoundChild::Ended(Ending::Killed));
            let (outcome, _) = slot.stop(StopMode::Stop, Duration::ZERO, true).await;
            let expected = StopOutcome::EndedBefore { reason: "it was killed".into(), in_order: false };
            assert_eq!(outcome, expected);
            assert_eq!(slot.found(), FoundChild::Stopped { in_order: false });
        });
    }

    #[test]
    fn what_a_crash_of_the_supervisor_cut_off_is_not_taken_for_what_is_up_or_ended_of_itself_s1() {
        actix::System::new().block_on(async {
            let slot = Slot::new(task().ready_when(std::future::pending));
            let start = slot.start();
            assert!(start.now_or_never().is_none(), "it does not get ready");
            assert_eq!(slot.found(), FoundChild::CutOff { has_run: false });
            let slot = Slot::new(task());
            assert_eq!(slot.start().await, Ok(()));
            drop(slot.stop(StopMode::Stop, Duration::from_secs(1), true));
            assert_eq!(slot.found(), FoundChild::CutOff { has_run: true });
            let running = slot.held.borrow().running.clone().expect("it was started");
            running.kill();
            assert_eq!(running.ended().await, Ending::Killed);
            assert_eq!(slot.found(), FoundChild::Stopped { in_order: false });
        });
    }

    #[test]
    fn a_start_that_fails_since_the_child_has_ended_says_how_it_ended() {
        actix::System::new().block_on(async {
            for (ending, said) in [
                (Ending::BudgetSpent("the disk is gone".into()), "it crashed too often: the disk is gone"),
                (Ending::Normal, "no answer"),
            ] {
                let child = Child::new(ChildSpec::new("task", "task"), move || {
                    let (tell, ended) = watch::channel(None);
                    let ending = ending.clone();
                    let task = actix_rt::spawn(async move {
                        // Its caller first receives that there is no answer.
                        tokio::task::yield_now().await;
                        tell.send_replace(Some(ending));
                    });
                    std::future::ready(Ok(Running::new(|_| {}, task.abort_handle(), ended)))
                });
                let slot = Slot::new(child.ready_when(|| std::future::ready(Err("no answer".to_owned()))));
                assert_eq!(slot.start().await, Err(said.to_owned()));
            }
        });
    }

    #[test]
    fn a_start_that_was_called_back_makes_nothing() {
        actix::System::new().block_on(async {
            let slot = Slot::new(task());
            let start = slot.start();
            assert_eq!(slot.stop(StopMode::Stop, Duration::ZERO, true).await.0, StopOutcome::NotStarted);
            assert_eq!(start.await, Err("the start was cancelled".to_owned()));
            assert_eq!(slot.found(), FoundChild::Absent);
        });
    }
}
