//! The counters of an actor.

/// Counters of an actor, as seen from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Vitals {
    /// Messages that were accepted and neither answered nor parked until something else happens.
    pub mailbox_depth: usize,
    /// Steps taken.
    pub steps: u64,
    /// Steps that panicked.
    pub crashes: u64,
    /// How often the machine was rebuilt from disk, after a crash or a failed write.
    pub rebuilds: u64,
}
