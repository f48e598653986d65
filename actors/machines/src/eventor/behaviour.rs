//! Decides for an eventor: when the stream is opened, and how its end is handled.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::messages::{EventorAnswer, EventorAsk, EventorNews, SubscribeTo};
use super::state::{Eventor, EventorCall, EventorOptions, EventorOutcome, EventorTimer, Marks, Stream};
use crate::driver::GapReason;
use crate::driver::{DriverError, EventBatch};
use crate::kernel::{CallKey, CallLost, Input, Machine, Never, OneCall, StepContext};
use crate::vocabulary::{BackoffState, Generation, Moment};

/// The timeout of one call for the next events; then it is made again.
const READ_DEADLINE: Duration = Duration::from_secs(3_600);
/// The timeout of calls that only pass something on.
const HAND_DEADLINE: Duration = Duration::from_secs(10);
/// How long to collect late tasks before the stream is opened again for them.
pub(super) const REWIND_PAUSE: Duration = Duration::from_millis(50);

impl Machine for Eventor {
    const KIND: &'static str = "eventor";
    type Config = EventorOptions;
    type Image = ();
    type Ask = EventorAsk;
    type Answer = EventorAnswer;
    type Call = EventorCall;
    type Outcome = EventorOutcome;
    type Timer = EventorTimer;
    type Change = Never;
    type News = EventorNews;
    type View = ();

    fn restore(options: &EventorOptions, (): (), _: Moment) -> Self {
        Self {
            options: *options,
            stream: Stream::Absent,
            reading: OneCall::default(),
            backoff: BackoffState::default(),
            marks: Marks::Unknown,
            was_open: false,
            resume: None,
            cursor: None,
            is_first: true,
            is_rewinding: false,
            routes: BTreeMap::new(),
            strangers: BTreeMap::new(),
            dead: BTreeMap::new(),
            handed: Vec::new(),
        }
    }

    fn step(&mut self, input: &Input<Self>, cx: &mut StepContext<Self>) {
        match input {
            Input::Resumed => {
                cx.call(CallKey::default(), HAND_DEADLINE, EventorCall::Close);
                cx.publish(EventorNews::Began);
            }
            Input::Asked { id, ask, .. } => {
                let answer = match ask {
                    EventorAsk::SubscribeTo(SubscribeTo { generation }) => {
                        self.attend(*generation, cx);
                        EventorAnswer::SubscribeTo(())
                    }
                    EventorAsk::Watch(watch) => {
                        self.watch(watch, cx);
                        EventorAnswer::Watch(())
                    }
                    EventorAsk::Forget(forget) => {
                        self.forget(&forget.task, cx);
                        EventorAnswer::Forget(())
                    }
                    EventorAsk::RecentOf(of) => {
                        let route = self.routes.get(&of.task);
                        let recent = route.map(|route| route.recent.entries().to_vec());
                        EventorAnswer::RecentOf(recent.unwrap_or_default())
                    }
                };
                self.hand(cx);
                cx.reply(*id, answer);
            }
            Input::Returned { key, call, outcome } => {
                match call {
                    EventorCall::Open { .. } | EventorCall::Read if self.reading.came_back(*key) => {
                        self.heard(outcome, cx);
                    }
                    // Everything is closed, and all handlers are notified.
                    EventorCall::Finish(_) => cx.stop(),
                    // Another stream is being read, or the call returns no event.
                    EventorCall::Open { .. }
                    | EventorCall::Read
                    | EventorCall::Close
                    | EventorCall::Hand(_)
                    | EventorCall::End(_) => {}
                }
                self.hand(cx);
            }
            Input::Elapsed(EventorTimer::Reopen) => self.reopen(cx),
            Input::Elapsed(EventorTimer::Rewind) => self.rewind(cx),
            Input::Elapsed(EventorTimer::HandlerDeadline(task)) => self.handler_deadline_passed(task, cx),
            Input::StopRequested(_) => self.stop(cx),
        }
        self.hand(cx);
    }

    fn view(&self) {}
}

impl Eventor {
    fn call(&mut self, call: EventorCall, cx: &mut StepContext<Self>) {
        cx.call(self.reading.begin(Generation::default()), READ_DEADLINE, call);
    }

    /// Passes on all items of this step, in one call.
    fn hand(&mut self, cx: &mut StepContext<Self>) {
        if !self.handed.is_empty() {
            let handed = Arc::new(std::mem::take(&mut self.handed));
            cx.call(CallKey::default(), HAND_DEADLINE, EventorCall::Hand(handed));
        }
    }

    // === The stream ===

    fn attend(&mut self, generation: Generation, cx: &mut StepContext<Self>) {
        match self.stream {
            Stream::Over => {}
            // It is being read already.
            Stream::Reading(present) | Stream::Pausing(present) if present == generation => {}
            Stream::Absent | Stream::Reading(_) | Stream::Pausing(_) => {
                cx.cancel_timer(EventorTimer::Reopen);
                self.open(generation, cx);
            }
        }
    }

    fn open(&mut self, generation: Generation, cx: &mut StepContext<Self>) {
        if self.was_open && !matches!(self.marks, Marks::Of(_)) {
            self.gap_for_all(GapReason::Interrupted);
        }
        if self.was_open {
            self.note_progress();
        } else {
            self.resume = self.earliest();
        }
        self.was_open = true;
        self.is_first = true;
        self.is_rewinding = false;
        cx.cancel_timer(EventorTimer::Rewind);
        self.cursor.clone_from(&self.resume);
        self.stream = Stream::Reading(generation);
        self.call(EventorCall::Open { generation, after: self.resume.clone() }, cx);
    }

    fn reopen(&mut self, cx: &mut StepContext<Self>) {
        match self.stream {
            Stream::Pausing(generation) => self.open(generation, cx),
            // Another generation arrived meanwhile, or the eventor has ended.
            Stream::Absent | Stream::Reading(_) | Stream::Over => {}
        }
    }

    /// Opens the stream further back, for late tasks. The other tasks still get each event once.
    fn rewind(&mut self, cx: &mut StepContext<Self>) {
        self.is_rewinding = false;
        match self.stream {
            Stream::Reading(generation) => self.open(generation, cx),
            // The next opening begins there.
            Stream::Absent | Stream::Pausing(_) | Stream::Over => {}
        }
    }

    fn heard(&mut self, outcome: &Result<EventorOutcome, CallLost>, cx: &mut StepContext<Self>) {
        let Stream::Reading(_) = self.stream else { return };
        match outcome {
            Ok(EventorOutcome::Heard(Ok(EventBatch::Opened(stream)))) => {
                if let Some(stream) = stream {
                    self.stream_known(stream);
                }
                self.call(EventorCall::Read, cx);
            }
            Ok(EventorOutcome::Heard(Ok(EventBatch::Events(events)))) => {
                for event in events {
                    self.take(event, cx);
                }
                self.call(EventorCall::Read, cx);
            }
            // No event came for a long time.
            Err(CallLost::DeadlineExceeded(_)) => self.call(EventorCall::Read, cx),
            Ok(EventorOutcome::Heard(Ok(EventBatch::Ended))) => {
                self.interrupted("the plugin ended the stream", false, cx);
            }
            Ok(EventorOutcome::Heard(Err(error))) => {
                let is_gone = matches!(error, DriverError::PluginGone { .. });
                self.interrupted(&error.to_string(), is_gone, cx);
            }
            Ok(EventorOutcome::Done) => {
                self.interrupted("the stream was closed", false, cx);
            }
            Err(lost @ (CallLost::Crashed(_) | CallLost::Busy(_))) => {
                self.interrupted(&lost.to_string(), false, cx);
            }
        }
    }

    /// After every end of the stream it is opened again: after a pause, or when the driver is back.
    fn interrupted(&mut self, error: &str, is_gone: bool, cx: &mut StepContext<Self>) {
        let Stream::Reading(generation) = self.stream else { return };
        self.stream = Stream::Absent;
        cx.publish(EventorNews::Interrupted { generation, error: error.to_owned() });
        cx.call(CallKey::default(), HAND_DEADLINE, EventorCall::Close);
        if !is_gone {
            self.stream = Stream::Pausing(generation);
            let pause = self.backoff.failed(&self.options.backoff, cx.moment());
            cx.start_timer(EventorTimer::Reopen, cx.now() + pause);
        }
    }

    fn stop(&mut self, cx: &mut StepContext<Self>) {
        self.stream = Stream::Over;
        cx.call(CallKey::default(), HAND_DEADLINE, EventorCall::Close);
        let sinks = std::mem::take(&mut self.routes).into_values().map(|route| route.sink).collect();
        cx.call(CallKey::default(), HAND_DEADLINE, EventorCall::Finish(sinks));
    }
}
