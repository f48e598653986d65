//! The volumes of `callboard run`: claimed for its allocations and tasks, as the configuration says.
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
//! - V8: a release says what was observed of its processes. That something is to stop releases nothing.
//! - V11: a secret is read for each call of a plugin, and kept nowhere. The configuration holds only where it is.
//! - C081: a call and its inverse need the same secrets. Before a volume is first called with secrets, the data directory has their keys; a
//!   volume that has keys there and no secrets in the configuration is not called.
//! - V14: after the start, the owner is notified whose claims of an earlier run are kept: those of users that may have processes, and of
//!   users that the host does not run itself. The other ones are released. Those of a user of whose process only its environment tells, or
//!   that is still being ended, stay provisional until it has ended.
//! - What is configured is known from the start: volumes of an `id` are registered, and those to be created are made by the first claim.

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

/// The pause before a message to the owner of the volumes is repeated. It doubles with each one.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// No pause is longer.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
