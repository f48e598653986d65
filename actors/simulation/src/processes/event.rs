//! The events of the owner of the processes in a small world, and their bounds.

use std::fmt;

use callboard_actors::shell::StopMode;
use callboard_actors::vocabulary::Attempt;

use super::super::writes::Outcome;

/// How often each kind of event may happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProcessesBounds {
    /// How many processes run already, each ready and with its record: an earlier run of the host left them.
    pub found: u8,
    /// Under how many names processes are launched.
    pub names: u8,
    /// How often a launch is requested.
    pub launches: u8,
    /// How often an end is requested, or a client asks for the state of a process.
    pub orders: u8,
    /// How often a launch or a sweep fails.
    pub faults: u8,
    /// How often a process ends by itself.
    pub exits: u8,
    /// How often the actor of a process crashes.
    pub falls: u8,
    /// How many commits fail, whether or not they took effect, and how many writes are refused at once.
    pub failures: u8,
    /// How often the disk becomes sick, and is sound again at any instant.
    pub sicknesses: u8,
    /// How many steps crash.
    pub crashes: u8,
    /// How often the host is killed.
    pub kills: u8,
    /// How often time passes until the next timer is due.
    pub pauses: u8,
    /// Whether processes outlive their host.
    pub survives: bool,
    /// The modes in which the host may end, once.
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

/// An event of this world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessesEvent {
    /// The launch of the process of this number is requested.
    Launch(u8),
    /// Its end is requested.
    End(u8),
    /// A client asks for its state.
    Recall(u8),
    /// The actor of a process takes one step, or that step fails.
    Act(Attempt, bool),
    /// A report of an actor arrives.
    Deliver(Attempt),
    /// The endings of actors arrive.
    Endings,
    /// Processes without a record are ended, or could not be looked for.
    Sweep(bool),
    /// A process ends by itself.
    Exit(usize),
    /// The actor of a process crashes.
    Fall(Attempt),
    /// This number of the waiting writes settle in this way.
    Settle(u8, Outcome),
    /// The next write will be refused at once.
    RefuseNext,
    /// The disk becomes sick, or is sound again.
    Disk(bool),
    /// The records are read.
    Load,
    /// Time passes until the next timer is due.
    Pass,
    /// The next step crashes.
    Crash,
    /// The host is killed, and this number of its writes had reached the disk.
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
