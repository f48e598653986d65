//! The ordered outbox: what a step wants done leaves in order, and nothing passes a gate before its write is on disk.

use std::collections::VecDeque;
use std::time::Duration;

use super::address::Asker;
use super::feed::FeedSender;
use super::machine::{CallKey, Machine};
use super::spawn::Ending;

/// One thing that waits to leave.
pub(crate) enum Item<M: Machine> {
    /// Nothing behind this leaves before write `0` is on disk.
    Gate(u64),
    /// An answer; nobody may be waiting for it.
    Reply { answer: M::Answer, asker: Asker<M> },
    /// News for everyone.
    Publish(M::News),
    /// A new subscriber, with what it is to see first.
    Attach(FeedSender<M::News, M::View>, M::View),
    /// A snapshot for subscribers that fell behind.
    Refresh(Vec<(u64, M::View)>),
    /// A call to be made.
    Call { key: CallKey, deadline: Duration, call: M::Call },
    /// The end.
    Stop(Ending),
}

/// What waits to leave, and how far the disk has got.
pub(crate) struct Outbox<M: Machine> {
    items: VecDeque<Item<M>>,
    durable_through: u64,
    gates: usize,
}

impl<M: Machine> Default for Outbox<M> {
    fn default() -> Self {
        Self { items: VecDeque::new(), durable_through: 0, gates: 0 }
    }
}

impl<M: Machine> Outbox<M> {
    pub(crate) fn push(&mut self, item: Item<M>) {
        if matches!(item, Item::Gate(_)) {
            self.gates += 1;
        }
        self.items.push_back(item);
    }

    /// Whether nothing waits to leave.
    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Everything up to this write is on disk.
    pub(crate) fn settle(&mut self, through: u64) {
        self.durable_through = self.durable_through.max(through);
    }

    /// Takes the next thing that may leave.
    pub(crate) fn pop_released(&mut self) -> Option<Item<M>> {
        loop {
            match self.items.front()? {
                Item::Gate(sequence) if *sequence > self.durable_through => return None,
                Item::Gate(_) => {
                    self.gates -= 1;
                    self.items.pop_front();
                }
                Item::Reply { .. }
                | Item::Publish(_)
                | Item::Attach(..)
                | Item::Refresh(_)
                | Item::Call { .. }
                | Item::Stop(_) => return self.items.pop_front(),
            }
        }
    }

    /// Whether some write is still on its way.
    pub(crate) const fn is_waiting(&self) -> bool {
        self.gates > 0
    }

    /// Forgets calls that a machine which no longer exists wanted to make. The next one asks for them again.
    pub(crate) fn forget_calls(&mut self) {
        self.items.retain(|item| !matches!(item, Item::Call { .. }));
    }

    /// Takes everything out that waits behind the gate of this write, and the gate.
    pub(crate) fn take_behind(&mut self, sequence: u64) -> VecDeque<Item<M>> {
        let is_gate = |item: &Item<M>| matches!(item, Item::Gate(gate) if *gate == sequence);
        let place = self.items.iter().position(is_gate).unwrap_or(self.items.len());
        let behind = self.items.split_off(place);
        self.gates -= behind.iter().filter(|item| matches!(item, Item::Gate(_))).count();
        behind
    }

    /// Takes everything out that will never leave.
    pub(crate) fn take_all(&mut self) -> VecDeque<Item<M>> {
        self.gates = 0;
        std::mem::take(&mut self.items)
    }
}
