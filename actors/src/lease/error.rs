//! Why a call over a lease has no answer of the plugin.

use std::error::Error;

use tonic::Status;

use super::gate::ConnectionEnd;
use crate::rpc::ChannelError;
use crate::vocabulary::{AllocationId, Generation, PluginKey};

/// Why a call over a lease has no answer of the plugin. A generated client returns it as the source of a [`Status`]; [`LeaseError::of`]
/// finds it there.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// The connection of the lease has ended, or its generation retires. The call was not sent.
    #[error(
        "{plugin} of allocation {allocation}, generation {generation}, takes no more calls: {end}; ask for a new lease"
    )]
    Ended {
        /// The plugin.
        plugin: PluginKey,
        /// The allocation that served it.
        allocation: AllocationId,
        /// The generation of the lease.
        generation: Generation,
        /// Why it has ended.
        end: ConnectionEnd,
    },
    /// The call was in flight when its connection was closed. Whether it took effect is unknown (C015).
    #[error(
        "the call to {plugin} of allocation {allocation}, generation {generation}, was cut, since its connection was closed; whether it \
         took effect is unknown; ask for a new lease and repeat it"
    )]
    Cut {
        /// The plugin.
        plugin: PluginKey,
        /// The allocation that served it.
        allocation: AllocationId,
        /// The generation of the lease.
        generation: Generation,
    },
    /// Too many calls are in flight to this plugin (F17). The call was not sent.
    #[error("{in_flight} calls to {plugin} are in flight already; try again later")]
    TooMany {
        /// The plugin.
        plugin: PluginKey,
        /// The number of calls in flight.
        in_flight: usize,
    },
    /// The connection broke off during the call. Whether it took effect is unknown (C015).
    #[error(transparent)]
    Broken(#[from] ChannelError),
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

    /// Whether another call needs a new lease. If not, the same lease can be used again.
    #[must_use]
    pub const fn needs_new_lease(&self) -> bool {
        match self {
            Self::Ended { .. } | Self::Cut { .. } | Self::Broken(_) => true,
            Self::TooMany { .. } => false,
        }
    }

    /// Whether the call may have taken effect.
    #[must_use]
    pub const fn may_have_taken_effect(&self) -> bool {
        match self {
            Self::Cut { .. } | Self::Broken(_) => true,
            Self::Ended { .. } | Self::TooMany { .. } => false,
        }
    }
}
