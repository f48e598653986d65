//! A plain model of the database: rows and waiting writes; and the persister that is checked against it.
//!
//! ```text
//!   writes ──► queue of production ──► store of production ──► disk in memory
//!     │                │                       ▲                    ▲
//!     ▼                ▼                     reads          faults, power cuts
//!   plain list ─── laws P1 to P4 ─────────────'
//! ```
//!
//! The queue, the store and all below it are those of production, with a real file of redb on a disk in memory. Only the actor
//! and its thread are missing: the [`DatabaseModel`] takes the next item from the queue on request.

mod event;
mod faults;
mod model;
mod plain;
mod replayed;
mod volume;
mod world;

pub use event::{DatabaseBounds, DatabaseEvent, Trouble};
pub use faults::PersisterFault;
pub(super) use model::{DatabaseModel, Job, Row, Step};
pub(super) use volume::{Reader, Volume, read_table};
pub use world::DatabaseWorld;
