//! The decisions of a process actor.

use std::time::Duration;

use super::ending::EndedBy;
use super::identity::Identity;
use super::launch_error::LaunchError;
use super::messages::{EndProcess, ProcessAnswer, ProcessAsk};
use super::state::{
    Over, Phase, Process, ProcessCall, ProcessConfig, ProcessNews, ProcessOutcome, ProcessTimer, Why,
};
use crate::goplugin::Handshake;
use crate::kernel::{CallKey, CallLost, Input, Machine, Never, StepContext};
use crate::vocabulary::{Attempt, Generation, Moment};

/// The deadline of a check, a signal, or an adoption.
pub(super) const SHORT: Duration = Duration::from_secs(30);
/// The deadline for opening, checking and starting a program. It includes the time to hash a large file.
const SPAWN_DEADLINE: Duration = Duration::from_secs(120);
/// The deadline of one attempt to end the leftovers.
pub(super) const CLEAR_DEADLINE: Duration = Duration::from_secs(60);
/// The pause before the next attempt.
const CLEAR_PAUSE: Duration = Duration::from_secs(2);
/// The deadline of one wait for news of the process; the wait is then repeated.
pub(super) const LONG: Duration = Duration::from_secs(3_600);

impl Machine for Process {
    const KIND: &'static str = "process";
    type Config = ProcessConfig;
    type Image = ();
    type Ask = ProcessAsk;
    type Answer = ProcessAnswer;
    type Call = ProcessCall;
    type Outcome = ProcessOutcome;
    type Timer = ProcessTimer;
    type Change = Never;
    type News = ProcessNews;
    type View = ();

    fn restore(config: &ProcessConfig, (): (), _: Moment) -> Self {
        let ProcessConfig { record, spec } = config.clone();
        let phase = match spec {
            Some(_) => Phase::Intended { end: None },
            None => Phase::Recalled { end: None },
        };
        let started_at = record.started_at;
        Self { record, spec, phase, by: EndedBy::Itself, started_at, attempt: Attempt::default() }
    }

    fn step(&mut self, input: &Input<Self>, cx: &mut StepContext<Self>) {
        match input {
            Input::Resumed => match self.spec {
                Some(_) => self.call(SPAWN_DEADLINE, ProcessCall::Spawn, cx),
                None => self.call(SHORT, ProcessCall::Find, cx),
            },
            Input::Asked { id, ask: ProcessAsk::EndProcess(EndProcess { grace }), .. } => {
                cx.reply(*id, ProcessAnswer::EndProcess(()));
                self.end(*grace, cx);
            }
            // The machine is never rebuilt, and each call belongs to one phase: none is pending twice.
            Input::Returned { outcome: Ok(outcome), .. } => self.came_back(outcome, cx),
            Input::Returned { call, outcome: Err(lost), .. } => self.lost(call, lost, cx),
            Input::Elapsed(timer) => self.elapsed(timer, cx),
            Input::StopRequested(mode) => self.stop(*mode, cx),
        }
    }

    fn view(&self) {}
}

impl Process {
    pub(super) fn call(&mut self, deadline: Duration, call: ProcessCall, cx: &mut StepContext<Self>) {
        self.attempt = self.attempt.next();
        let key = CallKey { generation: Generation::default(), attempt: self.attempt };
        cx.call(key, deadline, call);
    }

    /// Handles an outcome. Each call is made in one phase, and returns in that phase or a later one.
    fn came_back(&mut self, outcome: &ProcessOutcome, cx: &mut StepContext<Self>) {
        match outcome {
            ProcessOutcome::Spawned(spawned) => self.spawned(spawned, cx),
            ProcessOutcome::Found(found) => self.found(found, cx),
            ProcessOutcome::Adopted(adopted) => self.adopted(adopted, cx),
            ProcessOutcome::Shaken(handshake, identity) => {
                self.shaken(handshake, identity.as_ref(), cx);
            }
            ProcessOutcome::Ended(exit) => self.exited(exit, cx),
            ProcessOutcome::Reading(positions, dropped) => {
                self.record.positions = *positions;
                if self.is_attached() {
                    cx.publish(ProcessNews::Read { positions: *positions, dropped: *dropped });
                    self.call(LONG, ProcessCall::AwaitReading, cx);
                }
            }
            ProcessOutcome::Done => {}
            ProcessOutcome::Left(_) => {
                cx.start_timer(ProcessTimer::Clear, cx.now() + CLEAR_PAUSE);
            }
            ProcessOutcome::Cleared(words) => self.cleared(words, cx),
            ProcessOutcome::LetGo(positions) => self.over(Over::Detached(*positions), cx),
        }
    }

    /// A call was lost. Its effect is unknown, so the process is ended or checked again.
    fn lost(&mut self, call: &ProcessCall, lost: &CallLost, cx: &mut StepContext<Self>) {
        match call {
            // The process that it may have started was ended together with the call that owned it (PRC-02).
            ProcessCall::Spawn => {
                let (name, reason) = (self.record.name.clone(), lost.to_string());
                self.over(Over::NotStarted(LaunchError::Failed { name, reason }), cx);
            }
            ProcessCall::Find => self.found(&Err(lost.to_string()), cx),
            ProcessCall::Adopt => self.adopted(&Err(lost.to_string()), cx),
            ProcessCall::AwaitEnd if self.is_attached() => self.call(LONG, ProcessCall::AwaitEnd, cx),
            ProcessCall::AwaitReading if self.is_attached() => {
                self.call(LONG, ProcessCall::AwaitReading, cx);
            }
            ProcessCall::Clear | ProcessCall::EndLeft(_) => {
                cx.start_timer(ProcessTimer::Clear, cx.now() + CLEAR_PAUSE);
            }
            ProcessCall::LetGo => self.over(Over::Detached(self.record.positions), cx),
            // The start timer handles a missing handshake; a lost signal is sent again.
            ProcessCall::AwaitHandshake | ProcessCall::Terminate => {}
            ProcessCall::Kill => self.call(SHORT, ProcessCall::Kill, cx),
            // These are not pending in other phases.
            ProcessCall::AwaitEnd | ProcessCall::AwaitReading => {}
        }
    }

    fn elapsed(&mut self, timer: &ProcessTimer, cx: &mut StepContext<Self>) {
        match (timer, &self.phase) {
            (ProcessTimer::Start, Phase::Spawned) => {
                let waited = self.spec.as_ref().map_or(Duration::ZERO, |spec| spec.start_timeout);
                self.terminate(Why::TimedOut(waited), self.record.stop_grace, cx);
            }
            (ProcessTimer::Grace, Phase::Stopping { .. }) => {
                self.by = EndedBy::Force;
                self.call(SHORT, ProcessCall::Kill, cx);
            }
            (ProcessTimer::Clear, Phase::Clearing { .. }) => {
                self.call(CLEAR_DEADLINE, ProcessCall::Clear, cx);
            }
            (ProcessTimer::Clear, Phase::EndingLeft { proven, .. }) => {
                let proven = proven.clone();
                self.call(CLEAR_DEADLINE, ProcessCall::EndLeft(proven), cx);
            }
            // It ended, or became ready, just before the timeout (race).
            (
                ProcessTimer::Start | ProcessTimer::Grace | ProcessTimer::Clear,
                Phase::Intended { .. }
                | Phase::Recalled { .. }
                | Phase::EndingLeft { .. }
                | Phase::Spawned
                | Phase::Ready
                | Phase::Stopping { .. }
                | Phase::Clearing { .. }
                | Phase::Leaving
                | Phase::Over,
            ) => {}
        }
    }

    // === Launch ===

    fn spawned(&mut self, spawned: &Result<Identity, LaunchError>, cx: &mut StepContext<Self>) {
        let Phase::Intended { end } = self.phase else { return };
        match spawned {
            Err(error) => self.over(Over::NotStarted(error.clone()), cx),
            Ok(identity) => {
                self.record.identity = Some(identity.clone());
                cx.publish(ProcessNews::Spawned(identity.clone()));
                self.attach(cx);
                self.phase = Phase::Spawned;
                match end {
                    Some(grace) => self.terminate(Why::Asked, grace, cx),
                    None => self.await_readiness(cx),
                }
            }
        }
    }

    pub(super) fn attach(&mut self, cx: &mut StepContext<Self>) {
        self.call(LONG, ProcessCall::AwaitEnd, cx);
        self.call(LONG, ProcessCall::AwaitReading, cx);
    }

    fn await_readiness(&mut self, cx: &mut StepContext<Self>) {
        let Some(spec) = self.spec.clone() else { return };
        if spec.handshake.is_some() {
            cx.start_timer(ProcessTimer::Start, cx.now() + spec.start_timeout);
            // The timer ends this wait; the call only has to last longer.
            self.call(spec.start_timeout.saturating_add(SHORT), ProcessCall::AwaitHandshake, cx);
        } else if let Some(identity) = self.record.identity.clone() {
            self.ready(identity, None, false, cx);
        }
    }

    fn shaken(
        &mut self,
        handshake: &Result<Handshake, Why>,
        identity: Option<&Identity>,
        cx: &mut StepContext<Self>,
    ) {
        if self.phase != Phase::Spawned {
            return;
        }
        cx.cancel_timer(ProcessTimer::Start);
        match (handshake, identity.or(self.record.identity.as_ref()).cloned()) {
            (Ok(handshake), Some(identity)) => self.ready(identity, Some(handshake.clone()), false, cx),
            (Ok(_), None) => {}
            (Err(why), _) => self.terminate(why.clone(), self.record.stop_grace, cx),
        }
    }

    pub(super) fn ready(
        &mut self,
        identity: Identity,
        handshake: Option<Handshake>,
        is_adopted: bool,
        cx: &mut StepContext<Self>,
    ) {
        self.phase = Phase::Ready;
        self.record.identity = Some(identity.clone());
        self.record.is_ready = true;
        cx.publish(ProcessNews::Ready { identity, handshake, is_adopted });
    }
}
