//! Model checks the reader of the output of processes, and the threads that write their logs. A thread that hangs is replaced.
//!
//! The writers are the production code. The reader is a model: it hands over the next chunk of a log when the log is free again.

use std::collections::BTreeMap;

use rustix::event::{EventfdFlags, eventfd};
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;

use self::log::{Log, LogFile};
use crate::outputs::copying::writer::{Hung, Writers};
use crate::sync::Arc;
use crate::sync::mpsc::{TryRecvError, channel};
use crate::{fails_under_some_schedule, under_many_schedules};

const LOGS: u64 = 2;
const CHUNKS: u8 = 3;

/// A log without files: its contents, and whether two threads ever wrote to it at once.
pub(crate) mod log {
    use std::path::Path;

    use crate::sync::atomic::{AtomicBool, Ordering};
    use crate::sync::{Arc, Mutex, thread};

    #[derive(Debug, Default)]
    pub(crate) struct Log {
        pub(crate) chunks: Mutex<Vec<u8>>,
        is_written: AtomicBool,
        pub(crate) was_shared: AtomicBool,
    }

    #[derive(Debug)]
    pub(crate) struct LogFile(pub(crate) Arc<Log>);

    impl LogFile {
        pub(crate) fn path(&self) -> &Path {
            Path::new("log")
        }

        pub(crate) fn append(&mut self, chunk: &[u8]) {
            if self.0.is_written.swap(true, Ordering::SeqCst) {
                self.0.was_shared.store(true, Ordering::SeqCst);
            }
            thread::yield_now();
            self.0.chunks.lock().unwrap().extend_from_slice(chunk);
            self.0.is_written.store(false, Ordering::SeqCst);
        }
    }
}

/// A model. If `is_wrong`, the reader takes a log that hangs for a free one.
fn model(is_wrong: bool) -> impl Fn() + Send + Sync + 'static {
    move || {
        let (tell, returned) = channel();
        let wake = eventfd(0, EventfdFlags::NONBLOCK).expect("a number to wake by");
        let mut writers = Writers::start(tell, Arc::new(wake)).expect("a thread");
        let logs: BTreeMap<u64, Arc<Log>> = (0..LOGS).map(|number| (number, Arc::default())).collect();
        let mut free: BTreeMap<_, _> =
            logs.iter().map(|(number, log)| (*number, LogFile(Arc::clone(log)))).collect();
        let mut handed: BTreeMap<u64, u8> = BTreeMap::new();
        let mut to_hand = LOGS * u64::from(CHUNKS);
        while to_hand > 0 || writers.has_work() {
            for number in 0..LOGS {
                let chunks = handed.entry(number).or_default();
                if *chunks < CHUNKS
                    && let Some(log) = free.remove(&number)
                {
                    *chunks += 1;
                    to_hand -= 1;
                    writers.take(number, log, vec![*chunks]);
                }
            }
            if thread_rng().gen_bool(0.3)
                && let Hung::One(number) = writers.replace_hung()
                && is_wrong
            {
                free.insert(number, LogFile(Arc::clone(&logs[&number])));
            }
            match returned.try_recv() {
                Ok(written) => drop(free.insert(written.number, written.log)),
                Err(TryRecvError::Empty) => thread::yield_now(),
                Err(TryRecvError::Disconnected) => panic!("there is a writer at each time"),
            }
        }
        // A writer that continued without orders would be a deadlock of the model.
        drop(writers);
        for log in logs.values() {
            assert_eq!(
                *log.chunks.lock().unwrap(),
                (1..=CHUNKS).collect::<Vec<_>>(),
                "each chunk once and in order"
            );
            assert!(!log.was_shared.load(crate::sync::atomic::Ordering::SeqCst), "one thread at a time");
        }
    }
}

#[test]
fn each_log_gets_its_chunks_in_order_from_one_thread_at_a_time_whichever_is_replaced() {
    under_many_schedules(model(false));
}

#[test]
fn the_model_notices_a_reader_that_gives_a_log_to_two_threads() {
    fails_under_some_schedule(model(true));
}
