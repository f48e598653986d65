//! Runs the [machine of the registry](callboard_machines::registry): checks identities and stores registrations.
//!
//! Start it with [`start`]; it needs a store ([`DurableStore`] or [`MemoryStore`]) and an [`IdentityCheck`] for restored
//! plugins.

mod actor;
mod row;
mod store;

#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;

pub use callboard_machines::registry::*;

pub use actor::{IdentityCheck, SocketCheck, start};
pub use row::{REGISTRATION_TABLE, RegistrationRow};
pub use store::{DurableStore, MemoryStore, OWNER, image_of, name_of_row, operations_of};
