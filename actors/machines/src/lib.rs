//! The deciding parts of Callboard, separated from everything that acts.
//!
//! [`vocabulary`] holds the domain types. [`kernel`] defines a machine, and holds the rules of an actor around it. [`conversation!`]
//! declares the messages of a machine. Every other module is the machine of one actor; `callboard-actors` runs it.
//!
//! Messages that only actors and their shells exchange are `#[doc(hidden)]` where they are declared: messages of owners and children, and
//! the calls, outcomes, timers, changes and images of machines. They are public for the shells and the simulation, and not part of the
//! interface for host programs.
//!
//! No dependency of this crate is a runtime, a database or a wire protocol, so a machine cannot name one. Clocks, files and threads of the
//! standard library are kept out by `tests/architecture.rs`.

pub mod vocabulary;

pub mod kernel;

pub mod persister;

pub mod rpc;

pub mod csi;

#[cfg(feature = "program")]
pub mod examiner;

pub mod goplugin;

pub mod hclspec;

pub mod process;

pub mod processes;

pub mod catalog;

pub mod leftovers;

pub mod topology;

pub mod mounts;

pub mod cgroups;

pub mod allocdir;

pub mod logmon;

pub mod task_config;

pub mod session;

pub mod driver;

pub mod eventor;

pub mod drivers;

pub mod registry;

pub mod lease;

pub mod instance;

pub mod instances;

pub mod allocation;

pub mod allocations;

pub mod volume;

pub mod volumes;

pub mod inventory;

pub mod supervisor;

#[cfg(feature = "program")]
pub mod agent;

#[cfg(feature = "program")]
pub mod tasks;

mod conversation;

#[cfg(any(test, feature = "stage"))]
pub mod stage;

#[cfg(any(test, feature = "stage"))]
pub mod surroundings;

pub use conversation::{AskError, FeedItem, Message};
