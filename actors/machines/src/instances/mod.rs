//! The supervisor of instances: keeps one instance for each confirmed registration, active or standby.
//!
//! It follows the registry's feed, starts the instances, reports to the registry which registrations are fit, and dispenses healthy
//! plugins. Registrations are independent of each other, so a slow one does not delay the others (SCL-02):
//!
//! ```text
//!              registered                  left, other contents, or not active any more
//!   (nothing) ─────────────► Serving ───────────────────────────────────────────► Retiring
//!       ▲                     │ │  ▲ ▲                                             │    │
//!       │      connection lost│ │  │ └── the registry gave a new generation ─┐     │    │ timeout:
//!       │                     ▼ │  │                                         │     │    │ killed
//!       │               Renewing ──┼─────────────────────────────────────────┘     │ ◄──┘
//!       │                     ▲ │  │                                       ▲       │
//!       │          pause over │ │crashed, or lost repeatedly               │       │ it ended, and is
//!       │                     │ ▼                                          └───────┤ still registered
//!       │                    Pausing ── too many crashes ──► GivenUp               │
//!       │                                                      └─ checked, or active: Renewing
//!       └───────────────────────────── it ended, and is not registered any more ───┘
//! ```
//!
//! Invariants:
//!
//! - There is one instance for a registration; an instance of an earlier generation retires first, in bounded time (I1). A standby is
//!   connected and read, so that it takes over without a first check (R1d).
//! - An instance has one connection, and each connection is a generation of its own. The registry gives them (I2). An instance that
//!   crashes has lost its connection: its successor starts as after any other loss, as long as its budget lasts.
//! - A generation that was dispensed and is no longer active is retired: no lease reaches a registration that is not active.
//! - The registry is notified of the findings of the instances, at once and again after it was rebuilt (R1b).
//! - From the moment when the registry routes elsewhere, the old instance is not dispensed; calls in flight still end (SHD-04).
//!   `AwaitRetired` waits for that end. It is shown as gone if its registration has left. If the registration stands by now, it is shown
//!   as it was until its successor has checked: the plugin continues as before (R1d).
//! - A registration with another socket is another generation, and so another instance (REG-06).
//! - Late reports of an earlier life of an instance are ignored (REG-08).
//! - The three answers to `Dispense` are a healthy plugin, not yet, and no, each with its reason (RES-01).
//! - The fingerprint of the predecessor is kept for C031 and C032 as long as one registration directly follows another.
//!   After a plugin has left, the next one under its name begins without it.
//! - When this actor's own machine is rebuilt after a crash, its instances are killed and restarted, under new generations.
//! - Only the two halves of CSI plugins have instances; other types of plugins have their own actors.

mod messages;

mod state;

mod waiters;

mod behaviour;
mod dispensing;
mod entry;
mod gates;
mod reporting;
mod settling;
mod shown;
mod succession;

#[cfg(test)]
mod scripts;

pub use messages::*;
pub use state::{
    ChildEnded, Instances, InstancesCall, InstancesOptions, InstancesOutcome, InstancesTimer, RegistryItem,
};
