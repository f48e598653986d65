//! Users of tasks: looked up in the files of this machine, or taken from a pool of numbers. A module, not an actor.
//!
//! Which dynamic users are in use is kept on disk: a number that lived in memory only would be given twice after a restart (T116,
//! TH070).

pub mod accounts;

mod dynamic;
mod reserved;

pub use accounts::{Account, AccountError};
pub use dynamic::{DynamicUser, POOL, choose};
pub use reserved::Reservations;
