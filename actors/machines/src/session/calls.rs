//! The calls of a session, and their outcomes.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::service::{Service, ServiceStep};
use crate::kernel::CallLost;
use crate::process::{Launched, ProcessTag};
use crate::processes::Recalled;
use crate::vocabulary::Generation;

/// One step towards a plugin that serves. `T` are the steps of its service.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step<T> {
    /// Check whether one of its processes still runs.
    Recall,
    /// Launch a process.
    Launch,
    /// Connect to it.
    Dial,
    /// Ask whether it responds (D50).
    Ping,
    /// Ask for its identity (D102).
    Identify,
    /// Send it its configuration (D102).
    Configure,
    /// A step of its service.
    Own(T),
    /// Open the stream of fingerprints and read the first one.
    Watch,
}

impl<T: ServiceStep> Step<T> {
    /// The name of the step, for a sentence about its failure.
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

/// The calls of a session.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Hash)]
pub enum SessionCall<T> {
    /// Make the next step towards serving.
    Advance(Step<T>, Option<Box<Launched>>),
    /// Read the next fingerprint from the open stream.
    ReadOn,
    /// Ping a watched plugin (D50).
    Ping,
    /// Wait until this process has ended.
    AwaitEnd(ProcessTag),
    /// Wait until its program is another file than the refused one.
    AwaitChange,
    /// End the leases of the present connection: no new call starts, calls that only watch fail at once (SHD-03), and all
    /// others when their deadline expires. It returns when none is in flight. The connection itself stays for the request to shut down.
    HangUp {
        /// Whether a client dispensed later can help.
        is_worth_retrying: bool,
        /// The reason.
        reason: String,
        /// The deadline for calls to end.
        within: Duration,
    },
    /// Ask the plugin to shut down (D51).
    ShutdownAnswer,
    /// End the process: this launch, or any present one.
    StopProcess {
        /// The launch.
        tag: Option<ProcessTag>,
        /// The grace.
        grace: Duration,
    },
}

/// The result of a successful [`SessionCall`]. `T` is the result of the steps and the stream of the service.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq)]
pub enum Reached<T> {
    /// The result of the recall of its process.
    Recalled(Recalled),
    /// It was launched.
    Launched(Launched),
    /// The connection is open, under this generation.
    Connected(Generation),
    /// It is a plugin of this version.
    Identified {
        /// Its version.
        version: Arc<str>,
    },
    /// The result of its service.
    Told(T),
    /// It was done.
    Done,
    /// The process has ended, in this way.
    Ended(String),
}

/// The kind of a failure.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TroubleKind {
    /// No answer came, or the connection was lost: the connection is unusable.
    Silent,
    /// An answer came, and it is a refusal or unusable.
    Answered,
    /// The plugin does not have this call.
    Unimplemented,
    /// Its program is refused, and the same program will be refused again.
    Refused,
    /// Nothing was started, and the plugin is not at fault, as with a disk that takes no writes.
    NotBegun,
}

/// The error of a failed [`SessionCall`].
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// The kind of failure.
    pub kind: TroubleKind,
    /// The attempted operation and its result.
    pub what: String,
}

/// The outcome of a [`SessionCall`] of a plugin with this service.
#[doc(hidden)]
pub type Outcome<S> = Result<Result<Reached<<S as Service>::Told>, Trouble>, CallLost>;

/// The timers of a session.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SessionTimer {
    /// The next attempt.
    Retry,
    /// The next fingerprint.
    ReadOn,
    /// The next ping of a watched plugin.
    Ping,
    /// The next wait for the end of its process.
    Reawait,
    /// The end of the plugin's grace to end by itself.
    Grace,
}
