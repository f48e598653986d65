//! Users of tasks: looked up in the files of this machine, or taken from a pool of numbers. A module, not an actor.
//!
//! Which dynamic users are in use is kept on disk: a number that lived in memory only would be given twice after a restart (T116,
//! TH070). Where several hosts run on a machine, they share one directory beside that, so that none gives out what another has.

pub mod accounts;

mod dynamic;
mod machine;
mod reserved;

pub use accounts::{Account, AccountError};
pub use dynamic::{DynamicUser, POOL, choose};
pub use machine::MACHINE_USERS;
pub use reserved::Reservations;
