//! The actors that an owner has started and that have not ended, and word of those that have.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use tokio::sync::{Mutex, mpsc};

use super::spawn::Running;
use crate::kernel::Ending;
use crate::vocabulary::Attempt;

/// One of them.
pub(crate) struct Child<A> {
    /// Where it is talked to.
    pub(crate) address: A,
    pub(crate) running: Running,
}

/// All of them, by their life, and the endings `E` that their owner has not heard of. None outlives this, however its owner
/// ends (S4).
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
    /// Holds one until it ends, which is told in these words then. No two may ever have the same life, also when their owner is built anew:
    /// the end of the first would be taken for that of the second.
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
            // Nobody listens any more when the owner has ended.
            let _ = ended.send(tell(ending));
        });
    }

    /// Does something with one of them. One that has ended is heard of by its ending.
    pub(crate) fn with<T>(&self, life: Attempt, act: impl FnOnce(&Child<A>) -> T) -> Option<T> {
        self.held.borrow().get(&life).map(act)
    }

    /// Looks at all of them.
    pub(crate) fn look<T, C: FromIterator<T>>(&self, look: impl Fn(Attempt, &Child<A>) -> T) -> C {
        self.held.borrow().iter().map(|(life, child)| look(*life, child)).collect()
    }

    /// Waits until some have ended. Giving up this future loses nothing.
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

    /// Ends all of them at once, whatever they are at.
    pub(crate) fn kill_all(&self) {
        self.held.borrow().values().for_each(|child| child.running.kill());
    }
}

impl<A, E> Drop for Children<A, E> {
    fn drop(&mut self) {
        self.kill_all();
    }
}
