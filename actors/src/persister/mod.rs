//! The persister: the one owner of the database. Its decisions are [plain data](callboard_machines::persister).
//!
//! Callers hand over [`Write`]s and do not wait. All writes that are queued when a commit starts share it (under high load,
//! half of them may be left for the next). When the commit is on disk, each owner's ledger gets one [`Settled`] with the
//! progress of its writes.
//!
//! ```text
//!   Write, Write, Write ...            one commit at a time
//!          |                      .---------------------------.
//!          v         all queued   |                           |  on disk
//!   inbox: the queue -----------> |  blocking thread --> redb |---------> Settled to each owner
//!                      ^          |                           |
//!                      |          '---------------------------'
//!                      '- load, close: after all earlier writes              failed ---> Settled(error)
//! ```
//!
//! Guarantees:
//!
//! - P1 A successful [`Settled`] means on disk. Virtual time waits for a commit.
//! - P2, RES-08 Each record has a checksum and a schema number. Older records are migrated when they are loaded, a damaged
//!   one is quarantined and the rest load, and a newer file is refused and not changed.
//! - P3 When the disk does not take a commit, or not within [`WRITE_DEADLINE`], it is *sick* ([`Disk`]): the callers that wait for it are
//!   answered, and the same commit is tried again on a reopened database until it is on disk, before any later one, or until
//!   an actor loads what is on disk. A commit that is given up is reported to its owners, whose other pending writes
//!   are dropped. When the persister itself crashes, as after a panic of its thread, every unsettled write and every later one
//!   fails too, and [`ended`](Persister::ended) notifies its supervisor.
//! - P4 After a kill at any instant, the file opens again and holds everything that was acknowledged.
//! - P5 A second host on the same directory is refused; the error names the first one.
//! - P6 Records are stored in the clear, in a file that only its user can read. Do not store secrets.
//! - SHELL-1A Behind a sick disk, from 1,024 waiting writes on, only the last change of each row by each owner is kept. Merged changes
//!   share one commit, so the disk never has a state that was not handed over.
//!
//! Limits: 4,096 writes or 8 MiB per commit, except merged changes, 1,000,000 writes or 256 MiB queued, 1 MiB per record, 64 MiB of
//! the file cached in memory. Between commits the thread spins for 150 microseconds, because waking it takes a good part of a commit.
//!
//! Not guaranteed: while a file is open, redb distinguishes a torn commit from a whole one by page checksums. If a byte of
//! a page is damaged *and* the host was killed, the two look the same: the file is refused as a whole, or, if the page
//! belongs to the last commit, rolled back to the commit before it.

mod actor;
mod cause;
mod commit;
mod errors;
mod handle;
mod handoff;
mod health;
mod inbox;
mod kept_file;
mod load;
mod lock;
mod look;
mod memory_disk;
mod messages;
mod meta;
mod open;
mod quarantine;
mod shared_queue;
mod source;
mod store;
mod tables;
mod taken;
mod worker;

#[cfg(test)]
mod tests;

use callboard_machines::persister::is_large_batch;
pub use callboard_machines::persister::{
    BATCH_WRITES_MAX, Batch, Change, Damaged, DecodeError, LedgerId, Loaded, Next, Operation, Operations,
    Owner, Progress, Queue, RECORD_BYTES_MAX, Record, Table, UnwrittenRow, Write, WriteError, decode,
    decode_payload, encode,
};
pub use errors::{CloseError, LoadError, OpenError};
pub use handle::Persister;
pub use health::{Disk, DiskHealth, WRITE_DEADLINE};
pub use lock::{Holder, holder_of};
pub use memory_disk::{DiskFault, MemoryDisk, Reached};
pub use messages::{OpenLedger, Settled};
pub use meta::FILE_SCHEMA;
pub use open::{LOCK_FILE, Options, open_in_memory};
pub use quarantine::Quarantined;
pub use source::MakeBackend;
pub use store::Store;
pub use tables::Tables;
pub use taken::{NameTaken, TakenNames};
