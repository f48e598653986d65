//! What can happen to the owner of the volumes in a small world, and how much of it.

use std::fmt;

use callboard_actors::shell::StopMode;

use super::super::writes::Outcome;

/// How much may happen, of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct VolumesBounds {
    /// How many volumes there are, at most two. They are of one plugin.
    pub volumes: usize,
    /// How many allocations there are.
    pub allocations: u8,
    /// How often a volume is claimed.
    pub claims: u8,
    /// How often one is released, or the end of an allocation is reported.
    pub releases: u8,
    /// How often the host says which allocations live.
    pub confirmations: u8,
    /// How often a release is forced.
    pub forces: u8,
    /// How often a volume is created.
    pub creations: u8,
    /// How often one is deleted.
    pub deletions: u8,
    /// How often something is ordered of one.
    pub orders: u8,
    /// How often a group of snapshots of all volumes is to be taken.
    pub groups: u8,
    /// How often one is registered with other contents, or forgotten.
    pub changes: u8,
    /// How often a caller waits until the plugin is unused.
    pub waits: u8,
    /// How often the instances report something of the plugin.
    pub words: u8,
    /// How often their news leaves a gap or is cut off, or a route is not taken.
    pub losses: u8,
    /// How often what a volume does fails, its caller gives up, or its answer gets lost.
    pub faults: u8,
    /// How many actors of volumes fall.
    pub falls: u8,
    /// How many commits fail, whether or not they took effect, and how many writes are refused at once.
    pub failures: u8,
    /// How often the disk is sick, for the owner or for the ledger of a volume.
    pub sicknesses: u8,
    /// How many steps of the owner crash.
    pub crashes: u8,
    /// How often the host is killed.
    pub kills: u8,
    /// How often time passes until something is due.
    pub pauses: u8,
    /// Whether the volumes are registered at the start. If not, they can be created.
    pub are_registered: bool,
    /// Whether the first allocation claimed the first volume in an earlier run.
    pub is_claimed: bool,
    /// How many volumes the plugin takes on this node; zero is no limit.
    pub limit: u64,
    /// Whether the last volume cannot be reached from this node.
    pub is_apart: bool,
    /// In which ways the owner may be told to stop, once.
    pub stops: &'static [StopMode],
}

impl VolumesBounds {
    /// Nothing happens.
    pub const NONE: Self = Self {
        volumes: 1,
        allocations: 1,
        claims: 0,
        releases: 0,
        confirmations: 0,
        forces: 0,
        creations: 0,
        deletions: 0,
        orders: 0,
        groups: 0,
        changes: 0,
        waits: 0,
        words: 0,
        losses: 0,
        faults: 0,
        falls: 0,
        failures: 0,
        sicknesses: 0,
        crashes: 0,
        kills: 0,
        pauses: 0,
        are_registered: true,
        is_claimed: false,
        limit: 0,
        is_apart: false,
        stops: &[],
    };
}

/// What a caller wants of the owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VolumesRequest {
    /// An allocation claims a volume.
    Claim(usize, u8),
    /// It releases it.
    Release(usize, u8),
    /// An allocation has ended.
    Ended(u8),
    /// The host says that the allocations with claims live, or that none does.
    Confirm(bool),
    /// An operator forces what is released.
    Force(usize),
    /// A volume is to be created.
    Create(usize),
    /// It is to be deleted.
    Delete(usize),
    /// Its parameters are to be changed.
    Order(usize),
    /// A group of snapshots of all volumes is to be taken, which are named in this order or in the other one.
    Group {
        /// Whether the last one is named first.
        is_reversed: bool,
    },
    /// It is registered with other contents.
    Register(usize),
    /// It is to be forgotten.
    Forget(usize),
    /// A caller waits until the plugin is unused.
    AwaitUnused,
}

/// What the actor of a volume does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VolumeAct {
    /// The next thing that it does succeeds.
    Works,
    /// It fails for good.
    Fails,
    /// The time of the caller that waits longest is over.
    GivesUp,
    /// The answer for the caller that waits longest gets lost.
    IsSilent,
    /// The actor falls.
    Falls,
    /// The actor falls over its next message, which has no effect.
    FallsOverNext,
    /// It was told to stop, and ends.
    Ends,
}

impl VolumeAct {
    pub(super) const ALL: [Self; 7] = [
        Self::Works,
        Self::Fails,
        Self::GivesUp,
        Self::IsSilent,
        Self::Falls,
        Self::FallsOverNext,
        Self::Ends,
    ];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Works => "goes on",
            Self::Fails => "fails",
            Self::GivesUp => "has a caller that gives up",
            Self::IsSilent => "is silent",
            Self::Falls => "falls",
            Self::FallsOverNext => "falls over its next message",
            Self::Ends => "ends",
        }
    }
}

/// What the instances report of the plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PluginWord {
    /// It serves.
    Serves,
    /// It does not serve.
    Ails,
    /// Another instance serves in its place.
    TakesOver,
    /// It has left.
    Leaves,
}

impl PluginWord {
    pub(super) const ALL: [Self; 4] = [Self::Serves, Self::Ails, Self::TakesOver, Self::Leaves];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Serves => "serves",
            Self::Ails => "ails",
            Self::TakesOver => "takes over",
            Self::Leaves => "leaves",
        }
    }
}

/// What can happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VolumesEvent {
    /// A caller asks.
    Ask(VolumesRequest),
    /// The actor of a volume does something.
    Act(usize, VolumeAct),
    /// The next answer of the actors of a volume arrives.
    Answer(usize),
    /// The next news of the actors of a volume arrives.
    News(usize),
    /// The endings of actors arrive.
    Endings,
    /// The instances report something of the plugin.
    Say(PluginWord),
    /// What the instances reported arrives.
    Deliver,
    /// More was reported than is kept for a subscriber: a gap, and a snapshot.
    Lag,
    /// The instances are not there.
    Lose,
    /// The next route is not taken.
    LoseRoute,
    /// So many of the waiting writes settle in this way.
    Settle(u8, Outcome),
    /// The next write will be refused at once.
    RefuseNext,
    /// The owner hears that the disk is sick, or sound again.
    Disk(bool),
    /// The ledger of a volume is on a disk that is sick, or sound again: each actor hears of it in its own time.
    Ledger(usize, bool),
    /// The host is killed, and starts again; so many of the writes of the owner had reached the disk.
    Kill(u8),
}

/// As a line of a history.
impl fmt::Display for VolumesEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ask(request) => request.fmt(f),
            Self::Act(place, act) => write!(f, "volume v{place} {}", act.as_str()),
            Self::Answer(place) => write!(f, "answer of v{place} arrives"),
            Self::News(place) => write!(f, "news of v{place} arrive"),
            Self::Endings => f.write_str("endings arrive"),
            Self::Say(word) => write!(f, "plugin {}", word.as_str()),
            Self::Deliver => f.write_str("deliver"),
            Self::Lag => f.write_str("lag"),
            Self::Lose => f.write_str("lose instances"),
            Self::LoseRoute => f.write_str("lose the next route"),
            Self::Settle(count, Outcome::Written) => write!(f, "settle {count}"),
            Self::Settle(count, Outcome::Failed) => write!(f, "settle {count} fails"),
            Self::Settle(count, Outcome::FailedButWritten) => write!(f, "settle {count} fails-but-is-there"),
            Self::RefuseNext => f.write_str("refuse-next"),
            Self::Disk(true) => f.write_str("disk sick"),
            Self::Disk(false) => f.write_str("disk sound"),
            Self::Ledger(place, true) => write!(f, "ledger of v{place} sick"),
            Self::Ledger(place, false) => write!(f, "ledger of v{place} sound"),
            Self::Kill(reached) => write!(f, "kill-host reached={reached}"),
        }
    }
}

impl fmt::Display for VolumesRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Claim(place, number) => write!(f, "claim v{place} a{number}"),
            Self::Release(place, number) => write!(f, "release v{place} a{number}"),
            Self::Ended(number) => write!(f, "allocation-ended a{number}"),
            Self::Confirm(true) => f.write_str("confirm living"),
            Self::Confirm(false) => f.write_str("confirm none"),
            Self::Force(place) => write!(f, "force v{place}"),
            Self::Create(place) => write!(f, "create v{place}"),
            Self::Delete(place) => write!(f, "delete v{place}"),
            Self::Order(place) => write!(f, "modify v{place}"),
            Self::Group { is_reversed: false } => f.write_str("group of all volumes"),
            Self::Group { is_reversed: true } => f.write_str("group of all volumes, the last one first"),
            Self::Register(place) => write!(f, "register v{place} with other contents"),
            Self::Forget(place) => write!(f, "forget v{place}"),
            Self::AwaitUnused => f.write_str("await-unused"),
        }
    }
}
