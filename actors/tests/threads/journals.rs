//! Model checks actors on two threads that write to one journal, and a reader that comes meanwhile.

use callboard_machines::FeedItem;
use shuttle::{future, thread};

use crate::kernel::Ending;
use crate::shell::journal::{Detail, Journal, Recorded};
use crate::sync::Arc;
use crate::under_many_schedules;
use crate::vocabulary::Timestamp;

/// The entry of the last actor, which marks the end for the reader.
const END: Recorded = Recorded::Ended { ending: Ending::Normal, is_waiting: false };

fn write(journal: &Journal, entry: Recorded) {
    journal.record("test", &Arc::from("actor"), Timestamp::from_epoch(std::time::Duration::ZERO), entry);
}

#[test]
fn a_reader_that_comes_meanwhile_reads_every_later_entry_once_and_in_order() {
    under_many_schedules(|| {
        let journal = Journal::default();
        let writers: Vec<_> = (0..2)
            .map(|_| {
                let journal = journal.clone();
                thread::spawn(move || write(&journal, Recorded::Stale))
            })
            .collect();
        let mut reader = journal.follow("reader", 8, Detail::Outcomes);
        let ending = {
            let journal = journal.clone();
            thread::spawn(move || {
                writers.into_iter().for_each(|writer| writer.join().unwrap());
                write(&journal, END);
            })
        };
        let mut last = None;
        // The reader would wait without end for an entry that is lost, or for which it is not woken.
        loop {
            match future::block_on(reader.next()).unwrap() {
                FeedItem::Snapshot { number, .. } => last = Some(number),
                FeedItem::Change { number, news } => {
                    assert_eq!(last.map(|last| last + 1), Some(number), "in order and without a hole");
                    assert_eq!(number, news.number);
                    last = Some(number);
                    if matches!(news.entry, Recorded::Ended { .. }) {
                        break;
                    }
                }
                FeedItem::Lagged { missed } => panic!("{missed} were missed although there was room"),
            }
        }
        assert_eq!(last, Some(3));
        ending.join().unwrap();
    });
}

#[test]
fn a_reader_that_leaves_meanwhile_holds_no_actor_up() {
    under_many_schedules(|| {
        let journal = Journal::default();
        let reader = journal.follow("reader", 1, Detail::Steps);
        let leaving = thread::spawn(move || drop(reader));
        for _ in 0..3 {
            write(&journal, Recorded::Stale);
        }
        leaving.join().unwrap();
        write(&journal, Recorded::Stale);
        assert!(format!("{journal:?}").contains("readers: 0"), "its queue is gone");
    });
}
