//! Model checks actors that post notices, and a subscriber that comes meanwhile.

use callboard_machines::FeedItem;
use shuttle::{future, thread};

use crate::shell::notice::{Notice, Notices};
use crate::sync::Arc;
use crate::under_many_schedules;

fn notice(crashes: u64) -> Notice {
    Notice::Crashed { actor: "registry".into(), message: "boom".into(), crashes }
}

#[test]
fn a_subscriber_that_comes_while_notices_are_posted_gets_each_once_scl_01() {
    under_many_schedules(|| {
        let notices = Arc::new(Notices::default());
        let posters: Vec<_> = (0..2)
            .map(|poster| {
                let notices = Arc::clone(&notices);
                thread::spawn(move || notices.post(notice(poster)))
            })
            .collect();
        let mut subscription = notices.subscribe();
        let mut crashes: Vec<u64> = Vec::new();
        let mut last = 0;
        // A notice that is lost, or for which the reader is not woken, would be waited for without end: a deadlock for the model checker.
        while crashes.len() < 2 {
            let told = match future::block_on(subscription.next()).unwrap() {
                FeedItem::Snapshot { number, view } => {
                    last = number;
                    view
                }
                FeedItem::Change { number, news } => {
                    assert_eq!(number, last + 1, "in order and without a hole");
                    last = number;
                    vec![news]
                }
                FeedItem::Lagged { missed } => panic!("{missed} were missed although there was room"),
            };
            crashes.extend(told.into_iter().map(|told| match told {
                Notice::Crashed { crashes, .. } => crashes,
                other => panic!("{other} was not posted"),
            }));
        }
        crashes.sort_unstable();
        assert_eq!(crashes, [0, 1]);
        posters.into_iter().for_each(|poster| poster.join().unwrap());
    });
}
