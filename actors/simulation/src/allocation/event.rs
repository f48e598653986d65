//! What can happen to the supervisor of one allocation in a small world, and how much of it.

use std::fmt;

use callboard_actors::shell::StopMode;

/// How much may happen, of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AllocationBounds {
    /// How often the host prepares the task, says that it runs, or that it has ended.
    pub orders: u8,
    /// How often an answer is bad, hangs, or never comes.
    pub faults: u8,
    /// How often time passes until something is due.
    pub pauses: u8,
    /// How often its instance has news.
    pub news: u8,
    /// How often the supervisor falls and another one takes its work up.
    pub falls: u8,
    /// How often the host is killed and starts again.
    pub kills: u8,
    /// How often the allocation is stopped.
    pub leaves: u8,
    /// In which ways the host may end, once.
    pub stops: &'static [StopMode],
}

impl AllocationBounds {
    /// Nothing happens.
    pub const NONE: Self =
        Self { orders: 0, faults: 0, pauses: 0, news: 0, falls: 0, kills: 0, leaves: 0, stops: &[] };
}

/// How a question is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reply {
    /// As one would wish.
    Good,
    /// Not as one would wish.
    Bad,
    /// In an unusual way: a permission is refused, or the receiver is not there.
    Odd,
    /// Not in time.
    Late,
}

impl Reply {
    /// Its word in a history.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Bad => "bad",
            Self::Odd => "odd",
            Self::Late => "late",
        }
    }
}

/// What becomes of the oldest message that is on its way to the registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Receipt {
    /// It is taken, and answered.
    Taken,
    /// It is refused, or the receiver is not there.
    Refused,
    /// It is still to come when its sender gives it up.
    GivenUp,
}

/// What can happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllocationEvent {
    /// The host prepares the task.
    Prepare,
    /// The task runs.
    Start,
    /// The task has ended.
    Exit,
    /// The allocation is stopped.
    StopSupervision,
    /// A call comes back, counted from the oldest.
    Return(usize, Reply),
    /// The registry comes to the next message.
    Registry(Receipt),
    /// Its instance has news.
    News,
    /// The supervisor falls, and another one takes its work up.
    Fall,
    /// The host is killed, and starts again.
    Kill,
}

/// As a line of a history.
impl fmt::Display for AllocationEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prepare => f.write_str("prepare"),
            Self::Start => f.write_str("started"),
            Self::Exit => f.write_str("exited"),
            Self::StopSupervision => f.write_str("sign-off"),
            Self::Return(place, reply) => {
                write!(f, "answer call={place} {}", reply.as_str())
            }
            Self::Registry(Receipt::Taken) => f.write_str("registry takes"),
            Self::Registry(Receipt::Refused) => f.write_str("registry refuses"),
            Self::Registry(Receipt::GivenUp) => f.write_str("registry is slow"),
            Self::News => f.write_str("instance or disk has news"),
            Self::Fall => f.write_str("fall"),
            Self::Kill => f.write_str("kill-host"),
        }
    }
}
