//! The events of a supervisor and its children in a small world, and their bounds.

use std::fmt;

use callboard_actors::shell::StopMode;
use callboard_actors::supervisor::{Restart, Strategy};

use super::super::allocation::Reply;

/// How often each kind of event may happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SupervisionBounds {
    /// The children that are restarted together with a child that ended.
    pub strategy: Strategy,
    /// The children, in order.
    pub children: &'static [Restart],
    /// Whether something of each child can remain when it crashes or is killed.
    pub may_leave: bool,
    /// How many restarts the budget permits within the window.
    pub limit: u32,
    /// How often a child ends by itself.
    pub ends: u8,
    /// How often a start fails or hangs, a stop must be forced or has no effect, a watch is lost.
    pub faults: u8,
    /// How often a client requests a restart, waits for the start, or asks for the tree.
    pub asks: u8,
    /// How often enough time passes that earlier restarts no longer count.
    pub waits: u8,
    /// How many steps of the supervisor crash.
    pub crashes: u8,
    /// Whether a child may live and not be up yet.
    pub is_slow: bool,
    /// The modes in which it may be asked to stop.
    pub stops: &'static [StopMode],
    /// How often it may be asked.
    pub stops_max: u8,
}

impl SupervisionBounds {
    /// Two permanent children that are restarted individually, start well and do not end.
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

/// The end of a child by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TaskEnd {
    /// It ends normally.
    Finishes,
    /// It is killed, or gives up.
    Falls,
}

impl TaskEnd {
    /// Both ends.
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

/// An event of this world. Children are named by position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SupervisionEvent {
    /// A child that is being started lives, and is not up yet.
    Make(usize),
    /// A call returns, counted from the oldest.
    Return(usize, Reply),
    /// A child ends by itself.
    End(usize, TaskEnd),
    /// The restart of a child is requested.
    Restart(usize),
    /// A client waits for the start.
    Await,
    /// A client asks for the tree.
    Describe,
    /// Time passes until the next timer is due.
    Pass,
    /// Time passes until the restarts so far no longer count.
    Wait,
    /// The next step of the supervisor crashes.
    Crash,
    /// A client asks it to shut down, and waits for the report.
    Shutdown(StopMode),
    /// Its own supervisor asks it to stop.
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
