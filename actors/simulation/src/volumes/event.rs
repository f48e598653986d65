//! The events of the owner of the volumes in a small world, and their bounds.

use std::fmt;

use callboard_actors::shell::StopMode;

use super::super::writes::Outcome;

/// How often each kind of event may happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct VolumesBounds {
    /// How many volumes there are, at most two. They are of one plugin.
    pub volumes: usize,
    /// How many allocations there are.
    pub allocations: u8,
    /// How often a volume is claimed.
    pub claims: u8,
    /// How often a claim is released, or the end of an allocation is reported.
    pub releases: u8,
    /// How often the host reports which allocations live.
    pub confirmations: u8,
    /// How often a release is forced.
    pub forces: u8,
    /// How often a volume is created.
    pub creations: u8,
    /// How often a volume is deleted.
    pub deletions: u8,
    /// How often an order is placed on a volume.
    pub orders: u8,
    /// How often a group of snapshots of all volumes is to be taken.
    pub groups: u8,
    /// How often a volume is registered with other contents, or forgotten.
    pub changes: u8,
    /// How often a caller waits until the plugin is unused.
    pub waits: u8,
    /// How often the instances report a change of the plugin.
    pub words: u8,
    /// How often their notifications have a gap or are cut off, or a route is not accepted.
    pub losses: u8,
    /// How often a step of a volume fails, its caller gives up, or its answer is lost.
    pub faults: u8,
    /// How many actors of volumes crash.
    pub falls: u8,
    /// How many commits fail, whether or not they took effect, and how many writes are refused at once.
    pub failures: u8,
    /// How often the disk is sick, for the owner or for the ledger of a volume.
    pub sicknesses: u8,
    /// How many steps of the owner crash.
    pub crashes: u8,
    /// How often the host is killed.
    pub kills: u8,
    /// How often time passes until the next timer is due.
    pub pauses: u8,
    /// Whether the volumes are registered at the start. If not, they can be created.
    pub are_registered: bool,
    /// Whether the first allocation claimed the first volume in an earlier run.
    pub is_claimed: bool,
    /// How many volumes the plugin takes on this node; zero is no limit.
    pub limit: u64,
    /// Whether the last volume cannot be reached from this node.
    pub is_apart: bool,
    /// The modes in which the owner may be asked to stop, once.
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

/// The request of a caller to the owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VolumesRequest {
    /// An allocation claims a volume.
    Claim(usize, u8),
    /// An allocation releases it.
    Release(usize, u8),
    /// An allocation has ended.
    Ended(u8),
    /// The host reports that the allocations with claims live, or that none does.
    Confirm(bool),
    /// An operator releases a volume by force.
    Force(usize),
    /// A volume is to be created.
    Create(usize),
    /// A volume is to be deleted.
    Delete(usize),
    /// The parameters of a volume are to be changed.
    Order(usize),
    /// A group of snapshots of all volumes is to be taken. The request names the volumes in this order or in reverse.
    Group {
        /// Whether the last one is named first.
        is_reversed: bool,
    },
    /// A volume is registered with other contents.
    Register(usize),
    /// A volume is to be forgotten.
    Forget(usize),
    /// A caller waits until the plugin is unused.
    AwaitUnused,
}

/// The actions of a volume's actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VolumeAct {
    /// Its next step succeeds.
    Works,
    /// Its next step fails permanently.
    Fails,
    /// The timeout of the caller that has waited longest elapses.
    GivesUp,
    /// The answer to the caller that has waited longest is lost.
    IsSilent,
    /// The actor crashes.
    Falls,
    /// The actor crashes at its next message, which has no effect.
    FallsOverNext,
    /// The actor was asked to stop, and ends.
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

/// The reports of the instances about the plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PluginWord {
    /// It serves.
    Serves,
    /// It does not serve.
    Ails,
    /// Another instance serves instead.
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

/// An event of this world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VolumesEvent {
    /// A caller sends a request.
    Ask(VolumesRequest),
    /// The actor of a volume does something.
    Act(usize, VolumeAct),
    /// The next answer of the actors of a volume arrives.
    Answer(usize),
    /// The next notification of the actors of a volume arrives.
    News(usize),
    /// The endings of actors arrive.
    Endings,
    /// The instances report a change of the plugin.
    Say(PluginWord),
    /// The reports of the instances arrive.
    Deliver,
    /// The reports exceeded the queue of a subscriber: a gap, and a snapshot.
    Lag,
    /// The instances are not reachable.
    Lose,
    /// The next route is not accepted.
    LoseRoute,
    /// This number of the waiting writes settle in this way.
    Settle(u8, Outcome),
    /// The next write will be refused at once.
    RefuseNext,
    /// The owner is notified that the disk is sick, or sound again.
    Disk(bool),
    /// The ledger of a volume is on a disk that is sick, or sound again: each actor is notified at its own time.
    Ledger(usize, bool),
    /// The host is killed, and starts again; this number of the owner's writes had reached the disk.
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
