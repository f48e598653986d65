//! Users of tasks: looked up in the files of this machine, or assigned from a pool of ids. A module, not an actor.
//!
//! The dynamic users in use are stored on disk: an id that was only in memory would be assigned twice after a restart (T116,
//! TH070). Several hosts on a machine also share one directory, so that none assigns an id of another.

pub mod accounts;

mod dynamic;
mod machine;
mod reserved;

pub use accounts::{Account, AccountError};
pub use dynamic::{DynamicUser, POOL, choose};
pub use machine::MACHINE_USERS;
pub use reserved::Reservations;
