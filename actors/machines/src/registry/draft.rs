//! A draft of what one message changes: rows to write, news to publish, askers to answer. It becomes effects in one step, so
//! that no change is published before it is on disk. The registry reuses one draft for all messages.

use super::behaviour::RegistryTimer;
use super::messages::{Active, RegistryAnswer, RegistryNews};
use super::state::{Registry, Stored, StoredChange};
use crate::kernel::{AskId, Gate, StepContext};
use crate::vocabulary::{PluginKey, RegistrationNumber, Timestamp};

#[derive(Debug, Clone, Hash, Default)]
pub(super) struct Draft {
    change: StoredChange,
    comings_and_goings: Vec<RegistryNews>,
    elections: Vec<RegistryNews>,
    awakened: Vec<(AskId, Active)>,
    elections_due: Vec<(PluginKey, Timestamp)>,
}

impl StoredChange {
    /// Adds a later change: for each row its last state counts.
    pub fn merge(&mut self, later: &Self) {
        self.merged = self.ceiling().max(later.ceiling());
        let is_later = |number: RegistrationNumber| {
            later.delete.contains(&number) || later.put.iter().any(|stored| stored.number == number)
        };
        self.put.retain(|stored| !is_later(stored.number));
        self.delete.retain(|number| !is_later(*number));
        self.put.extend(later.put.iter().cloned());
        self.delete.extend(later.delete.iter().copied());
    }
}

impl Draft {
    fn is_empty(&self) -> bool {
        self.change.put.is_empty() && self.change.delete.is_empty()
    }

    /// Adds news. Changes of the active registration come after all registrations of the message.
    pub(super) fn tell(&mut self, news: RegistryNews) {
        match news {
            RegistryNews::Registered(_)
            | RegistryNews::Updated(_)
            | RegistryNews::Renewed(_)
            | RegistryNews::Deregistered(..) => {
                self.comings_and_goings.push(news);
            }
            RegistryNews::ActiveChanged { .. } => self.elections.push(news),
        }
    }

    /// Adds callers that no longer need to wait, with their answer.
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

    /// Adds an election of this plugin at the end of a calm time (R1c).
    pub(super) fn elect_again(&mut self, key: &PluginKey, at: Timestamp) {
        self.elections_due.retain(|(other, _)| other != key);
        self.elections_due.push((key.clone(), at));
    }

    /// Emits the draft as effects and clears it: first the write, then the answer to the asker, then the news, then the
    /// answers to waiting callers. A promise waits for the write. Other output does not depend on the write: restored registrations are
    /// confirmed before work is routed to it (R8).
    pub(super) fn leave(
        &mut self,
        is_promise: bool,
        asker: Option<(AskId, RegistryAnswer)>,
        cx: &mut StepContext<Registry>,
    ) {
        if !self.is_empty() {
            let gate = if is_promise { Gate::Promises } else { Gate::Nothing };
            cx.write(gate, std::mem::take(&mut self.change));
        }
        if let Some((id, answer)) = asker {
            cx.reply(id, answer);
        }
        self.comings_and_goings.drain(..).for_each(|news| cx.publish(news));
        self.elections.drain(..).for_each(|news| cx.publish(news));
        for (plugin, at) in self.elections_due.drain(..) {
            cx.start_timer(RegistryTimer::Calm(plugin), at);
        }
        for (waiter, active) in self.awakened.drain(..) {
            cx.cancel_timer(RegistryTimer::Waited(waiter));
            cx.reply(waiter, RegistryAnswer::WaitForPlugin(Ok(active)));
        }
    }
}
