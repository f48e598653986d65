//! The memory of the owner of the allocations, which survives its crashes.

use callboard_actors::allocations::{Allocations, AllocationsChange, AllocationsImage};
use callboard_actors::shell::{Ticket, Written};

use super::super::stand_in::Disk;

/// The records, as the memory of production keeps them.
#[derive(Debug, Clone, Hash, Default)]
pub struct Memory(AllocationsImage);

impl Memory {
    /// The image from which an owner is built.
    pub(in super::super) fn image(&self) -> AllocationsImage {
        self.0.clone()
    }

    /// The number of allocations that it knows.
    pub(in super::super) fn len(&self) -> usize {
        self.0.records.len()
    }
}

impl Disk<Allocations> for Memory {
    fn write(&mut self, _: Ticket, change: AllocationsChange) -> Written {
        self.0.take(change);
        Written::Now
    }
}
