//! Executes the decisions of the queue: one commit or one job at a time, on a thread beside the mailbox.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use actix::{
    Actor, ActorContext, ActorFutureExt, AsyncContext, Context, Handler, Message, SpawnHandle, StreamHandler,
    WrapFuture,
};
use callboard_machines::persister::{Batch, Next, Operations, Pacing, Progress, UnwrittenRow, WriteError};
use futures_util::{StreamExt as _, stream};
use tokio::sync::mpsc;
use tracing::error;

use super::handoff::{Handoff, Handoffs};
use super::health::{Disk, DiskHealth, WRITE_DEADLINE, patience};
use super::inbox::Inbox;
use super::messages::Settled;
use super::store::Store;
use super::worker::{self, Done, Task};
use crate::pauses;

/// The limit of rounds that the actor yields before it starts a commit, while more writes arrive.
const ROUNDS_MAX: usize = 8;

/// The pause after a disk did not take a commit, the first time; it doubles.
const PAUSE_FIRST: Duration = Duration::from_millis(100);
const PAUSE_LONGEST: Duration = Duration::from_secs(2);

/// Wakes the actor: its inbox has an item.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Called;

pub(super) struct Committer {
    inbox: Arc<Inbox>,
    pacing: Pacing,
    work: Work,
    /// When the thread got its task, or became idle.
    since: Instant,
    store: Arc<Mutex<Store>>,
    tasks: Handoffs<Task>,
    disk: Disk,
    is_in_place: bool,
    /// The commit that the disk did not take, and the number of attempts in a row.
    held: Option<(Batch, u32)>,
    /// The retry of the held commit.
    retry: Option<SpawnHandle>,
    /// The number of earlier attempts of the present commit.
    tried: u32,
    /// Whether the thread has a commit, and not a job.
    is_committing: bool,
    is_watched: bool,
}

/// A message of a thread's stream; `Left` comes last.
enum Told {
    Done(Done),
    /// The thread that took tasks through this handoff has ended.
    Left(Arc<Handoff<Task>>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    Idle,
    /// Something is queued, and more may arrive before the commit starts.
    Gathering,
    Underway,
    /// The disk is left alone for a while.
    Resting,
}

impl Committer {
    pub(super) fn new(store: Store, inbox: Arc<Inbox>, disk: Disk, is_in_place: bool) -> Self {
        let store = Arc::new(Mutex::new(store));
        inbox.set_sick(disk.health() != DiskHealth::Sound);
        Self {
            inbox,
            pacing: Pacing::default(),
            work: Work::Idle,
            since: Instant::now(),
            store,
            tasks: Handoffs::new(),
            disk,
            is_in_place,
            held: None,
            retry: None,
            tried: 0,
            is_committing: false,
            is_watched: false,
        }
    }

    /// Schedules the start of the queued work.
    fn gather(&mut self, context: &mut Context<Self>) {
        if self.work == Work::Idle && self.pacing.is_enough(self.inbox.writes()) {
            self.begin(context);
        } else if self.work == Work::Idle {
            self.work = Work::Gathering;
            let gathered = let_others_hand_over(Arc::clone(&self.inbox)).into_actor(self);
            context.spawn(gathered.map(|(), this, context| this.begin(context)));
        }
    }

    fn begin(&mut self, context: &mut Context<Self>) {
        let share = self.pacing.share(self.inbox.writes(), self.since.elapsed());
        self.work = loop {
            match self.inbox.next(share) {
                None => break self.rest_if_sick(context),
                Some(Next::Refuse(progress, error)) => {
                    self.settle(&[progress], 1, &Err(error));
                }
                Some(Next::Commit(batch)) => break self.assign(Task::Commit(batch), context),
                Some(Next::Job(job)) => break self.assign(Task::Run(job), context),
            }
        };
    }

    /// Gives the thread a task; starts a new thread if the last one has ended.
    fn assign(&mut self, task: Task, context: &mut Context<Self>) -> Work {
        self.is_committing = matches!(task, Task::Commit(_));
        if let Some((handoff, tasks)) = self.tasks.assign(task) {
            let (done, mut finished) = mpsc::unbounded_channel();
            worker::start(&self.store, &self.inbox, tasks, done, self.is_in_place);
            let done = stream::poll_fn(move |task| finished.poll_recv(task)).map(Told::Done);
            context.add_stream(done.chain(stream::iter([Told::Left(handoff)])));
        }
        self.since = Instant::now();
        self.watch(context);
        Work::Underway
    }

    // === A sick disk ===

    /// Checks again when the present commit, or the close, has reached its deadline.
    fn watch(&mut self, context: &mut Context<Self>) {
        if self.may_hang() && !self.is_watched {
            self.is_watched = true;
            let rest = self.patience();
            context.run_later(rest, |this, context| {
                this.is_watched = false;
                if this.work != Work::Underway || !this.may_hang() {
                    return;
                }
                if this.patience().is_zero() {
                    let path = this.inbox.path();
                    let reason =
                        format!("cannot write {}: no answer within {WRITE_DEADLINE:?}", path.display());
                    this.disk.is_sick(path, &reason);
                    this.inbox.set_sick(true);
                } else {
                    this.watch(context);
                }
            });
        }
    }

    /// The time that the present commit may still take.
    fn patience(&self) -> Duration {
        patience(self.since, Instant::now(), pauses::latest())
    }

    fn may_hang(&self) -> bool {
        self.is_committing || self.inbox.is_closing()
    }

    /// Handles a commit that the disk did not take: it is retried later.
    fn not_taken(&mut self, batch: Batch, error: &WriteError, context: &mut Context<Self>) {
        self.disk.is_sick(self.inbox.path(), &error.to_string());
        self.inbox.set_sick(true);
        if self.inbox.is_closing() {
            self.give_up(batch, error, context);
        } else {
            self.work = self.rest(batch, context);
            self.answer_job(context);
        }
    }

    /// Runs a job of a reader: it reads the writes that the disk did not take as if they were on disk.
    fn answer_job(&mut self, context: &mut Context<Self>) {
        let Some((batch, _)) = &self.held else { return };
        let mut unwritten = Operations::clone(&batch.operations);
        if let Some(job) = self.inbox.take_job(&mut unwritten) {
            self.work = self.assign(Task::RunOver(unwritten, job), context);
        }
    }

    /// Leaves the disk alone for a while, then retries this batch.
    fn rest(&mut self, batch: Batch, context: &mut Context<Self>) -> Work {
        let pause = PAUSE_FIRST.saturating_mul(1 << self.tried.min(5)).min(PAUSE_LONGEST);
        self.held = Some((batch, self.tried + 1));
        let retry = context.run_later(pause, |this, context| this.try_again(context));
        if let Some(former) = self.retry.replace(retry) {
            context.cancel_future(former);
        }
        Work::Resting
    }

    /// Nothing is queued. An empty commit checks whether a sick disk is sound again.
    fn rest_if_sick(&mut self, context: &mut Context<Self>) -> Work {
        if self.disk.health() == DiskHealth::Sound || self.inbox.is_closing() {
            return Work::Idle;
        }
        self.rest(Batch::default(), context)
    }

    fn try_again(&mut self, context: &mut Context<Self>) {
        if self.work == Work::Resting
            && let Some((batch, tried)) = self.held.take()
        {
            self.tried = tried;
            self.work = self.assign(Task::Commit(batch), context);
        }
    }

    /// The persister is closing: writes that the disk did not take are lost, and their owners are notified.
    fn give_up(&mut self, batch: Batch, error: &WriteError, context: &mut Context<Self>) {
        let before = self.inbox.unwritten();
        let dropped = self.settle(&batch.progress, batch.writes, &Err(error.clone()));
        self.inbox.take_back(batch.operations);
        let after = self.inbox.unwritten();
        let after: BTreeMap<_, _> = after.iter().map(|row| ((row.table, &row.key), row)).collect();
        let still_waits = |row: &UnwrittenRow| after.get(&(row.table, &row.key)) == Some(&row);
        let lost = before.into_iter().filter(|row| !still_waits(row)).collect();
        self.inbox.lose(batch.writes + dropped, lost);
        self.work = Work::Idle;
        self.gather(context);
    }

    /// A job is done. The disk may still need a retry, or another reader may have come meanwhile.
    fn ran(&mut self, context: &mut Context<Self>) {
        self.work = Work::Idle;
        match self.held.take() {
            Some((batch, tried)) if !self.inbox.is_closing() => {
                self.tried = tried - 1;
                self.work = self.rest(batch, context);
                self.answer_job(context);
            }
            Some((batch, _)) => self.work = self.assign(Task::Commit(batch), context),
            None => self.gather(context),
        }
    }

    /// A thread has ended. If it had a task, it panicked, or the runtime is shutting down. The state of the database is
    /// unknown then, so the actor stops and its supervisor reopens the database.
    fn left(&mut self, handoff: &Arc<Handoff<Task>>, context: &mut Context<Self>) {
        if self.tasks.left(handoff) && self.work == Work::Underway {
            error!(error = "the thread of the database has ended", "cannot write any more");
            context.stop();
        }
    }

    /// Notifies the ledgers. Returns how many other writes a failure drops.
    fn settle(&mut self, progress: &[Progress], writes: usize, outcome: &Result<(), WriteError>) -> usize {
        let (listeners, dropped) = self.inbox.settle(progress, writes, outcome.is_err());
        if let Err(error) = outcome {
            error!(%error, writes, dropped, "writes failed");
        }
        for (Progress { epoch, through, .. }, listener) in listeners {
            listener.do_send(Settled { epoch, through, outcome: outcome.clone() });
        }
        dropped
    }
}

/// Fails everything that is still in the inbox, however the actor ended.
impl Drop for Committer {
    fn drop(&mut self) {
        self.inbox.close();
    }
}

impl Actor for Committer {
    type Context = Context<Self>;
}

impl Handler<Called> for Committer {
    type Result = ();

    fn handle(&mut self, Called: Called, context: &mut Context<Self>) {
        if self.work == Work::Resting && self.inbox.is_closing() {
            // One more attempt, before it is lost.
            self.try_again(context);
        } else if self.work == Work::Resting {
            self.answer_job(context);
        } else {
            self.gather(context);
        }
    }
}

impl StreamHandler<Told> for Committer {
    fn handle(&mut self, told: Told, context: &mut Context<Self>) {
        let done = match told {
            Told::Done(done) => done,
            Told::Left(handoff) => return self.left(&handoff, context),
        };
        self.since = Instant::now();
        let goes_on = match done {
            Done::Committed { batch, outcome: Err(error), .. } if error.is_of_the_disk() => {
                self.inbox.count_commit();
                return self.not_taken(batch, &error, context);
            }
            Done::Committed { batch, outcome, took, goes_on } => {
                self.pacing.committed(batch.writes, took);
                self.inbox.count_commit();
                self.tried = 0;
                if outcome.is_ok() {
                    self.disk.is_sound(self.inbox.path());
                    self.inbox.set_sick(false);
                }
                self.settle(&batch.progress, batch.writes, &outcome);
                self.inbox.take_back(batch.operations);
                goes_on
            }
            Done::Ran(reply) => {
                reply();
                self.ran(context);
                return;
            }
        };
        if goes_on {
            self.watch(context);
        } else {
            self.work = Work::Idle;
            self.gather(context);
        }
    }

    /// The end of a thread is reported by `Told::Left` already.
    fn finished(&mut self, _: &mut Context<Self>) {}
}

/// Yields while more writes arrive, a few rounds at most, so that a burst shares one commit.
///
/// A round is one turn of every runnable task on this thread, and takes no time otherwise.
async fn let_others_hand_over(inbox: Arc<Inbox>) {
    let mut before = inbox.depth();
    for _ in 0..ROUNDS_MAX {
        tokio::task::yield_now().await;
        let after = inbox.depth();
        if after == before {
            break;
        }
        before = after;
    }
}
