//! What can happen to a supervisor and its children in a small world, and how much of it.

use std::fmt;

use callboard_actors::shell::StopMode;
use callboard_actors::supervisor::{Restart, Strategy};

use super::super::allocation::Reply;

/// How much may happen, of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SupervisionBounds {
    /// Who is restarted together with a child that fell.
    pub strategy: Strategy,
    /// The children, in order.
    pub children: &'static [Restart],
    /// Whether something of each child can be left when it falls or is killed.
    pub may_leave: bool,
    /// How many falls are borne within the window.
    pub limit: u32,
    /// How often a child ends of itself.
    pub ends: u8,
    /// How often a start fails or hangs, a stop has to be forced or is not to be had, a watch is lost.
    pub faults: u8,
    /// How often a client wants a child started again, waits for the start, or asks for the tree.
    pub asks: u8,
    /// How often so much time passes that the falls before it are forgotten.
    pub waits: u8,
    /// How many steps of the supervisor crash.
    pub crashes: u8,
    /// Whether a child may be there and not yet up.
    pub is_slow: bool,
    /// In which ways it may be told to stop.
    pub stops: &'static [StopMode],
    /// How often it may be told.
    pub stops_max: u8,
}

impl SupervisionBounds {
    /// Two permanent children, for each of which alone is cared, start well and live on.
    pub const NONE: Self = Self {
        strategy: Strategy::OneForOne,
        children: &[Restart::Permanent, Restart::Permanent],
        may_leave: false,
        limit: 2,
        ends: 0,
        faults: 0,
        asks: 0,
        waits: 0,
        crashes: 0,
        is_slow: false,
        stops: &[],
        stops_max: 1,
    };
}

/// How a child ends of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TaskEnd {
    /// With its business in order.
    Finishes,
    /// It is killed, or gives up.
    Falls,
}

impl TaskEnd {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Finishes, Self::Falls];

    /// Its name in histories.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Finishes => "finishes",
            Self::Falls => "falls",
        }
    }
}

/// What can happen. A child is named by its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SupervisionEvent {
    /// A child that is being started is there, and not yet up.
    Make(usize),
    /// A call comes back, counted from the oldest.
    Return(usize, Reply),
    /// A child ends of itself.
    End(usize, TaskEnd),
    /// The restart of a child is requested.
    Restart(usize),
    /// A client waits for the start.
    Await,
    /// A client asks for the tree.
    Describe,
    /// Time passes until something is due.
    Pass,
    /// Time passes until the falls so far do not count any more.
    Wait,
    /// The next step of the supervisor crashes.
    Crash,
    /// A client tells it to shut down, and waits for the report.
    Shutdown(StopMode),
    /// Its own supervisor tells it to stop.
    Stop(StopMode),
}

/// As a line of a history.
impl fmt::Display for SupervisionEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Make(child) => write!(f, "made c{child}"),
            Self::Return(place, reply) => write!(f, "answer call={place} {}", reply.as_str()),
            Self::End(child, end) => write!(f, "c{child} {}", end.as_str()),
            Self::Restart(child) => write!(f, "restart c{child}"),
            Self::Await => f.write_str("await-started"),
            Self::Describe => f.write_str("tree"),
            Self::Pass => f.write_str("pass-until-due"),
            Self::Wait => f.write_str("pass-the-window"),
            Self::Crash => f.write_str("crash-next supervisor"),
            Self::Shutdown(StopMode::Stop) => f.write_str("shutdown"),
            Self::Shutdown(StopMode::Detach) => f.write_str("shutdown detach"),
            Self::Stop(StopMode::Stop) => f.write_str("stop"),
            Self::Stop(StopMode::Detach) => f.write_str("detach"),
        }
    }
}
