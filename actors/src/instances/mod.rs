//! The supervisor of the instances: keeps exactly one instance for each active registration.
//!
//! It follows the registry's feed, starts an instance for each plugin that becomes active, and hands healthy plugins out.
//! Each plugin goes its own way, so a slow one delays nobody else (SCL-02):
//!
//! ```text
//!                 active                      other generation, or none
//!   (nothing) ──────────────► Serving ───────────────────────────────────► Retiring
//!       ▲                      │   ▲                                        │    │
//!       │                ended │   │ pause over                             │    │ kept at it too long:
//!       │         unexpectedly │   │                        it ended        │    │ ended by force
//!       │                      ▼   │                     ┌──────────────────┘ ◄──┘
//!       │                    Pausing ── too often ──► GivenUp
//!       │                        └── active no more ──┐  │  └── active anew, or checked ──► Serving
//!       │                                             ▼  ▼
//!       └────────────────── no successor ◄────────── (its post) ── successor ──► Serving
//! ```
//!
//! What holds:
//!
//! - On takeover the old instance retires first and the new one starts when it has ended, in bounded time (I1).
//! - From the moment in which the registry routes elsewhere, the old instance is shown as gone and is not handed out, though
//!   what is in flight still ends (SHD-04). `AwaitRetired` waits for that end.
//! - A registration that comes with another socket is another generation, and so another instance (REG-06).
//! - What an earlier life of an instance says late changes nothing (REG-08).
//! - The three answers to `Dispense` are a healthy plugin, not yet, and no, each with its reason (RES-01).
//! - A predecessor is remembered for C031 and C032 as long as one registration directly follows another. When a plugin has
//!   left, the next one under its name begins anew.
//! - When this actor's own machine is rebuilt after a crash, its instances are ended by force and started anew.
//! - Only the two halves of CSI plugins have instances for now; other types of plugins are left to actors of their own.

mod messages;

mod state;

mod waiters;

mod behaviour;
mod dispensing;
mod settling;
mod succession;

mod actor;

#[cfg(test)]
mod scripts;

pub use actor::start;
pub use messages::*;
pub use state::{
    ChildEnded, Instances, InstancesCall, InstancesOptions, InstancesOutcome, InstancesTimer, RegistryItem,
};
