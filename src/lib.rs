//! Callboard is the plugin supervisor that a node agent embeds: plugins sign in, are fingerprinted, take over from each
//! other, survive the death of their host, and stop in order.
//!
//! A host program begins at [`host::Host`], which hands out the addresses of the actors in [`actors`]: `registry`,
//! `instances`, `inventory` and `allocations`, each with its messages in one file. The rest of this crate is the program
//! `callboard`.

pub use callboard_actors as actors;
pub use callboard_proto as proto;

pub mod host;
mod launch;

pub mod config;

pub mod process;

pub mod agent;

pub mod tasks;
pub mod usage;

mod timeline;

pub mod picture;
pub mod script;

pub mod admin;

mod demo;

pub mod command_line;
pub mod duration;
pub mod exec;
pub mod hostpath;
mod logging;
mod output;
pub mod plugin;

#[cfg(test)]
mod stage;

#[cfg(any(test, fuzzing))]
pub mod fuzzing;

/// The code of the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
