//! The instance: talks to the active registration of one plugin, reads what it is, and watches its health.
//!
//! ```text
//!              dial, read identity, offers, readiness, capabilities, node
//!            +--------------------------------------------------------------+
//!            v                                                              |
//!  start ► asked ──── everything read over this one connection ─────► resting: Healthy ── round ──┐
//!            ▲ │                                                                                  │ one probe
//!            │ ├───── not ready: Starting, nothing else is called ──► resting ── backoff ──┐      │
//!            │ └───── failed: Unhealthy, with the reason ───────────► resting ── backoff ──┤      │
//!            └─────────────────────────────────────────────────────────────────────────────┴──────┘
//!  Retire or stop, whatever it is at ► retiring: the call in flight ends or is given up ► Gone
//! ```
//!
//! What holds:
//!
//! - One connection and one health: what is shown is what routes (I2, HLT-01, HLT-03). It is healthy once everything was
//!   read over the very connection that is still open, and a lost connection makes it unhealthy at once, since another
//!   process may listen there next.
//! - Identity and capabilities are read once per connection; a round of a healthy plugin is one probe (I3, HLT-03).
//! - The first failure takes the same path as any later one (I4, HLT-04).
//! - Not ready is neither healthy nor a failure: it is waited for, and no other service is called meanwhile (C039). Of a
//!   plugin that was healthy before it is a failure like any other.
//! - The plugin's own name must be what its registration and the generation before it said (C031); other capabilities under
//!   the same version are a remark (C032).
//! - A node plugin need not answer `NodeGetInfo` unless its controller publishes volumes (C146, I7). Where the plugin says
//!   that it has a controller, this very process is asked for the controller's capabilities before that is believed; one
//!   that has no controller of its own is believed, with a remark.
//! - Once retiring, nothing new starts (I6).

mod messages;

mod state;

mod reading;

mod behaviour;

mod actor;

#[cfg(test)]
mod scripts;

pub use actor::start;
pub use messages::*;
pub use state::{Half, Instance, InstanceCall, InstanceConfig, InstanceLimits, InstanceTimer, Reached};
