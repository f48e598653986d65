//! The counters of an actor.

/// Counters of an actor, as seen from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Vitals {
    /// Accepted messages that are neither answered nor parked until another event.
    pub mailbox_depth: usize,
    /// Steps taken.
    pub steps: u64,
    /// Steps that panicked.
    pub crashes: u64,
    /// The number of rebuilds from disk, after a crash or a failed write.
    pub rebuilds: u64,
}
