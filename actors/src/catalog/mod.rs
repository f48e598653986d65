//! The catalog: which plugins there are, of which version, and how each is to be run.
//!
//! Plugins lie in a directory, are configured, or are brought along by the host program. Those of the directory are strangers:
//! each that is permitted is launched once, asked who it is and what its configuration looks like, and ended.
//!
//! ```text
//!             temporary instances          the directory        each permitted file is asked,
//!             of a former life are gone    is read              a few at once
//!   Sweeping ──────────────────► Reading ─────────────► Probing ──────────────► Resting
//!      │                            │ ▲                    │   all have told       │
//!      │                            │ └────────────────────┼───────────────────────┘
//!      │                            │      ScanPlugins     │
//!      └──────────── stop ──────────┴──────────────────────┴───► Stopping ──► (ended)
//!                                                                temporary instances are ended
//!
//!   one file:  launch ──► PluginInfo, ConfigSchema ──► polite end ──► end      whatever happens, it ends
//!
//!   what was told ──► blocked? ──► version, interface, schema ──► the highest of its name ──► configuration ──► found
//!                        │               │                             │                          │
//!                     blocked         refused                      shadowed                    refused
//! ```
//!
//! What holds:
//!
//! - A file is launched if it is configured or allowed, has a plain name, is a regular file that may be executed and no link
//!   (SEC-05); that it is there is no permission. Its digest is checked if one is pinned (SEC-07).
//! - A temporary instance ends with its scan by every path: told, failed, too slow, stopped, crashed (PRC-02). It also ends
//!   with the host. No two share a name.
//! - One broken plugin is told with its reason and stops nobody else. Who names the file that is wanted waits for that file
//!   only; who names a plugin waits for all, since any file may be a higher version of it.
//! - Among plugins of one type and name the highest version is used, compared as semantic versions are; the others are told as
//!   shadowed. If its configuration does not fit, no other one steps in: nobody asked for a downgrade.
//! - Plugin and host have to share a version of the interface; the highest is taken.
//! - A configuration is checked whole against the plugin's own schema before anything is run with it.
//! - A scan that changes nothing publishes nothing (SCL-05). What runs of a plugin that is not found any more is not touched
//!   from here.

mod version;

mod options;

mod messages;
mod refusal;

mod state;

mod spec;

mod behaviour;
mod choosing;
mod comparing;
mod files;
mod scanning;

mod launcher;
mod through;

mod directory;
mod probe;

mod actor;

#[cfg(test)]
mod scripts;

pub use actor::{start, start_with};
pub use launcher::Launcher;
pub use messages::*;
pub use options::{
    Allowed, CatalogLimits, CatalogOptions, ConfigSource, InternalPlugin, NOMAD_API_VERSION, PluginEntry,
};
pub use refusal::{DirectoryError, Refusal, ResolveError, ScanError};
pub use state::{Catalog, CatalogCall, CatalogOutcome, DirectoryEntry, EntryKind, ProbeOrder, Told};
pub use version::{MalformedVersion, PluginVersion, VERSION_BYTES_MAX};
