//! The events of the owner of the allocations in a small world, and their bounds.

use std::fmt;

use callboard_actors::shell::StopMode;

/// How often each kind of event may happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AllocationsBounds {
    /// How many allocations there are, at most two.
    pub allocations: usize,
    /// How often the host requests to prepare a task, or reports that it has started or ended.
    pub orders: u8,
    /// How often it stops an allocation.
    pub leaves: u8,
    /// How often it prepares an allocation with other contents, or adopts its task.
    pub oddities: u8,
    /// How often directories cannot be created, a deregistration is not possible in time, or a supervisor is stuck.
    pub faults: u8,
    /// How often a supervisor crashes.
    pub falls: u8,
    /// How often a supervisor reports the state of its plugin.
    pub news: u8,
    /// How often the owner of the volumes does not answer at once that a plugin is unused.
    pub waits: u8,
    /// How many steps of the owner crash.
    pub crashes: u8,
    /// How often the owner ends by force, or has let go of everything, and a successor takes its place with the same memory.
    pub successors: u8,
    /// How often the host is killed.
    pub kills: u8,
    /// How often time passes until the next timer is due.
    pub pauses: u8,
    /// The modes in which the host may end, once.
    pub stops: &'static [StopMode],
}

impl AllocationsBounds {
    /// Nothing happens.
    pub const NONE: Self = Self {
        allocations: 1,
        orders: 0,
        leaves: 0,
        oddities: 0,
        faults: 0,
        falls: 0,
        news: 0,
        waits: 0,
        crashes: 0,
        successors: 0,
        kills: 0,
        pauses: 0,
        stops: &[],
    };
}

/// A message of the host about an allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostOrder {
    /// It is to be prepared.
    Prepare,
    /// It is to be prepared, with other contents than the first time.
    PrepareOther,
    /// It runs already, and is to be adopted.
    Adopt,
    /// Its task has started.
    Started,
    /// Its task has ended.
    Exited,
    /// It is stopped.
    Stop,
    /// It is stopped although volumes of its plugin may be in use.
    StopEvenIfUsed,
}

impl HostOrder {
    pub(super) const ALL: [Self; 7] = [
        Self::Prepare,
        Self::PrepareOther,
        Self::Adopt,
        Self::Started,
        Self::Exited,
        Self::Stop,
        Self::StopEvenIfUsed,
    ];
}

/// The answer of the owner of the volumes to the oldest question whether a plugin is unused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VolumesWord {
    /// No volume of it is in use.
    Unused,
    /// Some are, at the end of the timeout.
    Used,
    /// There is no answer, since the owner of the volumes does not run.
    Away,
    /// There is no answer in time.
    Silent,
}

impl VolumesWord {
    pub(super) const ALL: [Self; 4] = [Self::Unused, Self::Used, Self::Away, Self::Silent];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Unused => "say unused",
            Self::Used => "say used",
            Self::Away => "are away",
            Self::Silent => "are silent",
        }
    }
}

/// The actions of a supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SupervisorAct {
    /// The directories are created.
    Makes,
    /// They cannot be created.
    FailsToMake,
    /// Its plugin is ready, and it registers it.
    Registers,
    /// The registry has accepted its deregistration.
    Deregisters,
    /// It cleans up everything, and ends.
    PutsAway,
    /// It cleans up everything although the registry has not accepted its deregistration.
    PutsAwayInDebt,
    /// It reports the state of its plugin.
    Tells,
    /// It no longer answers: the deadline of its oldest message elapses.
    IsStuck,
    /// It crashes.
    Crashes,
}

impl SupervisorAct {
    pub(super) const ALL: [Self; 9] = [
        Self::Makes,
        Self::FailsToMake,
        Self::Registers,
        Self::Deregisters,
        Self::PutsAway,
        Self::PutsAwayInDebt,
        Self::Tells,
        Self::IsStuck,
        Self::Crashes,
    ];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Makes => "makes directories",
            Self::FailsToMake => "fails to make directories",
            Self::Registers => "registers",
            Self::Deregisters => "deregisters",
            Self::PutsAway => "puts away",
            Self::PutsAwayInDebt => "puts away in debt",
            Self::Tells => "tells",
            Self::IsStuck => "is stuck",
            Self::Crashes => "crashes",
        }
    }
}

/// An event of this world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllocationsEvent {
    /// The host sends a message about an allocation.
    Say(usize, HostOrder),
    /// The supervisor of an allocation does something.
    Act(usize, SupervisorAct),
    /// The next answer of the supervisors of an allocation arrives.
    Answer(usize),
    /// The next notification of the supervisors of an allocation arrives.
    News(usize),
    /// The endings of supervisors arrive.
    Endings,
    /// The owner of the volumes answers, or does not.
    Volumes(VolumesWord),
    /// The owner ends by force and its supervisors are let go, or they are already, and a successor takes its place.
    Succeed,
    /// The host is killed, and starts again.
    Kill,
}

/// As a line of a history.
impl fmt::Display for AllocationsEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Say(place, order) => {
                let order = match order {
                    HostOrder::Prepare => "prepare",
                    HostOrder::PrepareOther => "prepare-with-other-contents",
                    HostOrder::Adopt => "adopt",
                    HostOrder::Started => "started",
                    HostOrder::Exited => "exited",
                    HostOrder::Stop => "stop",
                    HostOrder::StopEvenIfUsed => "stop-even-if-used",
                };
                write!(f, "{order} {}", name(*place))
            }
            Self::Act(place, act) => write!(f, "supervisor of {} {}", name(*place), act.as_str()),
            Self::Answer(place) => write!(f, "answer of {} arrives", name(*place)),
            Self::News(place) => write!(f, "news of {} arrive", name(*place)),
            Self::Endings => f.write_str("endings arrive"),
            Self::Volumes(word) => write!(f, "volumes {}", word.as_str()),
            Self::Succeed => f.write_str("another allocations"),
            Self::Kill => f.write_str("kill-host"),
        }
    }
}

/// The names of the allocations.
pub(super) fn name(place: usize) -> &'static str {
    ["red", "blue"][place.min(1)]
}
