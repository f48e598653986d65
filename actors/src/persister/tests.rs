//! Tests of the inbox alone.

use std::path::Path;

use callboard_machines::persister::{Next, Operation, Owner, Table, Write};

use super::inbox::Inbox;

fn write(sequence: u64) -> Write {
    let operations = vec![Operation::Delete { table: Table("t"), key: vec![7], name: String::new() }];
    Write { owner: Owner::new("registry"), epoch: 1, sequence, operations }
}

fn empty() -> Inbox {
    Inbox::new(Path::new("/data/callboard.redb").into())
}

fn holding(writes: u64) -> Inbox {
    let inbox = empty();
    lay_writes(&inbox, writes);
    inbox
}

fn lay_writes(inbox: &Inbox, writes: u64) {
    for sequence in 0..writes {
        inbox.lay_write(&write(sequence));
    }
}

#[test]
fn the_actor_is_called_once_for_all_that_comes_until_it_has_found_nothing() {
    let inbox = empty();
    assert!(inbox.lay_write(&write(1)), "the actor does not look");
    assert!(!inbox.lay_write(&write(2)), "it was called already");
    assert!(matches!(inbox.next(1), Some(Next::Commit(_))));
    assert!(!inbox.lay_write(&write(3)), "it will look again");
    assert!(matches!(inbox.next(7), Some(Next::Commit(_))));
    assert!(inbox.next(7).is_none());
    assert!(inbox.lay_job(Box::new(|_| Box::new(|| ()))), "the actor does not look any more");
}

#[test]
fn the_thread_takes_a_crowd_itself_and_leaves_few_and_jobs_to_the_actor_p1() {
    let batch = holding(256).next_large_batch(512).expect("half of those before are enough");
    assert_eq!(batch.writes, 256);
    assert!(holding(255).next_large_batch(512).is_none(), "most of them are on their way");
    assert!(holding(10).next_large_batch(8).is_none(), "few share what they can");
    let inbox = empty();
    inbox.lay_job(Box::new(|_| Box::new(|| ())));
    lay_writes(&inbox, 256);
    assert!(inbox.next_large_batch(256).is_none(), "a job came before them");
    assert!(matches!(inbox.next(256), Some(Next::Job(_))));
}

#[test]
fn a_caller_that_waits_for_work_learns_that_it_is_not_done_any_more() {
    let inbox = holding(1);
    let (answer, mut answered) = tokio::sync::oneshot::channel::<()>();
    inbox.lay_job(Box::new(move |_| Box::new(move || answer.send(()).unwrap_or_default())));
    inbox.close();
    let closed = Err(tokio::sync::oneshot::error::TryRecvError::Closed);
    assert_eq!(answered.try_recv(), closed);
    assert!(!inbox.lay_write(&write(2)), "there is no actor to call");
    assert_eq!(inbox.writes(), 0);
}
