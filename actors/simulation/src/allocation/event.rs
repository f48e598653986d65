//! The events of the supervisor of one allocation in a small world, and their bounds.

use std::fmt;

use callboard_actors::shell::StopMode;

/// How often each kind of event may happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AllocationBounds {
    /// How often the host prepares the task, or reports that it runs or has ended.
    pub orders: u8,
    /// How often an answer is bad, hangs, or never arrives.
    pub faults: u8,
    /// How often time passes until the next timer is due.
    pub pauses: u8,
    /// How often its instance has a notification.
    pub news: u8,
    /// How often the supervisor crashes and a successor continues its work.
    pub falls: u8,
    /// How often the host is killed and starts again.
    pub kills: u8,
    /// How often the allocation is stopped.
    pub leaves: u8,
    /// The modes in which the host may end, once.
    pub stops: &'static [StopMode],
}

impl AllocationBounds {
    /// Nothing happens.
    pub const NONE: Self =
        Self { orders: 0, faults: 0, pauses: 0, news: 0, falls: 0, kills: 0, leaves: 0, stops: &[] };
}

/// The answer to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reply {
    /// A good answer.
    Good,
    /// A bad answer.
    Bad,
    /// An unusual answer: a permission is refused, or the receiver is not running.
    Odd,
    /// No answer in time.
    Late,
}

impl Reply {
    /// Its name in a history.
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

/// The fate of the oldest message in flight to the registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Receipt {
    /// It is accepted, and answered.
    Taken,
    /// It is refused, or the receiver is not running.
    Refused,
    /// It arrives only after its sender has given up.
    GivenUp,
}

/// An event of this world.
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
    /// A call returns, counted from the oldest.
    Return(usize, Reply),
    /// The registry handles the next message.
    Registry(Receipt),
    /// Its instance has a notification.
    News,
    /// The supervisor crashes, and a successor continues its work.
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
