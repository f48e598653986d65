//! A draft of what one message changes: rows to write, news to tell, askers to answer. It becomes effects in one go, so that
//! nothing is told of a change that is not on disk.

use super::behaviour::RegistryAnswer;
use super::messages::{Active, Departure, RegistryNews, WaitForPlugin};
use super::state::{Activation, Plugin, Registry, Stored, StoredChange};
use crate::shell::{AskId, Effects};
use crate::vocabulary::{AllocationId, Generation, PluginKey, RegistrationNumber, Timestamp};

#[derive(Debug, Default)]
pub(super) struct Draft {
    change: StoredChange,
    news: Vec<RegistryNews>,
    awakened: Vec<(AskId, Active)>,
}

impl Draft {
    pub(super) fn is_empty(&self) -> bool {
        self.change.put.is_empty() && self.change.delete.is_empty()
    }

    /// Notes that a row is as it is now. A row that is noted twice is written once.
    fn put(&mut self, stored: &Stored) {
        match self.change.put.iter_mut().find(|row| row.number == stored.number) {
            Some(row) => *row = stored.clone(),
            None => self.change.put.push(stored.clone()),
        }
    }

    /// Turns the draft into effects: first the write, then the answer to whoever asked, then the news, then those who waited.
    pub(super) fn leave(self, asker: Option<(AskId, RegistryAnswer)>, effects: &mut Effects<Registry>) {
        if !self.is_empty() {
            effects.persist(self.change);
        }
        if let Some((id, answer)) = asker {
            effects.reply(id, answer);
        }
        self.news.into_iter().for_each(|news| effects.publish(news));
        for (waiter, active) in self.awakened {
            effects.cancel_timer(super::behaviour::RegistryTimer::Waited(waiter));
            effects.reply(waiter, RegistryAnswer::WaitForPlugin(Ok(active)));
        }
    }
}

impl Registry {
    fn number(&mut self, draft: &mut Draft) -> u64 {
        let (number, ceiling) = self.counter.take();
        draft.change.ceiling = ceiling.or(draft.change.ceiling);
        number
    }

    /// Takes a registration in that was not there.
    pub(super) fn admit(
        &mut self,
        registration: crate::vocabulary::Registration,
        now: Timestamp,
        draft: &mut Draft,
    ) {
        let number = RegistrationNumber::new(self.number(draft));
        let key = registration.plugin.clone();
        let stored = Stored {
            number,
            registration: registration.into(),
            since: now,
            confirmed_in: self.run,
            activation: None,
        };
        draft.put(&stored);
        draft.news.push(RegistryNews::Registered(stored.entry(self.run)));
        self.plugins.entry(key.clone()).or_default().insert(stored);
        self.held += 1;
        self.elect(&key, false, now, draft);
    }

    /// Notes that a registration is confirmed, perhaps with new contents.
    pub(super) fn confirm(
        &mut self,
        key: &PluginKey,
        number: RegistrationNumber,
        contents: Option<crate::vocabulary::Registration>,
        now: Timestamp,
        draft: &mut Draft,
    ) {
        let run = self.run;
        let Some(stored) = self.plugins.get_mut(key).and_then(|plugin| plugin.members.get_mut(&number))
        else {
            return;
        };
        let has_new_contents = contents.is_some();
        if let Some(registration) = contents {
            stored.registration = registration.into();
        }
        stored.confirmed_in = run;
        draft.put(stored);
        draft.news.push(RegistryNews::Updated(stored.entry(run)));
        self.restored.settled(number);
        self.elect(key, has_new_contents, now, draft);
    }

    /// Removes a registration, if it is there.
    pub(super) fn dismiss(
        &mut self,
        key: &PluginKey,
        allocation: &AllocationId,
        departure: Departure,
        now: Timestamp,
        draft: &mut Draft,
    ) -> bool {
        let Some(plugin) = self.plugins.get_mut(key) else { return false };
        let Some(stored) = plugin.remove(allocation) else { return false };
        self.held -= 1;
        self.restored.settled(stored.number);
        draft.change.delete.push(stored.number);
        draft.news.push(RegistryNews::Deregistered(stored.entry(self.run), departure));
        self.elect(key, false, now, draft);
        if self.plugins.get(key).is_some_and(|plugin| plugin.members.is_empty()) {
            self.plugins.remove(key);
        }
        true
    }

    /// Sees to it that the active registration is the newest confirmed one (R1), and tells when it changes.
    fn elect(&mut self, key: &PluginKey, contents_changed: bool, now: Timestamp, draft: &mut Draft) {
        let run = self.run;
        let Some(plugin) = self.plugins.get(key) else { return };
        let newest = plugin.newest_confirmed(run);
        let current = plugin.active.as_ref().map(|(number, _)| *number);
        let is_outdated = contents_changed
            && newest.zip(plugin.active.as_ref()).is_some_and(|(number, (_, active))| {
                active.registration != plugin.members[&number].registration
            });
        if newest == current && !is_outdated {
            return;
        }
        let generation = newest.map(|_| Generation::new(self.number(draft)));
        let plugin = self.plugins.get_mut(key).expect("it was there a moment ago");
        let to = newest.zip(generation).and_then(|(number, generation)| {
            Self::activate(plugin, number, Activation { generation, since: now }, draft)
        });
        let from = std::mem::replace(&mut plugin.active, newest.zip(to.clone())).map(|(_, active)| active);
        if let Some(active) = &to {
            let awakened = self.waiting.come(key).into_iter().map(|waiter| (waiter, active.clone()));
            draft.awakened.extend(awakened);
        }
        draft.news.push(RegistryNews::ActiveChanged { plugin: key.clone(), from, to });
    }

    fn activate(
        plugin: &mut Plugin,
        number: RegistrationNumber,
        activation: Activation,
        draft: &mut Draft,
    ) -> Option<Active> {
        let stored = plugin.members.get_mut(&number)?;
        stored.activation = Some(activation);
        draft.put(stored);
        stored.active()
    }

    /// What is answered to somebody who waits for a plugin that is there already.
    pub(super) fn present(&self, question: &WaitForPlugin) -> Option<Active> {
        let (_, active) = self.plugins.get(&question.plugin)?.active.as_ref()?;
        Some(active.clone())
    }
}
