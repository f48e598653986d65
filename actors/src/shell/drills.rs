//! Injects faults into actors by name, without their addresses: for scripts and drills.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use callboard_machines::AskError;

use super::address::{Address, Drill};
use crate::kernel::Machine;

type Order = dyn Fn(Drill) -> Result<(), AskError> + Send + Sync;

#[derive(Default)]
struct Enlisted {
    running: BTreeMap<String, (u64, Box<Order>)>,
    count: u64,
}

/// All running actors that have this among their [`Settings`](super::Settings), by name. Clones share the same list.
#[derive(Clone, Default)]
pub struct Drills(Arc<Mutex<Enlisted>>);

impl Drills {
    fn enlisted(&self) -> MutexGuard<'_, Enlisted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The names of all running actors, in order.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.enlisted().running.keys().cloned().collect()
    }

    /// Injects a fault into the actor of this name, in mailbox order. Of two actors with the same name, the one started last.
    ///
    /// # Errors
    /// [`AskError::NotRunning`] if no actor of this name runs.
    pub fn drill(&self, actor: &str, drill: Drill) -> Result<(), AskError> {
        match self.enlisted().running.get(actor) {
            Some((_, order)) => order(drill),
            None => Err(AskError::NotRunning { actor: actor.to_owned() }),
        }
    }

    /// Lists an actor until the returned place is dropped.
    pub(super) fn enlist<M: Machine>(&self, address: &Address<M>) -> Place {
        let mut enlisted = self.enlisted();
        enlisted.count += 1;
        let (number, name) = (enlisted.count, address.name().to_owned());
        let address = address.clone();
        let order: Box<Order> = Box::new(move |drill| address.drill(drill));
        enlisted.running.insert(name.clone(), (number, order));
        Place { drills: self.clone(), name, number }
    }
}

impl fmt::Debug for Drills {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Drills").field(&self.names()).finish()
    }
}

/// The entry of a running actor; dropping it removes the entry.
pub(super) struct Place {
    drills: Drills,
    name: String,
    number: u64,
}

impl Drop for Place {
    /// The entry of a later actor of the same name stays.
    fn drop(&mut self) {
        let mut enlisted = self.drills.enlisted();
        if enlisted.running.get(&self.name).is_some_and(|(number, _)| *number == self.number) {
            enlisted.running.remove(&self.name);
        }
    }
}
