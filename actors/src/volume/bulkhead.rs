//! Limits of concurrent work, one for each key, fair to those who wait.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::rc::Rc;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

type Gates<K> = Rc<RefCell<HashMap<K, Arc<Semaphore>>>>;

/// So much may be done at once for each key. Keys share nothing, so work that hangs delays no work of another key (V9). Clones share
/// everything.
#[derive(Clone)]
pub(super) struct Bulkheads<K> {
    permits: usize,
    gates: Gates<K>,
}

impl<K> fmt::Debug for Bulkheads<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bulkheads").field("permits", &self.permits).finish_non_exhaustive()
    }
}

impl<K: Eq + Hash + Clone> Bulkheads<K> {
    /// With so many permits for each key; at least one.
    pub(super) fn new(permits: usize) -> Self {
        Self { permits: permits.clamp(1, Semaphore::MAX_PERMITS), gates: Gates::default() }
    }

    /// Waits for a permit, first come, first served. A future that is dropped has taken none.
    pub(super) async fn enter(&self, key: &K) -> Permit<K> {
        let gate = Arc::clone(
            self.gates
                .borrow_mut()
                .entry(key.clone())
                .or_insert_with(|| Arc::new(Semaphore::new(self.permits))),
        );
        let known = Known { key: key.clone(), gate: Arc::clone(&gate), gates: Rc::clone(&self.gates) };
        let permit = gate.acquire_owned().await.expect("it is never closed");
        Permit { _permit: permit, _known: known }
    }
}

/// A permit, until it is dropped.
pub(super) struct Permit<K: Eq + Hash> {
    // In this order: the permit is given back first.
    _permit: OwnedSemaphorePermit,
    _known: Known<K>,
}

/// Keeps the semaphore of a key known while it is used or waited for.
struct Known<K: Eq + Hash> {
    key: K,
    gate: Arc<Semaphore>,
    gates: Gates<K>,
}

impl<K: Eq + Hash> Drop for Known<K> {
    fn drop(&mut self) {
        // One is in the map, and one is this one.
        if Arc::strong_count(&self.gate) == 2 {
            self.gates.borrow_mut().remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn permits_are_given_in_the_order_of_arrival_and_by_key_v9() {
        let bulkheads = Bulkheads::new(1);
        let first = bulkheads.enter(&"a").now_or_never().expect("it is free");
        let mut second = Box::pin(bulkheads.enter(&"a"));
        let mut third = Box::pin(bulkheads.enter(&"a"));
        assert!(second.as_mut().now_or_never().is_none() && third.as_mut().now_or_never().is_none());
        assert!(bulkheads.enter(&"b").now_or_never().is_some(), "another key is free");
        drop(first);
        assert!(third.as_mut().now_or_never().is_none(), "the second came before");
        let second = second.now_or_never().expect("its turn has come");
        drop(second);
        assert!(third.now_or_never().is_some());
        assert!(bulkheads.gates.borrow().is_empty(), "a key that is not used takes no memory");
    }

    #[test]
    fn a_caller_that_stops_waiting_takes_no_permit_and_no_memory_v9() {
        let bulkheads = Bulkheads::new(1);
        let first = bulkheads.enter(&"a").now_or_never().expect("it is free");
        let mut second = Box::pin(bulkheads.enter(&"a"));
        let mut third = Box::pin(bulkheads.enter(&"a"));
        assert!(second.as_mut().now_or_never().is_none() && third.as_mut().now_or_never().is_none());
        drop(first);
        // It has its permit, and does not take it.
        drop(second);
        drop(third.now_or_never().expect("the second has gone"));
        assert!(bulkheads.gates.borrow().is_empty());
    }
}
