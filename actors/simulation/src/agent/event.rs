//! The events of an agent in a small world, and their bounds.

use std::fmt;

use callboard_actors::shell::StopMode;
use callboard_actors::vocabulary::AllocationId;

/// How often each kind of event may happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AgentBounds {
    /// How often the replacement of `old` with `new` is requested.
    pub replacements: u8,
    /// How often the start of an allocation is requested.
    pub starts: u8,
    /// How often the stop of an allocation is requested.
    pub stops_asked: u8,
    /// How often the restart of an allocation's process is requested.
    pub restarts: u8,
    /// How many processes end by themselves.
    pub deaths: u8,
    /// How many questions about health receive no answer.
    pub losses: u8,
    /// How often time passes until the next timer is due.
    pub pauses: u8,
    /// How many steps crash.
    pub crashes: u8,
    /// The modes in which it may be asked to stop, once.
    pub stops: &'static [StopMode],
    /// Whether processes survive the host, and an earlier run of it has left the process of `old`.
    pub survives: bool,
    /// Whether `old` uses a volume.
    pub volumes: bool,
    /// How many claims and releases of its volume are refused.
    pub refusals: u8,
    /// How many processes do not end when they are killed, only later.
    pub hangs: u8,
}

impl AgentBounds {
    /// Nothing happens.
    pub const NONE: Self = Self {
        replacements: 0,
        starts: 0,
        stops_asked: 0,
        restarts: 0,
        deaths: 0,
        losses: 0,
        pauses: 0,
        crashes: 0,
        stops: &[],
        survives: false,
        volumes: false,
        refusals: 0,
        hangs: 0,
    };
}

/// One of the two allocations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Who {
    /// It runs with the host.
    Old,
    /// It does not run until it is started.
    New,
}

impl Who {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Old, Self::New];

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Old => "old",
            Self::New => "new",
        }
    }

    pub(super) fn id(self) -> AllocationId {
        AllocationId::new(self.as_str()).expect("it is a name")
    }

    pub(super) fn of(allocation: &AllocationId) -> Self {
        if allocation.as_str() == Self::Old.as_str() { Self::Old } else { Self::New }
    }
}

/// An event of this world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AgentEvent {
    /// The replacement of `old` with `new` is requested.
    Replace,
    /// The start of an allocation is requested.
    Start(Who),
    /// The stop of an allocation is requested.
    Stop(Who),
    /// The allocations request a restart of an allocation's process.
    Restart(Who),
    /// The oldest open call of an allocation returns: it has its volumes, is started or deregistered, or has released them.
    Return(Who),
    /// The volumes of an allocation are refused, temporarily or permanently, or their release is not confirmed.
    Refuse {
        /// The allocation.
        who: Who,
        /// Whether a claim may succeed later.
        is_transient: bool,
    },
    /// A process that was asked to end will not end when it is killed.
    Hang(Who),
    /// A process that was asked to end ends.
    End(Who),
    /// A process ends by itself.
    Die(Who),
    /// The agent is notified of the processes that have ended.
    Reap,
    /// The oldest question about health is answered: healthy for the whole time, or not within the timeout.
    Health(bool),
    /// The oldest question about health receives no answer: the instances are not running.
    LoseHealth,
}

/// As a line of a history.
impl fmt::Display for AgentEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Replace => f.write_str("replace old with new"),
            Self::Start(who) => write!(f, "start {}", who.as_str()),
            Self::Stop(who) => write!(f, "stop {}", who.as_str()),
            Self::Restart(who) => write!(f, "restart {}", who.as_str()),
            Self::Return(who) => write!(f, "{} comes back", who.as_str()),
            Self::Refuse { who, is_transient: true } => write!(f, "refuse volumes of {}", who.as_str()),
            Self::Refuse { who, is_transient: false } => {
                write!(f, "refuse volumes of {} for good", who.as_str())
            }
            Self::Hang(who) => write!(f, "{} hangs", who.as_str()),
            Self::End(who) => write!(f, "{} ends", who.as_str()),
            Self::Die(who) => write!(f, "{} dies", who.as_str()),
            Self::Reap => f.write_str("reap"),
            Self::Health(true) => f.write_str("healthy"),
            Self::Health(false) => f.write_str("not healthy"),
            Self::LoseHealth => f.write_str("lose instances"),
        }
    }
}
