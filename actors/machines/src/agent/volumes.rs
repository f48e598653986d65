//! Decides about the volumes of a task: they are claimed before each start of its process, and released when its last process has
//! ended (V8).

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use crate::allocations::TaskContext;
use crate::kernel::{CallLost, StepContext};
use crate::vocabulary::{Attempt, BackoffState};
use crate::volume::{ObservedEnd, VolumeKey};

use super::behaviour::RETRY_PAUSE;
use super::calls::{AgentCall, AgentTimer, ClaimTrouble, Unreleased};
use super::config::AllocationVolume;
use super::state::{Agent, AgentOptions, Goal, Phase, Task, Unended, Wanted};
use super::task::UNDER_WAY_TIMEOUT;

/// How long a claim waits for the volumes. Volumes that are not ready by then continue becoming ready, and are claimed again after a pause.
const CLAIM_WITHIN: Duration = Duration::from_secs(15);
/// The timeout of a claim: a stop waits for a claim that cannot be cancelled.
const CLAIM_TIMEOUT: Duration = UNDER_WAY_TIMEOUT;
/// The timeout for cancelling a claim, which takes no time.
const CALL_OFF_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a stop waits until the volumes are released. A release that was received continues without it.
const RELEASE_WITHIN: Duration = Duration::from_secs(20);
/// How much later than its own timeout an answer about a release may come.
const ANSWER_MARGIN: Duration = Duration::from_secs(5);
/// The longest time from the beginning of the release until the stop continues.
const RELEASE_BOUND: Duration = RELEASE_WITHIN.saturating_add(ANSWER_MARGIN);

/// The claims of an allocation that the agent has made.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Claims {
    held: Held,
    /// The starts whose process may live although nothing is in progress: it does not end, or its launch had no answer.
    unobserved: BTreeSet<Attempt>,
    /// The backoff of claims that were refused for now, and of releases that are not recorded when the task has stopped.
    backoff: BackoffState,
    /// Why the last claim was refused for now.
    refusal: Option<String>,
}

/// The claims that may be held for an allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
enum Held {
    #[default]
    Nothing,
    /// Claims, and no process was started since.
    Unused,
    /// Claims, and a process may have been started since.
    Used,
}

impl Claims {
    /// A person starts the task: earlier refusals are forgotten.
    pub(super) fn begin_anew(&mut self) {
        self.not_refused();
    }

    fn not_refused(&mut self) {
        self.backoff.reset();
        self.refusal = None;
    }

    /// The report of a claim that begins: the reason of the last refusal stays visible.
    fn claiming(&self) -> String {
        match &self.refusal {
            Some(reason) => format!("claiming its volumes again; before, {reason}"),
            None => "claiming its volumes".to_owned(),
        }
    }

    fn begin(&mut self) {
        if self.held == Held::Nothing {
            self.held = Held::Unused;
        }
    }

    const fn used(&mut self) {
        if matches!(self.held, Held::Unused) {
            self.held = Held::Used;
        }
    }

    /// Why no process uses the volumes, once the end of each was observed. `None` if there is nothing to release.
    const fn observed(&self) -> Option<ObservedEnd> {
        match self.held {
            Held::Nothing => None,
            Held::Unused => Some(ObservedEnd::NeverStarted),
            Held::Used => Some(ObservedEnd::Exited),
        }
    }

    /// The end of the process of this start was not observed.
    fn lose_sight(&mut self, attempt: Attempt) {
        if self.held != Held::Nothing {
            self.held = Held::Used;
            self.unobserved.insert(attempt);
        }
    }
}

impl Task {
    /// Whether its process uses volumes. Otherwise its plugin may serve volumes of other allocations.
    pub(super) const fn uses_volumes(&self) -> bool {
        !self.config.volumes.is_empty()
    }

    /// How much longer a stop may take because of its volumes.
    pub(super) const fn release_bound(&self) -> Duration {
        if self.uses_volumes() { RELEASE_BOUND } else { Duration::ZERO }
    }

    /// Claims its volumes, if it has any, and then starts its process with this context.
    pub(super) fn claim(
        &mut self,
        options: &AgentOptions,
        context: &TaskContext,
        cx: &mut StepContext<Agent>,
    ) {
        if !self.uses_volumes() {
            return self.launch(options, context, &BTreeMap::new(), cx);
        }
        // Remembered before the call, so that claims that may be held are released.
        self.memory.claims.begin();
        self.remember(cx);
        let event = self.memory.claims.claiming();
        self.enter(Phase::Claiming { context: context.clone() }, event, cx);
        let (allocation, volumes) = (self.config.name.clone(), self.config.volumes.clone());
        self.call(CLAIM_TIMEOUT, AgentCall::Claim { allocation, volumes, within: CLAIM_WITHIN }, cx);
    }

    /// Cancels the claim in progress. Volumes that it holds by then are released.
    pub(super) fn call_off(&self, cx: &mut StepContext<Agent>) {
        self.call(CALL_OFF_TIMEOUT, AgentCall::CallOff(self.config.name.clone()), cx);
    }

    pub(super) fn claimed(
        &mut self,
        options: &AgentOptions,
        answer: Result<&Result<BTreeMap<VolumeKey, PathBuf>, ClaimTrouble>, &CallLost>,
        cx: &mut StepContext<Agent>,
    ) {
        let Phase::Claiming { context } = self.phase.clone() else { return };
        if self.memory.wanted != Some(Wanted::Running) {
            return self.wind_down(None, cx);
        }
        match answer {
            Ok(Ok(paths)) => match self.variables(paths) {
                Ok(variables) => {
                    self.memory.claims.not_refused();
                    self.launch(options, &context, &variables, cx);
                }
                Err(reason) => self.refused_for_good(&reason, cx),
            },
            Ok(Err(ClaimTrouble { reason, is_transient: false })) => {
                self.refused_for_good(reason, cx);
            }
            Ok(Err(ClaimTrouble { reason, is_transient: true })) => {
                self.refused_for_now(options, reason, cx);
            }
            Err(lost) => self.refused_for_now(options, &lost.to_string(), cx),
        }
    }

    /// The variables by which its process finds its volumes.
    fn variables(&self, paths: &BTreeMap<VolumeKey, PathBuf>) -> Result<BTreeMap<String, String>, String> {
        let volumes = self.config.volumes.iter();
        let variable = |volume: &AllocationVolume| {
            let path = paths.get(&volume.volume);
            let path = path.ok_or_else(|| format!("volume {} was claimed without a path", volume.volume))?;
            let text = path.to_str();
            let text = text.ok_or_else(|| {
                format!("the path of volume {} is not UTF-8: {}", volume.volume, path.display())
            })?;
            Ok((volume.variable.clone(), text.to_owned()))
        };
        volumes.map(variable).collect()
    }

    /// It waits for its volumes, which does not count as a restart.
    fn refused_for_now(&mut self, options: &AgentOptions, reason: &str, cx: &mut StepContext<Agent>) {
        let pause = self.memory.claims.backoff.failed(&options.restart.backoff, cx.moment());
        self.memory.claims.refusal = Some(reason.to_owned());
        let event = format!("its volumes cannot be claimed yet: {reason}; retrying");
        self.start_later(pause, &event, cx);
    }

    fn refused_for_good(&mut self, reason: &str, cx: &mut StepContext<Agent>) {
        self.memory.wanted = Some(Wanted::Failed);
        self.remember(cx);
        let reason = format!("its volumes cannot be claimed: {reason}");
        self.withdraw(None, Goal::Fail(reason), cx);
    }

    /// A process of it was started: its claimed volumes may be used.
    pub(super) fn process_started(&mut self, cx: &mut StepContext<Agent>) {
        self.memory.claims.used();
        // Processes that survive the host share one name, which only one process has at any time.
        if self.config.survives {
            self.memory.claims.unobserved.clear();
        }
        self.remember(cx);
    }

    /// It is unknown whether its process lives, and no pending call will answer that.
    pub(super) fn lose_sight(&mut self, cx: &mut StepContext<Agent>) {
        self.memory.claims.lose_sight(self.memory.attempt);
        self.remember(cx);
    }

    /// It is known whether its process lives. A living process uses the volumes that an earlier run may have claimed. A process that
    /// survives its host may do so although the present configuration has no volumes for it.
    pub(super) fn surveyed(&mut self, does_live: bool) {
        // A living process is taken up again, with its whole state.
        self.memory.unended = Unended::default();
        let claims = &mut self.memory.claims;
        if does_live && (self.config.survives || !self.config.volumes.is_empty()) {
            claims.begin();
        }
        // A process may have been started and have ended after the last record.
        claims.used();
        claims.unobserved.remove(&self.memory.attempt);
        if self.config.survives {
            claims.unobserved.clear();
        }
    }

    /// The process of one of its starts has ended. If the volumes were kept only for that process, they are released.
    pub(super) fn was_observed(&mut self, attempt: Attempt, how: &str, cx: &mut StepContext<Agent>) {
        if !self.memory.claims.unobserved.remove(&attempt) {
            return;
        }
        self.remember(cx);
        let then = match self.phase {
            Phase::Failed => Goal::Fail(self.last_event.clone()),
            Phase::Stopped => Goal::Stop,
            // It has a process again, or will release its volumes later.
            _ => return,
        };
        self.steps.retain(|step| !step.is_left);
        self.step_began = cx.now();
        self.finish_step(cx.moment(), "process", how.to_owned(), false);
        self.release(then, cx);
    }

    /// Releases its volumes, if it has claimed any and no process may use them. Nothing else of the task is left by then.
    pub(super) fn release(&mut self, then: Goal, cx: &mut StepContext<Agent>) {
        let claims = &self.memory.claims;
        if self.keeps_claims() || claims.observed().is_none() {
            return self.arrive(then, cx);
        }
        self.step_began = cx.now();
        if !claims.unobserved.is_empty() {
            let ending = "still claimed: the end of a process was not observed".to_owned();
            self.finish_step(cx.moment(), "volumes", ending, true);
            return self.arrive(then, cx);
        }
        let until = cx.now() + RELEASE_WITHIN;
        self.enter(Phase::Releasing { then, until }, "releasing its volumes", cx);
        self.release_again(cx);
    }

    /// Whether its claims outlive this run of the host.
    fn keeps_claims(&self) -> bool {
        self.memory.wanted == Some(Wanted::Left)
    }

    /// Asks again for the release of its volumes, if a release is in progress.
    pub(super) fn release_again(&self, cx: &mut StepContext<Agent>) {
        if let (Phase::Releasing { until, .. }, Some(observed)) = (&self.phase, self.memory.claims.observed())
        {
            self.ask_for_release(observed, until.since(cx.now()), cx);
        }
    }

    /// Asks again for a release that was not recorded by the time it had stopped. Nothing waits for it.
    pub(super) fn release_late(&self, cx: &mut StepContext<Agent>) {
        let claims = &self.memory.claims;
        if let (false, true, Some(observed)) =
            (self.keeps_claims(), claims.unobserved.is_empty(), claims.observed())
        {
            self.ask_for_release(observed, RELEASE_WITHIN, cx);
        }
    }

    fn ask_for_release(&self, observed: ObservedEnd, within: Duration, cx: &mut StepContext<Agent>) {
        let allocation = self.config.name.clone();
        self.call(within + ANSWER_MARGIN, AgentCall::Release { allocation, observed, within }, cx);
    }

    pub(super) fn released(
        &mut self,
        options: &AgentOptions,
        answer: Result<(), Unreleased>,
        cx: &mut StepContext<Agent>,
    ) {
        match (self.phase.clone(), answer) {
            (Phase::Releasing { then, .. }, Ok(())) => {
                self.forget_claims(cx);
                self.finish_step(cx.moment(), "volumes", "released".to_owned(), false);
                self.arrive(then, cx);
            }
            (Phase::Releasing { until, .. }, Err(Unreleased { reason, .. }))
                if cx.now() + RETRY_PAUSE < until =>
            {
                self.note(&format!("releasing its volumes: {reason}"), cx);
                self.retry(cx);
            }
            (Phase::Releasing { then, .. }, Err(Unreleased { reason, goes_on })) => {
                self.finish_step(cx.moment(), "volumes", format!("not released yet: {reason}"), true);
                self.arrive(then, cx);
                match goes_on {
                    true => self.forget_claims(cx),
                    false => self.release_later(options, cx),
                }
            }
            (phase @ (Phase::Stopped | Phase::Failed), Ok(()) | Err(Unreleased { goes_on: true, .. })) => {
                self.forget_claims(cx);
                self.steps.retain(|step| !step.is_left);
                if phase == Phase::Stopped {
                    self.note(&self.stopped_event(), cx);
                }
            }
            (Phase::Stopped | Phase::Failed, Err(Unreleased { goes_on: false, .. })) => {
                self.release_later(options, cx);
            }
            // It was started again meanwhile, and its next stop releases them.
            (
                Phase::Waiting { .. }
                | Phase::Preparing
                | Phase::Claiming { .. }
                | Phase::Launching
                | Phase::Running { .. }
                | Phase::Withdrawing { .. }
                | Phase::Ending { .. }
                | Phase::Reporting { .. },
                _,
            ) => {}
        }
    }

    /// The owner of the volumes has recorded the release, and completes it by itself.
    fn forget_claims(&mut self, cx: &mut StepContext<Agent>) {
        self.memory.claims = Claims::default();
        self.remember(cx);
    }

    fn release_later(&mut self, options: &AgentOptions, cx: &mut StepContext<Agent>) {
        let pause = self.memory.claims.backoff.failed(&options.restart.backoff, cx.moment());
        self.remember(cx);
        cx.start_timer(AgentTimer::Retry(self.config.name.clone()), cx.now() + pause);
    }
}
