//! Model checks events of a task that are put into the journal of a future handler, while another thread hands the journal over to it.

use shuttle::thread;

use crate::driver::{GapReason, TaskEventItem};
use crate::eventor::journals::TaskJournals;
use crate::eventor::{JournalId, Taken};
use crate::under_many_schedules;

fn gap(missed: u64) -> TaskEventItem {
    TaskEventItem::Gap { missed: Some(missed), reason: GapReason::Forgotten }
}

#[test]
fn what_is_put_while_a_journal_is_handed_over_is_neither_lost_nor_overtaken_evt_02() {
    under_many_schedules(|| {
        let (journals, parked) = (TaskJournals::default(), JournalId::Parked(1));
        assert_eq!(journals.position(parked, 10), None);
        let (id, mut events) = journals.open(10, None);
        let eventor = {
            let journals = journals.clone();
            thread::spawn(move || {
                for number in 1..=3 {
                    assert_eq!(journals.put(parked, gap(number)), Taken::Kept);
                }
            })
        };
        journals.hand_over(parked, id);
        eventor.join().expect("it puts them in");
        let read: Vec<_> = std::iter::from_fn(|| events.try_next()).collect();
        assert_eq!(read, [1, 2, 3].map(gap));
    });
}
