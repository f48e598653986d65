//! One driver: a [session](crate::session) with its plugin, and what its service tells.
//!
//! ```text
//!   Recall ─► Launch ─► Dial ─► Ping ─► PluginInfo ─► SetConfig ─► Init ─► Capabilities ─► Fingerprint ─► Watching
//!   └──────────────────── the session ────────────────────────┘    └──── its service ────┘ └──── the session ────┘
//! ```
//!
//! The session finds or launches its process, connects, asks who it is, configures it, and watches it; failures, restarts and the end are
//! its matter as well, and what holds of them is said there. What holds of a driver beside that:
//!
//! - A driver that has nothing to prepare need not have `Init` (D109).
//! - Attributes and capabilities are kept over a failure: they are what was told last.
//! - A driver whose tasks share the file system of the host mounts only if it says so (T077).
//! - Generations come from a counter that the host keeps for all drivers, and each run of the host has greater ones than every run
//!   before it.

mod node;
mod spec;

mod messages;

mod service;

mod state;

mod behaviour;

mod report;

mod events;

mod task;
mod usage;

mod call_error;

#[cfg(test)]
mod scripts;

pub use call_error::{Asked, DriverError, DriverRpc};
pub use events::*;
pub use messages::*;
pub use node::{MAX_PORT, MIN_PORT, NodeFacts};
pub use report::*;
pub use service::{DriverStep, DriverTold};
pub use spec::{DriverLimits, DriverSpec, process_name};
pub use state::{Driver, DriverCall, DriverConfig, Fingerprint, Reached, StartStep, ending_deadline};
pub use task::*;
pub use usage::*;

pub(crate) use crate::session::RESTARTED;
pub use crate::session::{
    PROCESS_ENDED, SessionEnding as DriverEnding, SessionHealth as DriverHealth, SessionMode as DriverMode,
    SessionStage as DriverStage, SessionTimer as DriverTimer, Trouble, TroubleKind,
};
pub use crate::vocabulary::{Folded, RECENT_ENTRIES, Recent};
