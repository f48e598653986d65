//! What can happen of one supervised allocation.

use std::fmt;

use super::super::super::allocation::Reply;

/// What can happen of one supervised allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkloadDoing {
    /// The host says something about it.
    Order(WorkloadOrder),
    /// The task or its files meet a call that is under way to them, counted from the oldest.
    Meet(u8, Reply),
    /// What the registry or the instances have answered reaches its supervisor.
    Deliver,
    /// What is due in its supervisor, and calls whose time is up.
    Due,
    /// The next answer of its supervisors reaches their owner.
    Answer,
    /// The next news of its supervisors reach their owner.
    News,
    /// The process of its task ends, and its host has not seen it yet.
    Die,
    /// The next step of its supervisor will crash.
    Crash,
    /// Its supervisor falls.
    Fall,
}

/// What can happen of the owner of all supervised allocations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkloadsDoing {
    /// Word of the supervisors that have ended reaches it.
    Endings,
    /// What is due in it, and calls whose time is up.
    Due,
    /// Its next step will crash.
    Crash,
    /// It ends by force and its supervisors are let go, and another one takes its place with the same memory.
    Fall,
}

/// What a host says about a supervised allocation.
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
    /// Its word in a trace.
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
