//! Runs the [machine of a volume](callboard_machines::volume): makes its calls to the plugin, and asks the kernel before and after.
//!
//! [`DurableStore`] keeps its ledger in the database, one for each incarnation of its actor; [`MemoryLedgers`] keeps all ledgers in memory.
//!
//! - V2: a call that was sent continues even if its actor ends, and the next call of that volume waits for it.
//! - V9: the calls in flight to each half of a plugin are limited, and further calls wait in order of arrival. A plugin that hangs delays
//!   no other plugin.
//! - V11: secrets are requested before each call, and dropped with it.
//! - V16: a call goes to the generation for which it was decided, or is not made.

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
