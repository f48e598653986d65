//! What the owner of the allocations keeps in memory, beyond the reach of a crash of its own.

use callboard_actors::allocations::{Allocations, AllocationsChange, AllocationsImage};
use callboard_actors::shell::{Ticket, Written};

use super::super::stand_in::Disk;

/// The records, as the memory of production keeps them.
#[derive(Debug, Clone, Hash, Default)]
pub struct Memory(AllocationsImage);

impl Memory {
    /// What an owner is built from.
    pub(in super::super) fn image(&self) -> AllocationsImage {
        self.0.clone()
    }

    /// How many allocations it knows.
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
