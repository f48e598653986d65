//! The ordered outbox: the effects of a step leave in order, and nothing passes a gate before its write is on disk.

use std::collections::VecDeque;

/// An empty outbox with a capacity up to this limit frees its memory, since most actors are idle. A busy actor would allocate it again.
const FEW_PLACES: usize = 16;

/// A place in the outbox.
#[derive(Debug, Clone, Hash)]
enum Place<T> {
    /// Nothing behind this leaves before this write is on disk.
    Gate(u64),
    Thing(T),
}

/// The queued output, and the last write that is on disk.
#[derive(Debug, Clone, Hash)]
pub(super) struct Outbox<T> {
    places: VecDeque<Place<T>>,
    durable_through: u64,
}

impl<T> Default for Outbox<T> {
    fn default() -> Self {
        Self { places: VecDeque::new(), durable_through: 0 }
    }
}

impl<T> Outbox<T> {
    pub(super) fn push(&mut self, thing: T) {
        self.places.push_back(Place::Thing(thing));
    }

    /// Closes a gate: nothing that is pushed after it leaves before this write is on disk.
    pub(super) fn close_gate(&mut self, sequence: u64) {
        self.places.push_back(Place::Gate(sequence));
    }

    /// Whether nothing is queued.
    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Everything up to this write is on disk.
    pub(super) fn settle(&mut self, through: u64) {
        self.durable_through = self.durable_through.max(through);
    }

    /// The last write that is on disk.
    pub(super) const fn durable_through(&self) -> u64 {
        self.durable_through
    }

    /// The next item that may leave.
    pub(super) fn released(&mut self) -> Option<&T> {
        while matches!(self.places.front(), Some(Place::Gate(sequence)) if *sequence <= self.durable_through)
        {
            self.places.pop_front();
        }
        match self.places.front()? {
            Place::Gate(_) => None,
            Place::Thing(thing) => Some(thing),
        }
    }

    /// Takes the next item that may leave.
    pub(super) fn pop_released(&mut self) -> Option<T> {
        self.released()?;
        let place = self.places.pop_front();
        if self.places.is_empty() && self.places.capacity() <= FEW_PLACES {
            self.places = VecDeque::new();
        }
        place.and_then(Place::into_thing)
    }

    /// Takes these items out, wherever they wait; gates stay.
    pub(super) fn take(&mut self, is_taken: impl Fn(&T) -> bool) -> Vec<T> {
        let mut taken = Vec::new();
        for place in std::mem::take(&mut self.places) {
            match place {
                Place::Thing(thing) if is_taken(&thing) => taken.push(thing),
                place => self.places.push_back(place),
            }
        }
        taken
    }

    /// Takes everything out that waits behind the gate of this write, and the gate.
    pub(super) fn take_behind(&mut self, sequence: u64) -> Vec<T> {
        let is_gate = |place: &Place<T>| matches!(place, Place::Gate(gate) if *gate == sequence);
        let place = self.places.iter().position(is_gate).unwrap_or(self.places.len());
        let behind = self.places.split_off(place);
        behind.into_iter().filter_map(Place::into_thing).collect()
    }

    /// Takes out everything; it will never leave.
    pub(super) fn take_all(&mut self) -> Vec<T> {
        std::mem::take(&mut self.places).into_iter().filter_map(Place::into_thing).collect()
    }
}

impl<T> Place<T> {
    fn into_thing(self) -> Option<T> {
        match self {
            Self::Gate(_) => None,
            Self::Thing(thing) => Some(thing),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn released(outbox: &mut Outbox<&'static str>) -> Vec<&'static str> {
        std::iter::from_fn(|| outbox.pop_released()).collect()
    }

    /// Three gates, and one item before, between and behind them.
    fn outbox() -> Outbox<&'static str> {
        let mut outbox = Outbox::default();
        outbox.push("a");
        for (gate, thing) in [(3, "b"), (5, "c"), (7, "d")] {
            outbox.close_gate(gate);
            outbox.push(thing);
        }
        outbox
    }

    #[test]
    fn what_waits_leaves_in_its_order_as_far_as_the_disk_has_got() {
        let mut outbox = outbox();
        assert_eq!(released(&mut outbox), ["a"]);
        outbox.settle(4);
        assert_eq!(released(&mut outbox), ["b"]);
        outbox.settle(1);
        assert_eq!(released(&mut outbox), [""; 0], "the disk does not go back");
        outbox.settle(5);
        assert_eq!(released(&mut outbox), ["c"]);
        assert!(!outbox.is_empty());
        outbox.settle(7);
        assert_eq!(released(&mut outbox), ["d"]);
        assert!(outbox.is_empty());
    }

    #[test]
    fn a_write_that_fails_takes_along_what_is_behind_it_and_no_more() {
        let mut outbox = outbox();
        assert_eq!(outbox.take_behind(7), ["d"]);
        outbox.settle(5);
        assert_eq!(released(&mut outbox), ["a", "b", "c"]);
        assert!(outbox.is_empty(), "its gate is gone with it");
    }

    #[test]
    fn what_is_not_to_leave_any_more_leaves_its_gates_standing() {
        let mut outbox = outbox();
        assert_eq!(outbox.take(|thing| *thing != "c"), ["a", "b", "d"]);
        assert_eq!(released(&mut outbox), [""; 0]);
        assert_eq!(outbox.take_all(), ["c"]);
        assert!(outbox.is_empty());
    }
}
