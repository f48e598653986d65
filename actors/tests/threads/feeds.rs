//! Model checks a publisher on one thread and a subscriber on another.

use shuttle::{future, thread};

use callboard_machines::FeedItem;

use crate::shell::feed::{Delivery, FeedSender, Subscription, feed};
use crate::sync::{Arc, Mutex};
use crate::under_many_schedules;

type Sender = FeedSender<u64, u64>;
/// The publisher, and how much it has published; `None` once it has ended.
type Publisher = Arc<Mutex<Option<(Sender, u64)>>>;

/// A feed whose publisher answers a request for a new snapshot at once, with the number of changes published by then.
fn counting(capacity: usize) -> (Publisher, Subscription<u64, u64>) {
    let publisher = Publisher::default();
    let asked = Arc::clone(&publisher);
    let (sender, subscription) = feed("reader".to_owned(), capacity, move || {
        if let Some((sender, published)) = &*asked.lock().unwrap() {
            sender.snapshot(*published, *published);
        }
    });
    sender.snapshot(0, 0);
    *publisher.lock().unwrap() = Some((sender, 0));
    (publisher, subscription)
}

fn publish(publisher: &Mutex<Option<(Sender, u64)>>) -> Delivery {
    let mut publisher = publisher.lock().unwrap();
    let (sender, published) = publisher.as_mut().unwrap();
    *published += 1;
    sender.change(*published, *published)
}

/// Reads to the end, and checks that each change is read once and in order, or is counted as missed before a snapshot that holds it.
/// Returns the number of the last change that the reader knows or missed, and how many changes it missed in all.
async fn read_all(subscription: &mut Subscription<u64, u64>) -> (u64, u64) {
    let (mut known, mut missed_ever, mut missing) = (0, 0, 0);
    while let Some(item) = subscription.next().await {
        match item {
            FeedItem::Change { number, .. } => {
                assert_eq!((number, missing), (known + 1, 0), "in order and without a hole");
                known = number;
            }
            FeedItem::Lagged { missed } => {
                missing = missed;
                missed_ever += missed;
            }
            FeedItem::Snapshot { number, view } => {
                assert_eq!(number, view);
                assert!(number >= known + missing, "it holds what was missed");
                (known, missing) = (number, 0);
            }
        }
    }
    (known + missing, missed_ever)
}

#[test]
fn a_reader_on_another_thread_loses_nothing_and_is_woken_for_each_scl_01() {
    under_many_schedules(|| {
        let (publisher, mut subscription) = counting(4);
        let publishing = thread::spawn(move || {
            for _ in 0..2 {
                assert_eq!(publish(&publisher), Delivery::Done);
            }
            *publisher.lock().unwrap() = None;
        });
        // A reader that is not woken would never end, which the model checker reports as a deadlock.
        assert_eq!(future::block_on(read_all(&mut subscription)), (2, 0));
        publishing.join().unwrap();
    });
}

#[test]
fn a_reader_that_lags_learns_what_it_missed_and_catches_up_scl_01() {
    under_many_schedules(|| {
        let (publisher, mut subscription) = counting(2);
        let publishing = thread::spawn(move || {
            for _ in 0..3 {
                assert_ne!(publish(&publisher), Delivery::Abandoned);
            }
            *publisher.lock().unwrap() = None;
        });
        let (known, missed) = future::block_on(read_all(&mut subscription));
        assert_eq!(known, 3, "everything was read, or is known to be missing");
        assert!(missed <= 2);
        publishing.join().unwrap();
    });
}

#[test]
fn a_subscription_that_is_dropped_meanwhile_delays_no_other() {
    under_many_schedules(|| {
        let (publisher, subscription) = counting(2);
        let leaving = thread::spawn(move || drop(subscription));
        let mut is_abandoned = false;
        for _ in 0..3 {
            let delivery = publish(&publisher);
            assert!(!is_abandoned || delivery == Delivery::Abandoned, "who has left does not come back");
            is_abandoned = delivery == Delivery::Abandoned;
        }
        leaving.join().unwrap();
        assert_eq!(publish(&publisher), Delivery::Abandoned);
        let publisher = publisher.lock().unwrap();
        assert_eq!(publisher.as_ref().and_then(|(sender, _)| sender.report()), None);
    });
}
