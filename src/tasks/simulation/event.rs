//! What can happen to the tasks in a small world, and how much of it.

use std::fmt;

use callboard_actors::shell::StopMode;
use callboard_actors::simulation::Outcome;

use super::super::calls::TasksCall;

/// What a driver is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Manner {
    /// Whether a process of it can recover a task that an earlier one has started, as long as the task lives.
    pub recovers: bool,
    /// Whether its process outlives its host.
    pub survives: bool,
    /// Whether its tasks end with its process.
    pub carries: bool,
}

/// How much may happen, of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TasksBounds {
    /// How many tasks the driver runs.
    pub tasks: u8,
    /// What the driver is like.
    pub manner: Manner,
    /// How often somebody says that a task is to start.
    pub starts: u32,
    /// How often somebody says that a task is to stop.
    pub stops: u32,
    /// How often a task ends by itself.
    pub exits: u32,
    /// How often the driver's process dies.
    pub deaths: u32,
    /// How often the connection of a start breaks off, and the driver goes on with it for as long as it likes.
    pub cuts: u32,
    /// How often a start fails, whether or not it has begun a copy, and how often the driver is asked in vain.
    pub faults: u32,
    /// How many commits fail, whether or not they took effect.
    pub failures: u32,
    /// How many steps crash.
    pub crashes: u32,
    /// How often the host is killed.
    pub kills: u32,
    /// How often time passes until something is due.
    pub pauses: u32,
    /// In which ways the host may end, once.
    pub ends: &'static [StopMode],
}

impl TasksBounds {
    /// One task is started, and nothing else happens.
    pub const NONE: Self = Self {
        tasks: 1,
        manner: Manner { recovers: true, survives: true, carries: false },
        starts: 0,
        stops: 0,
        exits: 0,
        deaths: 0,
        cuts: 0,
        faults: 0,
        failures: 0,
        crashes: 0,
        kills: 0,
        pauses: 0,
        ends: &[],
    };
}

/// What the host has asked and waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Question {
    /// To start a run.
    Start,
    /// To recover one.
    Recover,
    /// What one is at.
    Inspect,
    /// To replace the process of its driver.
    Replace,
    /// To tell its end.
    Wait,
    /// To stop it.
    Stop,
    /// To forget it.
    Destroy,
    /// To end what is left of it.
    Sweep,
}

impl Question {
    /// What a call asks, if it is about a run.
    pub(super) const fn of(call: &TasksCall) -> Option<Self> {
        match call {
            TasksCall::Start(..) => Some(Self::Start),
            TasksCall::Recover(..) => Some(Self::Recover),
            TasksCall::Inspect(_) => Some(Self::Inspect),
            TasksCall::ReplaceDriver(_) => Some(Self::Replace),
            TasksCall::Wait(_) => Some(Self::Wait),
            TasksCall::Stop { .. } => Some(Self::Stop),
            TasksCall::Destroy(_) => Some(Self::Destroy),
            TasksCall::Sweep { .. } => Some(Self::Sweep),
            TasksCall::Bring(_)
            | TasksCall::BringBack(..)
            | TasksCall::Dismiss { .. }
            | TasksCall::Watch { .. }
            | TasksCall::ReadEvents { .. }
            | TasksCall::Forget { .. }
            | TasksCall::Locate { .. } => None,
        }
    }
}

/// What can happen. Tasks have numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TasksEvent {
    /// Somebody says that a task is to start.
    Start(u8),
    /// Somebody says that a task is to stop.
    Stop(u8),
    /// A process of the driver is launched.
    Launch,
    /// The process that an earlier run of the host has left is found again.
    Found,
    /// The driver's process dies.
    Die,
    /// The driver begins a copy of a task, for the start of this place among those that it has under way.
    Begin(u8),
    /// The driver is done with a start: the copy runs.
    Done(u8),
    /// The driver says that a start failed, which may help if it is tried again. What it has begun goes on.
    Fail(u8),
    /// The driver says no to a start. What it has begun goes on.
    Refuse(u8),
    /// The connection of a start breaks off, and the driver goes on with it.
    Cut(u8),
    /// A question has the answer that is due.
    Answer(Question, u8),
    /// A question has none: something in between fails.
    Trouble(Question, u8),
    /// A task ends by itself with this exit code.
    Exit(u8, i32),
    /// So many of the waiting writes settle in this way.
    Settle(u8, Outcome),
    /// The machine is built from what is on disk.
    Load,
    /// Time passes until something is due.
    Pass,
    /// The next step crashes.
    Crash,
    /// The host is killed, so many of its writes had reached the disk, and another one starts.
    Kill(u8),
    /// The host ends.
    End(StopMode),
}

impl TasksEvent {
    /// Whether it happens although nobody wants it to.
    pub(super) const fn is_rare(self) -> bool {
        match self {
            Self::Stop(_)
            | Self::Die
            | Self::Fail(_)
            | Self::Refuse(_)
            | Self::Cut(_)
            | Self::Trouble(..)
            | Self::Exit(..)
            | Self::Crash
            | Self::Kill(_)
            | Self::End(_)
            | Self::Settle(_, Outcome::Failed | Outcome::FailedButWritten) => true,
            Self::Start(_)
            | Self::Launch
            | Self::Found
            | Self::Begin(_)
            | Self::Done(_)
            | Self::Answer(..)
            | Self::Settle(_, Outcome::Written)
            | Self::Load
            | Self::Pass => false,
        }
    }
}

/// As a line of a history.
impl fmt::Display for TasksEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |question: &Question| format!("{question:?}").to_lowercase();
        match self {
            Self::Start(task) => write!(f, "start t{task}"),
            Self::Stop(task) => write!(f, "stop t{task}"),
            Self::Launch => f.write_str("launch-driver"),
            Self::Found => f.write_str("find-driver"),
            Self::Die => f.write_str("kill-driver"),
            Self::Begin(place) => write!(f, "driver begins start={place}"),
            Self::Done(place) => write!(f, "driver is done with start={place}"),
            Self::Fail(place) => write!(f, "driver fails start={place}"),
            Self::Refuse(place) => write!(f, "driver refuses start={place}"),
            Self::Cut(task) => write!(f, "cut-off start of t{task}"),
            Self::Answer(question, task) => write!(f, "answer {} t{task}", word(question)),
            Self::Trouble(question, task) => write!(f, "fail {} t{task}", word(question)),
            Self::Exit(task, code) => write!(f, "exit t{task} code={code}"),
            Self::Settle(count, Outcome::Written) => write!(f, "settle {count}"),
            Self::Settle(count, Outcome::Failed) => write!(f, "settle {count} fails"),
            Self::Settle(count, Outcome::FailedButWritten) => write!(f, "settle {count} fails-but-is-there"),
            Self::Load => f.write_str("load"),
            Self::Pass => f.write_str("pass-until-due"),
            Self::Crash => f.write_str("crash-next tasks"),
            Self::Kill(reached) => write!(f, "kill-host reached={reached}"),
            Self::End(StopMode::Stop) => f.write_str("stop"),
            Self::End(StopMode::Detach) => f.write_str("detach"),
        }
    }
}
