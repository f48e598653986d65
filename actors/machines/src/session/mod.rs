//! A session with one go-plugin plugin: its process is found or launched, asked who it is, configured, watched and ended.
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
//!         three times: Ending, then anew
//!
//!   Launch is refused (a wrong digest, no program) ──► Refused ─ the program has changed, or a restart ─► Recall
//!
//!   stop, in any phase ──► Ending: ShutdownAnswer ─ it goes ─► Leaving ─ grace over ─► Stopping ──► Gone
//!                             └─ it does not understand, or there is no connection ────────────▲
//! ```
//!
//! What every go-plugin plugin needs is here. What plugins of one type have for themselves is their [`Service`]: the steps behind the
//! configuration, what these steps and the stream bring, and what that says of health. A driver has two steps, `Init` and
//! `Capabilities`; a device plugin has none. A machine holds a [`Session`], lets it [step](Session::step), and reports what it
//! [knows](Session::status) together with what the service has learned.
//!
//! What holds:
//!
//! - Every failure takes one path, the first like any later one (HLT-04), and every end of the stream as well (HLT-05). How
//!   often a process is launched is bounded by the backoff alone, which grows while failures go on.
//! - A program that is refused is launched again only when its file has changed, or when a restart is requested.
//! - A connection outlives the end of the stream: clients go on over it, and the plugin is asked again whether it is there. Only when no
//!   answer comes is the connection given up, and with it its generation.
//! - A plugin that is watched is pinged (D50), since a hung one is as quiet as one that has nothing to tell. While a ping has no answer it
//!   is unhealthy, with the reason, and nothing else: it may be busy, and what it runs may run in its own process. So its connection and
//!   its leases stay, it is not ended, and it is pinged on. With the first answer the health counts again that it told last (HLT-03).
//! - When the process ends, every question in flight fails as *the plugin is gone* (PRC-05); when the session stops, within an
//!   instant (SHD-03).
//! - Once stopping, nothing is launched, dialled or tried again, whichever event comes (I6, SHD-06).
//! - A process of an earlier run that speaks another version of the protocol, or was launched from another spec, is ended with the
//!   reason, and another one comes. So is any that is found after a restart was requested; the request counts until nothing runs.
//! - A process is ended by its tag, so never another than the one that was proven (PRC-01). To detach leaves one running that
//!   is to survive its host.
//! - A session in the mode [`Retire`](SessionMode::Retire) launches nothing: it ends what an earlier run left, once that is proven.
//! - What comes back of another try changes nothing (REG-08).

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
