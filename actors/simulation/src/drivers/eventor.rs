//! The laws of one eventor. Its [subscribers](super::Subscribers) compare the items of handlers with the plugin's events.

use std::collections::BTreeMap;

use callboard_actors::driver::TaskKey;
use callboard_actors::driver::client::DriverError;
use callboard_actors::eventor::{
    Eventor, EventorAsk, EventorCall, EventorNews, EventorOptions, EventorOutcome, EventorTimer, Forget,
    JournalId, SubscribeTo, Watch,
};
use callboard_actors::shell::{CallKey, Effect, Input};
use callboard_actors::vocabulary::{Generation, Moment};

use super::super::law::Law;
use super::super::law_checker::{LawChecker, Verdict};
use super::pauses::Pauses;

/// Observes every step of one eventor.
#[derive(Debug, Clone, Hash)]
pub struct EventorLaws {
    options: EventorOptions,
    flying: Option<CallKey>,
    /// The generation whose events it must read.
    attends: Option<Generation>,
    is_to_reopen: bool,
    pauses: Pauses,
    watched: BTreeMap<TaskKey, JournalId>,
    is_stopped: bool,
    has_finished: bool,
    /// The violations found.
    pub(in super::super) verdict: Verdict,
}

impl EventorLaws {
    /// An eventor with this configuration.
    #[must_use]
    pub fn new(options: EventorOptions) -> Self {
        Self {
            options,
            flying: None,
            attends: None,
            is_to_reopen: false,
            pauses: Pauses::default(),
            watched: BTreeMap::new(),
            is_stopped: false,
            has_finished: false,
            verdict: Verdict::NONE,
        }
    }

    fn violation(&mut self, law: Law, what: impl FnOnce() -> String) {
        self.verdict.violation(law, || format!("eventor: {}", what()));
    }

    /// Whether the step concerns a stream that no longer exists.
    fn hear(&mut self, input: &Input<Eventor>) -> bool {
        match input {
            Input::Asked { ask: EventorAsk::SubscribeTo(SubscribeTo { generation }), .. } => {
                self.attends = Some(*generation);
            }
            Input::Asked { ask: EventorAsk::Watch(Watch { task, sink, .. }), .. } => {
                self.watched.insert(task.clone(), *sink);
            }
            Input::Asked { ask: EventorAsk::Forget(Forget { task }), .. } => {
                self.watched.remove(task);
            }
            Input::Returned { key, call: EventorCall::Open { .. } | EventorCall::Read, outcome } => {
                if self.flying.take_if(|flying| flying == key).is_none() {
                    return true;
                }
                if let Ok(EventorOutcome::Heard(Err(DriverError::PluginGone { .. }))) = outcome {
                    self.attends = None;
                }
            }
            Input::Elapsed(EventorTimer::Reopen) => self.is_to_reopen = false,
            Input::StopRequested(_) => self.is_stopped = true,
            Input::Returned { .. }
            | Input::Elapsed(EventorTimer::Rewind | EventorTimer::HandlerDeadline(_))
            | Input::Resumed
            | Input::Asked { ask: EventorAsk::RecentOf(_), .. } => {}
        }
        false
    }

    fn calls(&mut self, key: CallKey, call: &EventorCall) {
        match call {
            EventorCall::Open { .. } | EventorCall::Read => {
                if self.is_stopped {
                    self.violation(Law::I6, || "it is being stopped and reads on".to_owned());
                }
                self.flying = Some(key);
            }
            EventorCall::Finish(sinks) => {
                self.has_finished = true;
                let left =
                    self.watched.iter().find(|(_, sink)| !sinks.contains(sink)).map(|(task, _)| task.clone());
                if let Some(task) = left {
                    self.violation(Law::S4, || {
                        format!("it ends, and the handler of {task} is not told that nothing comes any more")
                    });
                }
            }
            EventorCall::Close | EventorCall::Hand(_) | EventorCall::End(_) => {}
        }
    }

    fn sets(&mut self, moment: Moment, timer: &EventorTimer, at: callboard_actors::vocabulary::Timestamp) {
        if self.is_stopped {
            self.violation(Law::I6, || format!("it is being stopped and waits for {timer:?}"));
        }
        if *timer == EventorTimer::Reopen {
            self.is_to_reopen = true;
            let (shortest, longest) = self.pauses.failed(&self.options.backoff, moment.now);
            let pause = at.since(moment.now);
            if pause < shortest || pause > longest {
                self.violation(Law::Hlt5, || {
                    format!("it pauses for {pause:?}, not for {shortest:?} to {longest:?}")
                });
            }
        }
    }

    fn check(&mut self, effects: &[Effect<Eventor>]) {
        let ends = effects.iter().any(|effect| matches!(effect, Effect::Stop(_)));
        if ends && !self.has_finished {
            self.violation(Law::S4, || "it ends before everybody was told".to_owned());
        }
        if self.is_stopped && !self.has_finished {
            self.violation(Law::Shd6, || "it is being stopped and does not end".to_owned());
        }
        let is_idle = self.flying.is_none() && !self.is_to_reopen;
        if !self.is_stopped && self.attends.is_some() && is_idle {
            self.violation(Law::Evt3, || {
                "there is a generation, and its events are not asked for".to_owned()
            });
        }
    }
}

impl LawChecker<Eventor> for EventorLaws {
    fn rebuilt(&mut self, _moment: Moment, _machine: &Eventor) {
        let verdict = std::mem::take(&mut self.verdict);
        *self = Self { verdict, ..Self::new(self.options) };
    }

    fn stepped(&mut self, moment: Moment, input: &Input<Eventor>, effects: &[Effect<Eventor>], _: &Eventor) {
        let is_stale = self.hear(input);
        if is_stale && !effects.is_empty() {
            self.violation(Law::Reg8, || format!("{input:?} is of another stream, and leads to {effects:?}"));
        }
        for effect in effects {
            match effect {
                Effect::Call { key, call, .. } => self.calls(*key, call),
                Effect::StartTimer(timer, at) => self.sets(moment, timer, *at),
                Effect::CancelTimer(EventorTimer::Reopen) => self.is_to_reopen = false,
                Effect::Publish(EventorNews::Interrupted { error, .. }) if error.is_empty() => {
                    self.violation(Law::I5, || "its stream ended without a reason".to_owned());
                }
                Effect::Publish(_) | Effect::CancelTimer(_) | Effect::Reply(..) | Effect::Stop(_) => {}
                Effect::Persist(_, never) => match *never {},
            }
        }
        self.check(effects);
    }

    fn panicked(&mut self, input: &Input<Eventor>) {
        self.violation(Law::Shell4, || format!("it panicked over {input:?}"));
    }
}
