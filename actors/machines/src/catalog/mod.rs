//! The catalog: the available plugins, their versions, and how to run each.
//!
//! Plugins are in a directory, are configured, or are provided by the host program. The plugins of the directory are untrusted:
//! each permitted one is launched once as a temporary instance, queried for its identity and configuration schema, and
//! ended.
//!
//! ```text
//!             temporary instances          the directory        each permitted file is probed,
//!             of an earlier life are gone  is read              a few at once
//!   Sweeping ──────────────────► Reading ─────────────► Probing ──────────────► Resting
//!      │                            │ ▲                    │   all answered        │
//!      │                            │ └────────────────────┼───────────────────────┘
//!      │                            │      ScanPlugins     │
//!      └──────────── stop ──────────┴──────────────────────┴───► Stopping ──► (ended)
//!                                                                temporary instances are ended
//!
//!   one file:  launch ──► PluginInfo, ConfigSchema ──► shutdown ──► end        it ends in every case
//!
//!   answers ───────► blocked? ──► version, interface, schema ──► the highest of its name ──► configuration ──► found
//!                        │               │                             │                          │
//!                     blocked         refused                      shadowed                    refused
//! ```
//!
//! Invariants:
//!
//! - A file is launched if it is configured or allowed, has a plain name, and is an executable regular file, not a symlink
//!   (SEC-05); its mere presence is not a permission. Its digest is verified if one is pinned (SEC-07).
//! - A temporary instance ends with its scan in every case: success, error, timeout, stop, crash (PRC-02). It also ends with
//!   the host. Names of temporary instances are unique.
//! - A broken plugin is reported with its reason and does not affect others. A caller that names a file waits for that
//!   file only; a caller that names a plugin waits for all files, since any file may be a higher version of it.
//! - Among plugins of one type and name the highest version is used, by semantic versioning; the others are reported as
//!   shadowed. If its configuration is invalid, there is no fallback to another one: that would be an unrequested downgrade.
//! - Plugin and host must have a common interface version; the highest is used.
//! - A configuration is fully validated against the plugin's own schema before anything is run with it.
//! - A scan without changes publishes nothing (SCL-05). The catalog does not touch the running process of a plugin that is
//!   gone.

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

#[cfg(test)]
mod scripts;

pub use messages::*;
pub use options::{
    Allowed, CatalogLimits, CatalogOptions, ConfigSource, InternalPlugin, NOMAD_API_VERSION, PluginEntry,
};
pub use refusal::{DirectoryError, Refusal, ResolveError, ScanError};
pub use state::{Catalog, CatalogCall, CatalogOutcome, DirectoryEntry, EntryKind, ProbeOrder, Told};
pub use version::{MalformedVersion, PluginVersion, VERSION_BYTES_MAX};
