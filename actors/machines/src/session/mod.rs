//! A session with one go-plugin plugin: finds or launches its process, identifies, configures, watches and ends it.
//!
//! ```text
//!               proven, and of this spec
//!   Recall ───────────────────────┐          Starting
//!     │ nothing is left           ▼
//!     └──► Launch ──────────────► Dial ─► Ping ─► Identify ─► Configure ─► steps of its service ─► Watch
//!                                                                                                     │
//!            ┌───────────────── 5 s to 2 min ─── Pausing ◄──── any failure, any end of the stream ─ Watching
//!            ▼                                     ▲
//!         Recall, or, without an answer            └──── its process ended
//!         three times: Ending, then again
//!
//!   Launch is refused (a wrong digest, no program) ──► Refused ─ the program has changed, or a restart ─► Recall
//!
//!   stop, in any phase ──► Ending: ShutdownAnswer ─ it goes ─► Leaving ─ grace over ─► Stopping ──► Gone
//!                             └─ it does not understand, or there is no connection ────────────▲
//! ```
//!
//! This module contains what every go-plugin plugin needs. What only plugins of one type have is their [`Service`]: the steps after the
//! configuration, the results of these steps and of the stream, and their meaning for health. A driver has two steps, `Init` and
//! `Capabilities`; a device plugin has none. A machine holds a [`Session`], lets it [step](Session::step), and reports what it
//! [knows](Session::status) together with the state of the service.
//!
//! Invariants:
//!
//! - Every failure takes one path, the first like any later one (HLT-04), and so does every end of the stream (HLT-05). The
//!   number of launches is bounded by the backoff alone, which grows while failures continue.
//! - A program that is refused is launched again only when its file has changed, or when a restart is requested.
//! - A connection outlives the end of the stream: clients continue over it, and the plugin is pinged again. Only when no
//!   answer arrives is the connection given up, and with it its generation.
//! - A watched plugin is pinged (D50), since a hung plugin is as silent as an idle one. While a ping has no answer, the plugin
//!   is unhealthy, with the reason, and nothing else happens: it may be busy, and its tasks may run in its own process. So its connection
//!   and its leases stay, it is not ended, and pings continue. With the first answer its last reported health counts again (HLT-03).
//! - When the process ends, every question in flight fails as *the plugin is gone* (PRC-05); when the session stops, within an
//!   instant (SHD-03).
//! - Once stopping, nothing is launched, dialled or retried, regardless of events (I6, SHD-06).
//! - A process of an earlier run that speaks another version of the protocol, or was launched from another spec, is ended with the
//!   reason, and another one is launched. So is any process that is found after a restart was requested, until nothing runs.
//! - A process is ended by its tag, so never another than the proven one (PRC-01). A detach leaves a process running if it
//!   is to survive its host.
//! - A session in the mode [`Retire`](SessionMode::Retire) launches nothing: it ends the leftover of an earlier run, once that is proven.
//! - An outcome of another attempt changes nothing (REG-08).

mod service;

mod config;

mod calls;

mod status;

mod state;

mod behaviour;
mod pinging;
mod watching;

mod ending;
mod failing;
mod finding;

#[cfg(test)]
mod scripts;
#[cfg(test)]
pub(crate) mod stories;

pub use calls::{Outcome, Reached, SessionCall, SessionTimer, Step, Trouble, TroubleKind};
pub use config::{SessionConfig, SessionLimits, SessionMode};
pub use ending::PROCESS_ENDED;
pub(crate) use ending::RESTARTED;
pub use service::{Plugin, Said, Service, ServiceStep};
pub use state::Session;
pub use status::{SessionEnding, SessionHealth, SessionStage, SessionStatus};
