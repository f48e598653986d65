//! A draft of what one message changes: rows to write, news to publish, askers to answer. It becomes effects in one step, so
//! that no change is published before it is on disk. The registry reuses one draft for all messages.

use super::behaviour::RegistryAnswer;
use super::messages::{Active, RegistryNews};
use super::state::{Counter, Registry, Stored, StoredChange};
use crate::kernel::{AskId, Effects};

#[derive(Debug, Clone, Hash, Default)]
pub(super) struct Draft {
    change: StoredChange,
    comings_and_goings: Vec<RegistryNews>,
    elections: Vec<RegistryNews>,
    awakened: Vec<(AskId, Active)>,
}

impl Draft {
    fn is_empty(&self) -> bool {
        self.change.put.is_empty() && self.change.delete.is_empty()
    }

    /// Takes the next number, and records the new ceiling if there is one.
    pub(super) fn number(&mut self, counter: &mut Counter) -> u64 {
        let (number, ceiling) = counter.take();
        self.change.ceiling = ceiling.or(self.change.ceiling);
        number
    }

    /// Adds news. Changes of the active registration come after all registrations of the message.
    pub(super) fn tell(&mut self, news: RegistryNews) {
        match news {
            RegistryNews::Registered(_) | RegistryNews::Updated(_) | RegistryNews::Deregistered(..) => {
                self.comings_and_goings.push(news);
            }
            RegistryNews::ActiveChanged { .. } => self.elections.push(news),
        }
    }

    /// Adds callers that need not wait any more, with their answer.
    pub(super) fn awaken(&mut self, waiters: Vec<AskId>, active: &Active) {
        self.awakened.extend(waiters.into_iter().map(|waiter| (waiter, active.clone())));
    }

    pub(super) fn delete(&mut self, stored: &Stored) {
        self.change.delete.push(stored.number);
    }

    /// Adds the write of a row. A row that is added twice is written once.
    pub(super) fn put(&mut self, stored: &Stored) {
        match self.change.put.iter_mut().find(|row| row.number == stored.number) {
            Some(row) => *row = stored.clone(),
            None => self.change.put.push(stored.clone()),
        }
    }

    /// Emits the draft as effects and clears it: first the write, then the answer to the asker, then the news, then the
    /// answers to waiting callers.
    pub(super) fn leave(&mut self, asker: Option<(AskId, RegistryAnswer)>, effects: &mut Effects<Registry>) {
        if !self.is_empty() {
            effects.persist(std::mem::take(&mut self.change));
        }
        if let Some((id, answer)) = asker {
            effects.reply(id, answer);
        }
        for news in self.comings_and_goings.drain(..).chain(self.elections.drain(..)) {
            effects.publish(news);
        }
        for (waiter, active) in self.awakened.drain(..) {
            effects.cancel_timer(super::behaviour::RegistryTimer::Waited(waiter));
            effects.reply(waiter, RegistryAnswer::WaitForPlugin(Ok(active)));
        }
    }
}
