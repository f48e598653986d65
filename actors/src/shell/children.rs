//! The living children of an owner, and a queue of the endings of the others.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use tokio::sync::{Mutex, mpsc};

use super::spawn::Running;
use crate::kernel::Ending;
use crate::vocabulary::Attempt;

/// A child that has not ended.
pub(crate) struct Child<A> {
    /// The address of the child.
    pub(crate) address: A,
    pub(crate) running: Running,
}

/// All children by their life, and the endings `E` that their owner has not received. No child outlives this (S4).
pub(crate) struct Children<A, E> {
    held: Rc<RefCell<HashMap<Attempt, Child<A>>>>,
    ended: mpsc::UnboundedSender<E>,
    endings: Rc<Mutex<mpsc::UnboundedReceiver<E>>>,
}

impl<A, E> Default for Children<A, E> {
    fn default() -> Self {
        let (ended, endings) = mpsc::unbounded_channel();
        Self { held: Rc::default(), ended, endings: Rc::new(Mutex::new(endings)) }
    }
}

impl<A, E> Children<A, E> {
    /// Keeps a child until it ends; `tell` then makes the ending that the owner receives. A life must never be reused, also
    /// not when the owner is rebuilt: the end of the first life would be taken for that of the second.
    pub(crate) fn hold(
        &self,
        life: Attempt,
        address: A,
        running: Running,
        tell: impl FnOnce(Ending) -> E + 'static,
    ) where
        A: 'static,
        E: 'static,
    {
        let (ended, ending, held) = (self.ended.clone(), running.ended(), Rc::clone(&self.held));
        self.held.borrow_mut().insert(life, Child { address, running });
        actix_rt::spawn(async move {
            let ending = ending.await;
            held.borrow_mut().remove(&life);
            // The receiver is gone when the owner has ended.
            let _ = ended.send(tell(ending));
        });
    }

    /// Applies `act` to a child. `None` if it has ended; its ending is reported separately.
    pub(crate) fn with<T>(&self, life: Attempt, act: impl FnOnce(&Child<A>) -> T) -> Option<T> {
        self.held.borrow().get(&life).map(act)
    }

    /// Maps all children.
    pub(crate) fn look<T, C: FromIterator<T>>(&self, look: impl Fn(Attempt, &Child<A>) -> T) -> C {
        self.held.borrow().iter().map(|(life, child)| look(*life, child)).collect()
    }

    /// Waits until at least one child has ended. Cancelling this future loses nothing.
    pub(crate) fn endings(&self) -> impl Future<Output = Vec<E>> + use<A, E> {
        let endings = Rc::clone(&self.endings);
        async move {
            let mut endings = endings.lock().await;
            let mut all = Vec::new();
            all.extend(endings.recv().await);
            all.extend(std::iter::from_fn(|| endings.try_recv().ok()));
            all
        }
    }

    /// Kills all children at once.
    pub(crate) fn kill_all(&self) {
        self.held.borrow().values().for_each(|child| child.running.kill());
    }
}

impl<A, E> Drop for Children<A, E> {
    fn drop(&mut self) {
        self.kill_all();
    }
}
