//! Reports the state of the disk under the database.

use std::time::Duration;

use callboard_actors::persister::DiskHealth;
use callboard_actors::shell::{Database, StopStep};
use callboard_proto::admin::v1 as wire;

use super::convert;
use crate::host::Unwritten;

/// Its health, and how many writes wait for it.
pub(super) fn status(database: &Database) -> wire::DiskStatus {
    let unwritten = u64::try_from(database.unwritten()).unwrap_or(u64::MAX);
    match database.disk().health() {
        DiskHealth::Sound => {
            wire::DiskStatus { health: "sound".to_owned(), unwritten, ..wire::DiskStatus::default() }
        }
        DiskHealth::Sick { reason, since } => {
            let Unwritten { names, more } = Unwritten::of(&database.unwritten_rows());
            wire::DiskStatus {
                health: "sick".to_owned(),
                reason,
                since_unix_ms: convert::unix_ms(since),
                unwritten,
                unwritten_names: names,
                unwritten_more: u64::try_from(more).unwrap_or(u64::MAX),
            }
        }
    }
}

/// The part of a stop that may be undone when the host starts again, because the disk has not taken it.
pub(super) fn unwritten(database: &Database) -> Option<wire::ChildEnding> {
    let (health, unwritten) = (database.disk().health(), database.unwritten());
    let reason = health.reason().filter(|_| unwritten > 0)?;
    let names = Unwritten::of(&database.unwritten_rows()).aside();
    let ending = format!("{unwritten} writes{names} are not on disk: {reason}");
    let step = StopStep { what: "disk".to_owned(), ending, took: Duration::ZERO, is_left: true };
    Some(convert::step(&step))
}
