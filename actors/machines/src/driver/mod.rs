//! Runs one driver: a [session](crate::session) with its plugin, and the service of the driver.
//!
//! ```text
//!   Recall ─► Launch ─► Dial ─► Ping ─► PluginInfo ─► SetConfig ─► Init ─► Capabilities ─► Fingerprint ─► Watching
//!   └──────────────────── the session ────────────────────────┘    └──── its service ────┘ └──── the session ────┘
//! ```
//!
//! The session finds or launches the process, connects, identifies, configures and watches it, and handles failures, restarts and the
//! end; its invariants are described there. Additional invariants of a driver:
//!
//! - A driver that needs no preparation need not have `Init` (D109).
//! - Attributes and capabilities are kept over a failure: they are the last reported values.
//! - A driver whose tasks share the file system of the host mounts only if it reports that it does (T077).
//! - Generations come from a counter that the host keeps for all drivers. The generations of each run of the host are greater than
//!   those of every earlier run.

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
