//! Runs the [machine of a volume](callboard_machines::volume): makes its calls to the plugin, and asks the kernel before and after.
//!
//! [`DurableStore`] keeps its ledger in the database, one for each life of its actor; [`MemoryLedgers`] keeps those of all volumes in memory.
//!
//! - V2: a call that has left goes on whatever becomes of its actor, and the next call of that volume waits for it.
//! - V9: so many calls are in flight for each half of a plugin, and further ones wait in the order in which they came. A plugin that hangs
//!   delays no other one.
//! - V11: secrets are asked for before each call, and dropped with it.
//! - V16: a call goes to the generation that it was decided for, or is not made.

mod actor;
mod calls;
mod mounting;
mod next_step;
mod order_calls;
mod snapshot_calls;

mod bulkhead;
mod plugins;
mod reader;
mod secrets;
mod shared;

mod parts;

mod step_parts;

mod creation_parts;

mod row;

mod order_row;

mod images;

mod store;

#[cfg(test)]
mod stage;

pub use callboard_machines::volume::*;

pub use actor::start;
pub(crate) use calls::text;
pub(crate) use images::Images;
pub use order_row::{ORDER_TABLE, OrderRow};
pub(crate) use parts::{KeyPart, Part, SpecPart};
pub use plugins::Plugins;
pub use row::{
    ABANDONED_TABLE, AUDIT_TABLE, AbandonedRow, AuditRow, CLAIM_TABLE, ClaimRow, LOST_CLAIM_TABLE,
    LostClaimRow, VOLUME_TABLE, VolumeRow, name_of_key,
};
pub(crate) use row::{key, row};
pub use secrets::{NoSecrets, SecretSource};
pub use shared::Shared;
pub use store::{DurableStore, MemoryLedgers, MemoryStore, OWNER_KIND};
