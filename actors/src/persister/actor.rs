//! Does what the queue decides: one commit or one job at a time, on a thread beside the mailbox.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use actix::{
    Actor, ActorContext, ActorFutureExt, AsyncContext, Context, Handler, Message, Recipient, StreamHandler,
    WrapFuture,
};
use futures_util::stream;
use tokio::sync::mpsc;
use tracing::error;

use super::errors::WriteError;
use super::messages::{OpenLedger, Settled, Write};
use super::pacing::Pacing;
use super::queue::{Next, Progress, Queue};
use super::store::Store;
use super::worker::{Desk, Done, Job, Task};

/// How often at most the actor lets others run before it starts a commit, while they hand over more.
const ROUNDS_MAX: usize = 8;

/// Asks the actor to have this done with the database, behind every write that was handed over before.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Run(pub(super) Job);

/// The actor that owns the database.
pub(super) struct Committer {
    queue: Queue<Recipient<Settled>, Job>,
    pacing: Pacing,
    work: Work,
    /// Since when the thread has been at its task, or without one.
    since: Instant,
    store: Arc<Mutex<Store>>,
    desk: Option<Arc<Desk>>,
    depth: Arc<AtomicUsize>,
}

/// What the actor is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    /// Nothing waits.
    Idle,
    /// Something waits, and more may come before the start.
    Gathering,
    /// The thread has a task.
    Underway,
}

impl Committer {
    /// `depth` counts the writes that were handed over and are not settled: who hands one over adds to it.
    pub(super) fn new(store: Store, depth: Arc<AtomicUsize>) -> Self {
        let store = Arc::new(Mutex::new(store));
        let (queue, pacing) = (Queue::new(), Pacing::default());
        Self { queue, pacing, work: Work::Idle, since: Instant::now(), store, desk: None, depth }
    }

    /// Makes sure that what waits is begun soon.
    fn gather(&mut self, context: &mut Context<Self>) {
        if self.work == Work::Idle && self.pacing.is_enough(self.queue.writes()) {
            self.begin(context);
        } else if self.work == Work::Idle {
            self.work = Work::Gathering;
            let gathered = let_others_hand_over(Arc::clone(&self.depth)).into_actor(self);
            context.spawn(gathered.map(|(), this, context| this.begin(context)));
        }
    }

    /// Begins with what comes next.
    fn begin(&mut self, context: &mut Context<Self>) {
        let share = self.pacing.share(self.queue.writes(), self.since.elapsed());
        self.work = loop {
            match self.queue.next(share) {
                None => break Work::Idle,
                Some(Next::Refuse(progress, error)) => self.settle(&[progress], 1, &Err(error)),
                Some(Next::Commit(batch)) => break self.assign(Task::Commit(batch), context),
                Some(Next::Job(job)) => break self.assign(Task::Run(job), context),
            }
        };
    }

    /// Gives the thread a task; a new thread, if the last one has gone.
    fn assign(&mut self, task: Task, context: &mut Context<Self>) -> Work {
        let refused = match &self.desk {
            Some(desk) => desk.lay(task).err(),
            None => Some(task),
        };
        if let Some(task) = refused {
            let (done, mut finished) = mpsc::unbounded_channel();
            self.desk = Some(Desk::attended(&self.store, task, done));
            context.add_stream(stream::poll_fn(move |task| finished.poll_recv(task)));
        }
        self.since = Instant::now();
        Work::Underway
    }

    /// Tells each ledger how its writes ended.
    fn settle(&mut self, progress: &[Progress], writes: usize, outcome: &Result<(), WriteError>) {
        let dropped = if outcome.is_err() { self.queue.fail(progress) } else { 0 };
        self.depth.fetch_sub(writes + dropped, Ordering::Relaxed);
        if let Err(error) = outcome {
            error!(%error, writes, dropped, "writes failed");
        }
        for one in progress {
            if let Some(listener) = self.queue.listener(one) {
                listener.do_send(Settled {
                    epoch: one.epoch,
                    through: one.through,
                    outcome: outcome.clone(),
                });
            }
        }
    }
}

impl Actor for Committer {
    type Context = Context<Self>;
}

impl Handler<Write> for Committer {
    type Result = ();

    fn handle(&mut self, write: Write, context: &mut Context<Self>) {
        if self.queue.push(write) {
            self.gather(context);
        } else {
            self.depth.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Handler<OpenLedger> for Committer {
    type Result = ();

    fn handle(&mut self, open: OpenLedger, _: &mut Context<Self>) {
        self.queue.open_ledger(open.owner, open.settled);
    }
}

impl Handler<Run> for Committer {
    type Result = ();

    fn handle(&mut self, run: Run, context: &mut Context<Self>) {
        self.queue.push_job(run.0);
        self.gather(context);
    }
}

impl StreamHandler<Done> for Committer {
    fn handle(&mut self, done: Done, context: &mut Context<Self>) {
        if let Done::Committed { batch, outcome } = done {
            self.pacing.committed(batch.writes.len(), self.since.elapsed());
            self.settle(&batch.progress, batch.writes.len(), &outcome);
        }
        (self.work, self.since) = (Work::Idle, Instant::now());
        self.gather(context);
    }

    /// A thread has gone. That is all right, unless it had a task: then the whole runtime is about to end.
    fn finished(&mut self, context: &mut Context<Self>) {
        let is_deserted = self.desk.as_ref().is_none_or(|desk| desk.is_deserted());
        if is_deserted {
            self.desk = None;
        }
        if is_deserted && self.work == Work::Underway {
            error!(error = "the thread of the database has ended", "cannot write any more");
            context.stop();
        }
    }
}

/// Waits as long as others hand over more writes, a few rounds at most, so that a burst shares one commit.
///
/// A round is one turn of every task on this thread that can run, and takes no time otherwise.
async fn let_others_hand_over(depth: Arc<AtomicUsize>) {
    let mut before = depth.load(Ordering::Relaxed);
    for _ in 0..ROUNDS_MAX {
        tokio::task::yield_now().await;
        let after = depth.load(Ordering::Relaxed);
        if after == before {
            break;
        }
        before = after;
    }
}
