//! The reasons why a registration is active or not, and why that changed.

use std::fmt;
use std::sync::Arc;

use crate::vocabulary::Timestamp;

/// Why the active registration is active at present.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ActiveBecause {
    /// The policy takes the newest registration.
    Newest,
    /// The policy pins the plugin to it.
    Pinned,
    /// It is fit, and no newer registration is.
    NewestFit,
    /// It is fit, and the newer fit registrations failed while they were active, and are in their calm time (R1c).
    NewestCalm,
    /// It failed while it was active and is in its calm time, but no other registration is fit (R1c).
    OnlyFit,
    /// It has not given a complete and valid answer yet, and no registration is fit: it is waited for (R1a).
    Awaited,
    /// It has failed, and so have all others (R1b).
    NoneFit,
}

impl fmt::Display for ActiveBecause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Newest => "as the newest that is registered",
            Self::Pinned => "as the pinned one",
            Self::NewestFit => "as the newest that is healthy",
            Self::NewestCalm => "as the newest that is healthy and has not failed of late",
            Self::OnlyFit => "as the only one that is healthy",
            Self::Awaited => "waited for, since none is healthy yet",
            Self::NoneFit => "since none is healthy",
        })
    }
}

/// Why a confirmed registration is not active.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum InactiveBecause {
    /// The active registration is newer; this one could be active.
    Older,
    /// The policy pins the plugin to the active registration; this one could be active.
    NotPinned,
    /// It has not given a complete and valid answer yet (R1a).
    Unproven,
    /// It has failed for longer than is tolerated (R1b).
    Unfit {
        /// The failed operation and its error.
        reason: Arc<str>,
    },
    /// It failed while it was active, and must be fit until this time before it is active again (R1c).
    Calm {
        /// The end of its calm time, if it stays fit.
        until: Timestamp,
    },
}

/// Why work is routed to a registration, or no longer to its predecessor.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ActiveReason {
    /// It registered, and no fit registration serves, or the policy takes the newest.
    Registered,
    /// Its contents changed (R3).
    Updated,
    /// It was restored, and is confirmed now (R8).
    Confirmed,
    /// It has proven to be fit, and is the newest fit registration.
    Proven,
    /// It has been fit for the whole of its calm time (R1c).
    Calm,
    /// Its connection ended, so another connection or process serves it.
    Renewed,
    /// The former active registration left.
    Left(Departure),
    /// The former active registration failed for longer than is tolerated (R1b).
    Failed {
        /// The failed operation of the former registration, and its error.
        reason: Arc<str>,
    },
}

impl fmt::Display for ActiveReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Registered => "as the newest that registered",
            Self::Updated => "registered with other contents",
            Self::Confirmed => "confirmed after the restart",
            Self::Proven => "as the newest that is healthy",
            Self::Calm => "healthy for its whole calm time",
            Self::Renewed => "since its connection ended",
            Self::Left(Departure::Deregistered) => "since the former one left",
            Self::Left(Departure::Failed) => "since the former one failed",
            Self::Left(Departure::NotConfirmed) => "since the former one was not confirmed",
            Self::Failed { reason } => return write!(f, "since the former one failed: {reason}"),
        })
    }
}

/// Why a registration was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Departure {
    /// Its owner deregistered it, in order.
    Deregistered,
    /// Its owner deregistered it because it failed.
    Failed,
    /// It was restored and not confirmed within the grace period (R8).
    NotConfirmed,
}
