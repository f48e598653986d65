//! Model checks senders on several threads with one limit.

use shuttle::thread;

use crate::shell::mailbox::{Full, Mailbox};
use crate::sync::Arc;
use crate::under_every_schedule;

#[test]
fn two_senders_never_have_more_in_flight_than_may_be() {
    under_every_schedule(|| {
        let mailbox = Arc::new(Mailbox::new("registry".into(), 1));
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
        let mailbox = Arc::new(Mailbox::new("registry".into(), 1));
        let present = mailbox.admit().unwrap();
        let other = {
            let mailbox = Arc::clone(&mailbox);
            thread::spawn(move || mailbox.admit().map(drop).is_ok())
        };
        drop(present);
        let has_own = mailbox.admit().map(drop).is_ok();
        let has_other = other.join().unwrap();
        // There was room once the first message was gone; only the other message can have taken it.
        assert!(has_own || has_other);
        assert_eq!(mailbox.in_flight(), 0);
    });
}

#[test]
fn what_must_not_be_lost_is_taken_and_still_counts() {
    under_every_schedule(|| {
        let mailbox = Arc::new(Mailbox::new("instances".into(), 1));
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
