//! A draft of what one message changes: rows to write, news to tell, askers to answer. It becomes effects in one go, so that
//! nothing is told of a change that is not on disk. The registry has one and uses it again for each message.

use super::behaviour::RegistryAnswer;
use super::messages::{Active, RegistryNews};
use super::state::{Counter, Registry, Stored, StoredChange};
use crate::shell::{AskId, Effects};

#[derive(Debug, Clone, Default)]
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

    /// Takes the next number, and the new ceiling along if there is one.
    pub(super) fn number(&mut self, counter: &mut Counter) -> u64 {
        let (number, ceiling) = counter.take();
        self.change.ceiling = ceiling.or(self.change.ceiling);
        number
    }

    /// Notes that this is to be told: who is active comes behind all registrations of the message.
    pub(super) fn tell(&mut self, news: RegistryNews) {
        match news {
            RegistryNews::Registered(_) | RegistryNews::Updated(_) | RegistryNews::Deregistered(..) => {
                self.comings_and_goings.push(news);
            }
            RegistryNews::ActiveChanged { .. } => self.elections.push(news),
        }
    }

    /// Notes that these have waited for this.
    pub(super) fn awaken(&mut self, waiters: Vec<AskId>, active: &Active) {
        self.awakened.extend(waiters.into_iter().map(|waiter| (waiter, active.clone())));
    }

    /// Notes that the row of this registration goes.
    pub(super) fn delete(&mut self, stored: &Stored) {
        self.change.delete.push(stored.number);
    }

    /// Notes that a row is as it is now. A row that is noted twice is written once.
    pub(super) fn put(&mut self, stored: &Stored) {
        match self.change.put.iter_mut().find(|row| row.number == stored.number) {
            Some(row) => *row = stored.clone(),
            None => self.change.put.push(stored.clone()),
        }
    }

    /// Turns what is noted into effects and is empty again: first the write, then the answer to whoever asked, then the news,
    /// then those who waited.
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
