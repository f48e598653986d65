//! The registry as a plain list: who signed in, oldest first. No cleverness.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use callboard_actors::registry::{Departure, Deregister, Register, Registered, RegistryOptions};
use callboard_actors::vocabulary::{
    AllocationId, Generation, PluginKey, Registration, RegistrationNumber, RunNumber,
};

use super::disk::Rows;

/// Somebody who is registered.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Held {
    pub(super) number: RegistrationNumber,
    pub(super) registration: Arc<Registration>,
    pub(super) is_confirmed: bool,
}

/// Whom work is routed to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Served {
    pub(super) number: RegistrationNumber,
    pub(super) generation: Generation,
    pub(super) registration: Arc<Registration>,
}

/// One plugin: who serves it, oldest first.
#[derive(Debug, Clone, Hash, Default)]
pub(super) struct Board {
    pub(super) held: Vec<Held>,
    pub(super) active: Option<Served>,
}

/// What must be told of a message, in this order. Numbers that the machine gives are not known beforehand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Tale {
    Came(Arc<Registration>),
    Changed(RegistrationNumber, Arc<Registration>),
    Left(RegistrationNumber, Departure),
    Routed { plugin: PluginKey, from: Option<Generation>, to: Option<Arc<Registration>> },
}

/// What a message must come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Sentence {
    /// Refused, and nothing changes.
    Refused,
    Registered(Registered),
    Deregistered(Vec<PluginKey>),
}

#[derive(Debug, Clone, Hash, Default)]
pub(super) struct Model {
    pub(super) boards: BTreeMap<PluginKey, Board>,
    pub(super) count: usize,
}

/// The number of whoever came in the present message, until the machine tells it.
pub(super) const UNTOLD: RegistrationNumber = RegistrationNumber::new(u64::MAX);

impl Model {
    /// What a disk holds.
    pub(super) fn of(rows: &Rows, run: RunNumber) -> Self {
        let mut model = Self { count: rows.len(), ..Self::default() };
        for stored in rows.values() {
            let is_confirmed = stored.confirmed_in == run;
            let registration = Arc::clone(&stored.registration);
            let board = model.boards.entry(registration.plugin.clone()).or_default();
            if is_confirmed && let Some(activation) = stored.activation {
                let (number, generation) = (stored.number, activation.generation);
                board.active = Some(Served { number, generation, registration: Arc::clone(&registration) });
            }
            board.held.push(Held { number: stored.number, registration, is_confirmed });
        }
        // Older ones were active once; only the newest confirmed one is.
        for board in model.boards.values_mut() {
            let newest = board.newest_confirmed().map(|held| held.number);
            board.active = board.active.take().filter(|active| Some(active.number) == newest);
        }
        model
    }

    /// A message of an owner, and what must be told of it.
    pub(super) fn register(
        &mut self,
        message: &Register,
        options: &RegistryOptions,
        tales: &mut Vec<Tale>,
    ) -> Sentence {
        if self.must_refuse(message, options) {
            return Sentence::Refused;
        }
        let mut summary = Registered::Unchanged;
        for plugin in &message.plugins {
            let registration = contents(message, plugin);
            let board = self.boards.entry(plugin.clone()).or_default();
            let known = board.held.iter_mut().find(|held| held.registration.allocation == message.allocation);
            match known {
                None => {
                    summary = Registered::New;
                    tales.push(Tale::Came(Arc::clone(&registration)));
                    board.held.push(Held { number: UNTOLD, registration, is_confirmed: true });
                    self.count += 1;
                }
                Some(held) if *held.registration != *registration => {
                    if summary == Registered::Unchanged {
                        summary = Registered::Updated;
                    }
                    held.registration = Arc::clone(&registration);
                    held.is_confirmed = true;
                    tales.push(Tale::Changed(held.number, registration));
                }
                Some(held) if !held.is_confirmed => {
                    held.is_confirmed = true;
                    tales.push(Tale::Changed(held.number, Arc::clone(&held.registration)));
                }
                Some(_) => {}
            }
        }
        self.elect(&message.plugins, tales);
        Sentence::Registered(summary)
    }

    fn must_refuse(&self, message: &Register, options: &RegistryOptions) -> bool {
        let mut seen = BTreeSet::new();
        let is_twice = message.plugins.len() > 1 && !message.plugins.iter().all(|plugin| seen.insert(plugin));
        let bytes: usize = message.options.iter().map(|(key, value)| key.len() + value.len()).sum();
        let is_new = |plugin: &&PluginKey| self.find(plugin, &message.allocation).is_none();
        let is_full = || {
            let more = message.plugins.iter().filter(is_new).count();
            more > 0 && self.count + more > options.registrations_max
        };
        message.plugins.is_empty() || is_twice || message.options.len() > 64 || bytes > 4_096 || is_full()
    }

    /// A goodbye, and what must be told of it.
    pub(super) fn deregister(&mut self, message: &Deregister, tales: &mut Vec<Tale>) -> Sentence {
        let mut removed = Vec::new();
        for plugin in &message.plugins {
            let Some(board) = self.boards.get_mut(plugin) else { continue };
            let is_theirs = |held: &Held| held.registration.allocation == message.allocation;
            let Some(place) = board.held.iter().position(is_theirs) else { continue };
            let held = board.held.remove(place);
            self.count -= 1;
            tales.push(Tale::Left(held.number, Departure::Deregistered));
            removed.push(plugin.clone());
        }
        self.elect(&message.plugins, tales);
        Sentence::Deregistered(removed)
    }

    /// An identity check proved this one. Nothing comes of it unless it is still waited for with the same contents.
    pub(super) fn prove(&mut self, proven: &Registration, number: RegistrationNumber, tales: &mut Vec<Tale>) {
        let Some(board) = self.boards.get_mut(&proven.plugin) else { return };
        let is_it =
            |held: &&mut Held| held.number == number && !held.is_confirmed && *held.registration == *proven;
        let Some(held) = board.held.iter_mut().find(is_it) else { return };
        held.is_confirmed = true;
        tales.push(Tale::Changed(number, Arc::clone(&held.registration)));
        self.elect(std::slice::from_ref(&proven.plugin), tales);
    }

    /// Whoever is not confirmed leaves.
    pub(super) fn end_grace(&mut self, tales: &mut Vec<Tale>) {
        let mut left = Vec::new();
        for board in self.boards.values_mut() {
            board.held.retain(|held| {
                if !held.is_confirmed {
                    left.push(held.number);
                }
                held.is_confirmed
            });
        }
        self.count -= left.len();
        left.sort_unstable();
        tales.extend(left.into_iter().map(|number| Tale::Left(number, Departure::NotConfirmed)));
    }

    /// The newest confirmed one is active, and a change of it is told after everything else.
    fn elect(&mut self, plugins: &[PluginKey], tales: &mut Vec<Tale>) {
        for plugin in plugins {
            let Some(board) = self.boards.get(plugin) else { continue };
            let newest = board.newest_confirmed();
            let is_same = match (&board.active, newest) {
                (None, None) => true,
                (Some(active), Some(newest)) => {
                    active.number == newest.number && active.registration == newest.registration
                }
                (Some(_), None) | (None, Some(_)) => false,
            };
            if !is_same {
                let from = board.active.as_ref().map(|active| active.generation);
                let to = newest.map(|held| Arc::clone(&held.registration));
                tales.push(Tale::Routed { plugin: plugin.clone(), from, to });
            }
        }
    }

    pub(super) fn find(&self, plugin: &PluginKey, allocation: &AllocationId) -> Option<&Held> {
        let board = self.boards.get(plugin)?;
        board.held.iter().find(|held| held.registration.allocation == *allocation)
    }

    pub(super) fn board_mut(&mut self, plugin: &PluginKey) -> &mut Board {
        self.boards.entry(plugin.clone()).or_default()
    }
}

impl Board {
    pub(super) fn newest_confirmed(&self) -> Option<&Held> {
        self.held.iter().rev().find(|held| held.is_confirmed)
    }
}

fn contents(message: &Register, plugin: &PluginKey) -> Arc<Registration> {
    let Register { allocation, socket, provider, version, options, .. } = message.clone();
    Arc::new(Registration { plugin: plugin.clone(), allocation, socket, provider, version, options })
}
