//! What a driver has been told.

use callboard_actors::driver::{Fingerprint, Reached, StartStep, Trouble};
use callboard_actors::process::ProcessTag;
use callboard_actors::shell::CallLost;

pub(super) type Outcome = Result<Result<Reached, Trouble>, CallLost>;

/// What it has been told of its process and its connection.
#[derive(Debug, Clone, Hash, Default)]
pub(super) struct Known {
    pub(super) process: Option<ProcessTag>,
    /// Whether it was told that nothing runs, and has not had anything launched since.
    pub(super) may_launch: bool,
    /// Whether it hears of the end of its process, now or when it has asked again.
    pub(super) hears_of_end: bool,
    /// What was done over the connection that there is.
    pub(super) read: Option<Vec<StartStep>>,
    /// Whether leases of that connection have ended.
    pub(super) is_hung_up: bool,
    /// Whether calls over it may still end.
    pub(super) is_draining: bool,
    /// Whether it was told that its process cannot be ended, or that no process is known.
    pub(super) is_excused: bool,
}

/// What an input comes to.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Heard {
    /// Something that the machine may act upon.
    Something,
    /// What another try, or the end of another process, comes back with.
    Stale,
    /// The plugin told this of itself.
    Fingerprint(Fingerprint),
    /// A ping has an answer, or has none.
    Pinged(bool),
    /// Its process has ended. True if it was connected to.
    End(bool),
    /// It is to end.
    Stop,
}
