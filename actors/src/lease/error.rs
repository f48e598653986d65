//! The errors of calls over a lease that have no answer of the plugin.

use std::error::Error;
use std::fmt;

use tonic::Status;

use super::RetireCause;
use super::gate::ConnectionEnd;
use crate::rpc::ChannelError;
use crate::vocabulary::{AllocationId, Generation, PluginKey};

/// The reason that a call over a lease has no answer of the plugin. A generated client returns it as the source of a [`Status`];
/// [`LeaseError::of`] finds it there.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// The connection of the lease has ended, or its generation retires. The call was not sent.
    #[error(
        "{plugin} of allocation {allocation}, generation {generation}, takes no more calls: {end}; {}", end.new_lease()
    )]
    Ended {
        /// The plugin.
        plugin: PluginKey,
        /// The allocation that served it.
        allocation: AllocationId,
        /// The generation of the lease.
        generation: Generation,
        /// The reason that it has ended.
        end: ConnectionEnd,
    },
    /// The call was in flight when its connection was closed. Whether it took effect is unknown (C015).
    #[error(
        "the call to {plugin} of allocation {allocation}, generation {generation}, was aborted because its connection was closed ({end}); \
         whether it took effect is unknown; {}", end.new_lease()
    )]
    Cut {
        /// The plugin.
        plugin: PluginKey,
        /// The allocation that served it.
        allocation: AllocationId,
        /// The generation of the lease.
        generation: Generation,
        /// The reason that its connection was closed.
        end: ConnectionEnd,
    },
    /// Too many calls are in flight to this plugin (F17). The call was not sent.
    #[error("{in_flight} calls to {plugin} are already in flight; try again later")]
    TooMany {
        /// The plugin.
        plugin: PluginKey,
        /// The number of calls in flight.
        in_flight: usize,
    },
    /// The connection broke off during the call. Whether it took effect is unknown (C015).
    #[error("{error}; whether the call took effect is unknown; {}", end.new_lease())]
    Broken {
        /// The error of the connection.
        #[source]
        error: ChannelError,
        /// The reason that its connection was closed before, if it was; else it was lost.
        end: ConnectionEnd,
    },
}

/// Whether a new lease can help after a failed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewLease {
    /// The same lease can be used again.
    NotNeeded,
    /// A new lease reaches the generation that serves, or the plugin when it is back.
    Helps,
    /// No allocation served the plugin when the lease ended: a new lease works once another allocation serves it.
    HelpsOnceServed,
    /// The host is stopping and gives no more leases.
    CannotHelp,
}

impl fmt::Display for NewLease {
    /// What to do.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotNeeded => "try again later",
            Self::Helps => "ask for a new lease",
            Self::HelpsOnceServed => "a new lease works once another allocation of the plugin serves",
            Self::CannotHelp => "a new lease cannot help",
        })
    }
}

impl ConnectionEnd {
    /// Whether a new lease can help.
    #[must_use]
    pub const fn new_lease(self) -> NewLease {
        match self {
            Self::Lost | Self::Closed | Self::Retired(RetireCause::Superseded) => NewLease::Helps,
            Self::Retired(RetireCause::NotServed) => NewLease::HelpsOnceServed,
            Self::Retired(RetireCause::HostStops) => NewLease::CannotHelp,
        }
    }
}

impl LeaseError {
    /// The error of a lease in the result of a generated client. `None` if the status is an answer of the plugin, or has another
    /// source.
    #[must_use]
    pub fn of(status: &Status) -> Option<&Self> {
        let mut source = status.source();
        while let Some(error) = source {
            if let Some(found) = error.downcast_ref() {
                return Some(found);
            }
            source = error.source();
        }
        None
    }

    /// Whether a new lease can help.
    #[must_use]
    pub const fn new_lease(&self) -> NewLease {
        match self {
            Self::Ended { end, .. } | Self::Cut { end, .. } | Self::Broken { end, .. } => end.new_lease(),
            Self::TooMany { .. } => NewLease::NotNeeded,
        }
    }

    /// Whether another call needs a new lease, which is available now or later, as [`Self::new_lease`] tells. If not, the same lease can be
    /// used again, or the host is stopping.
    #[must_use]
    pub const fn needs_new_lease(&self) -> bool {
        match self.new_lease() {
            NewLease::Helps | NewLease::HelpsOnceServed => true,
            NewLease::NotNeeded | NewLease::CannotHelp => false,
        }
    }

    /// Whether the call may have taken effect.
    #[must_use]
    pub const fn may_have_taken_effect(&self) -> bool {
        match self {
            Self::Cut { .. } | Self::Broken { .. } => true,
            Self::Ended { .. } | Self::TooMany { .. } => false,
        }
    }
}
