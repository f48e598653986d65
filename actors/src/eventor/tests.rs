//! Journals on one thread. `tests/threads` has those of several.

use futures_util::FutureExt as _;

use super::{JournalId, Taken, TaskEvents, TaskJournals};
use crate::driver::{GapReason, TaskEventItem};

fn gap(missed: u64) -> TaskEventItem {
    TaskEventItem::Gap { missed: Some(missed), reason: GapReason::Forgotten }
}

fn has_ended(mut events: TaskEvents) -> bool {
    events.next().now_or_never() == Some(None)
}

fn open_and_heirs(journals: &TaskJournals) -> String {
    format!("{journals:?}")
}

#[test]
fn what_waits_for_a_handler_and_what_still_comes_goes_to_it_when_it_comes_evt_02() {
    let journals = TaskJournals::default();
    let parked = JournalId::Parked(1);
    assert_eq!(journals.position(parked, 10), None);
    assert_eq!(journals.put(parked, gap(1)), Taken::Kept);
    let (id, mut events) = journals.open(10, None);
    journals.hand_over(parked, id);
    assert_eq!(journals.put(parked, gap(2)), Taken::Kept);
    journals.end(parked);
    assert_eq!(journals.put(id, gap(3)), Taken::Kept);
    assert_eq!([events.try_next(), events.try_next(), events.try_next()], [1, 2, 3].map(gap).map(Some));
    assert_eq!(open_and_heirs(&journals), "TaskJournals { open: 1, heirs: 0 }");
}

#[test]
fn a_journal_ends_with_its_task_with_its_reader_and_with_its_owner() {
    let journals = TaskJournals::default();
    let (forgotten, events) = journals.open(10, None);
    journals.end(forgotten);
    assert!(has_ended(events));
    assert_eq!(journals.put(forgotten, gap(1)), Taken::Had);
    let (_, unregistered) = journals.open(10, None);
    drop(unregistered);
    let [(known, kept), (unknown, lost), (_, new)] = [(); 3].map(|()| journals.open(10, None));
    journals.claim(known);
    journals.claim(unknown);
    journals.end_others(&[known].into());
    assert!(has_ended(lost));
    assert_eq!(open_and_heirs(&journals), "TaskJournals { open: 2, heirs: 0 }");
    journals.end_all();
    assert!(has_ended(kept) && has_ended(new));
    assert_eq!(open_and_heirs(&journals), "TaskJournals { open: 0, heirs: 0 }");
}
