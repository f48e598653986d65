//! What a session has done for it, and what comes back.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::service::{Service, ServiceStep};
use crate::kernel::CallLost;
use crate::process::{Launched, ProcessTag};
use crate::processes::Recalled;
use crate::vocabulary::Generation;

/// One step on the way to a plugin that serves. `T` are the steps of its service.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step<T> {
    /// Look whether a process of it still runs.
    Recall,
    /// Launch one.
    Launch,
    /// Connect to it.
    Dial,
    /// Ask whether it is there (D50).
    Ping,
    /// Ask who it is (D102).
    Identify,
    /// Give it its configuration (D102).
    Configure,
    /// A step of its service.
    Own(T),
    /// Open the stream of fingerprints and read the first one.
    Watch,
}

impl<T: ServiceStep> Step<T> {
    /// What it is, in a sentence about what failed.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Recall => "looking for its process",
            Self::Launch => "launching it",
            Self::Dial => "connecting to it",
            Self::Ping => "Ping",
            Self::Identify => "PluginInfo",
            Self::Configure => "SetConfig",
            Self::Own(step) => step.as_str(),
            Self::Watch => "Fingerprint",
        }
    }
}

impl<T: ServiceStep> fmt::Display for Step<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a session has done for it.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Hash)]
pub enum SessionCall<T> {
    /// Make a step upwards.
    Advance(Step<T>, Option<Box<Launched>>),
    /// Read the next fingerprint from the stream that is open.
    ReadOn,
    /// Ask a plugin that is watched whether it is there (D50).
    Ping,
    /// Wait until this process has ended.
    AwaitEnd(ProcessTag),
    /// Wait until its program is another file than the one that was refused.
    AwaitChange,
    /// End the leases of the connection that there is: no call begins any more, those that only watch fail at once (SHD-03), and all
    /// others when their time is up. It comes back when none is in flight. The connection itself stays for the request to shut down.
    HangUp {
        /// Whether a client dispensed later can help.
        is_worth_retrying: bool,
        /// Why.
        reason: String,
        /// How long calls may take to end.
        within: Duration,
    },
    /// Ask the plugin politely to end (D51).
    ShutdownAnswer,
    /// End the process: this launch, or whichever there is.
    StopProcess {
        /// Which launch.
        tag: Option<ProcessTag>,
        /// How long it may take.
        grace: Duration,
    },
}

/// What came of a [`SessionCall`] that went well. `T` is what the steps and the stream of the service bring.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq)]
pub enum Reached<T> {
    /// What became of its process.
    Recalled(Recalled),
    /// It was launched.
    Launched(Launched),
    /// It is connected to, under this generation.
    Connected(Generation),
    /// It is a plugin of this version.
    Identified {
        /// Its version.
        version: Arc<str>,
    },
    /// Its service told this.
    Told(T),
    /// It was done.
    Done,
    /// The process has ended, in this way.
    Ended(String),
}

/// What kind of failure it was.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TroubleKind {
    /// No answer came, or the connection broke off: the connection is of no use any more.
    Silent,
    /// An answer came, and it is no or of no use.
    Answered,
    /// The plugin does not have this call.
    Unimplemented,
    /// Its program is refused, and the same program will be refused again.
    Refused,
    /// Nothing was begun, through no fault of the plugin, as on a disk that takes no writes.
    NotBegun,
}

/// What came of a [`SessionCall`] that did not go well.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// What kind of failure.
    pub kind: TroubleKind,
    /// What was tried and what came back.
    pub what: String,
}

/// What became of a [`SessionCall`] of a plugin with this service.
#[doc(hidden)]
pub type Outcome<S> = Result<Result<Reached<<S as Service>::Told>, Trouble>, CallLost>;

/// What a session waits for.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SessionTimer {
    /// The next try.
    Retry,
    /// The next fingerprint.
    ReadOn,
    /// The next ping of a plugin that is watched.
    Ping,
    /// The end of its process may be asked for again.
    Reawait,
    /// The end of the plugin's time to end by itself.
    Grace,
}
