//! What can happen to the owner of the processes in a small world, and how much of it.

use std::fmt;

use callboard_actors::shell::StopMode;
use callboard_actors::vocabulary::Attempt;

use super::super::writes::Outcome;

/// How much may happen, of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProcessesBounds {
    /// How many processes run already, each ready and with its record: an earlier run of the host left them.
    pub found: u8,
    /// How many names processes are launched under.
    pub names: u8,
    /// How often a launch is requested.
    pub launches: u8,
    /// How often an end is requested, or a report on what became of one.
    pub orders: u8,
    /// How often a launch or a sweep fails.
    pub faults: u8,
    /// How often a process ends by itself.
    pub exits: u8,
    /// How often the actor of a process falls.
    pub falls: u8,
    /// How many commits fail, whether or not they took effect, and how many writes are refused at once.
    pub failures: u8,
    /// How often the disk becomes sick, and is sound again at any instant.
    pub sicknesses: u8,
    /// How many steps crash.
    pub crashes: u8,
    /// How often the host is killed.
    pub kills: u8,
    /// How often time passes until something is due.
    pub pauses: u8,
    /// Whether processes outlive their host.
    pub survives: bool,
    /// In which ways the host may end, once.
    pub stops: &'static [StopMode],
}

impl ProcessesBounds {
    /// Nothing happens.
    pub const NONE: Self = Self {
        found: 0,
        names: 1,
        launches: 0,
        orders: 0,
        faults: 0,
        exits: 0,
        falls: 0,
        failures: 0,
        sicknesses: 0,
        crashes: 0,
        kills: 0,
        pauses: 0,
        survives: true,
        stops: &[],
    };
}

/// What can happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessesEvent {
    /// The launch of the process of this number is requested.
    Launch(u8),
    /// Its end is requested.
    End(u8),
    /// A client asks what became of it.
    Recall(u8),
    /// The actor of a process goes one step on, or what it is at fails.
    Act(Attempt, bool),
    /// A word of an actor arrives.
    Deliver(Attempt),
    /// It receives which actors have ended.
    Endings,
    /// What stands in no record is ended, or could not be looked for.
    Sweep(bool),
    /// A process ends by itself.
    Exit(usize),
    /// The actor of a process falls.
    Fall(Attempt),
    /// So many of the waiting writes settle in this way.
    Settle(u8, Outcome),
    /// The next write will be refused at once.
    RefuseNext,
    /// The disk becomes sick, or is sound again.
    Disk(bool),
    /// The records are read.
    Load,
    /// Time passes until something is due.
    Pass,
    /// The next step crashes.
    Crash,
    /// The host is killed, and so many of its writes had reached the disk.
    Kill(usize),
    /// The host ends.
    Stop(StopMode),
}

/// As a line of a history.
impl fmt::Display for ProcessesEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Launch(number) => write!(f, "launch driver-{number}"),
            Self::End(number) => write!(f, "end driver-{number}"),
            Self::Recall(number) => write!(f, "recall driver-{number}"),
            Self::Act(life, false) => write!(f, "act life={life}"),
            Self::Act(life, true) => write!(f, "fail life={life}"),
            Self::Deliver(life) => write!(f, "deliver life={life}"),
            Self::Endings => f.write_str("deliver endings"),
            Self::Sweep(true) => f.write_str("sweep"),
            Self::Sweep(false) => f.write_str("sweep fails"),
            Self::Exit(place) => write!(f, "exit process={place}"),
            Self::Fall(life) => write!(f, "fall life={life}"),
            Self::Settle(count, Outcome::Written) => write!(f, "settle {count}"),
            Self::Settle(count, Outcome::Failed) => write!(f, "settle {count} fails"),
            Self::Settle(count, Outcome::FailedButWritten) => write!(f, "settle {count} fails-but-is-there"),
            Self::Disk(true) => f.write_str("disk sick"),
            Self::Disk(false) => f.write_str("disk sound"),
            Self::RefuseNext => f.write_str("refuse-next"),
            Self::Load => f.write_str("load"),
            Self::Pass => f.write_str("pass-until-due"),
            Self::Crash => f.write_str("crash-next processes"),
            Self::Kill(reached) => write!(f, "kill-host reached={reached}"),
            Self::Stop(StopMode::Stop) => f.write_str("stop"),
            Self::Stop(StopMode::Detach) => f.write_str("detach"),
        }
    }
}
