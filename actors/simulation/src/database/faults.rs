//! Persisters with deliberate faults, to show which law detects them.

/// A fault between the queue and the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PersisterFault {
    /// It notifies its owners before the commit is on disk.
    AnswersBeforeTheSync,
    /// It loses the last row of a commit that several writes share.
    DropsARow,
    /// It notifies only the first of the owners that share a commit.
    ForgetsAnOwner,
    /// It carries out the writes of a commit in another order.
    ReversesACommit,
    /// After a failure it carries out writes that depend on the failed one.
    GoesOnAfterAFailure,
    /// After a failure every further commit fails.
    StaysBroken,
    /// It reports a failure twice.
    TellsTwice,
    /// It writes a commit to disk in two halves.
    TakesHalves,
    /// It writes merged writes to disk in two halves.
    TakesHalvesOfAMerge,
    /// It does not increase the run number.
    KeepsItsRun,
    /// It does not report damaged records.
    OverlooksDamage,
    /// It loads a table without its first record.
    LosesARecord,
}
