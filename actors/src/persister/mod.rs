//! The persister: the one owner of the database.
//!
//! Others hand it [`Write`]s and go on. What waits when a commit starts shares that commit (of a crowd, one half may be left for
//! the next), and when it is on disk each owner's ledger gets one [`Settled`] that says how far its writes have come.
//!
//! ```text
//!   Write, Write, Write ...            one commit at a time
//!          |                      .---------------------------.
//!          v         what waits   |                           |  on disk
//!   inbox: the queue -----------> |  blocking thread --> redb |---------> Settled to each owner
//!                      ^          |                           |
//!                      |          '---------------------------'
//!                      '- load, close: behind the writes before them         failed ---> Settled(error)
//! ```
//!
//! What it promises:
//!
//! - P1 A [`Settled`] that says success means on disk. Virtual time waits for a commit.
//! - P2, RES-08 Each record carries a checksum and the number of its schema. Older ones are migrated when they are loaded, a
//!   damaged one goes to quarantine and the rest load, and a newer file is refused and not touched.
//! - P3 When a commit fails, the owners in it are told, what else they have under way is dropped, and the next write tries
//!   again, with the database opened anew. When the persister itself ends, as after a panic of its thread, every write that it has
//!   not settled and every later one fails too, and [`ended`](Persister::ended) tells whoever supervises it.
//! - P4 Killed at any instant, the file opens again and holds everything that was acknowledged.
//! - P5 A second host on the same directory is refused, and told who was first.
//! - P6 It stores what it is given, in a file for its user alone. No secret belongs into a record.
//!
//! Its limits: 4,096 writes or 8 MiB in one commit, 1,000,000 writes or 256 MiB waiting, 1 MiB in one record, 64 MiB of the file
//! in memory. Between commits its thread stays awake for 150 microseconds, because waking it takes a good part of a commit.
//!
//! What it does not promise: while a file is open, redb tells a torn commit from a whole one by checksums of pages. If a byte
//! of a page is damaged *and* the host was killed, the two cannot be told apart: the file is refused as a whole, or, if the page
//! belongs to the last commit, goes back to the one before it.

mod actor;
mod cause;
mod codec;
mod commit;
mod errors;
mod handle;
mod handoff;
mod inbox;
mod load;
mod lock;
mod look;
mod memory_disk;
mod messages;
mod meta;
mod open;
mod operations;
mod pacing;
mod quarantine;
mod queue;
mod record;
mod shared_queue;
mod source;
mod store;
mod worker;

pub use codec::{DecodeError, RECORD_BYTES_MAX, decode, decode_payload, encode};
pub use errors::{CloseError, LoadError, OpenError, WriteError};
pub use handle::Persister;
pub use lock::Holder;
pub use memory_disk::{DiskFault, MemoryDisk, Reached};
pub use messages::{Damaged, Loaded, OpenLedger, Operation, Owner, Settled, Table, Write};
pub use meta::FILE_SCHEMA;
pub use open::Options;
pub use quarantine::Quarantined;
pub use record::Record;
pub use source::MakeBackend;

/// What the simulation plays with in the place of the actor and its thread.
pub(crate) use open::open_in_memory;
pub(crate) use operations::Operations;
pub(crate) use queue::{BATCH_WRITES_MAX, Batch, Next, Progress, Queue};
pub(crate) use store::Store;
