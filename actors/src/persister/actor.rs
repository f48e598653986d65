//! Does what the queue decides: one commit or one job at a time, on a thread beside the mailbox.

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

/// How often at most the actor lets others run before it starts a commit, while they hand over more.
const ROUNDS_MAX: usize = 8;

/// Calls the actor, since something lies in its inbox.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Called;

/// The actor that owns the database.
pub(super) struct Committer {
    inbox: Arc<Inbox>,
    pacing: Pacing,
    work: Work,
    /// Since when the thread has been at its task, or without one.
    since: Instant,
    store: Arc<Mutex<Store>>,
    tasks: Handoffs<Task>,
}

/// What is heard of a thread: the end comes behind all that it has done.
enum Told {
    Done(Done),
    /// The thread that took its tasks here has left.
    Left(Arc<Handoff<Task>>),
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

    /// Makes sure that what waits is begun soon.
    fn gather(&mut self, context: &mut Context<Self>) {
        if self.work == Work::Idle && self.pacing.is_enough(self.inbox.writes()) {
            self.begin(context);
        } else if self.work == Work::Idle {
            self.work = Work::Gathering;
            let gathered = let_others_hand_over(Arc::clone(&self.inbox)).into_actor(self);
            context.spawn(gathered.map(|(), this, context| this.begin(context)));
        }
    }

    /// Begins with what comes next.
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

    /// Gives the thread a task; a new thread, if the last one has gone.
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

    /// A thread has left. That is all right, unless it had a task: then it panicked, or the whole runtime is about to end. Nothing
    /// is known of the database then, so it is left to whoever opens it anew.
    fn left(&mut self, handoff: &Arc<Handoff<Task>>, context: &mut Context<Self>) {
        if self.tasks.left(handoff) && self.work == Work::Underway {
            error!(error = "the thread of the database has ended", "cannot write any more");
            context.stop();
        }
    }

    /// Tells each ledger how its writes ended.
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

/// Nobody does any more what lies in the inbox, however the actor ended.
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

    /// That a thread has left was told already.
    fn finished(&mut self, _: &mut Context<Self>) {}
}

/// Waits as long as others hand over more writes, a few rounds at most, so that a burst shares one commit.
///
/// A round is one turn of every task on this thread that can run, and takes no time otherwise.
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
