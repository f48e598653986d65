//! The events of the processes of a simulated host, and of their owner.

use std::fmt;

use super::super::super::writes::Outcome;

/// An event of the owner of the processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProcessesDoing {
    /// An event of the process with this number.
    Process(u32, ProcessDoing),
    /// The endings of actors arrive.
    Endings,
    /// Processes without a record are ended; false if they cannot be looked for.
    Sweep(bool),
    /// This number of the writes settle in this way.
    Settle(u32, Outcome),
    /// The records are read; true if that works.
    Load(bool),
    /// The due timers run, and a pause that is over ends.
    Timers,
    /// The next step of the owner will crash.
    Crash,
}

/// An event of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProcessDoing {
    /// Its launch is requested, in one of two ways.
    Launch(u8),
    /// Its end is requested.
    End,
    /// A client asks for its state.
    Recall,
    /// A client waits for its end.
    AwaitEnd,
    /// Its actor takes one step.
    Act,
    /// The next step of its actor fails.
    Fail,
    /// The next report of its actor arrives.
    Mail,
    /// It ends by itself.
    Exit,
    /// Its actor crashes.
    Fall,
}

/// The name of the process with this number.
pub(super) fn name_text(number: u32) -> String {
    format!("w{number}")
}

impl fmt::Display for ProcessesDoing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process(number, ProcessDoing::Launch(kind)) => {
                write!(f, "process w{number} launch kind={kind}")
            }
            Self::Process(number, doing) => write!(f, "process w{number} {}", doing.as_str()),
            Self::Endings => f.write_str("processes endings"),
            Self::Sweep(true) => f.write_str("processes sweep"),
            Self::Sweep(false) => f.write_str("processes sweep-fails"),
            Self::Settle(count, Outcome::Written) => write!(f, "processes settle {count}"),
            Self::Settle(count, Outcome::Failed) => write!(f, "processes write-fails {count}"),
            Self::Settle(count, Outcome::FailedButWritten) => {
                write!(f, "processes write-fails-but-is-there {count}")
            }
            Self::Load(true) => f.write_str("processes load"),
            Self::Load(false) => f.write_str("processes load-fails"),
            Self::Timers => f.write_str("processes due"),
            Self::Crash => f.write_str("processes crash"),
        }
    }
}

impl ProcessDoing {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Launch(_) => "launch",
            Self::End => "end",
            Self::Recall => "recall",
            Self::AwaitEnd => "await-end",
            Self::Act => "act",
            Self::Fail => "fail",
            Self::Mail => "report",
            Self::Exit => "exit",
            Self::Fall => "fall",
        }
    }
}
