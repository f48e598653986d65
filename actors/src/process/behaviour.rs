//! What one process does when something happens to it.

use std::time::Duration;

use super::ending::EndedBy;
use super::identity::Identity;
use super::launch_error::LaunchError;
use super::state::{
    EndProcess, Over, Phase, Process, ProcessAnswer, ProcessAsk, ProcessCall, ProcessConfig, ProcessNews,
    ProcessOutcome, ProcessTimer, Why,
};
use crate::goplugin::Handshake;
use crate::shell::{CallKey, CallLost, Effects, Input, Machine, Never};
use crate::vocabulary::{Attempt, Generation, Moment};

/// How long a look, a signal, or an adoption may take.
pub(super) const SHORT: Duration = Duration::from_secs(30);
/// How long opening, checking and starting a program may take: a large one is hashed in this time.
const SPAWN_DEADLINE: Duration = Duration::from_secs(120);
/// How long one try at ending what is left may take.
pub(super) const CLEAR_DEADLINE: Duration = Duration::from_secs(60);
/// How long to leave alone what does not end.
const CLEAR_PAUSE: Duration = Duration::from_secs(2);
/// How long one wait for news of the process lasts before it is asked for again.
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

    fn step(&mut self, moment: Moment, input: &Input<Self>, effects: &mut Effects<Self>) {
        match input {
            Input::Resumed => match self.spec {
                Some(_) => self.call(SPAWN_DEADLINE, ProcessCall::Spawn, effects),
                None => self.call(SHORT, ProcessCall::Find, effects),
            },
            Input::Asked { id, ask: ProcessAsk::EndProcess(EndProcess { grace }), .. } => {
                effects.reply(*id, ProcessAnswer::EndProcess(()));
                self.end(*grace, moment, effects);
            }
            // It is never built anew, and each call belongs to one phase: none is asked for twice at once.
            Input::Returned { outcome: Ok(outcome), .. } => self.came_back(outcome, moment, effects),
            Input::Returned { call, outcome: Err(lost), .. } => self.lost(call, lost, moment, effects),
            Input::Elapsed(timer) => self.elapsed(timer, moment, effects),
            Input::StopRequested(mode) => self.stop(*mode, moment, effects),
        }
    }

    fn view(&self) {}
}

impl Process {
    pub(super) fn call(&mut self, deadline: Duration, call: ProcessCall, effects: &mut Effects<Self>) {
        self.attempt = self.attempt.next();
        let key = CallKey { generation: Generation::default(), attempt: self.attempt };
        effects.call(key, deadline, call);
    }

    /// Each of these is asked for in one phase, and comes back in that or a later one.
    fn came_back(&mut self, outcome: &ProcessOutcome, moment: Moment, effects: &mut Effects<Self>) {
        match outcome {
            ProcessOutcome::Spawned(spawned) => self.spawned(spawned, moment, effects),
            ProcessOutcome::Found(found) => self.found(found, effects),
            ProcessOutcome::Adopted(adopted) => self.adopted(adopted, moment, effects),
            ProcessOutcome::Shaken(handshake, identity) => {
                self.shaken(handshake, identity.as_ref(), moment, effects);
            }
            ProcessOutcome::Ended(exit) => self.exited(exit, effects),
            ProcessOutcome::Reading(positions, dropped) => {
                self.record.positions = *positions;
                if self.is_attached() {
                    effects.publish(ProcessNews::Read { positions: *positions, dropped: *dropped });
                    self.call(LONG, ProcessCall::AwaitReading, effects);
                }
            }
            ProcessOutcome::Done => {}
            ProcessOutcome::Left(_) => {
                effects.start_timer(ProcessTimer::Clear, moment.now + CLEAR_PAUSE);
            }
            ProcessOutcome::Cleared(words) => self.cleared(words, moment, effects),
            ProcessOutcome::LetGo(positions) => self.over(Over::Detached(*positions), effects),
        }
    }

    /// A call has no outcome. Whatever it was to do is unknown, so what may be there is ended, or looked at anew.
    fn lost(&mut self, call: &ProcessCall, lost: &CallLost, moment: Moment, effects: &mut Effects<Self>) {
        match call {
            // Whatever it had started is ended with the call that owned it (PRC-02).
            ProcessCall::Spawn => {
                let (name, reason) = (self.record.name.clone(), lost.to_string());
                self.over(Over::NotStarted(LaunchError::Failed { name, reason }), effects);
            }
            ProcessCall::Find => self.found(&Err(lost.to_string()), effects),
            ProcessCall::Adopt => self.adopted(&Err(lost.to_string()), moment, effects),
            ProcessCall::AwaitEnd if self.is_attached() => self.call(LONG, ProcessCall::AwaitEnd, effects),
            ProcessCall::AwaitReading if self.is_attached() => {
                self.call(LONG, ProcessCall::AwaitReading, effects);
            }
            ProcessCall::Clear | ProcessCall::EndLeft(_) => {
                effects.start_timer(ProcessTimer::Clear, moment.now + CLEAR_PAUSE);
            }
            ProcessCall::LetGo => self.over(Over::Detached(self.record.positions), effects),
            // The start timer tells what a handshake that never comes is; a signal that was lost is sent again.
            ProcessCall::AwaitHandshake | ProcessCall::Terminate => {}
            ProcessCall::Kill => self.call(SHORT, ProcessCall::Kill, effects),
            // Nobody waits for these any more.
            ProcessCall::AwaitEnd | ProcessCall::AwaitReading => {}
        }
    }

    fn elapsed(&mut self, timer: &ProcessTimer, moment: Moment, effects: &mut Effects<Self>) {
        match (timer, &self.phase) {
            (ProcessTimer::Start, Phase::Spawned) => {
                let waited = self.spec.as_ref().map_or(Duration::ZERO, |spec| spec.start_timeout);
                self.terminate(Why::TimedOut(waited), self.record.stop_grace, moment, effects);
            }
            (ProcessTimer::Grace, Phase::Stopping { .. }) => {
                self.by = EndedBy::Force;
                self.call(SHORT, ProcessCall::Kill, effects);
            }
            (ProcessTimer::Clear, Phase::Clearing { .. }) => {
                self.call(CLEAR_DEADLINE, ProcessCall::Clear, effects);
            }
            (ProcessTimer::Clear, Phase::EndingLeft { proven, .. }) => {
                let proven = proven.clone();
                self.call(CLEAR_DEADLINE, ProcessCall::EndLeft(proven), effects);
            }
            // It came to its end, or to its beginning, just before the time was up.
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

    fn spawned(
        &mut self,
        spawned: &Result<Identity, LaunchError>,
        moment: Moment,
        effects: &mut Effects<Self>,
    ) {
        let Phase::Intended { end } = self.phase else { return };
        match spawned {
            Err(error) => self.over(Over::NotStarted(error.clone()), effects),
            Ok(identity) => {
                self.record.identity = Some(identity.clone());
                effects.publish(ProcessNews::Spawned(identity.clone()));
                self.attach(effects);
                self.phase = Phase::Spawned;
                match end {
                    Some(grace) => self.terminate(Why::Asked, grace, moment, effects),
                    None => self.await_readiness(moment, effects),
                }
            }
        }
    }

    pub(super) fn attach(&mut self, effects: &mut Effects<Self>) {
        self.call(LONG, ProcessCall::AwaitEnd, effects);
        self.call(LONG, ProcessCall::AwaitReading, effects);
    }

    fn await_readiness(&mut self, moment: Moment, effects: &mut Effects<Self>) {
        let Some(spec) = self.spec.clone() else { return };
        if spec.handshake.is_some() {
            effects.start_timer(ProcessTimer::Start, moment.now + spec.start_timeout);
            // The timer is what ends this wait; the call is only to outlast it.
            self.call(spec.start_timeout + SHORT, ProcessCall::AwaitHandshake, effects);
        } else if let Some(identity) = self.record.identity.clone() {
            self.ready(identity, None, false, effects);
        }
    }

    fn shaken(
        &mut self,
        handshake: &Result<Handshake, Why>,
        identity: Option<&Identity>,
        moment: Moment,
        effects: &mut Effects<Self>,
    ) {
        if self.phase != Phase::Spawned {
            return;
        }
        effects.cancel_timer(ProcessTimer::Start);
        match (handshake, identity.or(self.record.identity.as_ref()).cloned()) {
            (Ok(handshake), Some(identity)) => self.ready(identity, Some(handshake.clone()), false, effects),
            (Ok(_), None) => {}
            (Err(why), _) => self.terminate(why.clone(), self.record.stop_grace, moment, effects),
        }
    }

    pub(super) fn ready(
        &mut self,
        identity: Identity,
        handshake: Option<Handshake>,
        is_adopted: bool,
        effects: &mut Effects<Self>,
    ) {
        self.phase = Phase::Ready;
        self.record.identity = Some(identity.clone());
        self.record.is_ready = true;
        effects.publish(ProcessNews::Ready { identity, handshake, is_adopted });
    }
}
