//! Decides which writes share a commit, when a commit begins, what is merged behind a sick disk, and how a record is
//! encoded on disk.
//!
//! ```text
//!   Write ──► Queue ──────────► Batch, job or refusal ──► (the disk) ──► Progress of each ledger
//!             │  in the order                                              settled, or failed with
//!             │  of arrival                                                all that depends on it
//!             └─ merging: behind a sick disk, the last change of each row
//! ```
//!
//! - A write is committed as a whole, in the order in which it was handed over by its owner.
//! - After a failed commit no later write of the same owners is committed, up to the epoch that failed.
//! - Merged writes share one commit, so the disk never holds a state that was not handed over (SHELL-1A).
//! - Each record has a checksum and a schema number, and is decoded with a limit and to its last byte (P2, RES-08).

mod messages;

mod errors;

mod codec;
mod record;

mod operations;

mod queue;

mod merging;

mod pacing;

pub use codec::{DecodeError, RECORD_BYTES_MAX, decode, decode_payload, encode};
pub use errors::WriteError;
pub use messages::{Damaged, Loaded, Operation, Owner, Table, UnwrittenRow, Write};
pub use operations::{Change, Operations};
pub use pacing::{Pacing, is_large_batch};
pub use queue::{BATCH_WRITES_MAX, Batch, LedgerId, Next, Progress, Queue};
pub use record::{Read, Record, seal, unseal};
