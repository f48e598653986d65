//! Message scripts: messages to a host and events of its environment, line by line, with the responses.
//!
//! ```text
//!   script ──► line ──► verb ──► stage: host on a paused clock, disk in memory, plugins ──► response lines
//!     ▲                                                                                        │
//!     └───────────────────── compared, or recorded, below each block ◄─────────────────────────┘
//! ```
//!
//! The actors are those of production: shell, supervisor, persister on redb, registry, instances, inventory, allocations and drivers,
//! started as [`Host`](crate::host::Host) starts them. Plugins are gRPC servers on real sockets in the same runtime. Only the clock and the
//! disk belong to the script: time passes and the disk fails only when the script requires it.
//!
//! `docs/scripts.md` describes the language. A host program runs scripts in its own tests, with verbs of its own:
//!
//! ```
//! use callboard::actors::registry::List;
//! use callboard::script::Player;
//!
//! let mut player = Player::new();
//! player.add_verb("count", "count", |stage, _| {
//!     let registry = stage.host()?.registry().clone();
//!     stage.ask("registry", registry.ask(List), |entries| format!("{} registrations", entries.len()));
//!     Ok(())
//! });
//! let played = player.play("host start\nregister red csi-node/zfs\ncount\n---\n").unwrap();
//! assert!(played.text.contains("1 registrations"), "{}", played.text);
//! ```

mod words;

mod stage;

mod player;

mod error;
mod file;
mod lines;

mod verbs;

mod acting;
mod calls;
mod driver;
mod driver_networks;
mod driver_services;
mod driver_tasks;
mod driver_world;
mod plugin;
mod plugin_groups;
mod plugin_volumes;
mod readers;
mod socket_names;
mod storage;

mod record;
mod told;

mod diff;

#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;

pub use diff::diff;
pub use error::ScriptError;
pub use player::{Played, Player, Verdict};
pub use stage::Stage;
pub use words::{Mistake, Words};
