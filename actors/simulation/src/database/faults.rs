//! Persisters that are wrong on purpose, so that one can see which law reports it.

/// A fault that is put between the queue and the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PersisterFault {
    /// It tells its owners before the commit is on disk.
    AnswersBeforeTheSync,
    /// It loses the last row of a commit that several writes share.
    DropsARow,
    /// It tells only the first of those who share a commit.
    ForgetsAnOwner,
    /// It carries out the writes of a commit in another order.
    ReversesACommit,
    /// After a failure it goes on with what was decided on top of it.
    GoesOnAfterAFailure,
    /// After a failure every further commit fails.
    StaysBroken,
    /// It tells a failure twice.
    TellsTwice,
    /// It brings a commit to disk in two halves.
    TakesHalves,
    /// It brings what was merged to disk in two halves.
    TakesHalvesOfAMerge,
    /// It begins the same run again.
    KeepsItsRun,
    /// It says nothing of records that are damaged.
    OverlooksDamage,
    /// It loads a table without its first record.
    LosesARecord,
}
