//! What can happen to a small database, and how much of it.

use std::fmt;

use callboard_actors::persister::{DiskFault, Reached};

/// How much may happen, of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DatabaseBounds {
    /// How many actors keep something in it.
    pub owners: u8,
    /// How often each writes.
    pub writes_each: u8,
    /// How many of these writes are too large.
    pub large: u8,
    /// How often an actor is replaced by another one, which reads what there is.
    pub successors: u8,
    /// What fails of the disk, and when: each of these may happen while something is under way.
    pub troubles: &'static [Trouble],
    /// How many of these happen.
    pub troubles_max: u8,
    /// How often the host is gone all at once.
    pub cuts: u8,
    /// How often the database is closed in order.
    pub closes: u8,
    /// How many records are damaged while it is closed.
    pub damages: u8,
    /// How often what waits is merged by row.
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

/// Something begins to fail while the disk is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Trouble {
    /// After so many changes of the disk.
    pub after: u64,
    /// What fails, until the disk is mended.
    pub fault: DiskFault,
}

/// What can happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatabaseEvent {
    /// An owner hands over a write.
    Write(u8),
    /// An owner hands over a write that is too large.
    WriteTooMuch(u8),
    /// What waits is begun: of writes all of them, or one. Something may begin to fail meanwhile.
    GoOn {
        /// Whether a commit takes all that waits.
        takes_all: bool,
        /// What begins to fail.
        trouble: Option<Trouble>,
    },
    /// The owners of a commit that is over are notified.
    Tell,
    /// An owner hears how its writes ended.
    Hear(u8),
    /// An owner, or another one in its place, reads what there is.
    Load(u8),
    /// What waits is merged by row, as behind a sick disk.
    Merge,
    /// The disk is mended.
    Mend,
    /// The host closes the database behind everything that waits.
    Close,
    /// A bit of a record flips while no process has the database open.
    Damage,
    /// The host and the power are gone; of what was not synced this much had reached the disk.
    Cut(Reached),
    /// A host opens the database. Something may begin to fail meanwhile.
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
