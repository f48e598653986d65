//! The events of one supervised allocation.

use std::fmt;

use super::super::super::allocation::Reply;

/// An event of one supervised allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkloadDoing {
    /// The host sends a message about it.
    Order(WorkloadOrder),
    /// The task or its files answer a call in flight, counted from the oldest.
    Meet(u8, Reply),
    /// An answer of the registry or the instances reaches its supervisor.
    Deliver,
    /// The due timers of its supervisor run, and calls past their deadline are lost.
    Due,
    /// The next answer of its supervisors reaches their owner.
    Answer,
    /// The next notification of its supervisors reaches their owner.
    News,
    /// The process of its task ends, and its host has not seen it yet.
    Die,
    /// The next step of its supervisor will crash.
    Crash,
    /// Its supervisor crashes.
    Fall,
}

/// An event of the owner of all supervised allocations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkloadsDoing {
    /// The endings of supervisors reach it.
    Endings,
    /// Its due timers run, and calls past their deadline are lost.
    Due,
    /// Its next step will crash.
    Crash,
    /// It ends by force and its supervisors are let go, and a successor takes its place with the same memory.
    Fall,
}

/// A message of a host about a supervised allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkloadOrder {
    /// The task is prepared; if it runs already, it is adopted.
    Prepare,
    /// The task has been started.
    Start,
    /// The task has ended.
    Exit,
    /// The allocation leaves.
    Leave,
}

impl WorkloadOrder {
    /// Its name in a trace.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Prepare => "prepare",
            Self::Start => "started",
            Self::Exit => "exited",
            Self::Leave => "stop",
        }
    }
}

/// As a line of a trace.
pub(in super::super) fn write_workload(
    f: &mut fmt::Formatter<'_>,
    who: u32,
    doing: WorkloadDoing,
) -> fmt::Result {
    match doing {
        WorkloadDoing::Order(order) => write!(f, "{} a{who}", order.as_str()),
        WorkloadDoing::Meet(place, reply) => write!(f, "meet a{who} call={place} {}", reply.as_str()),
        WorkloadDoing::Deliver => write!(f, "deliver answer a{who}"),
        WorkloadDoing::Due => write!(f, "due a{who}"),
        WorkloadDoing::Answer => write!(f, "deliver supervisor-answer a{who}"),
        WorkloadDoing::News => write!(f, "deliver supervisor-news a{who}"),
        WorkloadDoing::Die => write!(f, "kill a{who}"),
        WorkloadDoing::Crash => write!(f, "crash a{who}"),
        WorkloadDoing::Fall => write!(f, "fall a{who}"),
    }
}

/// As a line of a trace.
pub(in super::super) fn write_workloads(f: &mut fmt::Formatter<'_>, doing: WorkloadsDoing) -> fmt::Result {
    f.write_str(match doing {
        WorkloadsDoing::Endings => "deliver allocations-endings",
        WorkloadsDoing::Due => "due allocations",
        WorkloadsDoing::Crash => "crash allocations",
        WorkloadsDoing::Fall => "end allocations",
    })
}
