//! A simple model of the registry: a list of the registrations, oldest first.

use std::collections::BTreeSet;
use std::sync::Arc;

use callboard_actors::registry::{
    Departure, Deregister, Deregistered, Entry, Register, RegisterError, Registered, Standing,
};
use callboard_actors::vocabulary::{AllocationId, PluginKey, Registration, RunNumber};

use crate::faulty::Rows;

/// The maximum number of registrations.
pub(crate) const HELD_MAX: usize = 7;

/// One registration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) registration: Arc<Registration>,
    pub(crate) is_confirmed: bool,
}

impl From<&Entry> for Held {
    fn from(entry: &Entry) -> Self {
        let is_confirmed = entry.standing == Standing::Confirmed;
        Self { registration: Arc::clone(&entry.registration), is_confirmed }
    }
}

/// The messages to the registry that are answered by the step that takes them.
#[derive(Debug, Clone)]
pub(crate) enum Said {
    Register(Register),
    Deregister(Deregister),
    List,
    Describe(PluginKey),
    RegistrationOf(PluginKey, AllocationId),
}

/// The answers, without numbers and times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    Register(Result<Registered, RegisterError>),
    Deregister(Deregistered),
    List(Vec<Held>),
    Describe { active: Option<Arc<Registration>>, standby: Vec<Held>, provisional: Vec<Held> },
    RegistrationOf(Option<Held>),
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Model {
    pub(crate) held: Vec<Held>,
}

impl Model {
    /// The state on a disk.
    pub(crate) fn of(rows: &Rows, run: RunNumber) -> Self {
        let held = rows.values().map(|stored| Held {
            registration: Arc::clone(&stored.registration),
            is_confirmed: stored.confirmed_in == run,
        });
        Self { held: held.collect() }
    }

    fn place(&self, plugin: &PluginKey, allocation: &AllocationId) -> Option<usize> {
        let is_it =
            |held: &Held| held.registration.plugin == *plugin && held.registration.allocation == *allocation;
        self.held.iter().position(is_it)
    }

    /// Takes a message.
    pub(crate) fn hear(&mut self, said: &Said) -> Answer {
        match said {
            Said::Register(message) => Answer::Register(self.register(message)),
            Said::Deregister(message) => Answer::Deregister(self.deregister(message)),
            Said::List => Answer::List(self.held.clone()),
            Said::Describe(plugin) => self.describe(plugin),
            Said::RegistrationOf(plugin, allocation) => {
                let place = self.place(plugin, allocation);
                Answer::RegistrationOf(place.map(|place| self.held[place].clone()))
            }
        }
    }

    fn register(&mut self, message: &Register) -> Result<Registered, RegisterError> {
        let allocation = &message.allocation;
        if message.plugins.is_empty() {
            return Err(RegisterError::NoPlugin { allocation: allocation.clone() });
        }
        let mut seen = BTreeSet::new();
        if let Some(plugin) = message.plugins.iter().find(|plugin| !seen.insert(*plugin)).cloned() {
            return Err(RegisterError::PluginTwice { allocation: allocation.clone(), plugin });
        }
        let more = message.plugins.iter().filter(|plugin| self.place(plugin, allocation).is_none()).count();
        if more > 0 && self.held.len() + more > HELD_MAX {
            return Err(RegisterError::Full { held: self.held.len() });
        }
        let (mut is_new, mut is_changed) = (false, false);
        for plugin in &message.plugins {
            let registration = contents(message, plugin);
            match self.place(plugin, allocation) {
                Some(place) => {
                    is_changed |= *self.held[place].registration != *registration;
                    self.held[place] = Held { registration, is_confirmed: true };
                }
                None => {
                    is_new = true;
                    self.held.push(Held { registration, is_confirmed: true });
                }
            }
        }
        Ok(match (is_new, is_changed) {
            (true, _) => Registered::New,
            (false, true) => Registered::Updated,
            (false, false) => Registered::Unchanged,
        })
    }

    fn deregister(&mut self, message: &Deregister) -> Deregistered {
        let mut removed = Vec::new();
        for plugin in &message.plugins {
            if let Some(place) = self.place(plugin, &message.allocation) {
                self.held.remove(place);
                removed.push(plugin.clone());
            }
        }
        if removed.is_empty() { Deregistered::NotRegistered } else { Deregistered::Removed(removed) }
    }

    fn describe(&self, plugin: &PluginKey) -> Answer {
        let of_plugin = self.held.iter().rev().filter(|held| held.registration.plugin == *plugin);
        let (mut standby, provisional): (Vec<Held>, Vec<Held>) =
            of_plugin.cloned().partition(|held| held.is_confirmed);
        let active = (!standby.is_empty()).then(|| standby.remove(0).registration);
        Answer::Describe { active, standby, provisional }
    }

    // === Changes without a message ===

    /// A new run of the host: no registration is confirmed.
    pub(crate) fn begin_run(&mut self) {
        self.held.iter_mut().for_each(|held| held.is_confirmed = false);
    }

    /// The possible states after one identity check or the end of the grace period.
    pub(crate) fn what_may_happen(&self, answers: &[AllocationId], is_grace_over: bool) -> Vec<Self> {
        let mut outcomes = self.each_provable(answers, true);
        if is_grace_over && self.held.iter().any(|held| !held.is_confirmed) {
            let mut dropped = self.clone();
            dropped.held.retain(|held| held.is_confirmed);
            outcomes.push(dropped);
        }
        outcomes
    }

    /// The possible states after the loss of one proof.
    pub(crate) fn what_may_be_forgotten(&self, answers: &[AllocationId]) -> Vec<Self> {
        self.each_provable(answers, false)
    }

    /// Changes whether one registration is confirmed, for each registration whose plugin answers.
    fn each_provable(&self, answers: &[AllocationId], is_confirmed: bool) -> Vec<Self> {
        let mut outcomes = Vec::new();
        for (place, held) in self.held.iter().enumerate() {
            let Registration { allocation, provider, .. } = &*held.registration;
            if held.is_confirmed != is_confirmed && provider.is_some() && answers.contains(allocation) {
                let mut changed = self.clone();
                changed.held[place].is_confirmed = is_confirmed;
                outcomes.push(changed);
            }
        }
        outcomes
    }
}

/// Whether a registration may leave for this reason.
pub(crate) fn may_leave(entry: &Entry, why: Departure) -> bool {
    why != Departure::NotConfirmed || entry.standing == Standing::Provisional
}

fn contents(message: &Register, plugin: &PluginKey) -> Arc<Registration> {
    let Register { allocation, socket, provider, version, options, policy, .. } = message.clone();
    Arc::new(Registration { plugin: plugin.clone(), allocation, socket, provider, version, options, policy })
}
