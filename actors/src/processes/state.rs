//! What the owner of the processes is made of, and what it has done for it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::process::{
    Dropped, ProcessConfig, ProcessEnding, ProcessName, ProcessPhase, ProcessRecord, ProcessReport,
    ProcessSpec, ProcessTag,
};
use crate::shell::{AskId, Ending, StopMode};
use crate::vocabulary::{Attempt, Backoff, BackoffState, Timestamp};

/// How the owner of the processes is set up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessesOptions {
    /// Random bytes of this start, from which tags are made (PRC-09).
    pub secret: [u8; 16],
    /// How many processes there may be. 1024 by default.
    pub processes_max: usize,
    /// How many questions may wait, all together. 4096 by default.
    pub waiting_max: usize,
    /// How many endings are remembered for those who ask later. 256 by default.
    pub endings_max: usize,
    /// How often the positions of the outputs are written down while they advance. 1 s by default.
    pub save_every: Duration,
    /// How soon the actor of a process is started again after it crashed. The process hears nothing of it.
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

/// What is written in one piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessesChange {
    /// These records are as they are here.
    Keep(Vec<ProcessRecord>),
    /// This one is gone.
    Forget(ProcessName),
}

/// What the owner of the processes has done for it.
#[derive(Debug, Clone)]
pub enum ProcessesCall {
    /// Let go of every process actor that there is: none of them is known to this life of the machine. The processes go on,
    /// but for those whose launch had not come to its end.
    Release,
    /// End what is ours by its mark and stands in no record.
    Sweep {
        /// The tags that stand in records.
        known: Vec<ProcessTag>,
        /// The names that stand in records: their directories stay.
        names: Vec<ProcessName>,
    },
    /// Wait until process actors have ended.
    AwaitEndings,
    /// Start the actor of a process.
    Start {
        /// Which life of it this will be.
        life: Attempt,
        /// What it is born with.
        config: Box<ProcessConfig>,
    },
    /// Tell it to end its process.
    End {
        /// Which life.
        life: Attempt,
        /// How long the process may take.
        grace: Duration,
    },
    /// Tell it that the host ends.
    Stop {
        /// Which life.
        life: Attempt,
        /// In which way.
        mode: StopMode,
    },
}

/// What came of a [`ProcessesCall`].
#[derive(Debug)]
pub enum ProcessesOutcome {
    /// It was done.
    Done,
    /// These process ids were ended, or the processes could not be looked at.
    Swept(Result<Vec<u32>, String>),
    /// These actors have ended; at least one.
    Ended(Vec<ChildEnded>),
}

/// A process actor has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChildEnded {
    /// Of which process.
    pub name: ProcessName,
    /// Which life.
    pub life: Attempt,
    /// How.
    pub ending: Ending,
}

/// What the owner of the processes waits for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProcessesTimer {
    /// Positions are to be written down.
    Save,
    /// The actor of this process is to be started again.
    Restart(ProcessName),
    /// What could not be swept is to be looked at again.
    Sweep,
    /// Everything should have ended by now.
    Patience,
}

/// Who waits for something of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waiter {
    /// Whoever launched it.
    Launch(AskId),
    /// Whoever asked what became of it.
    Recall(AskId),
    /// Whoever stops it.
    Stop(AskId),
    /// Whoever waits for its end.
    End(AskId),
}

/// One process.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) record: ProcessRecord,
    /// `None` for one that was found.
    pub(super) spec: Option<Arc<ProcessSpec>>,
    /// Which life of its actor is current.
    pub(super) life: Attempt,
    pub(super) phase: ProcessPhase,
    pub(super) since: Timestamp,
    pub(super) is_adopted: bool,
    pub(super) dropped: Dropped,
    /// Whether the record on disk is behind with the positions.
    pub(super) is_behind: bool,
    pub(super) waiters: Vec<Waiter>,
    /// A launch that waits until it is known what became of this one.
    pub(super) next: Option<(AskId, Arc<ProcessSpec>)>,
    /// The shortest grace that it was told to end within, for an actor that has to be told again.
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
            dropped: Dropped::default(),
            is_behind: false,
            waiters: Vec::new(),
            next: None,
            ending: None,
            restarts: BackoffState::default(),
        }
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.record.identity.as_ref().map(|identity| identity.pid)
    }

    /// Both in words.
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
            lines_dropped: self.dropped.lines,
            bytes_dropped: self.dropped.bytes,
        }
    }
}

/// What is remembered of a process that is over.
#[derive(Debug, Clone)]
pub(super) struct Remembered {
    pub(super) name: ProcessName,
    pub(super) tag: ProcessTag,
    /// `None` for a record that was retired.
    pub(super) ending: Option<ProcessEnding>,
    pub(super) reason: String,
}

/// Whether what is ours and stands in no record has been ended. Until then nothing is launched: it would be taken for such.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sweeping {
    /// It is being looked for.
    UnderWay,
    /// It is gone; records may still be unsettled.
    Swept,
    /// Everything that was left is settled, and that was said.
    Settled,
}

/// The machine: see the [module](super).
#[derive(Debug, Clone)]
pub struct Processes {
    pub(super) options: ProcessesOptions,
    pub(super) entries: BTreeMap<ProcessName, Entry>,
    pub(super) remembered: VecDeque<Remembered>,
    pub(super) sweeping: Sweeping,
    /// Launches that wait for the sweep, in the order in which they came.
    pub(super) early: VecDeque<(AskId, ProcessName, Arc<ProcessSpec>)>,
    pub(super) is_saving: bool,
    pub(super) stopping: Option<StopMode>,
    /// The number of the latest life of any actor. It starts at random, so that lives known to a former life of this machine
    /// have other numbers.
    pub(super) life: Attempt,
    /// How many tags were made.
    pub(super) launches: u64,
}
