//! The instance: connects to the active registration of one plugin, reads its fingerprint, and watches its health.
//!
//! ```text
//!              dial, read identity, plugin capabilities, readiness, capabilities, node
//!            +--------------------------------------------------------------+
//!            v                                                              |
//!  start ► asked ──── everything read over this one connection ─────► resting: Healthy ── round ──┐
//!            ▲ │                                                                                  │ one probe
//!            │ ├───── not ready: Starting, nothing else is called ──► resting ── backoff ──┐      │
//!            │ └───── failed: Unhealthy, with the reason ───────────► resting ── backoff ──┤      │
//!            └─────────────────────────────────────────────────────────────────────────────┴──────┘
//!  Retire or stop, in any phase ► retiring: the calls in flight end or are cut ► Gone
//! ```
//!
//! Invariants:
//!
//! - One connection and one health: the health that is shown is the health that routes (I2, HLT-01, HLT-03). It is healthy once
//!   everything was read over the connection that is still open. A lost connection makes it unhealthy at once, since another
//!   process may listen there next.
//! - It has one connection and ends with it, also when it crashes. It is not rebuilt, since a connection that it dialled then would be
//!   another generation (I2).
//! - Identity and capabilities are read once per connection; a round of a healthy plugin is one probe (I3, HLT-03).
//! - The first failure is handled like any later one (I4, HLT-04).
//! - Not ready is neither healthy nor a failure: the instance retries, and calls no other service meanwhile (C039). If the
//!   plugin was healthy before, not ready is a failure.
//! - The plugin's own name must equal that of its registration and of the previous generation (C031); other capabilities
//!   under the same version are a remark (C032).
//! - A node plugin need not answer `NodeGetInfo` unless its controller publishes volumes (C146, I7). If the plugin reports that
//!   it has a controller, this process is asked for the controller's capabilities to verify that; if it has no controller of
//!   its own, the claim is accepted with a remark.
//! - While it retires, nothing new starts (I6): neither a call of its own nor a call of a lease. Calls in flight have a deadline to end
//!   (A4, SHD-04).

mod messages;

mod state;

mod reading;

mod behaviour;
mod life;

#[cfg(test)]
mod scripts;

pub use messages::*;
pub use state::{Half, Instance, InstanceCall, InstanceConfig, InstanceLimits, InstanceTimer, Reached};
