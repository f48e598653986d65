//! Registration and deregistration (A3, A4): reconciles the registry with the desired state, one message at a time.
//!
//! If the registry refuses or is not running, the message is retried after a pause, until the desired state changes.

use std::sync::Arc;

use super::neighbours::RegisterOutcome;
use super::state::{
    Allocation, AllocationCall, AllocationTimer, Desired, Phase, SignIn, Stage, Standing, Stopping, Watch,
};
use crate::AskError;
use crate::kernel::StepContext;
use crate::registry::{Deregister, Deregistered, LeaveCause, Register};
use crate::vocabulary::{Attempt, BackoffState, Identity};

impl Default for SignIn {
    fn default() -> Self {
        Self {
            desired: Desired::LeaveAlone,
            standing: Standing::Unknown,
            under_way: None,
            is_pausing: false,
            pauses: BackoffState::default(),
            trouble: None,
        }
    }
}

impl SignIn {
    fn is_settled(&self) -> bool {
        match (&self.desired, &self.standing) {
            (Desired::LeaveAlone, _) | (Desired::Out, Standing::Out) => true,
            (Desired::In(desired), Standing::In(known)) => desired == known,
            (Desired::In(_), Standing::Unknown | Standing::Out)
            | (Desired::Out, Standing::Unknown | Standing::In(_)) => false,
        }
    }
}

impl Allocation {
    /// Changes the desired state, and reconciles.
    pub(super) fn want(&mut self, desired: Desired, cx: &mut StepContext<Self>) {
        self.sign_in.desired = desired;
        self.sign_in.trouble = None;
        self.sign_in.pauses.reset();
        self.sign_in.is_pausing = false;
        cx.cancel_timer(AllocationTimer::Registry);
        self.reconcile(cx);
        self.desired_reached(cx);
    }

    /// Sends the next message to the registry, if one is needed and none is pending.
    pub(super) fn reconcile(&mut self, cx: &mut StepContext<Self>) {
        if self.sign_in.is_settled() || self.sign_in.is_pausing || self.sign_in.under_way.is_some() {
            return;
        }
        let call = match &self.sign_in.desired {
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
        self.sign_in.under_way = Some((attempt, self.sign_in.desired.clone()));
        self.sign_in.standing = Standing::Unknown;
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
        let under_way = &mut self.sign_in.under_way;
        let Some((_, done)) = under_way.take_if(|(current, _)| *current == attempt) else { return };
        self.sign_in.standing = match done {
            Desired::In(identity) => Standing::In(identity),
            Desired::Out => Standing::Out,
            Desired::LeaveAlone => Standing::Unknown,
        };
        self.sign_in.pauses.reset();
        if let (true, Phase::Stopping(stopping)) = (is_removed, &mut self.phase) {
            stopping.report.deregistered = true;
        }
        self.reconcile(cx);
        self.desired_reached(cx);
    }

    /// It is unknown whether the message took effect: it is retried after a pause.
    pub(super) fn registry_failed(&mut self, attempt: Attempt, error: String, cx: &mut StepContext<Self>) {
        let under_way = &mut self.sign_in.under_way;
        let Some((_, tried)) = under_way.take_if(|(current, _)| *current == attempt) else { return };
        if tried != self.sign_in.desired {
            self.reconcile(cx);
            return;
        }
        let pause = self.sign_in.pauses.failed(&self.config.options.registry_pauses, cx.moment());
        cx.start_timer(AllocationTimer::Registry, cx.now() + pause);
        self.sign_in.is_pausing = true;
        if matches!(self.phase, Phase::Registering) {
            self.last_event = format!("not registered yet, trying again: {error}");
        }
        self.sign_in.trouble = Some(error);
    }

    /// What it waited for may be over: a pending pause ends. What is under way comes back, and is asked for again soon if it failed.
    pub(super) fn try_registry_now(&mut self, cx: &mut StepContext<Self>) {
        self.sign_in.pauses.reset();
        if std::mem::take(&mut self.sign_in.is_pausing) {
            cx.cancel_timer(AllocationTimer::Registry);
            self.reconcile(cx);
        }
    }

    fn desired_reached(&mut self, cx: &mut StepContext<Self>) {
        if !self.sign_in.is_settled() {
            return;
        }
        match (&self.phase, &self.sign_in.standing) {
            (Phase::Registering, Standing::In(identity)) => {
                let event = format!("registered as {} {}", identity.provider, identity.version);
                self.enter(Phase::Registered(Watch::default()), event.trim(), cx);
                self.begin_round(cx);
            }
            (Phase::Stopping(Stopping { stage: Stage::Deregistering, .. }), Standing::Out) => {
                self.retire(cx);
            }
            (Phase::Stopping(Stopping { stage: Stage::Owing, .. }), Standing::Out) => {
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
