//! The supervisor of instances: keeps exactly one instance for each active registration.
//!
//! It follows the registry's feed, starts an instance for each plugin that becomes active, and dispenses healthy plugins.
//! Plugins are independent of each other, so a slow one does not delay the others (SCL-02):
//!
//! ```text
//!                 active                      other generation, or none
//!   (nothing) ──────────────► Serving ───────────────────────────────────► Retiring
//!       ▲                      │   ▲                                        │    │
//!       │              crashed │   │ pause over                             │    │ timeout:
//!       │                      │   │                        it ended        │    │ killed
//!       │                      ▼   │                     ┌──────────────────┘ ◄──┘
//!       │                    Pausing ── too often ──► GivenUp
//!       │                        └── not active ──────┐  │  └── active again, or checked ──► Serving
//!       │                                             ▼  ▼
//!       └────────────────── no successor ◄────────── (its entry) ── successor ──► Serving
//! ```
//!
//! Invariants:
//!
//! - On takeover the old instance retires first, in bounded time, and the new one starts when it has ended (I1).
//! - From the moment in which the registry routes elsewhere, the old instance is shown as gone and is not dispensed; calls
//!   in flight still end (SHD-04). `AwaitRetired` waits for that end.
//! - A registration that comes with another socket is another generation, and so another instance (REG-06).
//! - Late reports of an earlier life of an instance are ignored (REG-08).
//! - The three answers to `Dispense` are a healthy plugin, not yet, and no, each with its reason (RES-01).
//! - The fingerprint of the predecessor is kept for C031 and C032 as long as one registration directly follows another.
//!   After a plugin has left, the next one under its name begins without it.
//! - When this actor's own machine is rebuilt after a crash, its instances are killed and restarted.
//! - Only the two halves of CSI plugins have instances; other types of plugins have their own actors.

mod messages;

mod state;

mod waiters;

mod behaviour;
mod dispensing;
mod settling;
mod succession;

#[cfg(test)]
mod scripts;

pub use messages::*;
pub use state::{
    ChildEnded, Instances, InstancesCall, InstancesOptions, InstancesOutcome, InstancesTimer, RegistryItem,
};
