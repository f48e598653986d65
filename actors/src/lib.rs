//! The machine inside Callboard: one folder per actor.
//!
//! Read in this order: `vocabulary` for the words, `shell` for how a pure machine becomes an actor, then the actors.

mod unwinding;

#[cfg(feature = "program")]
pub use callboard_machines::{agent, examiner, tasks};
pub use callboard_machines::{conversation, kernel, vocabulary};

pub mod pauses;

pub mod shell;

pub mod persister;

pub mod rpc;

pub mod csi;

pub mod hclspec;

pub mod goplugin;

pub mod machine;

pub mod datadir;

pub mod users;

pub mod mounts;

pub mod cgroups;

pub mod process;

pub mod ownership;

pub mod processes;

pub mod leftovers;

pub mod logmon;

pub mod catalog;

pub mod topology;

pub mod driver;

pub mod eventor;

pub mod drivers;

pub mod task_config;

pub mod allocdir;

pub mod lease;

pub mod registry;

pub mod instance;

pub mod instances;

pub mod volume;

pub mod volumes;

pub mod allocation;

pub mod allocations;

pub mod inventory;

pub mod supervisor;

/// Threads, their shared state, and their time. Model checks of threads compile the files that use it with other types of these names.
mod sync {
    pub(crate) use std::sync::*;
    pub(crate) use std::thread;
    pub(crate) use std::time::Instant;

    pub(crate) use actix_rt::task::spawn_blocking;
}

#[cfg(any(test, fuzzing))]
pub mod fuzzing;
