//! Registration and deregistration (A3, A4): reconciles the registry with the desired state, one message at a time.
//!
//! If the registry refuses or is not running, the message is retried after a pause, until the desired state changes.

use std::sync::Arc;

use super::neighbours::RegisterOutcome;
use super::state::{
    ActualState, Allocation, AllocationCall, AllocationTimer, Desired, Phase, RegistrationState, Stage,
    Stopping, Watch,
};
use crate::AskError;
use crate::kernel::StepContext;
use crate::registry::{Deregister, Deregistered, LeaveCause, Register};
use crate::vocabulary::{Attempt, BackoffState, Identity};

impl Default for RegistrationState {
    fn default() -> Self {
        Self {
            desired: Desired::LeaveAlone,
            actual: ActualState::Unknown,
            under_way: None,
            is_pausing: false,
            pauses: BackoffState::default(),
            trouble: None,
        }
    }
}

impl RegistrationState {
    fn is_settled(&self) -> bool {
        match (&self.desired, &self.actual) {
            (Desired::LeaveAlone, _) | (Desired::Out, ActualState::Out) => true,
            (Desired::In(desired), ActualState::In(known)) => desired == known,
            (Desired::In(_), ActualState::Unknown | ActualState::Out)
            | (Desired::Out, ActualState::Unknown | ActualState::In(_)) => false,
        }
    }
}

impl Allocation {
    /// Changes the desired state, and reconciles.
    pub(super) fn want(&mut self, desired: Desired, cx: &mut StepContext<Self>) {
        self.registration_state.desired = desired;
        self.registration_state.trouble = None;
        self.registration_state.pauses.reset();
        self.registration_state.is_pausing = false;
        cx.cancel_timer(AllocationTimer::Registry);
        self.reconcile(cx);
        self.desired_reached(cx);
    }

    /// Sends the next message to the registry, if one is needed and none is pending.
    pub(super) fn reconcile(&mut self, cx: &mut StepContext<Self>) {
        if self.registration_state.is_settled()
            || self.registration_state.is_pausing
            || self.registration_state.under_way.is_some()
        {
            return;
        }
        let call = match &self.registration_state.desired {
            Desired::LeaveAlone => return,
            Desired::In(identity) => AllocationCall::Register(self.register(identity)),
            Desired::Out => AllocationCall::Deregister(Deregister {
                plugins: self.config.spec.plugins(),
                allocation: self.config.spec.allocation.clone(),
                cause: match self.phase {
                    Phase::Stopping(_) | Phase::Ended => LeaveCause::Stopped,
                    Phase::Prepared
                    | Phase::Waiting(_)
                    | Phase::Registering
                    | Phase::Registered(_)
                    | Phase::AwaitingRestart => LeaveCause::Failed,
                },
            }),
        };
        let deadline = self.config.options.registry_deadline;
        let attempt = self.call(call, deadline, cx);
        self.registration_state.under_way = Some((attempt, self.registration_state.desired.clone()));
        self.registration_state.actual = ActualState::Unknown;
    }

    fn register(&self, identity: &Identity) -> Register {
        Register {
            plugins: self.config.spec.plugins(),
            allocation: self.config.spec.allocation.clone(),
            socket: self.config.plan.context.socket.clone(),
            provider: Some(Arc::clone(&identity.provider)),
            version: Some(Arc::clone(&identity.version)),
            options: Arc::default(),
            policy: self.config.spec.policy.clone(),
        }
    }

    pub(super) fn registered(
        &mut self,
        attempt: Attempt,
        outcome: &RegisterOutcome,
        cx: &mut StepContext<Self>,
    ) {
        match outcome {
            Ok(Ok(_)) => self.registry_answered(attempt, false, cx),
            Ok(Err(refusal)) => self.registry_failed(attempt, refusal.to_string(), cx),
            Err(error) => self.registry_failed(attempt, error.to_string(), cx),
        }
    }

    pub(super) fn deregistered(
        &mut self,
        attempt: Attempt,
        outcome: &Result<Deregistered, AskError>,
        cx: &mut StepContext<Self>,
    ) {
        match outcome {
            Ok(Deregistered::Removed(_)) => self.registry_answered(attempt, true, cx),
            Ok(Deregistered::NotRegistered) => self.registry_answered(attempt, false, cx),
            Err(error) => self.registry_failed(attempt, error.to_string(), cx),
        }
    }

    fn registry_answered(&mut self, attempt: Attempt, is_removed: bool, cx: &mut StepContext<Self>) {
        let under_way = &mut self.registration_state.under_way;
        let Some((_, done)) = under_way.take_if(|(current, _)| *current == attempt) else { return };
        self.registration_state.actual = match done {
            Desired::In(identity) => ActualState::In(identity),
            Desired::Out => ActualState::Out,
            Desired::LeaveAlone => ActualState::Unknown,
        };
        self.registration_state.pauses.reset();
        if let (true, Phase::Stopping(stopping)) = (is_removed, &mut self.phase) {
            stopping.report.deregistered = true;
        }
        self.reconcile(cx);
        self.desired_reached(cx);
    }

    /// It is unknown whether the message took effect: it is retried after a pause.
    pub(super) fn registry_failed(&mut self, attempt: Attempt, error: String, cx: &mut StepContext<Self>) {
        let under_way = &mut self.registration_state.under_way;
        let Some((_, tried)) = under_way.take_if(|(current, _)| *current == attempt) else { return };
        if tried != self.registration_state.desired {
            self.reconcile(cx);
            return;
        }
        let pause = self.registration_state.pauses.failed(&self.config.options.registry_pauses, cx.moment());
        cx.start_timer(AllocationTimer::Registry, cx.now() + pause);
        self.registration_state.is_pausing = true;
        if matches!(self.phase, Phase::Registering) {
            self.last_event = format!("not registered yet, trying again: {error}");
        }
        self.registration_state.trouble = Some(error);
    }

    /// The cause of the pause may be over: a pending pause ends. A pending message returns, and is retried soon if it failed.
    pub(super) fn try_registry_now(&mut self, cx: &mut StepContext<Self>) {
        self.registration_state.pauses.reset();
        if std::mem::take(&mut self.registration_state.is_pausing) {
            cx.cancel_timer(AllocationTimer::Registry);
            self.reconcile(cx);
        }
    }

    fn desired_reached(&mut self, cx: &mut StepContext<Self>) {
        if !self.registration_state.is_settled() {
            return;
        }
        match (&self.phase, &self.registration_state.actual) {
            (Phase::Registering, ActualState::In(identity)) => {
                let event = format!("registered as {} {}", identity.provider, identity.version);
                self.enter(Phase::Registered(Watch::default()), event.trim(), cx);
                self.begin_round(cx);
            }
            (Phase::Stopping(Stopping { stage: Stage::Deregistering, .. }), ActualState::Out) => {
                self.retire(cx);
            }
            (Phase::Stopping(Stopping { stage: Stage::Owing, .. }), ActualState::Out) => {
                self.enter(Phase::Ended, "stopped", cx);
            }
            // Nothing waits for the registry.
            (
                Phase::Prepared
                | Phase::Waiting(_)
                | Phase::Registering
                | Phase::Registered(_)
                | Phase::AwaitingRestart
                | Phase::Stopping(_)
                | Phase::Ended,
                _,
            ) => {}
        }
    }
}
