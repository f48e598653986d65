//! What goes out: whatever the outbox lets go, and the timer that wakes the machine next.

use std::panic::AssertUnwindSafe;

use actix::{AsyncContext, Context};

use super::actor::Shell;
use super::calls::Planned;
use super::doing::Doing;
use super::journal::JournalEntry;
use super::machine::{Input, Machine};
use super::outbox::Item;
use super::phase::Phase;
use super::store::Store;

impl<M: Machine, D: Doing<M>, S: Store<M>> Shell<M, D, S> {
    pub(super) fn flush(&mut self, context: &mut Context<Self>) {
        while let Some(item) = self.outbox.pop_released() {
            self.release(item, context);
        }
        self.start_calls(context);
        self.arm(context);
    }

    fn release(&mut self, item: Item<M>, context: &mut Context<Self>) {
        match item {
            Item::Reply { answer, asker } => asker.hear(answer),
            Item::Publish(news) => self.publish(news),
            Item::Attach(reader, view) => {
                reader.snapshot(self.published, view);
                // Publishing lets go of those who left; where nothing is published, this does, now and then.
                if self.readers.len().is_power_of_two() {
                    self.readers.retain(|(_, reader)| !reader.is_abandoned());
                }
                self.readers_ever += 1;
                self.readers.push((self.readers_ever, reader));
            }
            Item::Refresh(views) => {
                for (number, view) in views {
                    if let Ok(place) = self.readers.binary_search_by_key(&number, |(number, _)| *number) {
                        self.readers[place].1.snapshot(self.published, view);
                    }
                }
            }
            Item::Call { key, deadline, call } => {
                self.calls.plan(Planned { key, deadline, call }, &context.address());
            }
            Item::Stop(ending) => self.end(ending, context),
        }
    }

    pub(super) fn publish(&mut self, news: M::News) {
        self.published += 1;
        self.note(|| JournalEntry::Published { news: &news });
        self.doing.published(&news);
        let number = self.published;
        match self.readers.as_slice() {
            [] => {}
            [(_, only)] => {
                if !only.change(number, news) {
                    self.readers.clear();
                }
            }
            [_, ..] => self.readers.retain(|(_, reader)| reader.change(number, news.clone())),
        }
    }

    fn start_calls(&mut self, context: &mut Context<Self>) {
        if !matches!(self.phase, Phase::Running(_)) {
            return;
        }
        while let Some(planned) = self.calls.next_due() {
            let call = planned.call.clone();
            let doing = &mut self.doing;
            let future = match std::panic::catch_unwind(AssertUnwindSafe(|| doing.call(call))) {
                Ok(future) => future,
                Err(panic) => Box::pin(async move { std::panic::resume_unwind(panic) }),
            };
            self.calls.start(planned, future, context.address());
        }
    }

    // === Time ===

    fn arm(&mut self, context: &mut Context<Self>) {
        let Some(next) = self.timers.next() else { return };
        match self.armed {
            Some((at, _)) if at <= next => return,
            Some((_, handle)) => {
                context.cancel_future(handle);
            }
            None => {}
        }
        let pause = next.since(self.settings.clock.now());
        let handle = context.run_later(pause, |shell, context| {
            shell.armed = None;
            shell.timers_due(context);
        });
        self.armed = Some((next, handle));
    }

    fn timers_due(&mut self, context: &mut Context<Self>) {
        let now = self.settings.clock.now();
        let mark = self.timers.settings();
        while matches!(self.phase, Phase::Running(_)) {
            let Some(timer) = self.timers.pop_due(now, mark) else { break };
            self.step(Input::Elapsed(timer), None, context);
        }
        self.arm(context);
    }
}
