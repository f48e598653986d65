//! One step: from an input to what is to leave.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::machine::{AskId, Effect, Input, Machine, Written, panic_message};
use super::phase::{Phase, Unfinished};
use super::port::{JournalEntry, Port, Terms};
use super::state::{Item, Kernel, Waiting};
use crate::vocabulary::Moment;

impl<M: Machine, T: Terms<M>> Kernel<M, T> {
    pub(super) fn step(&mut self, input: Input<M>, mut asker: Option<T::Asker>, port: &mut impl Port<M, T>) {
        let Phase::Running(machine) = &mut self.phase else { return };
        let Some(input) = port.hear(input) else { return };
        let (moment, effects) = (Moment { now: port.now(), random: port.random() }, &mut self.effects);
        self.steps.0 += 1;
        let stepped = catch_unwind(AssertUnwindSafe(|| port.step(machine, moment, &input, effects)));
        if let Err(message) = stepped.unwrap_or_else(|panic| Err(panic_message(&*panic))) {
            self.crashed(&input, asker, &message, port);
            return;
        }
        let effects = self.effects.as_slice().len();
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

    /// Puts the effects of a step into the outbox; answers and news, of which almost all effects are, skip an empty one.
    /// Gives the error of a write that failed at once.
    fn put_effects_out(
        &mut self,
        input: &Input<M>,
        asker: &mut Option<T::Asker>,
        port: &mut impl Port<M, T>,
    ) -> Option<String> {
        let mut effects = std::mem::take(&mut self.effects);
        let mut failed = None;
        for effect in effects.drain() {
            match effect {
                // It was decided on top of a write that failed.
                Effect::Persist(_) if failed.is_some() => {}
                Effect::Persist(change) => failed = self.write(change, port),
                Effect::Reply(id, answer) => {
                    let item = Item::Answer(self.asker_of(id, input, asker), answer.into());
                    self.leave_or_wait(item, port);
                }
                Effect::Publish(news) => self.leave_or_wait(Item::News(news), port),
                Effect::Call { key, deadline, call } => self.push(Item::Call(key, deadline, call)),
                Effect::StartTimer(timer, at) => self.timers.start(timer, at),
                Effect::CancelTimer(timer) => self.timers.cancel(&timer),
                Effect::Stop(ending) => self.push(Item::Stop(ending)),
            }
        }
        self.effects = effects;
        failed
    }

    fn leave_or_wait(&mut self, item: Item<M, T>, port: &mut impl Port<M, T>) {
        let waiting = self.waiting(item);
        if self.outbox.is_empty() {
            self.release(waiting, port);
        } else {
            self.outbox.push(waiting);
        }
    }

    pub(super) fn push(&mut self, item: Item<M, T>) {
        self.outbox.push(self.waiting(item));
    }

    const fn waiting(&self, item: Item<M, T>) -> Waiting<Item<M, T>> {
        Waiting { behind: self.written_through, step: self.steps, item }
    }

    /// Hands a change to the store and closes the gate behind it. Gives the error if it failed at once.
    fn write(&mut self, change: M::Change, port: &mut impl Port<M, T>) -> Option<String> {
        self.ticket.sequence += 1;
        let ticket = self.ticket;
        let written = catch_unwind(AssertUnwindSafe(|| port.write(ticket, change)));
        let failed = match written {
            Ok(Written::Now) => return None,
            Ok(Written::Later) => {
                self.written_through = ticket.sequence;
                None
            }
            Ok(Written::Failed(error)) => Some(error),
            Err(panic) => Some(format!("the store crashed: {}", panic_message(&*panic))),
        };
        port.note(JournalEntry::Writing { step: self.steps.0, write: ticket.sequence });
        self.outbox.close_gate(ticket.sequence);
        failed
    }

    /// Who waits for the answer to this question.
    fn asker_of(&mut self, id: AskId, input: &Input<M>, asker: &mut Option<T::Asker>) -> Option<T::Asker> {
        let is_current = matches!(input, Input::Asked { id: current, .. } if *current == id);
        if let Some(asker) = asker.take_if(|_| is_current) {
            return Some(asker);
        }
        match self.unfinished.remove(&id)? {
            Unfinished::Question { asker, .. } => Some(asker),
            Unfinished::Stop(_) => None,
        }
    }
}
