//! The volumes of `callboard run`: claimed for its allocations and tasks, as configured.
//!
//! ```text
//!   agent ──┐  claim, release                 RegisterVolume or CreateVolume, then Claim; AllocationEnded
//!           ├─────────────────► Claimer ──────────────────────────────────────────────────────────────► owner of the volumes
//!   tasks ──┘                                                                                             │  secrets, per call
//!                                             files and variables ◄────── ConfiguredSecrets ◄─────────────┘
//! ```
//!
//! Invariants:
//!
//! - A claim belongs to the allocation or task of its name; both share one namespace of names.
//! - V8: a release reports what was observed of the user's processes. An intended stop releases nothing.
//! - V11: a secret is read for each call of a plugin, and stored nowhere. The configuration contains only its location.
//! - C081: a call and its inverse need the same secrets. Before a volume is first called with secrets, the data directory has their keys; a
//!   volume that has keys there and no secrets in the configuration is not called.
//! - V14: after the start, the owner is notified whose claims of an earlier run are kept: the claims of users that may have processes, and
//!   of users that the host does not run itself. The other claims are released. If only its environment identifies a user's process, or the
//!   process is still being ended, the user's claims stay provisional until the process has ended.
//! - Configured volumes are known from the start: volumes with an `id` are registered, the others are created by the first claim.

mod claimer;
mod confirming;
mod secret_keys;
mod secrets;
mod watching;

#[cfg(test)]
mod tests;

use std::time::Duration;

pub use claimer::Claimer;
pub use confirming::{KnownUsers, confirm};
pub use secrets::ConfiguredSecrets;
pub use watching::watch;

/// The first pause before a message to the owner of the volumes is repeated. It doubles with each repetition.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
