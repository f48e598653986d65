//! One driver: its process is found or launched, asked who it is, configured, and watched.
//!
//! ```text
//!               proven, and of this spec
//!   Recall ───────────────────────┐          Starting
//!     │ nothing is left           ▼
//!     └──► Launch ──────────────► Dial ─► Ping ─► PluginInfo ─► SetConfig ─► Init ─► Capabilities ─► Fingerprint
//!                                                                                                         │
//!            ┌───────────────── 5 s to 2 min ─── Pausing ◄──── any failure, any end of the stream ──── Watching
//!            ▼                                     ▲
//!         Recall, or, without an answer            └──── its process ended
//!         three times: Ending, then anew
//!
//!   Launch is refused (a wrong digest, no program) ──► Refused ─ the program has changed, or a restart ─► Recall
//!
//!   stop, in any phase ──► Ending: ShutdownAnswer ─ it goes ─► Leaving ─ grace over ─► Stopping ──► Gone
//!                             └─ it does not understand, or there is no connection ────────────▲
//! ```
//!
//! What holds:
//!
//! - Every failure takes one path, the first like any later one (HLT-04), and every end of the stream as well (HLT-05). How
//!   often a process is launched is bounded by the backoff alone, which grows while failures go on.
//! - A program that is refused is launched again only when its file has changed, or when a restart is requested.
//! - A connection outlives the end of the fingerprint stream: clients and task events go on over it, and it is asked again
//!   whether it is there. Only when no answer comes is it given up, and with it its generation.
//! - When the process ends, every question in flight fails as *the plugin is gone* (PRC-05); when the driver stops, within an
//!   instant (SHD-03).
//! - Once stopping, nothing is launched, dialled or tried again, whichever event comes (I6, SHD-06).
//! - A process of an earlier run that speaks another version of the protocol, or was launched from another spec, is ended with the
//!   reason, and another one comes. So is any that is found after a restart was requested; the request counts until nothing runs.
//! - A process is ended by its tag, so never another than the one that was proven (PRC-01). To detach leaves one running that
//!   is to survive its host.
//! - A driver in the mode [`Retire`](DriverMode::Retire) launches nothing: it ends what an earlier run left, once that is proven.
//! - What comes back of another try changes nothing (REG-08). Generations come from a counter that the host keeps for all
//!   drivers, and each run of the host has greater ones than every run before it.

mod node;
mod spec;

mod messages;

mod state;

mod behaviour;
mod ending;
mod failing;
mod finding;

mod report;

mod events;
mod recent;

mod task;
mod usage;

mod call_error;

#[cfg(test)]
mod scripts;

pub use call_error::{Asked, DriverError, DriverRpc};
pub(crate) use ending::RESTARTED;
pub use ending::{PROCESS_ENDED, ending_deadline};
pub use events::*;
pub use messages::*;
pub use node::{MAX_PORT, MIN_PORT, NodeFacts};
pub use recent::{Folded, RECENT_ENTRIES, Recent};
pub use report::*;
pub use spec::{DriverLimits, DriverSpec, process_name};
pub use state::{
    Driver, DriverCall, DriverConfig, DriverMode, DriverTimer, Fingerprint, Reached, StartStep, Trouble,
    TroubleKind,
};
pub use task::*;
pub use usage::*;
