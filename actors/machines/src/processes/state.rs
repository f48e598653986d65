//! The options, calls and state of the owner of the processes.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::kernel::{AskId, Ending, StopMode};
use crate::process::{
    Dropped, ProcessConfig, ProcessEnding, ProcessName, ProcessPhase, ProcessRecord, ProcessReport,
    ProcessSpec, ProcessTag,
};
use crate::vocabulary::{Attempt, Backoff, BackoffState, Timestamp};

/// The options of the owner of the processes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ProcessesOptions {
    /// Random bytes of this start, from which tags are derived (PRC-09).
    pub secret: [u8; 16],
    /// The limit of processes. 1024 by default.
    pub processes_max: usize,
    /// The limit of waiting callers, in total. 4096 by default.
    pub waiting_max: usize,
    /// The number of endings that are remembered for later callers. 256 by default.
    pub endings_max: usize,
    /// How often the positions of the outputs are written while they advance. 1 s by default.
    pub save_every: Duration,
    /// The backoff before the actor of a process is restarted after a crash. The process is not affected.
    pub restart_backoff: Backoff,
    /// How long the processes may take to end beyond their grace when the host stops. 10 s by default.
    pub stop_margin: Duration,
}

impl ProcessesOptions {
    /// The defaults, with these random bytes.
    #[must_use]
    pub fn new(secret: [u8; 16]) -> Self {
        Self {
            secret,
            processes_max: 1_024,
            waiting_max: 4_096,
            endings_max: 256,
            save_every: Duration::from_secs(1),
            restart_backoff: Backoff::default(),
            stop_margin: Duration::from_secs(10),
        }
    }
}

/// One atomic write.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ProcessesChange {
    /// Insert or replace these records.
    Keep(Vec<ProcessRecord>),
    /// Remove this record.
    Forget(ProcessName),
}

/// The calls of the owner of the processes.
#[doc(hidden)]
#[derive(Debug, Clone, Hash)]
pub enum ProcessesCall {
    /// Drop all process actors: this life of the machine knows none of them. Processes continue, except unfinished launches.
    Release,
    /// End processes that have our owner variable and no record.
    Sweep {
        /// The tags in the records.
        known: Vec<ProcessTag>,
        /// The names in the records: their directories stay.
        names: Vec<ProcessName>,
    },
    /// Wait until process actors have ended.
    AwaitEndings,
    /// Wait until everything that was written before is on disk, and with it the record of this launch.
    AwaitDisk {
        /// The name of the process.
        name: ProcessName,
        /// The launch.
        tag: ProcessTag,
    },
    /// Start the actor of a process.
    Start {
        /// The life of the actor.
        life: Attempt,
        /// The configuration of the actor.
        config: Box<ProcessConfig>,
    },
    /// Ask it to end its process.
    End {
        /// The life of the actor.
        life: Attempt,
        /// The grace.
        grace: Duration,
    },
    /// Ask it to stop with the host.
    Stop {
        /// The life of the actor.
        life: Attempt,
        /// The stop mode.
        mode: StopMode,
    },
}

/// The outcome of a [`ProcessesCall`].
#[doc(hidden)]
#[derive(Debug)]
pub enum ProcessesOutcome {
    /// It was done.
    Done,
    /// The PIDs that were ended, or the error of the search.
    Swept(Result<Vec<u32>, String>),
    /// These actors have ended; at least one.
    Ended(Vec<ChildEnded>),
}

/// A process actor has ended.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChildEnded {
    /// The name of the process.
    pub name: ProcessName,
    /// The life of the actor.
    pub life: Attempt,
    /// How it ended.
    pub ending: Ending,
}

/// The timers of the owner of the processes.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ProcessesTimer {
    /// The endings of children are waited for again.
    AwaitEndings,
    /// Positions are written.
    Save,
    /// The actor of this process is restarted.
    Restart(ProcessName),
    /// A failed sweep is retried.
    Sweep,
    /// The timeout for the end of all processes.
    StopDeadline,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Waiter {
    Launch(AskId),
    Recall(AskId),
    Stop(AskId),
    End(AskId),
}

#[derive(Debug, Clone, Hash)]
pub(super) struct Entry {
    pub(super) record: ProcessRecord,
    /// `None` for a process that was found.
    pub(super) spec: Option<Arc<ProcessSpec>>,
    pub(super) life: Attempt,
    pub(super) phase: ProcessPhase,
    pub(super) since: Timestamp,
    pub(super) is_adopted: bool,
    /// Whether its actor has reported that it is ready.
    pub(super) has_said_ready: bool,
    pub(super) dropped: Dropped,
    /// Whether the positions in the record on disk are stale.
    pub(super) is_behind: bool,
    pub(super) waiters: Vec<Waiter>,
    /// A launch that waits for the end of this one.
    pub(super) next: Option<(AskId, Arc<ProcessSpec>)>,
    /// The shortest grace that was requested, to repeat it after a crash of the actor.
    pub(super) ending: Option<Duration>,
    pub(super) restarts: BackoffState,
}

impl Entry {
    pub(super) fn new(record: ProcessRecord, phase: ProcessPhase, now: Timestamp) -> Self {
        Self {
            record,
            spec: None,
            life: Attempt::default(),
            phase,
            since: now,
            is_adopted: false,
            has_said_ready: false,
            dropped: Dropped::default(),
            is_behind: false,
            waiters: Vec::new(),
            next: None,
            ending: None,
            restarts: BackoffState::default(),
        }
    }

    /// Whether its intent is not on disk yet, so that nothing has been started for it.
    pub(super) fn is_only_intended(&self) -> bool {
        self.phase == ProcessPhase::Intended && self.life == Attempt::default()
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.record.identity.as_ref().map(|identity| identity.pid)
    }

    pub(super) fn name_and_pid(&self) -> String {
        match self.pid() {
            Some(pid) => format!("{} (pid {pid})", self.record.name),
            None => format!("{} (pid unknown)", self.record.name),
        }
    }

    pub(super) fn report(&self) -> ProcessReport {
        ProcessReport {
            name: self.record.name.clone(),
            tag: self.record.tag,
            pid: self.pid(),
            phase: self.phase,
            since: self.since,
            started_at: self.record.started_at,
            lifetime: self.record.lifetime,
            reach: self.record.reach,
            is_adopted: self.is_adopted,
            is_unsettled: self.is_unsettled(),
            lines_dropped: self.dropped.lines,
            bytes_dropped: self.dropped.bytes,
        }
    }
}

/// The remembered result of a process that is over.
#[derive(Debug, Clone, Hash)]
pub(super) struct Remembered {
    pub(super) name: ProcessName,
    pub(super) tag: ProcessTag,
    /// `None` for a record that was retired.
    pub(super) ending: Option<ProcessEnding>,
    pub(super) reason: String,
}

/// Whether processes without a record have been ended. Nothing is launched before: the sweep would treat it as a process without a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Sweeping {
    UnderWay,
    /// They are gone; records may still be unsettled.
    Swept,
    /// All leftovers are settled, and that was published.
    Settled,
}

/// The machine: see the [module](super).
#[derive(Debug, Clone, Hash)]
pub struct Processes {
    pub(super) options: ProcessesOptions,
    pub(super) entries: BTreeMap<ProcessName, Entry>,
    pub(super) remembered: VecDeque<Remembered>,
    pub(super) sweeping: Sweeping,
    /// Launches that wait for the sweep, in their order.
    pub(super) early: VecDeque<(AskId, ProcessName, Arc<ProcessSpec>)>,
    pub(super) is_saving: bool,
    pub(super) stopping: Option<StopMode>,
    /// The number of the latest life of any actor. Starts at random, to differ from those before a rebuild of this machine.
    pub(super) life: Attempt,
    /// The number of tags made.
    pub(super) launches: u64,
}
