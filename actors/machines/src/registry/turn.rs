//! Applies one message to the plugins that it names: registrations come, change and go, and the active one is elected.

use std::collections::hash_map::Entry;

use super::draft::Draft;
use super::messages::{Active, Departure, RegistryNews};
use super::restored::Restored;
use super::state::{Activation, Counter, Plugin, Plugins, Registry, Stored};
use super::waiting::Waiting;
use crate::vocabulary::{
    AllocationId, Generation, PluginKey, Registration, RegistrationNumber, RunNumber, Timestamp,
};

/// The registry without its plugins, of which one is borrowed mutably.
pub(super) struct Turn<'a> {
    run: RunNumber,
    now: Timestamp,
    counter: &'a mut Counter,
    held: &'a mut usize,
    restored: &'a mut Restored,
    waiting: &'a mut Waiting,
    draft: &'a mut Draft,
}

impl Registry {
    /// The plugins, and a turn that records their changes in the draft.
    pub(super) fn turn(&mut self, now: Timestamp) -> (&mut Plugins, Turn<'_>) {
        let Self { run, counter, plugins, held, restored, waiting, draft, .. } = self;
        (plugins, Turn { run: *run, now, counter, held, restored, waiting, draft })
    }

    /// Removes a registration, if it exists.
    pub(super) fn dismiss(
        &mut self,
        key: &PluginKey,
        allocation: &AllocationId,
        departure: Departure,
        now: Timestamp,
    ) -> bool {
        let (plugins, mut turn) = self.turn(now);
        let Entry::Occupied(mut place) = plugins.entry(key.clone()) else { return false };
        let is_there = turn.dismiss(key, place.get_mut(), allocation, departure);
        if place.get().members.is_empty() {
            place.remove();
        }
        is_there
    }
}

impl Turn<'_> {
    pub(super) fn admit(&mut self, key: &PluginKey, plugin: &mut Plugin, registration: Registration) {
        let stored = Stored {
            number: RegistrationNumber::new(self.draft.number(self.counter)),
            registration: registration.into(),
            since: self.now,
            confirmed_in: self.run,
            activation: None,
        };
        self.draft.tell(RegistryNews::Registered(stored.entry(self.run)));
        plugin.members.insert(stored);
        *self.held += 1;
        // The newest confirmed one is this one, so its row is written with its activation.
        self.elect(key, plugin, false);
    }

    /// Whether a registration was confirmed in this run (R8).
    pub(super) fn has_confirmed(&self, stored: &Stored) -> bool {
        stored.confirmed_in == self.run
    }

    /// Records that a registration is confirmed, perhaps with new contents.
    pub(super) fn confirm(
        &mut self,
        key: &PluginKey,
        plugin: &mut Plugin,
        number: RegistrationNumber,
        contents: Option<Registration>,
    ) {
        let Some(stored) = plugin.members.get_mut(number) else { return };
        let has_new_contents = contents.is_some();
        if let Some(registration) = contents {
            stored.registration = registration.into();
        }
        stored.confirmed_in = self.run;
        self.draft.put(stored);
        self.draft.tell(RegistryNews::Updated(stored.entry(self.run)));
        self.restored.settled(number);
        self.elect(key, plugin, has_new_contents);
    }

    fn dismiss(
        &mut self,
        key: &PluginKey,
        plugin: &mut Plugin,
        allocation: &AllocationId,
        departure: Departure,
    ) -> bool {
        let Some(stored) = plugin.members.remove(allocation) else { return false };
        *self.held -= 1;
        self.restored.settled(stored.number);
        self.draft.delete(&stored);
        self.draft.tell(RegistryNews::Deregistered(stored.entry(self.run), departure));
        self.elect(key, plugin, false);
        true
    }

    /// Makes the newest confirmed registration the active one (R1), and publishes the change if there is one.
    fn elect(&mut self, key: &PluginKey, plugin: &mut Plugin, contents_changed: bool) {
        let newest = plugin.newest_confirmed(self.run);
        let current = plugin.active.as_ref().map(|(number, _)| *number);
        if newest == current && !(contents_changed && is_outdated(plugin)) {
            return;
        }
        let to = newest.and_then(|number| self.activate(plugin, number));
        let from = std::mem::replace(&mut plugin.active, newest.zip(to.clone())).map(|(_, active)| active);
        if let Some(active) = &to {
            self.draft.awaken(self.waiting.come(key), active);
        }
        self.draft.tell(RegistryNews::ActiveChanged { plugin: key.clone(), from, to });
    }

    fn activate(&mut self, plugin: &mut Plugin, number: RegistrationNumber) -> Option<Active> {
        let generation = Generation::new(self.draft.number(self.counter));
        let stored = plugin.members.get_mut(number)?;
        stored.activation = Some(Activation { generation, since: self.now });
        self.draft.put(stored);
        stored.active()
    }
}

/// Whether the contents of the active registration have changed.
fn is_outdated(plugin: &Plugin) -> bool {
    plugin.active.as_ref().is_some_and(|(number, active)| {
        plugin.members.get(*number).is_none_or(|stored| stored.registration != active.registration)
    })
}
