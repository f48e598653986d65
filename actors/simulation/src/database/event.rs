//! The events of a small database, and their bounds.

use std::fmt;

use callboard_actors::persister::{DiskFault, Reached};

/// How often each kind of event may happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DatabaseBounds {
    /// How many actors keep something in it.
    pub owners: u8,
    /// How often each writes.
    pub writes_each: u8,
    /// How many of these writes are too large.
    pub large: u8,
    /// How often an actor is replaced by another one, which reads the existing rows.
    pub successors: u8,
    /// The faults of the disk, and when they begin: each may begin while something is in flight.
    pub troubles: &'static [Trouble],
    /// How many of these faults happen.
    pub troubles_max: u8,
    /// How often host and power are lost at once.
    pub cuts: u8,
    /// How often the database is closed in order.
    pub closes: u8,
    /// How many records are damaged while it is closed.
    pub damages: u8,
    /// How often the waiting writes are merged by row.
    pub merges: u8,
}

impl DatabaseBounds {
    /// Nothing happens.
    pub const NONE: Self = Self {
        owners: 1,
        writes_each: 0,
        large: 0,
        successors: 0,
        troubles: &[],
        troubles_max: 0,
        cuts: 0,
        closes: 0,
        damages: 0,
        merges: 0,
    };
}

/// A fault that begins while the disk is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Trouble {
    /// After this number of changes of the disk.
    pub after: u64,
    /// The fault, until the disk is repaired.
    pub fault: DiskFault,
}

/// An event of this world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatabaseEvent {
    /// An owner hands over a write.
    Write(u8),
    /// An owner hands over a write that is too large.
    WriteTooMuch(u8),
    /// The next waiting item is taken: all waiting writes or one write, or a job. A fault may begin meanwhile.
    GoOn {
        /// Whether a commit takes all waiting writes.
        takes_all: bool,
        /// The fault that begins.
        trouble: Option<Trouble>,
    },
    /// The owners of a finished commit are notified.
    Tell,
    /// An owner receives the outcome of its writes.
    Hear(u8),
    /// An owner, or its replacement, reads the existing rows.
    Load(u8),
    /// The waiting writes are merged by row, as behind a sick disk.
    Merge,
    /// The disk is repaired.
    Mend,
    /// The host closes the database after all waiting items.
    Close,
    /// A bit of a record flips while no process has the database open.
    Damage,
    /// Host and power are lost; this part of the unsynced data had reached the disk.
    Cut(Reached),
    /// A host opens the database. A fault may begin meanwhile.
    Open(Option<Trouble>),
}

fn write_trouble(f: &mut fmt::Formatter<'_>, trouble: Option<Trouble>) -> fmt::Result {
    let Some(Trouble { after, fault }) = trouble else { return Ok(()) };
    write!(f, ", and after {after} changes of the disk it is {fault:?}")
}

impl fmt::Display for DatabaseEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write(owner) => write!(f, "write by {owner}"),
            Self::WriteTooMuch(owner) => write!(f, "write too much by {owner}"),
            Self::GoOn { takes_all, trouble } => {
                f.write_str(if *takes_all { "begin with all" } else { "begin with one" })?;
                write_trouble(f, *trouble)
            }
            Self::Tell => f.write_str("tell"),
            Self::Hear(owner) => write!(f, "hear by {owner}"),
            Self::Load(owner) => write!(f, "load by {owner}"),
            Self::Merge => f.write_str("merge"),
            Self::Mend => f.write_str("mend the disk"),
            Self::Close => f.write_str("close"),
            Self::Damage => f.write_str("damage a record"),
            Self::Cut(reached) => write!(f, "cut the power, {reached:?} had reached the disk"),
            Self::Open(trouble) => {
                f.write_str("open")?;
                write_trouble(f, *trouble)
            }
        }
    }
}
