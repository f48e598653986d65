//! Waits from the start of the task to its first ready answer (A2).
//!
//! A check for the socket is cheap, so checks are frequent, and a new socket is found soon however long a dead one was there
//! before (REG-10). A probe costs the plugin something (C037), so probes of one socket back off.

use std::time::Duration;

use super::messages::{AllocationNews, TaskEventKind};
use super::state::{
    Allocation, AllocationCall, AllocationTimer, Desired, Event, PendingCall, Phase, Waiting,
};
use crate::csi::{Answer, CallError, Cause, Class, Readiness, Rpc, SocketFile, Step};
use crate::kernel::{CallLost, StepContext};
use crate::vocabulary::{Attempt, Health, Identity, Moment};

/// Why there is no ready answer yet.
struct NotReadyReason {
    class: Class,
    cause: String,
}

impl NotReadyReason {
    fn of(error: &CallError) -> Self {
        Self { class: error.class(), cause: error.told() }
    }
}

impl Allocation {
    pub(super) fn begin_waiting(&mut self, cx: &mut StepContext<Self>) {
        self.start = self.start.next();
        let event = self.awaits_socket();
        self.enter(Phase::Waiting(Waiting::default()), event, cx);
        self.since = cx.now();
        // A supervisor that resumes the work of another one does not publish the same health twice.
        let is_taken_up = self.told.is_none() && self.config.health == Health::Healthy;
        self.health = if is_taken_up { Health::Healthy } else { Health::Starting };
        if matches!(self.registration_state.desired, Desired::In(_)) {
            self.want(Desired::Out, cx);
        }
        let timeout = self.config.spec.health_timeout;
        cx.start_timer(AllocationTimer::HealthTimeout, cx.now() + timeout);
        self.look(cx);
    }

    fn awaits_socket(&self) -> String {
        format!("start {} of the task; waiting for its socket", self.start)
    }

    /// Checks for the socket.
    pub(super) fn look(&mut self, cx: &mut StepContext<Self>) {
        let deadline = self.config.options.directory_deadline;
        self.start_call(AllocationCall::FindSocket, None, deadline, cx);
    }

    fn ask(&mut self, rpc: Rpc, cx: &mut StepContext<Self>) {
        let deadline = self.question_deadline();
        self.start_call(AllocationCall::Ask(rpc), Some(rpc), deadline, cx);
    }

    /// The sum of both timeouts of a request and a margin, so that they expire first and give the precise error (LOG-05).
    pub(super) fn question_deadline(&self) -> Duration {
        self.config.options.call_deadline.saturating_mul(2).saturating_add(Duration::from_secs(1))
    }

    fn start_call(
        &mut self,
        call: AllocationCall,
        rpc: Option<Rpc>,
        deadline: Duration,
        cx: &mut StepContext<Self>,
    ) {
        // No other phase waits for the socket.
        if !matches!(self.phase, Phase::Waiting(_)) {
            return;
        }
        let attempt = self.call(call, deadline, cx);
        if let Phase::Waiting(waiting) = &mut self.phase {
            waiting.under_way = Some(PendingCall { attempt, began: cx.now(), rpc });
        }
    }

    /// Takes the pending call out; `None` if the number is stale.
    fn take_pending(&mut self, attempt: Attempt) -> Option<(&mut Waiting, PendingCall)> {
        let Phase::Waiting(waiting) = &mut self.phase else { return None };
        let pending_call = waiting.under_way.take_if(|pending_call| pending_call.attempt == attempt)?;
        Some((waiting, pending_call))
    }

    pub(super) fn found(
        &mut self,
        attempt: Attempt,
        found: &Result<SocketFile, Cause>,
        cx: &mut StepContext<Self>,
    ) {
        let Some((waiting, _)) = self.take_pending(attempt) else { return };
        match found {
            Ok(file) => {
                if waiting.file != Some(*file) {
                    waiting.meet(*file, cx.moment());
                    self.last_event = "a socket is there; asking the plugin whether it is ready".to_owned();
                }
                self.probe_or_rest(cx);
            }
            Err(cause) => {
                let socket = self.config.plan.context.socket.clone();
                let error = CallError::new(Step::Dial, socket, Duration::ZERO, cause.clone());
                self.setback(&NotReadyReason::of(&error), cx);
            }
        }
    }

    fn probe_or_rest(&mut self, cx: &mut StepContext<Self>) {
        match &self.phase {
            Phase::Waiting(waiting) if cx.now() < waiting.probe_after => self.rest(cx),
            Phase::Waiting(_) => self.ask(Rpc::Probe, cx),
            // No other phase waits.
            Phase::Prepared
            | Phase::Registering
            | Phase::Registered(_)
            | Phase::AwaitingRestart
            | Phase::Stopping(_)
            | Phase::Ended => {}
        }
    }

    fn rest(&mut self, cx: &mut StepContext<Self>) {
        let policy = self.config.options.look_pauses;
        if let Phase::Waiting(waiting) = &mut self.phase {
            let pause = waiting.looks.failed(&policy, cx.moment());
            cx.start_timer(AllocationTimer::Look, cx.now() + pause);
        }
    }

    /// Handles an answer of the plugin, in this phase or in a round.
    pub(super) fn answered(
        &mut self,
        attempt: Attempt,
        answer: &Result<Answer, CallError>,
        cx: &mut StepContext<Self>,
    ) {
        match self.take_pending(attempt) {
            Some(_) => self.heard(answer, cx),
            None => self.probe_seen(attempt, answer, cx),
        }
    }

    fn heard(&mut self, answer: &Result<Answer, CallError>, cx: &mut StepContext<Self>) {
        let setback = match answer {
            Ok(Answer::Probe(Readiness::Ready)) => return self.ask(Rpc::PluginInfo, cx),
            Ok(Answer::PluginInfo(identity)) => return self.ready(identity.clone(), cx),
            Ok(Answer::Probe(Readiness::NotReady)) => NotReadyReason {
                class: Class::Unclear,
                cause: "the plugin answers that it is not ready yet".to_owned(),
            },
            Ok(other) => {
                NotReadyReason { class: Class::Fault, cause: format!("{} was answered unasked", other.rpc()) }
            }
            Err(error) => NotReadyReason::of(error),
        };
        self.setback(&setback, cx);
    }

    pub(super) fn question_lost(&mut self, attempt: Attempt, lost: &CallLost, cx: &mut StepContext<Self>) {
        match self.take_pending(attempt) {
            Some((_, pending_call)) => {
                let setback =
                    NotReadyReason { class: Class::Unclear, cause: format!("{pending_call} failed: {lost}") };
                self.setback(&setback, cx);
            }
            None => self.round_over(attempt, cx),
        }
    }

    /// Not ready yet (normal): records the cause and retries. Only a lasting permission error is final at once (SEC-03).
    fn setback(&mut self, setback: &NotReadyReason, cx: &mut StepContext<Self>) {
        let options = self.config.options;
        let event = if setback.class == Class::Absent {
            self.awaits_socket()
        } else {
            format!("not ready yet: {}", setback.cause)
        };
        let Phase::Waiting(waiting) = &mut self.phase else { return };
        waiting.note(&setback.cause);
        // The status shows the cause; it is published once, however often it occurs.
        self.last_event = event;
        if setback.class != Class::Denied {
            waiting.denied_since = None;
        }
        match setback.class {
            Class::Absent => waiting.file = None,
            // A refused connection costs the plugin nothing.
            Class::Refused => {}
            Class::Denied => match waiting.denied_since {
                Some(since) if cx.now().since(since) >= options.denial_timeout => {
                    return self.refuse_socket(setback.cause.clone(), cx);
                }
                Some(_) => {}
                None => {
                    waiting.denied_since = Some(cx.now());
                    waiting.looks.reset();
                }
            },
            Class::Final
            | Class::Unclear
            | Class::Busy
            | Class::NotASocket
            | Class::DeadlineExceeded
            | Class::Disconnected
            | Class::Unimplemented
            | Class::Fault => {
                waiting.probe_after = cx.now() + waiting.probes.failed(&options.probe_pauses, cx.moment());
            }
        }
        self.rest(cx);
    }

    /// Neither waiting nor a restart helps; an operator must change owner or mode.
    fn refuse_socket(&mut self, cause: String, cx: &mut StepContext<Self>) {
        self.give_up(&cause, cx);
        self.event(Event { kind: TaskEventKind::SocketRefused, message: cause });
    }

    /// The health timeout: reports the cause, and asks the host once to restart the task (A2, HLT-02).
    pub(super) fn out_of_time(&mut self, cx: &mut StepContext<Self>) {
        let Phase::Waiting(waiting) = &self.phase else { return };
        let reason = waiting.verdict(self.config.spec.health_timeout, cx.moment());
        self.give_up(&reason, cx);
        self.event(Event { kind: TaskEventKind::NotReadyInTime, message: reason.clone() });
        self.news.push(AllocationNews::RestartRequested { reason });
    }

    fn give_up(&mut self, reason: &str, cx: &mut StepContext<Self>) {
        self.enter(Phase::AwaitingRestart, reason, cx);
        self.health = Health::Unhealthy { reason: reason.to_owned() };
    }

    fn ready(&mut self, identity: Identity, cx: &mut StepContext<Self>) {
        let event = format!("{} {} is ready; registering it", identity.provider, identity.version);
        self.enter(Phase::Registering, event.trim(), cx);
        self.want(Desired::In(identity), cx);
    }
}

impl Waiting {
    /// A new socket: resets the pauses of the former one (REG-10).
    fn meet(&mut self, file: SocketFile, moment: Moment) {
        self.file = Some(file);
        self.looks.reset();
        self.probes.reset();
        self.probe_after = moment.now;
    }

    fn note(&mut self, cause: &str) {
        self.tries = self.tries.saturating_add(1);
        self.first_cause.get_or_insert_with(|| cause.to_owned());
        self.last_cause = Some(cause.to_owned());
    }

    /// Why it was not ready in time: the first cause, the last one, and the pending call (LOG-05).
    fn verdict(&self, timeout: Duration, moment: Moment) -> String {
        let causes = match (&self.first_cause, &self.last_cause) {
            (Some(first), Some(last)) if first == last => format!(", at any of {} tries: {last}", self.tries),
            (Some(first), Some(last)) => {
                format!(", after {} tries; first: {first}; last: {last}", self.tries)
            }
            (_, _) => String::new(),
        };
        let pending = match self.under_way {
            Some(pending_call) => {
                format!("; {pending_call} has had no answer for {:?}", moment.now.since(pending_call.began))
            }
            None => String::new(),
        };
        format!("the plugin was not ready within {timeout:?} of its start{causes}{pending}")
    }
}

impl std::fmt::Display for PendingCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.rpc {
            Some(rpc) => rpc.fmt(f),
            None => f.write_str("the look for the socket"),
        }
    }
}
