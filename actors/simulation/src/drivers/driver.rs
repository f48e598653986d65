//! The laws of one driver.

use callboard_actors::driver::{
    Driver, DriverAsk, DriverCall, DriverConfig, DriverHealth, DriverMode, DriverReport, DriverStage,
    DriverStep, DriverTimer, DriverTold, Reached, StartStep, Trouble, TroubleKind,
};
use callboard_actors::process::{Lifetime, ProcessTag};
use callboard_actors::processes::Recalled;
use callboard_actors::shell::{CallKey, Effect, Input, Machine, StopMode};
use callboard_actors::vocabulary::{Moment, Timestamp};

use super::super::law::Law;
use super::super::law_checker::{LawChecker, Verdict};
use super::super::stand_in::Constant;
use super::known::{Heard, Known, Outcome};
use super::pauses::Pauses;
use super::pinged::Pinged;

/// Observes every step of one driver.
#[derive(Debug, Clone, Hash)]
pub struct DriverLaws {
    config: Constant<DriverConfig>,
    known: Known,
    /// The step in flight.
    flying: Option<(CallKey, DriverCall)>,
    retry_at: Option<Timestamp>,
    reads_on: bool,
    has_grace: bool,
    pinged: Pinged,
    pauses: Pauses,
    stopped: Option<StopMode>,
    is_gone: bool,
    /// Whether its program was refused, and has not changed since.
    is_refused: bool,
    told: Option<DriverReport>,
    /// The violations found.
    pub(in super::super) verdict: Verdict,
}

/// The steps that must be done over a connection before the plugin counts as healthy.
const NEEDED: [StartStep; 5] = [
    StartStep::Ping,
    StartStep::Identify,
    StartStep::Configure,
    StartStep::Own(DriverStep::Initialise),
    StartStep::Own(DriverStep::Capabilities),
];

impl DriverLaws {
    /// A driver with this configuration.
    #[must_use]
    pub fn new(config: DriverConfig) -> Self {
        Self {
            config: Constant(config),
            known: Known::default(),
            flying: None,
            retry_at: None,
            reads_on: false,
            has_grace: false,
            pinged: Pinged::default(),
            pauses: Pauses::default(),
            stopped: None,
            is_gone: false,
            is_refused: false,
            told: None,
            verdict: Verdict::NONE,
        }
    }

    fn violation(&mut self, law: Law, what: impl FnOnce() -> String) {
        let name = &self.config.spec.name;
        self.verdict.violation(law, || format!("driver {name}: {}", what()));
    }

    // === Inputs ===

    fn hear(&mut self, input: &Input<Driver>) -> Heard {
        match input {
            Input::StopRequested(mode) => {
                let is_final = self.stopped == Some(StopMode::Stop);
                self.stopped = Some(if is_final { StopMode::Stop } else { *mode });
                return Heard::Stop;
            }
            Input::Asked { ask: DriverAsk::RestartNow(_), .. } => {
                self.is_refused = false;
                let stage = self.told.as_ref().map(|report| report.stage);
                if matches!(
                    stage,
                    Some(
                        DriverStage::Connecting
                            | DriverStage::Watching
                            | DriverStage::Pausing
                            | DriverStage::Refused
                    )
                ) {
                    self.pauses.reset();
                }
            }
            Input::Elapsed(DriverTimer::Retry) => self.retry_at = None,
            Input::Elapsed(DriverTimer::ReadOn) => self.reads_on = false,
            Input::Elapsed(DriverTimer::Grace) => self.has_grace = false,
            Input::Elapsed(DriverTimer::Ping) => self.pinged.is_due = false,
            Input::Elapsed(DriverTimer::Reawait) => self.known.hears_of_end = false,
            Input::Returned { call: DriverCall::AwaitEnd(tag), outcome, .. } => {
                return self.heard_of_end(*tag, outcome);
            }
            Input::Returned { key, call: DriverCall::Ping, outcome } => {
                return match self.pinged.returned(*key, outcome) {
                    Some(is_answered) => is_answered.map_or(Heard::Something, Heard::Pinged),
                    None => Heard::Stale,
                };
            }
            // The search for a running process of it is not over yet.
            Input::Returned { key, call: DriverCall::HangUp { .. }, .. } if *key == CallKey::default() => {}
            Input::Returned { key, call, outcome } => {
                if self.flying.take_if(|(flying, _)| flying == key).is_none() {
                    return Heard::Stale;
                }
                self.is_refused = matches!(outcome, Ok(Err(Trouble { kind: TroubleKind::Refused, .. })));
                self.pauses.returned(call, outcome);
                return self.returned(call, outcome);
            }
            Input::Resumed | Input::Asked { ask: DriverAsk::DescribeTroubles(_), .. } => {}
        }
        Heard::Something
    }

    fn heard_of_end(&mut self, tag: ProcessTag, outcome: &Outcome) -> Heard {
        if self.known.process != Some(tag) {
            return Heard::Stale;
        }
        self.known.hears_of_end = false;
        if !matches!(outcome, Ok(Ok(Reached::Ended(_)))) {
            return Heard::Something;
        }
        (self.known.process, self.known.is_draining) = (None, false);
        Heard::End(self.known.read.take().is_some())
    }

    fn returned(&mut self, call: &DriverCall, outcome: &Outcome) -> Heard {
        let known = &mut self.known;
        match (call, outcome) {
            (_, Ok(Ok(Reached::Recalled(Recalled::Proven(launched)) | Reached::Launched(launched)))) => {
                if known.process.replace(launched.tag) != Some(launched.tag) {
                    (known.read, known.hears_of_end, known.is_draining) = (None, false, false);
                }
            }
            (_, Ok(Ok(Reached::Recalled(Recalled::Ended { .. } | Recalled::Unknown)))) => {
                *known = Known { may_launch: true, ..Known::default() };
            }
            (_, Ok(Ok(Reached::Connected(_)))) => (known.read, known.is_hung_up) = (Some(Vec::new()), false),
            (_, Ok(Ok(Reached::Told(DriverTold::Fingerprinted(fingerprint))))) => {
                return Heard::Fingerprint(fingerprint.clone());
            }
            (DriverCall::Advance(start_step, _), Ok(Ok(_))) => {
                known.read.iter_mut().for_each(|read| read.push(*start_step));
            }
            (DriverCall::StopProcess { .. }, Ok(Ok(_))) => *known = Known::default(),
            (DriverCall::StopProcess { .. } | DriverCall::Advance(StartStep::Recall, _), _) => {
                known.is_excused = true;
            }
            (
                DriverCall::Advance(StartStep::Own(DriverStep::Initialise), _),
                Ok(Err(Trouble { kind: TroubleKind::Unimplemented, .. })),
            ) => {
                known.read.iter_mut().for_each(|read| read.push(StartStep::Own(DriverStep::Initialise)));
            }
            (DriverCall::HangUp { .. }, _) => known.is_draining = false,
            (DriverCall::ShutdownAnswer, _) => {}
            (_, Ok(Err(Trouble { kind: TroubleKind::Silent, .. })))
            | (
                DriverCall::Advance(
                    StartStep::Dial
                    | StartStep::Ping
                    | StartStep::Identify
                    | StartStep::Configure
                    | StartStep::Own(DriverStep::Initialise)
                    | StartStep::Own(DriverStep::Capabilities),
                    _,
                ),
                Err(_),
            ) => known.read = None,
            (_, _) => {}
        }
        Heard::Something
    }

    // === Effects ===

    fn calls(&mut self, key: CallKey, call: &DriverCall) {
        match call {
            DriverCall::AwaitEnd(_) => {
                self.known.hears_of_end = true;
                return;
            }
            DriverCall::Ping => {
                self.goes_on("to ping");
                self.pinged.awaited = Some(key);
                return;
            }
            DriverCall::HangUp { within, .. } => {
                self.known.is_hung_up = true;
                if key == CallKey::default() {
                    return;
                }
                self.known.is_draining = !within.is_zero();
            }
            DriverCall::ShutdownAnswer | DriverCall::StopProcess { .. } => {
                if self.known.is_draining {
                    self.violation(Law::Shd4, || {
                        "its process is ended before the calls in flight".to_owned()
                    });
                }
            }
            DriverCall::ReadOn | DriverCall::AwaitChange => self.goes_on("to wait for what comes next"),
            DriverCall::Advance(StartStep::Recall | StartStep::Launch, _) if self.is_refused => {
                self.violation(Law::Sec7, || "it launches again what was refused".to_owned());
            }
            DriverCall::Advance(start_step, _) => {
                self.goes_on(start_step.as_str());
                self.pauses.begun(*start_step);
                if *start_step == StartStep::Launch && !std::mem::take(&mut self.known.may_launch) {
                    self.violation(Law::Prc4, || {
                        "it launches, and was not told that nothing of it runs".to_owned()
                    });
                }
                if *start_step != StartStep::Recall && self.config.mode == DriverMode::Retire {
                    self.violation(Law::I6, || format!("it is there to be ended, and begins {start_step}"));
                }
            }
        }
        self.flying = Some((key, call.clone()));
    }

    fn goes_on(&mut self, what: &str) {
        if self.stopped.is_some() {
            self.violation(Law::I6, || format!("it is being stopped and begins {what}"));
        }
        if let Some(at) = self.retry_at {
            self.violation(Law::Hlt5, || format!("it begins {what}, and its pause lasts until {at}"));
        }
    }

    fn sets(&mut self, moment: Moment, timer: DriverTimer, at: Timestamp) {
        match timer {
            DriverTimer::Grace => self.has_grace = true,
            DriverTimer::Reawait => self.known.hears_of_end = true,
            DriverTimer::ReadOn => self.reads_on = true,
            DriverTimer::Ping => self.pinged.is_due = true,
            DriverTimer::Retry => {
                let (shortest, longest) = self.pauses.failed(&self.config.limits.backoff, moment.now);
                let pause = at.since(moment.now);
                if pause < shortest || pause > longest {
                    self.violation(Law::Hlt5, || {
                        format!("it pauses for {pause:?}, not for {shortest:?} to {longest:?}")
                    });
                }
                self.retry_at = Some(at);
            }
        }
        if matches!(timer, DriverTimer::Retry | DriverTimer::ReadOn | DriverTimer::Ping)
            && self.stopped.is_some()
        {
            self.violation(Law::I6, || format!("it is being stopped and waits for {timer:?}"));
        }
    }

    fn publishes(&mut self, report: &DriverReport, heard: &Heard) {
        if self.is_gone {
            self.violation(Law::I6, || format!("{} is told after its end", report.health));
        }
        if self.told.as_ref() == Some(report) {
            self.violation(Law::Scl5, || format!("{} is told twice", report.health));
        }
        let (told, began) = (report.launches, self.pauses.launches());
        if told != began {
            self.violation(Law::Hlt4, || format!("{told} launches are told, and {began} began anything"));
        }
        let was = self.told.as_ref().map(|told| told.health);
        if report.health == DriverHealth::Healthy && was != Some(DriverHealth::Healthy) {
            let read = self.known.read.clone().unwrap_or_default();
            if !NEEDED.iter().all(|start_step| read.contains(start_step))
                || !matches!(heard, Heard::Fingerprint(_) | Heard::Pinged(true))
            {
                self.violation(Law::I2, || {
                    format!("it is called healthy, and over its connection was {read:?}")
                });
            }
        }
        if report.health == DriverHealth::Unhealthy
            && report.reason.is_empty()
            && !matches!(heard, Heard::Fingerprint(_))
        {
            self.violation(Law::I5, || "it is unhealthy without a reason".to_owned());
        }
        if report.stage != DriverStage::Watching {
            self.pinged = Pinged { is_due: self.pinged.is_due, ..Pinged::default() };
        }
        self.is_gone |= report.health == DriverHealth::Gone;
        self.told = Some(report.clone());
    }

    /// Its report is its present state, at once; some action always follows; and its effects are in order.
    fn check(&mut self, heard: &Heard, effects: &[Effect<Driver>], machine: &Driver) {
        let view = machine.view();
        let is_pinged = self.config.limits.ping_every.is_some();
        let told = self.told.as_ref().unwrap_or(&view);
        if let Some(what) = self.pinged.check(is_pinged, heard, effects, told) {
            self.violation(Law::Hlt3, || what);
        }
        if self.told.as_ref() != Some(&view) {
            self.violation(Law::Hlt4, || format!("it is {}, and that is not told", view.health));
        }
        if let Heard::Fingerprint(said) = heard
            && self.stopped.is_none()
            && !self.pinged.is_unanswered
            && (view.health != said.health || view.reason != said.description)
        {
            self.violation(Law::Hlt4, || format!("it says {}, and {} is told", said.health, view.health));
        }
        if let Heard::End(was_connected) = heard {
            let hangs_up =
                |effect: &_| matches!(effect, Effect::Call { call: DriverCall::HangUp { .. }, .. });
            if *was_connected && !effects.iter().any(hangs_up) {
                self.violation(Law::Prc5, || "its process ended, and who asks goes on waiting".to_owned());
            }
            if view.health == DriverHealth::Healthy {
                self.violation(Law::Prc5, || "its process ended, and it is called healthy".to_owned());
            }
        }
        if *heard == Heard::Stop && self.known.read.is_some() && !self.known.is_hung_up {
            self.violation(Law::Shd3, || "it is told to stop, and who asks goes on waiting".to_owned());
        }
        let ends = effects.iter().any(|effect| matches!(effect, Effect::Stop(_)));
        if ends {
            self.check_end();
        } else if !self.is_gone {
            self.check_goes_on();
        }
    }

    fn check_end(&mut self) {
        let is_left = self.stopped == Some(StopMode::Detach)
            && self.config.spec.process.lifetime == Lifetime::Surviving
            && self.config.mode == DriverMode::Serve;
        if self.known.process.is_some() && !self.known.is_excused && !is_left {
            self.violation(Law::Shd6, || "it ends, and its process goes on".to_owned());
        }
    }

    fn check_goes_on(&mut self) {
        let waits = self.flying.is_some() || self.retry_at.is_some() || self.reads_on || self.has_grace;
        if !waits {
            let law = if self.stopped.is_some() { Law::Shd6 } else { Law::Hlt5 };
            self.violation(law, || "nothing is under way, and nothing follows".to_owned());
        }
        if self.known.process.is_some() && !self.known.hears_of_end {
            self.violation(Law::Prc5, || "it has a process and would not hear of its end".to_owned());
        }
    }
}

impl LawChecker<Driver> for DriverLaws {
    fn rebuilt(&mut self, _moment: Moment, _machine: &Driver) {
        let verdict = std::mem::take(&mut self.verdict);
        *self = Self { verdict, ..Self::new(self.config.0.clone()) };
    }

    fn stepped(
        &mut self,
        moment: Moment,
        input: &Input<Driver>,
        effects: &[Effect<Driver>],
        machine: &Driver,
    ) {
        let heard = self.hear(input);
        if heard == Heard::Stale && !effects.is_empty() {
            self.violation(Law::Reg8, || format!("{input:?} is of another time, and leads to {effects:?}"));
        }
        for effect in effects {
            match effect {
                Effect::Call { key, call, .. } => self.calls(*key, call),
                Effect::Publish(report) => self.publishes(report, &heard),
                Effect::StartTimer(timer, at) => self.sets(moment, *timer, *at),
                Effect::CancelTimer(DriverTimer::Retry) => self.retry_at = None,
                Effect::CancelTimer(DriverTimer::ReadOn) => self.reads_on = false,
                Effect::CancelTimer(DriverTimer::Ping) => self.pinged.is_due = false,
                Effect::CancelTimer(DriverTimer::Grace) => self.has_grace = false,
                Effect::CancelTimer(DriverTimer::Reawait) => self.known.hears_of_end = false,
                Effect::Reply(..) | Effect::Stop(_) => {}
                Effect::Persist(_, never) => match *never {},
            }
        }
        self.check(&heard, effects, machine);
    }

    fn panicked(&mut self, input: &Input<Driver>) {
        self.violation(Law::Shell4, || format!("it panicked over {input:?}"));
    }
}
