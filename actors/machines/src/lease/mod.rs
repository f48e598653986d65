//! Leases of plugins: their counters, and why they end.

use std::fmt;
use std::iter::Sum;

/// The calls and leases of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct LeasedCalls {
    /// The number of leases that have not been dropped.
    pub leases: usize,
    /// The number of calls in flight, those of the instance itself included.
    pub in_flight: usize,
}

/// Why the connection of an instance is retired. It determines whether a new lease can help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RetireCause {
    /// Work is routed to another generation of the plugin.
    Superseded,
    /// No allocation serves the plugin at this moment. Another one may register later.
    NotServed,
    /// The host is stopping.
    HostStops,
}

impl fmt::Display for RetireCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Superseded => "it was retired, since another generation serves",
            Self::NotServed => "it was retired, and no allocation served the plugin then",
            Self::HostStops => "the host is stopping",
        })
    }
}

impl Sum for LeasedCalls {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::default(), |sum, one| Self {
            leases: sum.leases + one.leases,
            in_flight: sum.in_flight + one.in_flight,
        })
    }
}

impl fmt::Display for LeasedCalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { leases, in_flight } = self;
        write!(f, "leases: {leases}, calls in flight: {in_flight}")
    }
}
