//! Waiting callers, by the object that they wait for.

use std::collections::BTreeMap;

use crate::kernel::AskId;
use crate::vocabulary::Timestamp;

/// The waiting callers by object, each with the start of its wait.
#[derive(Debug, Clone, Hash)]
pub(super) struct Waiters<K: Ord> {
    by_key: BTreeMap<K, BTreeMap<AskId, Timestamp>>,
    count: usize,
}

impl<K: Ord> Default for Waiters<K> {
    fn default() -> Self {
        Self { by_key: BTreeMap::new(), count: 0 }
    }
}

impl<K: Ord + Clone> Waiters<K> {
    pub(super) fn add(&mut self, key: K, id: AskId, since: Timestamp) {
        if self.by_key.entry(key).or_default().insert(id, since).is_none() {
            self.count += 1;
        }
    }

    /// Removes a caller, and returns the start of its wait.
    pub(super) fn remove(&mut self, key: &K, id: AskId) -> Option<Timestamp> {
        let waiting = self.by_key.get_mut(key)?;
        let since = waiting.remove(&id)?;
        if waiting.is_empty() {
            self.by_key.remove(key);
        }
        self.count -= 1;
        Some(since)
    }

    /// Removes all callers that wait for one object, in the order in which they asked.
    pub(super) fn take(&mut self, key: &K) -> Vec<AskId> {
        let waiting: Vec<AskId> = self.by_key.remove(key).unwrap_or_default().into_keys().collect();
        self.count -= waiting.len();
        waiting
    }

    pub(super) fn take_all(&mut self) -> Vec<(K, Vec<AskId>)> {
        self.count = 0;
        let all = std::mem::take(&mut self.by_key);
        all.into_iter().map(|(key, waiting)| (key, waiting.into_keys().collect())).collect()
    }

    pub(super) fn waits_for(&self, key: &K) -> bool {
        self.by_key.contains_key(key)
    }

    pub(super) const fn len(&self) -> usize {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everyone_who_waits_is_counted_once_scl_08() {
        let mut waiters = Waiters::default();
        let id = AskId::new;
        for (key, number) in [("a", 1), ("a", 2), ("b", 3), ("b", 3), ("c", 4), ("c", 5)] {
            waiters.add(key, id(number), Timestamp::default());
        }
        assert_eq!(waiters.len(), 5);
        assert_eq!(waiters.remove(&"a", id(9)), None);
        assert_eq!(waiters.remove(&"a", id(1)), Some(Timestamp::default()));
        assert_eq!((waiters.len(), waiters.waits_for(&"a")), (4, true));
        waiters.remove(&"a", id(2));
        assert_eq!((waiters.len(), waiters.waits_for(&"a"), waiters.waits_for(&"b")), (3, false, true));
        assert_eq!(waiters.take(&"c"), [id(4), id(5)]);
        assert_eq!(waiters.take(&"c"), []);
        assert_eq!(waiters.len(), 1);
        assert_eq!(waiters.take_all(), [("b", vec![id(3)])]);
        assert_eq!(waiters.len(), 0);
    }
}
