//! Plans the events of a database, if there is one, instead of those of rows.

use callboard_actors::persister::{DiskFault, Reached};

use super::super::super::database::Trouble;
use super::super::super::writes::Outcome;
use super::super::database::DatabaseDoing;
use super::super::event::EventKind;
use super::Plan;

/// Only few commits change the disk more often than this.
const CHANGES: u64 = 14;

impl Plan {
    /// The same event for a real database: a failure has a cause, and a host is killed at some change of the disk.
    pub(super) fn in_database(&mut self, what: EventKind) -> EventKind {
        EventKind::Database(match what {
            EventKind::Settle(count, Outcome::Written) => DatabaseDoing::Commit(count, None),
            EventKind::Settle(count, Outcome::Failed | Outcome::FailedButWritten) => {
                DatabaseDoing::Commit(count, Some(self.trouble()))
            }
            EventKind::Load(true) => DatabaseDoing::Load(None),
            EventKind::Load(false) => DatabaseDoing::Load(Some(self.trouble())),
            EventKind::KillHost(committing, of_processes) => {
                let change = self.random.below(CHANGES);
                DatabaseDoing::Kill { committing, of_processes, change, reached: self.reached() }
            }
            other => return other,
        })
    }

    fn trouble(&mut self) -> Trouble {
        let fault =
            self.random.one_of(&[DiskFault::Full, DiskFault::ReadOnly, DiskFault::Broken, DiskFault::Syncs]);
        Trouble { after: self.random.below(CHANGES), fault }
    }

    /// A host is killed alone as often as its machine crashes.
    fn reached(&mut self) -> Reached {
        match self.random.below(4) {
            0..=1 => Reached::Everything,
            2 => Reached::Nothing,
            _ => Reached::Chosen(self.random.next()),
        }
    }
}
