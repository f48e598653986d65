//! Executes the decisions of the queue: one commit or one job at a time, on a thread beside the mailbox.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use actix::{
    Actor, ActorContext, ActorFutureExt, AsyncContext, Context, Handler, Message, StreamHandler, WrapFuture,
};
use futures_util::{StreamExt as _, stream};
use tokio::sync::mpsc;
use tracing::error;

use super::errors::WriteError;
use super::handoff::{Handoff, Handoffs};
use super::inbox::Inbox;
use super::messages::Settled;
use super::pacing::Pacing;
use super::queue::{Next, Progress};
use super::store::Store;
use super::worker::{self, Done, Task};

/// How many rounds the actor yields at most before it starts a commit, while more writes arrive.
const ROUNDS_MAX: usize = 8;

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
}

impl Committer {
    pub(super) fn new(store: Store, inbox: Arc<Inbox>) -> Self {
        let store = Arc::new(Mutex::new(store));
        Self {
            inbox,
            pacing: Pacing::default(),
            work: Work::Idle,
            since: Instant::now(),
            store,
            tasks: Handoffs::new(),
        }
    }

    /// Schedules the start of what is queued.
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
                None => break Work::Idle,
                Some(Next::Refuse(progress, error)) => self.settle(&[progress], 1, &Err(error)),
                Some(Next::Commit(batch)) => break self.assign(Task::Commit(batch), context),
                Some(Next::Job(job)) => break self.assign(Task::Run(job), context),
            }
        };
    }

    /// Gives the thread a task; starts a new thread if the last one has ended.
    fn assign(&mut self, task: Task, context: &mut Context<Self>) -> Work {
        if let Some((handoff, tasks)) = self.tasks.assign(task) {
            let (done, mut finished) = mpsc::unbounded_channel();
            worker::start(&self.store, &self.inbox, tasks, done);
            let done = stream::poll_fn(move |task| finished.poll_recv(task)).map(Told::Done);
            context.add_stream(done.chain(stream::iter([Told::Left(handoff)])));
        }
        self.since = Instant::now();
        Work::Underway
    }

    /// A thread has ended. If it had a task, it panicked, or the runtime is shutting down. The state of the database is
    /// unknown then, so the actor stops and its supervisor reopens the database.
    fn left(&mut self, handoff: &Arc<Handoff<Task>>, context: &mut Context<Self>) {
        if self.tasks.left(handoff) && self.work == Work::Underway {
            error!(error = "the thread of the database has ended", "cannot write any more");
            context.stop();
        }
    }

    fn settle(&mut self, progress: &[Progress], writes: usize, outcome: &Result<(), WriteError>) {
        let (listeners, dropped) = self.inbox.settle(progress, writes, outcome.is_err());
        if let Err(error) = outcome {
            error!(%error, writes, dropped, "writes failed");
        }
        for (Progress { epoch, through, .. }, listener) in listeners {
            listener.do_send(Settled { epoch, through, outcome: outcome.clone() });
        }
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
        self.gather(context);
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
            Done::Committed { batch, outcome, took, goes_on } => {
                self.pacing.committed(batch.writes, took);
                self.inbox.count_commit();
                self.settle(&batch.progress, batch.writes, &outcome);
                self.inbox.take_back(batch.operations);
                goes_on
            }
            Done::Ran => false,
        };
        if !goes_on {
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
