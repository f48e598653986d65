//! Model checks owners that write, the inbox of the persister, and the thread of the database, with an actor between them.
//!
//! Inbox and thread are the production code. The actor is a model: it takes its messages in any order, as an actor with several streams
//! does. The disk is a list, which refuses some commits.

use std::collections::BTreeMap;
use std::path::Path;

use callboard_machines::persister::{Next, Operation, Owner, Table, Write};
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use self::messages::{Listener, OpenLedger, Settled};
use self::store::{Disk, Store};
use crate::persister::handoff::{Handoff, Handoffs};
use crate::persister::inbox::Inbox;
use crate::persister::worker::{self, Done, Reply, Task};
use crate::sync::mpsc::{Receiver, Sender, channel};
use crate::sync::{Arc, Mutex, mpsc};
use crate::{fails_under_some_schedule, under_many_schedules};

const TABLE: Table = Table("rows");
const OWNERS: [&str; 2] = ["registry", "processes"];
const EACH: u64 = 3;

/// Without actix: a listener is called at once.
pub(crate) mod messages {
    use callboard_machines::persister::{Owner, WriteError};

    use crate::sync::Arc;

    #[derive(Debug)]
    pub(crate) struct Settled {
        pub(crate) epoch: u64,
        pub(crate) through: u64,
        pub(crate) outcome: Result<(), WriteError>,
    }

    #[derive(Clone)]
    pub(crate) struct Listener(pub(crate) Arc<dyn Fn(Settled) + Send + Sync>);

    impl Listener {
        pub(crate) fn do_send(&self, settled: Settled) {
            (self.0)(settled);
        }
    }

    pub(crate) struct OpenLedger {
        pub(crate) owner: Owner,
        pub(crate) settled: Listener,
    }
}

/// Without redb: a row is the number of writes of its owner that are on disk.
pub(crate) mod store {
    use std::collections::BTreeMap;
    use std::io;
    use std::path::PathBuf;

    use callboard_machines::persister::{Operations, WriteError};

    use crate::sync::{Arc, Mutex, thread};

    /// The last write of each owner that is on disk.
    pub(crate) type Disk = Arc<Mutex<BTreeMap<Vec<u8>, u64>>>;

    pub(crate) struct Store {
        pub(crate) disk: Disk,
        /// How many commits the disk takes before it refuses one.
        pub(crate) sound_for: usize,
    }

    impl Store {
        pub(crate) fn commit(&mut self, operations: &Operations) -> Result<(), WriteError> {
            thread::yield_now();
            if self.sound_for == 0 {
                self.sound_for = usize::MAX;
                let source = Arc::new(io::Error::from(io::ErrorKind::Other));
                return Err(WriteError::Io { path: PathBuf::new(), source });
            }
            self.sound_for -= 1;
            let mut disk = self.disk.lock().unwrap();
            for change in operations.iter() {
                let number = u64::from_be_bytes(change.record().unwrap().try_into().unwrap());
                let before = disk.insert(change.key.to_vec(), number).unwrap_or(0);
                assert_eq!(before + 1, number, "each write reaches the disk once and in its order");
            }
            Ok(())
        }

        pub(crate) fn read_over(&mut self, _: Option<Operations>) {}
    }
}

/// The fault of the actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wrong {
    Nothing,
    /// It takes the end of an earlier thread for the end of the present one.
    TakesAnyEnd,
    /// It begins another commit while the thread continues by itself.
    IgnoresThatItGoesOn,
    /// It does not look again when the thread has done its work.
    LooksOnce,
    /// It continues with the next commit when the disk refused one, and retries that later.
    SkipsWhatWasNotTaken,
    /// It ends without closing the inbox.
    LeavesTheInboxOpen,
}

struct Committer {
    inbox: Arc<Inbox>,
    store: Arc<Mutex<Store>>,
    tasks: Handoffs<Task>,
    threads: Vec<(UnboundedReceiver<Done>, Arc<Handoff<Task>>)>,
    is_underway: bool,
    wrong: Wrong,
}

impl Committer {
    /// Works until no owner can call it and nothing is in flight, or for this many rounds.
    fn run(mut self, called: &Receiver<()>, rounds: Option<usize>) {
        let mut is_called_on = true;
        for _ in 0..rounds.unwrap_or(usize::MAX) {
            match called.try_recv() {
                Ok(()) if self.is_underway => {}
                Ok(()) => self.begin(),
                Err(mpsc::TryRecvError::Empty) => {}
                Err(mpsc::TryRecvError::Disconnected) => is_called_on = false,
            }
            if !is_called_on && !self.is_underway {
                break;
            }
            self.listen();
            thread::yield_now();
        }
        if self.wrong != Wrong::LeavesTheInboxOpen && rounds.is_some() {
            self.inbox.close();
        }
    }

    /// Receives one message of one thread.
    fn listen(&mut self) {
        if self.threads.is_empty() {
            return;
        }
        let at = thread_rng().gen_range(0..self.threads.len());
        let (done, handoff) = &mut self.threads[at];
        match done.try_recv() {
            Ok(done) => self.done(done),
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => {
                let is_present = self.tasks.left(handoff) || self.wrong == Wrong::TakesAnyEnd;
                assert!(!(is_present && self.is_underway), "the thread left without doing its task");
                self.threads.swap_remove(at);
            }
        }
    }

    fn begin(&mut self) {
        self.is_underway = match self.inbox.next(usize::MAX) {
            None => false,
            Some(Next::Commit(batch)) => self.assign(Task::Commit(batch)),
            Some(Next::Job(job)) => self.assign(Task::Run(job)),
            Some(Next::Refuse(..)) => panic!("there is room for every write"),
        };
    }

    fn assign(&mut self, task: Task) -> bool {
        if let Some((handoff, tasks)) = self.tasks.assign(task) {
            let (tell, done) = unbounded_channel();
            worker::start(&self.store, &self.inbox, tasks, tell, false);
            self.threads.push((done, handoff));
        }
        true
    }

    fn done(&mut self, done: Done) {
        let goes_on = match done {
            Done::Committed { batch, outcome: Err(_), goes_on, .. } => {
                assert!(!goes_on, "what is queued may depend on it");
                if self.wrong == Wrong::SkipsWhatWasNotTaken {
                    self.begin();
                }
                self.is_underway = self.assign(Task::Commit(batch));
                return;
            }
            Done::Committed { batch, outcome: Ok(()), goes_on, .. } => {
                let (told, dropped) = self.inbox.settle(&batch.progress, batch.writes, false);
                assert_eq!(dropped, 0);
                for (progress, listener) in told {
                    let (epoch, through) = (progress.epoch, progress.through);
                    listener.do_send(Settled { epoch, through, outcome: Ok(()) });
                }
                self.inbox.take_back(batch.operations);
                goes_on
            }
            Done::Ran(reply) => {
                reply();
                false
            }
        };
        if !goes_on || self.wrong == Wrong::IgnoresThatItGoesOn {
            self.is_underway = false;
            if self.wrong != Wrong::LooksOnce {
                self.begin();
            }
        }
    }
}

/// The notifications to the owners: the last write on disk, and whether the persister has ended for them.
type Told = Arc<Mutex<BTreeMap<&'static str, (u64, bool)>>>;

fn open_ledgers(inbox: &Inbox, disk: &Disk) -> Told {
    let told = Told::default();
    for name in OWNERS {
        let (told, disk) = (Arc::clone(&told), Arc::clone(disk));
        let listen = move |Settled { epoch, through, outcome }: Settled| {
            assert_eq!(epoch, 1);
            let mut told = told.lock().unwrap();
            let known = told.entry(name).or_default();
            assert!(!known.1, "nothing is told after the end");
            if outcome.is_err() {
                known.1 = true;
                return;
            }
            let on_disk = disk.lock().unwrap().get(name.as_bytes()).copied().unwrap_or(0);
            assert!(
                through <= on_disk,
                "write {through} of {name} is acknowledged, and {on_disk} is on disk"
            );
            assert!(known.0 < through, "write {through} of {name} is acknowledged again");
            known.0 = through;
        };
        inbox.open_ledger(OpenLedger { owner: Owner::new(name), settled: Listener(Arc::new(listen)) });
    }
    told
}

/// Hands over the writes of one owner, and then a job, which sees these writes.
fn write(inbox: &Inbox, name: &'static str, disk: &Disk, call: &Sender<()>) {
    for number in 1..=EACH {
        let record = number.to_be_bytes().to_vec();
        let operations = vec![Operation::Put { table: TABLE, key: name.into(), record }];
        if inbox.lay_write(&Write { owner: Owner::new(name), epoch: 1, sequence: number, operations }) {
            // The actor may have ended.
            let _ = call.send(());
        }
    }
    let disk = Arc::clone(disk);
    let look = move |_: &mut Store| {
        let on_disk = disk.lock().unwrap().get(name.as_bytes()).copied();
        assert_eq!(on_disk, Some(EACH), "a job comes behind every write before it");
        Box::new(|| ()) as Reply
    };
    if inbox.lay_job(Box::new(look)) {
        let _ = call.send(());
    }
}

/// Two owners write while the actor works; the disk may refuse one commit, and the actor may end early.
fn model(wrong: Wrong, sound_for: usize, rounds: Option<usize>) -> impl Fn() + Send + Sync + 'static {
    move || {
        let inbox = Arc::new(Inbox::new(Path::new("/data/callboard.redb").into()));
        let disk = Disk::default();
        let store = Arc::new(Mutex::new(Store { disk: Arc::clone(&disk), sound_for }));
        let told = open_ledgers(&inbox, &disk);
        let (call, called) = channel();
        let owners = OWNERS.map(|name| {
            let (inbox, disk, call) = (Arc::clone(&inbox), Arc::clone(&disk), call.clone());
            thread::spawn(move || write(&inbox, name, &disk, &call))
        });
        drop(call);
        let tasks = Handoffs::new();
        let inbox_of_actor = Arc::clone(&inbox);
        Committer { inbox: inbox_of_actor, store, tasks, threads: vec![], is_underway: false, wrong }
            .run(&called, rounds);
        owners.into_iter().for_each(|owner| owner.join().unwrap());
        let told = told.lock().unwrap();
        for name in OWNERS {
            let (through, has_ended) = told.get(name).copied().unwrap_or_default();
            assert!(through == EACH || has_ended, "{name} waits for write {} for ever", through + 1);
        }
        if rounds.is_none() {
            assert_eq!((inbox.depth(), inbox.writes()), (0, 0));
        }
    }
}

#[test]
fn each_write_is_committed_once_in_order_and_acknowledged_when_it_is_on_disk_p1() {
    under_many_schedules(model(Wrong::Nothing, usize::MAX, None));
}

#[test]
fn what_the_disk_does_not_take_is_tried_again_before_any_later_write_p3() {
    for sound_for in 0..2 {
        under_many_schedules(model(Wrong::Nothing, sound_for, None));
    }
}

#[test]
fn each_write_that_the_end_of_the_actor_cuts_off_fails_for_its_owner_p3() {
    for rounds in [0, 1, 3, 6] {
        under_many_schedules(model(Wrong::Nothing, usize::MAX, Some(rounds)));
    }
}

#[test]
fn the_models_notice_an_actor_that_is_wrong() {
    fails_under_some_schedule(model(Wrong::TakesAnyEnd, usize::MAX, None));
    fails_under_some_schedule(model(Wrong::IgnoresThatItGoesOn, usize::MAX, None));
    fails_under_some_schedule(model(Wrong::LooksOnce, usize::MAX, None));
    fails_under_some_schedule(model(Wrong::SkipsWhatWasNotTaken, 0, None));
    fails_under_some_schedule(model(Wrong::LeavesTheInboxOpen, usize::MAX, Some(3)));
}
