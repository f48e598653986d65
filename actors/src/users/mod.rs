//! Users of tasks: looked up in the files of this machine, or taken from a pool of numbers. A module, not an actor.
//!
//! Which dynamic users are in use is the knowledge of who owns the tasks, and is kept with their records: a number that lived in
//! memory only would be given twice after a restart (T116, TH070).

pub mod accounts;

mod dynamic;

pub use accounts::{Account, AccountError};
pub use dynamic::{DynamicUser, POOL, choose};
