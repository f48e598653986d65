//! Sends the output that the outboxes release.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::calls::Planned;
use super::machine::{CallLost, Machine, panic_message};
use super::phase::Phase;
use super::port::{JournalEntry, Outgoing, Port, Refusal, Terms};
use super::state::{Item, Kernel, StepNumber, Waiting};

impl<M: Machine, T: Terms<M>> Kernel<M, T> {
    pub(super) fn flush(&mut self, port: &mut impl Port<M, T>) {
        while let Some(waiting) = self.next_released() {
            self.release(waiting, port);
        }
        if self.sick.is_some() {
            self.wait_no_longer(port);
        }
        self.make_calls(port);
    }

    /// The next item that may leave, of both outboxes in their common order.
    fn next_released(&mut self) -> Option<Waiting<Item<M, T>>> {
        let is_promise = match (self.told.released(), self.promises.released()) {
            (Some(told), Some(promise)) => promise.order.0 < told.order.0,
            (told, _) => told.is_none(),
        };
        if is_promise { self.promises.pop_released() } else { self.told.pop_released() }
    }

    /// Refuses the promises that wait for a sick disk, and ends the actor if its end waits for it. Calls keep waiting: the writes that they
    /// depend on may still reach the disk.
    fn wait_no_longer(&mut self, port: &mut impl Port<M, T>) {
        let Some(reason) = self.sick.clone() else { return };
        let mut end = None;
        for waiting in self.promises.take(|waiting| !matches!(waiting.item, Item::Call(..))) {
            match waiting.item {
                Item::Answer(Some(asker), _) => port.refuse(asker, Refusal::NotDurable(&reason)),
                Item::Stop(ending) => end = Some(ending),
                // No caller waits for the answer, and nothing else is a promise.
                Item::Answer(None, _)
                | Item::News(_)
                | Item::Attach(..)
                | Item::Snapshot(..)
                | Item::Description(_)
                | Item::Call(..) => {}
            }
        }
        if let Some(ending) = end {
            self.hand_in_steps(port);
            self.end(ending, port);
        }
    }

    /// The disk has become sick, or is sound again.
    pub(super) fn disk(&mut self, sick: Option<String>, port: &mut impl Port<M, T>) {
        if !self.has_ended() {
            self.sick = sick;
            self.flush(port);
            self.go_on_if_settled(port);
        }
    }

    fn release(&mut self, waiting: Waiting<Item<M, T>>, port: &mut impl Port<M, T>) {
        let Waiting { behind, step, order: _, item } = waiting;
        self.leave(item, step, behind, port);
    }

    /// Sends output that follows from this step and depends on the writes up to `behind`.
    pub(super) fn leave(
        &mut self,
        item: Item<M, T>,
        step: StepNumber,
        behind: u64,
        port: &mut impl Port<M, T>,
    ) {
        let outgoing = match item {
            Item::Answer(asker, answer) => Outgoing::Answer { asker, answer },
            Item::News(news) => {
                self.published += 1;
                let number = self.published;
                port.note(JournalEntry::Published { step: step.0, number, news: &news });
                Outgoing::News { number, news }
            }
            Item::Attach(reader, view) => Outgoing::Attach { reader, number: self.published, view },
            Item::Snapshot(reader, view) => Outgoing::Snapshot { reader, number: self.published, view },
            Item::Description(view) => Outgoing::Described { number: self.published, view },
            Item::Call(key, deadline, call) => {
                self.plan(Planned { key, deadline, call, behind, step }, port);
                return;
            }
            Item::Stop(ending) => {
                self.hand_in_steps(port);
                self.end(ending, port);
                return;
            }
        };
        port.send(outgoing, behind);
    }

    /// Makes a call at once if a place is free, in the order of the output. A call over the limit is lost.
    fn plan(&mut self, planned: Planned<M>, port: &mut impl Port<M, T>) {
        // A place that has just become free goes to the call that waits longest.
        self.make_calls(port);
        let waiting = self.calls.waiting();
        if waiting > 0 || self.calls.running() >= self.limits.calls_running_max {
            if waiting < self.limits.calls_waiting_max {
                self.calls.push(planned);
            } else {
                let Planned { key, call, behind, .. } = planned;
                let number = self.calls.start(key, call);
                port.send(Outgoing::Lost { number, lost: CallLost::Busy(waiting) }, behind);
            }
            return;
        }
        self.make(planned, port);
    }

    /// Makes the queued calls for which there is a place now.
    fn make_calls(&mut self, port: &mut impl Port<M, T>) {
        while let Some(planned) = self.calls.next_due(self.limits.calls_running_max) {
            self.make(planned, port);
        }
    }

    fn make(&mut self, planned: Planned<M>, port: &mut impl Port<M, T>) {
        let Planned { key, deadline, call, behind, step } = planned;
        let number = self.calls.start(key, call.clone());
        port.note(JournalEntry::Called { step: step.0, number, call: &call });
        port.send(Outgoing::Call { number, deadline, call }, behind);
    }

    /// If this panics, only the details of the report are missing.
    fn hand_in_steps(&self, port: &mut impl Port<M, T>) {
        let Phase::Running(machine) = &self.phase else { return };
        if let Ok(steps) = catch_unwind(AssertUnwindSafe(|| machine.stop_steps())) {
            port.stopped(steps);
        }
    }

    /// The view for subscribers, if there is a machine. A panic in it is a crash like any other.
    pub(super) fn view(&mut self, port: &mut impl Port<M, T>) -> Option<T::View> {
        let Phase::Running(machine) = &self.phase else { return None };
        match catch_unwind(AssertUnwindSafe(|| machine.view())) {
            Ok(view) => Some(view.into()),
            Err(panic) => {
                self.crashed(&format_args!("a look at its view"), None, &panic_message(&*panic), port);
                None
            }
        }
    }
}
