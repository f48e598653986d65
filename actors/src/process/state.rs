//! What the machine of one process is made of, and what it has done for it.

use std::sync::Arc;
use std::time::Duration;

use super::ending::{EndedBy, Exit, ProcessEnding};
use super::identity::{Findings, Identity, Seen};
use super::launch_error::{ExecutableError, LaunchError};
use super::messages::Dropped;
use super::record::{Positions, ProcessRecord};
use super::spec::ProcessSpec;
use crate::conversation;
use crate::goplugin::{Handshake, HandshakeError};
use crate::vocabulary::{Attempt, Timestamp};

/// What a process actor is born with.
#[derive(Debug, Clone)]
pub struct ProcessConfig {
    /// What is on disk of it, the intent at least.
    pub record: ProcessRecord,
    /// What is to be launched; `None` for a process that an earlier owner left, which is looked for.
    pub spec: Option<Arc<ProcessSpec>>,
}

/// Ends the process: SIGTERM to its group, and after the grace SIGKILL to all that is to end with it. Told again, the shorter
/// time holds. What came of it is told as news.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndProcess {
    /// How long it may take to end by itself.
    pub grace: Duration,
}

conversation! {
    /// What is said to a process actor, by its owner alone.
    pub enum ProcessAsk -> ProcessAnswer for Process {
        EndProcess => (),
    }
}

/// What a process actor tells its owner, in order. After [`ProcessNews::Over`] it ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessNews {
    /// It runs, and is not ready yet.
    Spawned(Identity),
    /// It is ready.
    Ready {
        /// What proves that it is it from now on.
        identity: Identity,
        /// What it said in its handshake, if one was wanted.
        handshake: Option<Handshake>,
        /// Whether an earlier run of the host started it.
        is_adopted: bool,
    },
    /// It was asked to end.
    Stopping,
    /// It has ended; what it left is being ended.
    Clearing,
    /// Its output was read further.
    Read {
        /// How far.
        positions: Positions,
        /// What was not told so far, since it was too much.
        dropped: Dropped,
    },
    /// That is all of it.
    Over(Box<Over>),
}

/// How it came out with a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Over {
    /// Nothing was started.
    NotStarted(LaunchError),
    /// It has ended, is reaped, and nothing of it is left.
    Ended {
        /// How it ended.
        ending: ProcessEnding,
        /// Why.
        why: Why,
        /// What can be seen of its file, if it was launched and never ready (D34).
        diagnosis: Vec<String>,
    },
    /// The host lets go of it, and it goes on.
    Detached(Positions),
    /// The host ended before it was known what became of it; its record stays.
    Unsettled,
}

/// Why a process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// For a reason of its own.
    Itself,
    /// It was asked to.
    Asked,
    /// It said no handshake in this time.
    TimedOut(Duration),
    /// What it said is no handshake that can be accepted.
    Handshake(HandshakeError),
    /// Its program was changed while it was started (SEC-07).
    Program(ExecutableError),
    /// An earlier run of the host left it; this says in what state it was found.
    Left(String),
    /// The record points at what is not proven to be the process; this says what does not fit. No foreign process was
    /// touched.
    NotProven(String),
}

/// What the machine has done for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessCall {
    /// Open the program, check it, and start it.
    Spawn,
    /// Look for what the record points at, without touching it.
    Find,
    /// Take the process that was found and proven.
    Adopt,
    /// End these, which are proven to be ours, read what output there is, and say what was left.
    EndLeft(Vec<Seen>),
    /// Wait for its handshake.
    AwaitHandshake,
    /// Wait for its end.
    AwaitEnd,
    /// Wait until its output has been read further.
    AwaitReading,
    /// SIGTERM to its group.
    Terminate,
    /// SIGKILL to all that is to end with it.
    Kill,
    /// End what it left, reap it, and read its output to the end.
    Clear,
    /// Let go of it: log what it wrote so far, and leave it running.
    LetGo,
}

/// What came of a [`ProcessCall`].
#[derive(Debug)]
pub enum ProcessOutcome {
    /// It was started, or was not.
    Spawned(Result<Identity, LaunchError>),
    /// What was found, or that nothing could be seen.
    Found(Result<Findings, String>),
    /// Whether it was still the same behind its descriptor, and runs: a child may have ended meanwhile.
    Adopted(Result<bool, String>),
    /// It said its handshake, or why that does not hold; and what it is by now, where that can be told.
    Shaken(Result<Handshake, Why>, Option<Identity>),
    /// It has ended.
    Ended(Exit),
    /// Its output has been read so far.
    Reading(Positions, Dropped),
    /// It was done.
    Done,
    /// This many processes do not end yet.
    Left(usize),
    /// Nothing is left of it.
    Cleared(Box<LastWords>),
    /// It is on its own, and its output was read so far.
    LetGo(Positions),
}

/// What is left of a process when it is gone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LastWords {
    /// The last lines of its standard output, oldest first.
    pub output: Vec<String>,
    /// The last lines of its standard error, oldest first.
    pub errors: Vec<String>,
    /// The trace of its panic.
    pub panic: Option<String>,
    /// What can be seen of its file.
    pub diagnosis: Vec<String>,
}

/// What the machine waits for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProcessTimer {
    /// It should have said its handshake by now.
    Start,
    /// It should have ended by now.
    Grace,
    /// What is left of it may end now.
    Clear,
}

/// What the process is at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Phase {
    /// It is being started. If it was asked to end meanwhile, then with this grace.
    Intended { end: Option<Duration> },
    /// What an earlier run left is being looked for, and then taken. The same holds.
    Recalled { end: Option<Duration> },
    /// What is ours of something that is not proven as a whole is being ended.
    EndingLeft { why: Why, proven: Vec<Seen> },
    /// It runs and has not said its handshake.
    Spawned,
    /// It runs.
    Ready,
    /// It was told to end by this time.
    Stopping { why: Why, until: Timestamp },
    /// It has ended in this way; what it left is being ended.
    Clearing { why: Why, exit: Exit },
    /// The host lets go of it.
    Leaving,
    /// It is over.
    Over,
}

/// The machine: see the [module](super).
#[derive(Debug)]
pub struct Process {
    pub(super) record: ProcessRecord,
    pub(super) spec: Option<Arc<ProcessSpec>>,
    pub(super) phase: Phase,
    pub(super) by: EndedBy,
    /// When it was started: for an adopted one long ago.
    pub(super) started_at: Timestamp,
    /// Which try of the present call this is.
    pub(super) attempt: Attempt,
}
