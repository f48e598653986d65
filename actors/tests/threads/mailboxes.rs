//! Senders on several threads and one limit.

use shuttle::thread;

use crate::shell::mailbox::{Full, Mailbox};
use crate::sync::Arc;
use crate::under_every_schedule;

#[test]
fn two_senders_never_have_more_in_flight_than_may_be() {
    under_every_schedule(|| {
        let mailbox = Arc::new(Mailbox::new("registry".to_owned(), 1));
        let sender = {
            let mailbox = Arc::clone(&mailbox);
            thread::spawn(move || mailbox.admit().map(drop).is_ok())
        };
        let own = mailbox.admit();
        assert!(mailbox.in_flight() <= 1);
        let has_own = own.is_ok();
        drop(own);
        let has_other = sender.join().unwrap();
        assert!(has_own || has_other, "one of them finds room");
        assert_eq!(mailbox.in_flight(), 0, "what was done is not counted any more");
    });
}

#[test]
fn a_message_that_is_refused_keeps_out_no_other_for_which_there_is_room() {
    under_every_schedule(|| {
        let mailbox = Arc::new(Mailbox::new("registry".to_owned(), 1));
        let present = mailbox.admit().unwrap();
        let refused = {
            let mailbox = Arc::clone(&mailbox);
            // Refused, or taken behind the one that is there; it is gone at once in any case.
            thread::spawn(move || drop(mailbox.admit()))
        };
        drop(present);
        let own = mailbox.admit();
        let is_alone = own.is_ok();
        drop(own);
        refused.join().unwrap();
        // The other one may have had the place in that instant, and nobody else.
        if !is_alone {
            assert_eq!(mailbox.admit().map(drop), Ok(()));
        }
        assert_eq!(mailbox.in_flight(), 0);
    });
}

#[test]
fn what_must_not_be_lost_is_taken_and_still_counts() {
    under_every_schedule(|| {
        let mailbox = Arc::new(Mailbox::new("instances".to_owned(), 1));
        let child = {
            let mailbox = Arc::clone(&mailbox);
            thread::spawn(move || mailbox.admit_whatever())
        };
        let own = mailbox.admit_whatever();
        let other = child.join().unwrap();
        assert_eq!(mailbox.admit().map(drop), Err(Full { in_flight: 2, limit: 1 }));
        drop((own, other));
        assert_eq!(mailbox.in_flight(), 0);
    });
}
