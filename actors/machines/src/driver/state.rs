//! What a driver is made of, and what it remembers.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::spec::{DriverLimits, DriverSpec};
use super::{Attributes, DriverCapabilities, DriverHealth, DriverReport, MountSupport, Recent};
use crate::kernel::StopMode;
use crate::process::{Launched, ProcessName, ProcessTag};
use crate::processes::Recalled;
use crate::vocabulary::{Attempt, BackoffState, Generation, Timestamp};

/// What a driver is there for.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DriverMode {
    /// To serve.
    Serve,
    /// To end what an earlier run of the host left of it, once that has been proven to be it. Nothing is launched.
    Retire,
}

/// What a driver is born with.
#[doc(hidden)]
#[derive(Debug, Clone, Hash)]
pub struct DriverConfig {
    /// What it is to be.
    pub spec: DriverSpec,
    /// The name of its process.
    pub process: ProcessName,
    /// What it is there for.
    pub mode: DriverMode,
    /// Its limits.
    pub limits: DriverLimits,
}

/// One step on the way to a driver that serves.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StartStep {
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
    /// Let it prepare itself (D109).
    Initialise,
    /// Ask what it can do (D103).
    Capabilities,
    /// Open the stream of fingerprints and read the first one (D105).
    Watch,
}

impl StartStep {
    /// What it is, in a sentence about what failed.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Recall => "looking for its process",
            Self::Launch => "launching it",
            Self::Dial => "connecting to it",
            Self::Ping => "Ping",
            Self::Identify => "PluginInfo",
            Self::Configure => "SetConfig",
            Self::Initialise => "Init",
            Self::Capabilities => "Capabilities",
            Self::Watch => "Fingerprint",
        }
    }
}

impl fmt::Display for StartStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a driver has done for it.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Hash)]
pub enum DriverCall {
    /// Make a step upwards.
    Advance(StartStep, Option<Box<Launched>>),
    /// Read the next fingerprint from the stream that is open.
    ReadOn,
    /// Wait until this process has ended.
    AwaitEnd(ProcessTag),
    /// Wait until its program is another file than the one that was refused.
    AwaitChange,
    /// End the leases of the connection that there is: no call begins any more, those that only watch fail at once (SHD-03), and all
    /// others when their time is up. It comes back when none is in flight. The connection itself stays for a polite goodbye.
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

/// What a driver said of itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Fingerprint {
    /// Undetected, unhealthy or healthy.
    pub health: DriverHealth,
    /// In its own words.
    pub description: String,
    /// Its attributes.
    pub attributes: Attributes,
}

/// What came of a [`DriverCall`] that went well.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq)]
pub enum Reached {
    /// What became of its process.
    Recalled(Recalled),
    /// It was launched.
    Launched(Launched),
    /// It is connected to, under this generation.
    Connected(Generation),
    /// It is a driver of this version.
    Identified {
        /// Its version.
        version: Arc<str>,
    },
    /// It can do this.
    Capable(DriverCapabilities),
    /// It told this of itself.
    Fingerprinted(Fingerprint),
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

/// What came of a [`DriverCall`] that did not go well.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// What kind of failure.
    pub kind: TroubleKind,
    /// What was tried and what came back.
    pub what: String,
}

/// What a driver waits for.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DriverTimer {
    /// The next try.
    Retry,
    /// The next fingerprint.
    ReadOn,
    /// The end of its process may be asked for again.
    Reawait,
    /// The end of the plugin's time to end by itself.
    Grace,
}

/// What comes after the end of its process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Then {
    /// Another one.
    Anew,
    /// Nothing.
    Leave,
}

/// How far the end of its process has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Ending {
    /// It is not known yet whether there is one.
    Recalling,
    /// Calls in flight may end.
    Draining,
    /// It is being asked politely.
    ShutdownAnswer,
    /// It was asked politely, and may take its time.
    Leaving,
    /// It is being ended by signals.
    Stopping,
}

/// Where a driver stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Phase {
    /// A step upwards is being made.
    Starting(StartStep),
    /// The next fingerprint is awaited.
    Watching,
    /// A fingerprint came, and the next is not read yet.
    Resting,
    /// Something failed; a timer tries again.
    Pausing,
    /// Its program is refused. It is launched again when the program has changed, or when a restart is requested.
    Refused,
    /// Its process is being ended since the time given.
    Ending(Ending, Then, Timestamp),
    /// It is over.
    Gone,
}

/// What was read over the connection that there is.
#[derive(Debug, Clone, Hash, Default)]
pub(super) struct Reading {
    pub(super) is_pinged: bool,
    pub(super) is_identified: bool,
    pub(super) is_configured: bool,
    pub(super) is_initialised: bool,
    pub(super) is_capable: bool,
}

impl Reading {
    /// What is to be asked next.
    pub(super) const fn next(&self) -> StartStep {
        match self {
            Self { is_pinged: false, .. } => StartStep::Ping,
            Self { is_identified: false, .. } => StartStep::Identify,
            Self { is_configured: false, .. } => StartStep::Configure,
            Self { is_initialised: false, .. } => StartStep::Initialise,
            Self { is_capable: false, .. } => StartStep::Capabilities,
            Self { .. } => StartStep::Watch,
        }
    }
}

/// What is known of the connection.
#[derive(Debug, Clone, Hash)]
pub(super) enum Link {
    /// There is none, or it is of no use.
    Down,
    /// It is open, to this launch, and this was read over it.
    Up(ProcessTag, Reading),
}

/// The machine: see the [module](super).
#[derive(Debug, Clone, Hash)]
pub struct Driver {
    pub(super) config: DriverConfig,
    pub(super) phase: Phase,
    pub(super) process: Option<Launched>,
    pub(super) link: Link,
    pub(super) report: DriverReport,
    pub(super) told: Option<DriverReport>,
    /// Whether it mounts, as it has said over its present connection.
    pub(super) told_mounts: MountSupport,
    pub(super) attempt: Attempt,
    pub(super) backoff: BackoffState,
    /// How many failures in a row there were without an answer.
    pub(super) silent_failures: u32,
    /// Whether a restart was requested, and it is not known yet that nothing of it runs. What is found until then is ended.
    pub(super) is_restart_due: bool,
    pub(super) troubles: Recent,
    /// How it is to end, once that has begun.
    pub(super) stop: Option<StopMode>,
}
