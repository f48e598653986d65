//! The configuration, calls, news and state of one process.

use std::sync::Arc;
use std::time::Duration;

use super::ending::{EndedBy, Exit, ProcessEnding};
use super::identity::{Findings, Identity, Seen};
use super::launch_error::{ExecutableError, LaunchError};
use super::messages::Dropped;
use super::record::{Positions, ProcessRecord};
use super::spec::ProcessSpec;
use crate::goplugin::{Handshake, HandshakeError};
use crate::vocabulary::{Attempt, Timestamp};

/// The configuration of a process actor.
#[doc(hidden)]
#[derive(Debug, Clone, Hash)]
pub struct ProcessConfig {
    /// Its record on disk, at least the intent.
    pub record: ProcessRecord,
    /// The spec to launch; `None` for a process of an earlier owner, which is searched for.
    pub spec: Option<Arc<ProcessSpec>>,
}

/// The news of a process actor for its owner, in order. It ends after [`ProcessNews::Over`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ProcessNews {
    /// It runs, and is not ready yet.
    Spawned(Identity),
    /// It is ready.
    Ready {
        /// Its final identity.
        identity: Identity,
        /// Its handshake, if one was required.
        handshake: Option<Handshake>,
        /// Whether an earlier run of the host started it.
        is_adopted: bool,
    },
    /// It was asked to stop.
    Stopping,
    /// It has ended; its leftovers are being ended.
    Clearing,
    /// Its output was read further.
    Read {
        /// The offsets.
        positions: Positions,
        /// Output that was dropped so far.
        dropped: Dropped,
    },
    /// The final news.
    Over(Box<Over>),
}

/// The result of a process.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Over {
    /// It was not started.
    NotStarted(LaunchError),
    /// It has ended, is reaped, and nothing of it is left.
    Ended {
        /// How it ended.
        ending: ProcessEnding,
        /// The reason.
        why: Why,
        /// Facts about its file, if it was launched and never ready (D34).
        diagnosis: Vec<String>,
    },
    /// The host detaches from it, and it continues.
    Detached(Positions),
    /// The host stopped before the result was known; the record stays.
    Unsettled,
}

/// Why a process ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Why {
    /// By itself.
    Itself,
    /// It was asked to stop.
    Asked,
    /// It sent no handshake before this timeout.
    TimedOut(Duration),
    /// Its handshake is invalid.
    Handshake(HandshakeError),
    /// Its program was modified while it was started (SEC-07).
    Program(ExecutableError),
    /// It is a leftover of an earlier run of the host, in this state.
    Left(String),
    /// The recorded process is not proven to be ours; this names the mismatch. No foreign process was touched.
    NotProven(String),
}

/// The calls of a process.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessCall {
    /// Open the program, verify it, and start it.
    Spawn,
    /// Search for the recorded process, without touching it.
    Find,
    /// Adopt the process that was found and proven.
    Adopt,
    /// End these processes, which are proven to be ours, read the rest of the output, and return it.
    EndLeft(Vec<Seen>),
    /// Wait for its handshake.
    AwaitHandshake,
    /// Wait for its end.
    AwaitEnd,
    /// Wait until its output has been read further.
    AwaitReading,
    /// SIGTERM to its group.
    Terminate,
    /// SIGKILL to all processes that must end with it.
    Kill,
    /// End its leftovers, reap it, and read its output to the end.
    Clear,
    /// Detach: log the output so far, and leave it running.
    LetGo,
}

/// The outcome of a [`ProcessCall`].
#[doc(hidden)]
#[derive(Debug)]
pub enum ProcessOutcome {
    /// The result of the spawn.
    Spawned(Result<Identity, LaunchError>),
    /// The findings, or the error of the search.
    Found(Result<Findings, String>),
    /// Whether it is still the same process behind its file descriptor, and runs: a child may have ended meanwhile.
    Adopted(Result<bool, String>),
    /// Its handshake, or why it failed; and its identity by now, if known.
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
    /// It was detached, and its output was read up to these offsets.
    LetGo(Positions),
}

/// The last output of a process.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LastWords {
    /// The last lines of its standard output, oldest first.
    pub output: Vec<String>,
    /// The last lines of its standard error, oldest first.
    pub errors: Vec<String>,
    /// Its panic trace.
    pub panic: Option<String>,
    /// Facts about its file.
    pub diagnosis: Vec<String>,
}

/// The timers of a process.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProcessTimer {
    /// The handshake timeout.
    Start,
    /// The grace is over.
    Grace,
    /// The next attempt to end its leftovers.
    Clear,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Phase {
    /// It is being started. If it was asked to stop meanwhile, with this grace.
    Intended { end: Option<Duration> },
    /// A process of an earlier run is being searched for and adopted. `end` as above.
    Recalled { end: Option<Duration> },
    /// Processes that are proven to be ours, without the whole identity, are being ended.
    EndingLeft { why: Why, proven: Vec<Seen> },
    /// It runs and its handshake is pending.
    Spawned,
    /// It runs.
    Ready,
    /// It was asked to stop before this time.
    Stopping { why: Why, until: Timestamp },
    /// It has ended with this exit status; its leftovers are being ended.
    Clearing { why: Why, exit: Exit },
    /// The host detaches from it.
    Leaving,
    /// It has ended, and nothing is left to do.
    Over,
}

/// The machine: see the [module](super).
#[derive(Debug)]
pub struct Process {
    pub(super) record: ProcessRecord,
    pub(super) spec: Option<Arc<ProcessSpec>>,
    pub(super) phase: Phase,
    pub(super) by: EndedBy,
    /// When it was started; long ago if it was adopted.
    pub(super) started_at: Timestamp,
    /// The attempt number of the present call.
    pub(super) attempt: Attempt,
}
