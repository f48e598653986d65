//! The changes of an actor that are not on disk yet.

use std::collections::VecDeque;

/// The number of changes from which on they are merged while the disk is sick. They are merged again each time they have doubled.
pub(super) const MERGES_AT: usize = 256;

/// Changes that are not on disk yet, in their order. Merged changes are one change, which stands for several writes.
#[derive(Debug, Clone, Hash)]
pub(super) struct Kept<C> {
    changes: VecDeque<KeptChange<C>>,
    merges_at: usize,
}

/// A change, and the writes that it represents.
#[derive(Debug, Clone, Hash)]
pub(super) struct KeptChange<C> {
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) change: C,
}

impl<C> Default for Kept<C> {
    fn default() -> Self {
        Self { changes: VecDeque::new(), merges_at: MERGES_AT }
    }
}

impl<C> Kept<C> {
    pub(super) fn push(&mut self, sequence: u64, change: C) {
        self.push_again(KeptChange { first: sequence, last: sequence, change });
    }

    pub(super) fn push_again(&mut self, kept: KeptChange<C>) {
        self.changes.push_back(kept);
    }

    /// Everything up to this write is on disk.
    pub(super) fn forget_through(&mut self, through: u64) {
        while self.changes.front().is_some_and(|kept| kept.last <= through) {
            self.changes.pop_front();
        }
    }

    /// The first write that is not on disk.
    pub(super) fn first(&self) -> Option<u64> {
        self.changes.front().map(|kept| kept.first)
    }

    pub(super) fn take(&mut self) -> VecDeque<KeptChange<C>> {
        std::mem::take(&mut self.changes)
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Merges consecutive changes if there are too many; `merge` adds the later of two to the earlier one, or returns that
    /// they must stay separate.
    pub(super) fn merge_if_due(&mut self, merge: impl Fn(&mut C, &C) -> bool) {
        if self.changes.len() >= self.merges_at {
            self.merge_after(0, merge);
            self.merges_at = MERGES_AT.max(2 * self.changes.len());
        }
    }

    /// Merges the changes after this write, so that all of them reach the disk at once or not at all.
    pub(super) fn merge_after(&mut self, after: u64, merge: impl Fn(&mut C, &C) -> bool) {
        let mut merged: VecDeque<KeptChange<C>> = VecDeque::new();
        for kept in std::mem::take(&mut self.changes) {
            let is_merged = merged.back_mut().is_some_and(|before| {
                let is_merged = before.last > after && merge(&mut before.change, &kept.change);
                before.last = if is_merged { kept.last } else { before.last };
                is_merged
            });
            if !is_merged {
                merged.push_back(kept);
            }
        }
        self.changes = merged;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows by name, each with its last state.
    type Rows = Vec<(&'static str, u64)>;

    /// `all-alone` stays separate.
    fn merge(earlier: &mut Rows, later: &Rows) -> bool {
        if later.iter().chain(&*earlier).any(|(name, _)| *name == "all-alone") {
            return false;
        }
        earlier.retain(|(name, _)| later.iter().all(|(other, _)| other != name));
        earlier.extend(later);
        true
    }

    fn sequences(kept: &mut Kept<Rows>) -> Vec<(u64, u64, Rows)> {
        kept.take().into_iter().map(|one| (one.first, one.last, one.change)).collect()
    }

    #[test]
    fn changes_of_the_same_rows_are_one_and_stand_for_all_their_writes_shell_1a() {
        let mut kept = Kept::default();
        for sequence in 1..=MERGES_AT as u64 {
            let name = match sequence {
                100 => "all-alone",
                101 => "b",
                _ => "a",
            };
            kept.push(sequence, vec![(name, sequence)]);
            kept.merge_if_due(merge);
        }
        assert_eq!(kept.first(), Some(1));
        kept.forget_through(98);
        assert_eq!(kept.first(), Some(1), "the last state of its row is not on disk");
        kept.forget_through(99);
        assert_eq!(kept.first(), Some(100));
        let last = MERGES_AT as u64;
        let rest = [(100, 100, vec![("all-alone", 100)]), (101, last, vec![("b", 101), ("a", last)])];
        assert_eq!(sequences(&mut kept), rest);
    }

    #[test]
    fn what_was_handed_over_before_stays_apart_from_what_is_merged() {
        let mut kept = Kept::default();
        for sequence in 1..=4 {
            kept.push(sequence, vec![("a", sequence)]);
        }
        kept.merge_after(2, merge);
        let rest = [(1, 1, vec![("a", 1)]), (2, 2, vec![("a", 2)]), (3, 4, vec![("a", 4)])];
        assert_eq!(sequences(&mut kept), rest);
    }

    #[test]
    fn what_stays_apart_is_kept_and_not_looked_through_for_each_change() {
        let mut kept = Kept::default();
        let tries = std::cell::Cell::new(0);
        for sequence in 1..=2_000 {
            kept.push(sequence, ());
            kept.merge_if_due(|(), ()| {
                tries.set(tries.get() + 1);
                false
            });
        }
        assert_eq!((kept.changes.len(), kept.first()), (2_000, Some(1)));
        assert!(tries.get() < 4_000, "{}", tries.get());
    }
}
