//! The events of the tasks in a small world, and their bounds.

use std::fmt;

use callboard_actors::shell::StopMode;
use callboard_actors::tasks::TasksCall;

use crate::Outcome;

/// The properties of a driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Manner {
    /// Whether its process can recover a living task that an earlier process has started.
    pub recovers: bool,
    /// Whether its process outlives its host.
    pub survives: bool,
    /// Whether its tasks end with its process.
    pub carries: bool,
}

/// How often each kind of event may happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TasksBounds {
    /// Tasks of the driver.
    pub tasks: u8,
    /// The properties of the driver.
    pub manner: Manner,
    /// Requests to start a task.
    pub starts: u32,
    /// Requests to stop a task.
    pub stops: u32,
    /// Tasks that end by themselves.
    pub exits: u32,
    /// Deaths of the driver's process.
    pub deaths: u32,
    /// Launches of the driver that are refused, until its program is replaced.
    pub refusals: u32,
    /// Connections of a start that break, while the driver continues with it for any time.
    pub cuts: u32,
    /// Failed starts, whether or not a copy has begun, and failed requests to the driver.
    pub faults: u32,
    /// Failed commits, whether or not they took effect.
    pub failures: u32,
    /// How often the disk becomes sick, and is sound again at any instant.
    pub sicknesses: u32,
    /// Crashed steps.
    pub crashes: u32,
    /// Kills of the host.
    pub kills: u32,
    /// Passages of time until the next timer is due.
    pub pauses: u32,
    /// The modes in which the host may be asked to end, each once, in either order.
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
        refusals: 0,
        cuts: 0,
        faults: 0,
        failures: 0,
        sicknesses: 0,
        crashes: 0,
        kills: 0,
        pauses: 0,
        ends: &[],
    };
}

/// The kind of an open call of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Question {
    /// To start a run.
    Start,
    /// To recover a run.
    Recover,
    /// To query a run.
    Inspect,
    /// To replace the process of its driver.
    Replace,
    /// To wait for its end.
    Wait,
    /// To stop it.
    Stop,
    /// To forget it.
    Destroy,
    /// To end the leftovers of a run.
    Sweep,
}

impl Question {
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
            TasksCall::SetUp(_)
            | TasksCall::SetUpUnconfigured(..)
            | TasksCall::Dismiss { .. }
            | TasksCall::Watch { .. }
            | TasksCall::ReadEvents { .. }
            | TasksCall::Forget { .. }
            | TasksCall::CallOff(_)
            | TasksCall::AwaitDisk { .. }
            | TasksCall::AwaitSent(_)
            | TasksCall::Locate { .. } => None,
        }
    }
}

/// An event. Tasks have numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TasksEvent {
    /// A request to start a task.
    Start(u8),
    /// A request to stop a task.
    Stop(u8),
    /// A process of the driver is launched.
    Launch,
    /// A launch of the driver is refused. The next one is that of another program.
    RefuseLaunch,
    /// The host reattaches the process that its earlier run has left.
    Found,
    /// The driver's process dies.
    Die,
    /// The driver begins a copy of a task, for the start at this index of those in progress.
    Begin(u8),
    /// The driver finishes a start: the copy runs.
    Done(u8),
    /// The driver reports a start as failed, but retryable. What it has begun continues.
    Fail(u8),
    /// The driver refuses a start. What it has begun continues.
    Refuse(u8),
    /// The connection of a start breaks, and the driver continues with it.
    Cut(u8),
    /// A call is answered correctly.
    Answer(Question, u8),
    /// A call fails with an error in between.
    Trouble(Question, u8),
    /// A task ends by itself with this exit code.
    Exit(u8, i32),
    /// This many pending writes settle in this way.
    Settle(u8, Outcome),
    /// The disk becomes sick, or is sound again.
    Disk(bool),
    /// The machine is built from the rows on disk.
    Load,
    /// Time passes until the next timer is due.
    Pass,
    /// The next step crashes.
    Crash,
    /// The host is killed after this many of its writes reached the disk, and another one starts.
    Kill(u8),
    /// The host ends.
    End(StopMode),
}

impl TasksEvent {
    /// Whether it is a fault, or an event against the desired state.
    pub(super) const fn is_rare(self) -> bool {
        match self {
            Self::Stop(_)
            | Self::Die
            | Self::RefuseLaunch
            | Self::Fail(_)
            | Self::Refuse(_)
            | Self::Cut(_)
            | Self::Trouble(..)
            | Self::Exit(..)
            | Self::Crash
            | Self::Kill(_)
            | Self::End(_)
            | Self::Disk(true)
            | Self::Settle(_, Outcome::Failed | Outcome::FailedButWritten) => true,
            Self::Start(_)
            | Self::Launch
            | Self::Found
            | Self::Begin(_)
            | Self::Done(_)
            | Self::Answer(..)
            | Self::Settle(_, Outcome::Written)
            | Self::Disk(false)
            | Self::Load
            | Self::Pass => false,
        }
    }
}

impl fmt::Display for TasksEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |question: &Question| format!("{question:?}").to_lowercase();
        match self {
            Self::Start(task) => write!(f, "start t{task}"),
            Self::Stop(task) => write!(f, "stop t{task}"),
            Self::Launch => f.write_str("launch-driver"),
            Self::RefuseLaunch => f.write_str("refuse-driver"),
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
            Self::Disk(true) => f.write_str("disk sick"),
            Self::Disk(false) => f.write_str("disk sound"),
            Self::Load => f.write_str("load"),
            Self::Pass => f.write_str("pass-until-due"),
            Self::Crash => f.write_str("crash-next tasks"),
            Self::Kill(reached) => write!(f, "kill-host reached={reached}"),
            Self::End(StopMode::Stop) => f.write_str("stop"),
            Self::End(StopMode::Detach) => f.write_str("detach"),
        }
    }
}
