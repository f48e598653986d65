//! Model checks the owner of the database and the threads that do its work.

use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;

use crate::persister::handoff::{Handoff, Handoffs, Receiving};
use crate::persister::shared_queue::{Pushed, SharedQueue};
use crate::sync::Arc;
use crate::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use crate::{under_every_schedule, under_many_schedules};

/// The tasks that a thread has done, and its handoff; the channel ends when the thread has left.
type Stream = (Receiver<u32>, Arc<Handoff<u32>>);

/// A worker that leaves when a look finds no task, except at its first look.
fn work(tasks: &Receiving<u32>, done: &Sender<u32>) {
    let mut looks = 0;
    let mut is_over = || {
        looks += 1;
        looks > 1
    };
    while let Some(task) = tasks.wait(&mut is_over, thread::yield_now) {
        done.send(task).unwrap();
    }
}

/// The owner: one task at a time. It reads each thread's channel in any order, as an actor with several streams does.
struct Owner {
    tasks: Handoffs<u32>,
    streams: Vec<Stream>,
}

impl Owner {
    fn assign(&mut self, task: u32) {
        if let Some((handoff, receiving)) = self.tasks.assign(task) {
            let (done, heard) = channel();
            thread::spawn(move || work(&receiving, &done));
            self.streams.push((heard, handoff));
        }
    }

    /// Waits for the end of this task. A thread that has the task must not be reported to have left before.
    fn finish(&mut self, task: u32) {
        loop {
            let at = thread_rng().gen_range(0..self.streams.len());
            let (heard, handoff) = &self.streams[at];
            match heard.try_recv() {
                Ok(done) => {
                    assert_eq!(done, task, "each task is done once and in order");
                    return;
                }
                Err(TryRecvError::Empty) => thread::yield_now(),
                Err(TryRecvError::Disconnected) => {
                    let is_present = self.tasks.left(handoff);
                    assert!(!is_present, "the thread that has task {task} left without doing it");
                    self.streams.remove(at);
                }
            }
        }
    }
}

#[test]
fn the_end_of_an_earlier_thread_says_nothing_of_the_present_one_p1() {
    under_many_schedules(|| {
        let mut owner = Owner { tasks: Handoffs::new(), streams: Vec::new() };
        for task in 0..3 {
            owner.assign(task);
            owner.finish(task);
        }
    });
}

#[test]
fn a_thread_that_ends_without_its_task_is_heard_to_have_left_p1() {
    under_every_schedule(|| {
        let mut tasks = Handoffs::new();
        let (handoff, receiving) = tasks.assign(1).unwrap();
        let panicking = thread::spawn(move || drop(receiving));
        panicking.join().unwrap();
        assert!(tasks.left(&handoff), "it had the task");
        assert!(tasks.assign(2).is_some(), "a new thread gets the next one");
    });
}

#[test]
fn a_consumer_is_woken_for_all_that_is_pushed_while_it_looks_away() {
    under_many_schedules(|| {
        let queue = Arc::new(SharedQueue::new(Vec::new()));
        let (wake, woken) = channel();
        let producers: Vec<_> = (0..2)
            .map(|producer| {
                let (queue, wake) = (Arc::clone(&queue), wake.clone());
                thread::spawn(move || {
                    for number in 0..2 {
                        let item = producer * 2 + number;
                        if queue.push(|queue| queue.push(item), |_| ()) == Ok(Pushed::Wake) {
                            wake.send(()).unwrap();
                        }
                    }
                })
            })
            .collect();
        drop(wake);
        let mut taken = Vec::new();
        // A lost wakeup leaves an item in the queue after the last producer has ended.
        while woken.recv().is_ok() {
            while let Some(item) = queue.next(Vec::pop) {
                taken.push(item);
            }
        }
        producers.into_iter().for_each(|producer| producer.join().unwrap());
        taken.sort_unstable();
        assert_eq!(taken, [0, 1, 2, 3]);
    });
}

#[test]
fn what_is_pushed_while_the_consumer_leaves_is_cleared_or_refused() {
    under_every_schedule(|| {
        let queue = Arc::new(SharedQueue::new(Vec::new()));
        let producer = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || queue.push(|queue| queue.push(1), |_| ()).is_ok())
        };
        let cleared = queue.close(std::mem::take);
        let is_taken = producer.join().unwrap();
        assert_eq!(is_taken, cleared == [1], "it is in what was cleared, or its producer knows");
        assert_eq!(queue.with(|queue| queue.len()), 0);
        assert!(queue.is_closed());
    });
}
