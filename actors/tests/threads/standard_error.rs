//! Model checks threads that log, and the thread that writes their lines to standard error.

use std::time::Duration;

use shuttle::{future, thread};

use crate::logging::queue::Queue;
use crate::sync::{Arc, Mutex};
use crate::under_many_schedules;

const KEPT_BYTES_MAX: usize = 4;

#[derive(Debug, Default)]
struct Written {
    lines: Vec<Vec<u8>>,
    not_taken: usize,
}

impl Written {
    /// The number of lines that were written or counted as not taken.
    fn count(&self) -> usize {
        self.lines.len() + self.not_taken
    }

    fn of(&self, thread: u8) -> Vec<&[u8]> {
        self.lines.iter().map(Vec::as_slice).filter(|line| line[0] == thread).collect()
    }
}

/// A queue with the thread that writes its lines, which never ends: the model checker does not wait for a task without a handle, as it
/// does for a thread.
fn start(written_within: Duration) -> (Arc<Queue>, Arc<Mutex<Written>>) {
    let (queue, written) =
        (Arc::new(Queue::new(KEPT_BYTES_MAX, written_within)), Arc::<Mutex<Written>>::default());
    let (writing, place) = (Arc::clone(&queue), Arc::clone(&written));
    drop(future::spawn(async move {
        writing.hand_out(|batch, not_taken| {
            let bytes: usize = batch.iter().map(Vec::len).sum();
            assert!(bytes <= KEPT_BYTES_MAX || batch.len() == 1, "only one line alone is longer");
            let mut written = place.lock().unwrap();
            written.lines.extend_from_slice(batch);
            written.not_taken += usize::try_from(not_taken).unwrap();
        });
    }));
    (queue, written)
}

#[test]
fn who_logs_goes_on_when_its_line_is_written_so_that_none_is_lost_at_the_end_p3() {
    under_many_schedules(|| {
        // A line that is not written, or whose thread is not woken, would be waited for without end, which the model checker reports as a
        // deadlock.
        let (queue, written) = start(Duration::MAX);
        let logging = [b'a', b'b'].map(|thread| {
            let (queue, written) = (Arc::clone(&queue), Arc::clone(&written));
            thread::spawn(move || {
                for number in 0..2 {
                    let line = [thread, number];
                    queue.log(&line);
                    assert_eq!(written.lock().unwrap().of(thread).last(), Some(&&line[..]));
                }
            })
        });
        logging.into_iter().for_each(|thread| thread.join().unwrap());
        let written = written.lock().unwrap();
        for thread in [b'a', b'b'] {
            assert_eq!(written.of(thread), [[thread, 0], [thread, 1]], "each once and in order");
        }
        assert_eq!(written.not_taken, 0, "there is room for the lines of two threads that wait for them");
    });
}

#[test]
fn who_logs_goes_on_when_lines_are_late_and_each_is_written_or_counted_p3() {
    under_many_schedules(|| {
        let (queue, written) = start(Duration::from_millis(50));
        let logging = [b'a', b'b'].map(|thread| {
            let queue = Arc::clone(&queue);
            // The last line is longer than the queue keeps.
            let lines = [vec![thread, 0], vec![thread, 1], vec![thread, 2, 0, 0, 0]];
            thread::spawn(move || lines.iter().for_each(|line| queue.log(line)))
        });
        logging.into_iter().for_each(|thread| thread.join().unwrap());
        let mut logged = 6;
        // The number of lines not taken is known when lines are taken again.
        while written.lock().unwrap().count() < logged {
            thread::yield_now();
            queue.log(b".");
            logged += 1;
        }
        let written = written.lock().unwrap();
        assert_eq!(written.count(), logged, "none is written or counted twice");
        for thread in [b'a', b'b'] {
            assert!(written.of(thread).is_sorted_by(|line, next| line[1] < next[1]), "in order");
        }
    });
}
