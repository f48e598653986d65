//! Callboard is the plugin supervisor that a node agent embeds: plugins register, are fingerprinted, take over from each
//! other, survive the death of their host, and stop in order.
//!
//! A host program begins at [`host::Host`], which hands out the addresses of the actors in [`actors`]: `registry`,
//! `instances`, `inventory` and `allocations`, each with its messages in one file. The rest of this crate is the program
//! `callboard`.

pub use callboard_actors as actors;
pub use callboard_proto as proto;
#[cfg(feature = "cli")]
pub use callboard_simulation as simulation;

pub mod host;
mod launch;

#[cfg(feature = "cli")]
pub mod config;

pub mod process;

#[cfg(feature = "cli")]
pub mod agent;

#[cfg(feature = "cli")]
pub mod volumes;

#[cfg(feature = "cli")]
pub mod tasks;
#[cfg(feature = "cli")]
pub mod usage;

#[cfg(feature = "cli")]
mod timeline;

#[cfg(feature = "cli")]
pub mod picture;
#[cfg(feature = "cli")]
pub mod script;

#[cfg(feature = "cli")]
pub mod admin;

#[cfg(feature = "cli")]
mod demo;

#[cfg(feature = "cli")]
pub mod command_line;
pub mod duration;
#[cfg(feature = "cli")]
pub mod examiner;
#[cfg(feature = "cli")]
pub mod exec;
#[cfg(feature = "cli")]
pub mod hostpath;
#[cfg(feature = "cli")]
mod logging;
#[cfg(feature = "cli")]
mod output;
#[cfg(feature = "plugin")]
pub mod plugin;

#[cfg(all(feature = "cli", any(test, fuzzing)))]
pub mod fuzzing;

/// The code of the README compiles.
#[cfg(all(doctest, feature = "cli"))]
#[doc = include_str!("../README.md")]
mod readme {}
