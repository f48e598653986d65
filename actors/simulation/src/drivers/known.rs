//! The knowledge of a driver about its process.

use callboard_actors::driver::{Fingerprint, Reached, StartStep, Trouble};
use callboard_actors::process::ProcessTag;
use callboard_actors::shell::CallLost;

pub(super) type Outcome = Result<Result<Reached, Trouble>, CallLost>;

/// The reports that it received about its process and its connection.
#[derive(Debug, Clone, Hash, Default)]
pub(super) struct Known {
    pub(super) process: Option<ProcessTag>,
    /// Whether it was notified that nothing runs, and has not launched anything since.
    pub(super) may_launch: bool,
    /// Whether it will be notified of the end of its process, now or after it has asked again.
    pub(super) hears_of_end: bool,
    /// The steps that were done over the present connection.
    pub(super) read: Option<Vec<StartStep>>,
    /// Whether leases of that connection have ended.
    pub(super) is_hung_up: bool,
    /// Whether calls over it may still end.
    pub(super) is_draining: bool,
    /// Whether it was notified that its process cannot be ended, or that no process is known.
    pub(super) is_excused: bool,
}

/// The meaning of an input.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Heard {
    /// An input that the machine may act on.
    Something,
    /// A result of another try, or the end of another process.
    Stale,
    /// The plugin reported this fingerprint.
    Fingerprint(Fingerprint),
    /// A ping has an answer, or has none.
    Pinged(bool),
    /// Its process has ended. True if it was connected to.
    End(bool),
    /// It is requested to end.
    Stop,
}
