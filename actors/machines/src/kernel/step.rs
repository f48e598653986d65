//! Takes one step: from an input to its output.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::context::{Effect, Gate, StepContext};
use super::machine::{AskId, Input, Machine, Ticket, Written, panic_message};
use super::phase::{Phase, Unfinished};
use super::port::{JournalEntry, Port, Terms};
use super::state::{Item, Kernel, Waiting};
use crate::vocabulary::{Moment, Timestamp};

impl<M: Machine, T: Terms<M>> Kernel<M, T> {
    pub(super) fn step(&mut self, input: Input<M>, asker: Option<T::Asker>, port: &mut impl Port<M, T>) {
        let now = port.now();
        self.step_at(now, input, asker, port);
    }

    /// Takes a step at a time that was just read from the clock.
    pub(super) fn step_at(
        &mut self,
        now: Timestamp,
        input: Input<M>,
        mut asker: Option<T::Asker>,
        port: &mut impl Port<M, T>,
    ) {
        let Phase::Running(machine) = &mut self.phase else { return };
        let Some(input) = port.hear(input) else { return };
        self.cx.begin(Moment { now, random: port.random() });
        let cx = &mut self.cx;
        self.steps.0 += 1;
        let stepped = catch_unwind(AssertUnwindSafe(|| port.step(machine, &input, cx)));
        if let Err(message) = stepped.unwrap_or_else(|panic| Err(panic_message(&*panic))) {
            self.crashed(&input, asker, &message, port);
            return;
        }
        let effects = self.cx.as_slice().len();
        port.note(JournalEntry::Stepped { step: self.steps.0, input: &input, effects });
        let failed = self.put_effects_out(&input, &mut asker, port);
        if let (Some(mut asker), Input::Asked { id, asked_at, ask }) = (asker, input) {
            port.set_aside(&mut asker);
            self.unfinished.insert(id, Unfinished::Question { ask, asked_at, asker });
        }
        if let Some(error) = failed {
            self.write_failed_at_once(&error, port);
        }
        self.flush(port);
    }

    /// Puts the effects of a step into the outboxes, behind the writes that they depend on; output that waits for nothing skips an empty
    /// outbox. Returns the error of a write that failed at once.
    fn put_effects_out(
        &mut self,
        input: &Input<M>,
        asker: &mut Option<T::Asker>,
        port: &mut impl Port<M, T>,
    ) -> Option<String> {
        let next = StepContext::new(self.cx.moment());
        let mut cx = std::mem::replace(&mut self.cx, next);
        let (mut failed, mut is_going_to_wait) = (None, false);
        for effect in cx.drain() {
            match effect {
                // It was decided on top of a write that failed.
                Effect::Persist(..) if failed.is_some() => {}
                Effect::Persist(gate, change) => failed = self.write(gate, change, port),
                Effect::Reply(id, answer) => {
                    let (asker, is_promise) = self.asker_of(id, input, asker);
                    let item = Item::Answer(asker, answer.into());
                    if is_promise { self.promise(item, port) } else { self.tell(item, port) }
                }
                Effect::Publish(news) => self.tell(Item::News(news), port),
                Effect::Call { key, deadline, call } if M::awaits_disk(&call) => {
                    let waiting = self.of_promises(Item::Call(key, deadline, call));
                    self.promises.push(waiting);
                }
                Effect::Call { key, deadline, call } => {
                    let waiting = self.of_told(Item::Call(key, deadline, call));
                    self.told.push(waiting);
                }
                Effect::StartTimer(timer, at) => {
                    is_going_to_wait = true;
                    self.timers.start(timer, at, port.now());
                }
                Effect::CancelTimer(timer) => self.timers.cancel(&timer),
                Effect::Stop(ending) => {
                    let waiting = self.of_promises(Item::Stop(ending));
                    self.promises.push(waiting);
                }
            }
        }
        // The next step reuses the memory of this one, unless the actor may be idle until then.
        if !is_going_to_wait {
            self.cx = cx;
        }
        failed
    }

    fn promise(&mut self, item: Item<M, T>, port: &mut impl Port<M, T>) {
        if self.promises.is_empty() && self.told.released().is_none() {
            self.leave(item, self.steps, self.promised_through, port);
        } else {
            let waiting = self.of_promises(item);
            self.promises.push(waiting);
        }
    }

    /// Sends output that does not wait for promises.
    pub(super) fn tell(&mut self, item: Item<M, T>, port: &mut impl Port<M, T>) {
        if self.told.is_empty() && self.promises.released().is_none() {
            self.leave(item, self.steps, self.told_through, port);
        } else {
            let waiting = self.of_told(item);
            self.told.push(waiting);
        }
    }

    const fn of_promises(&mut self, item: Item<M, T>) -> Waiting<Item<M, T>> {
        self.ordered.0 += 1;
        Waiting { behind: self.promised_through, step: self.steps, order: self.ordered, item }
    }

    const fn of_told(&mut self, item: Item<M, T>) -> Waiting<Item<M, T>> {
        self.ordered.0 += 1;
        Waiting { behind: self.told_through, step: self.steps, order: self.ordered, item }
    }

    /// Hands a change to the store and closes the gate behind it. Returns the error if it failed at once.
    fn write(&mut self, gate: Gate, change: M::Change, port: &mut impl Port<M, T>) -> Option<String> {
        self.ticket.sequence += 1;
        let ticket = self.ticket;
        let written = match self.hands_again_at {
            // It comes after the lost changes.
            Some(_) => Written::Later,
            None => self.hand_over(ticket, &change, port),
        };
        let failed = match written {
            Written::Now => return None,
            Written::Later => {
                self.kept.push(ticket.sequence, change);
                if self.sick.is_some() {
                    self.kept.merge_if_due(M::merge);
                }
                self.written_through = ticket.sequence;
                None
            }
            Written::Failed(error) => Some(error),
        };
        port.note(JournalEntry::Writing { step: self.steps.0, write: ticket.sequence });
        if failed.is_some() {
            // Nothing that follows from it leaves, regardless of its gate.
            self.promises.close_gate(ticket.sequence);
            self.told.close_gate(ticket.sequence);
            return failed;
        }
        if gate >= Gate::Promises {
            self.promises.close_gate(ticket.sequence);
            self.promised_through = ticket.sequence;
        }
        if gate >= Gate::Everything {
            self.told.close_gate(ticket.sequence);
            self.told_through = ticket.sequence;
        }
        None
    }

    /// Hands a change to the store.
    pub(super) fn hand_over(
        &mut self,
        ticket: Ticket,
        change: &M::Change,
        port: &mut impl Port<M, T>,
    ) -> Written {
        let written =
            catch_unwind(AssertUnwindSafe(|| port.write(ticket, change.clone()))).unwrap_or_else(|panic| {
                Written::Failed(format!("the store crashed: {}", panic_message(&*panic)))
            });
        if written == Written::Later {
            self.handed_through = ticket.sequence;
        }
        written
    }

    /// The caller that waits for the answer to this question, and whether the answer is a promise.
    fn asker_of(
        &mut self,
        id: AskId,
        input: &Input<M>,
        asker: &mut Option<T::Asker>,
    ) -> (Option<T::Asker>, bool) {
        if let Input::Asked { id: current, ask, .. } = input
            && *current == id
            && let Some(asker) = asker.take()
        {
            return (Some(asker), M::is_promise(ask));
        }
        match self.unfinished.remove(&id) {
            Some(Unfinished::Question { ask, asker, .. }) => (Some(asker), M::is_promise(&ask)),
            Some(Unfinished::Stop(_)) | None => (None, true),
        }
    }
}
