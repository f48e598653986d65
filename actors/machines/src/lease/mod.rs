//! Leases of plugins: what is counted of them.

/// The calls and leases of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct LeasedCalls {
    /// The number of leases that have not been dropped.
    pub leases: usize,
    /// The number of calls in flight, those of the instance itself included.
    pub in_flight: usize,
}
