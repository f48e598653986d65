//! Limits concurrent work for each key, fair to the waiting callers.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::hash::Hash;
use std::rc::Rc;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

type Gates<K> = Rc<RefCell<HashMap<K, Arc<Semaphore>>>>;

/// A limit of concurrent work for each key. Keys share nothing, so work that hangs delays no work of another key (V9). Clones share
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
    /// With this number of permits for each key; at least one.
    pub(super) fn new(permits: usize) -> Self {
        Self { permits: permits.clamp(1, Semaphore::MAX_PERMITS), gates: Gates::default() }
    }

    /// Waits for a permit, first come, first served. A dropped future has taken none.
    pub(super) async fn enter(&self, key: &K) -> Permit<K> {
        let known = self.known(key);
        let permit = Arc::clone(&known.gate).acquire_owned().await.expect("it is never closed");
        Permit { _permit: permit, _known: known }
    }

    /// Waits for a permit of each of these keys. While one is missing it holds none: so it delays no work of the other keys, and two
    /// callers cannot wait for each other.
    pub(super) async fn enter_all(&self, keys: &BTreeSet<K>) -> Vec<Permit<K>>
    where
        K: Ord,
    {
        let mut first = keys.first();
        loop {
            let Some(awaited) = first else { return Vec::new() };
            let mut permits = vec![self.enter(awaited).await];
            let others = keys.iter().filter(|key| *key != awaited);
            let missing = others.into_iter().find(|key| match self.try_enter(key) {
                Some(permit) => {
                    permits.push(permit);
                    false
                }
                None => true,
            });
            if missing.is_none() {
                return permits;
            }
            first = missing;
        }
    }

    /// A permit, if one is free.
    fn try_enter(&self, key: &K) -> Option<Permit<K>> {
        let known = self.known(key);
        let permit = Arc::clone(&known.gate).try_acquire_owned().ok()?;
        Some(Permit { _permit: permit, _known: known })
    }

    fn known(&self, key: &K) -> Known<K> {
        let gate = Arc::clone(
            self.gates
                .borrow_mut()
                .entry(key.clone())
                .or_insert_with(|| Arc::new(Semaphore::new(self.permits))),
        );
        Known { key: key.clone(), gate, gates: Rc::clone(&self.gates) }
    }
}

/// A permit, until it is dropped.
pub(super) struct Permit<K: Eq + Hash> {
    // In this order: the permit is returned first.
    _permit: OwnedSemaphorePermit,
    _known: Known<K>,
}

/// Keeps the semaphore of a key while it is used or waited for.
struct Known<K: Eq + Hash> {
    key: K,
    gate: Arc<Semaphore>,
    gates: Gates<K>,
}

impl<K: Eq + Hash> Drop for Known<K> {
    fn drop(&mut self) {
        // One reference is in the map, and one is this one.
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
    fn who_waits_for_several_keys_holds_none_of_them_meanwhile_c001_c002_v9() {
        let bulkheads = Bulkheads::new(1);
        let of = |keys: [&'static str; 2]| BTreeSet::from(keys);
        let (left, right) = (of(["a", "b"]), of(["b", "c"]));
        let b = bulkheads.enter(&"b").now_or_never().expect("it is free");
        let mut first = Box::pin(bulkheads.enter_all(&left));
        let mut second = Box::pin(bulkheads.enter_all(&right));
        assert!(first.as_mut().now_or_never().is_none() && second.as_mut().now_or_never().is_none());
        drop(bulkheads.enter(&"a").now_or_never().expect("it is not held while another one is missing"));
        let c = bulkheads.enter(&"c").now_or_never().expect("neither is this one");
        drop(b);
        let both = first.now_or_never().expect("all of its keys are free");
        assert_eq!(both.len(), 2);
        assert!(bulkheads.enter(&"a").now_or_never().is_none(), "a call of one of them waits");
        drop(both);
        assert!(second.as_mut().now_or_never().is_none(), "one is still missing");
        drop(c);
        drop(second.now_or_never().expect("they do not wait for each other"));
        assert_eq!(bulkheads.enter_all(&BTreeSet::new()).now_or_never().map(|none| none.len()), Some(0));
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
        // It has its permit, and does not use it.
        drop(second);
        drop(third.now_or_never().expect("the second has gone"));
        assert!(bulkheads.gates.borrow().is_empty());
    }
}
