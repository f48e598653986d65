//! Does what the queue decides: one commit or one piece of other work at a time, beside the mailbox.
//!
//! The work runs on tokio's blocking threads, which a paused clock waits for (P1). A second thread of our own would let
//! virtual time run ahead.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use actix::{
    Actor, ActorContext, ActorFutureExt, AsyncContext, Context, Handler, Message, Recipient, WrapFuture,
};
use tracing::error;

use super::errors::WriteError;
use super::messages::{OpenLedger, Settled, Write};
use super::queue::{Batch, Next, Progress, Queue};
use super::store::Store;

/// How often at most the actor lets others run before it starts a commit, while they hand over more.
const ROUNDS_MAX: usize = 8;

/// Work with the database that is not a write. It happens behind every write that was handed over before it.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Job(pub(super) Box<dyn FnOnce(&mut Store) + Send>);

/// The actor that owns the database.
pub(super) struct Committer {
    queue: Queue<Recipient<Settled>, Job>,
    work: Work,
    depth: Arc<AtomicUsize>,
}

/// What the actor is at.
enum Work {
    /// Nothing waits.
    Idle(Store),
    /// Something waits, and more may come before the start.
    Gathering(Store),
    /// The store is away, with a commit or a job.
    Underway,
}

impl Committer {
    /// `depth` counts the writes that were handed over and are not settled: who hands one over adds to it.
    pub(super) const fn new(store: Store, depth: Arc<AtomicUsize>) -> Self {
        Self { queue: Queue::new(), work: Work::Idle(store), depth }
    }

    /// Makes sure that what waits is begun soon.
    fn gather(&mut self, context: &mut Context<Self>) {
        self.work = match std::mem::replace(&mut self.work, Work::Underway) {
            Work::Idle(store) => {
                let gathered = let_others_hand_over(Arc::clone(&self.depth)).into_actor(self);
                context.spawn(gathered.map(|(), this, context| this.begin(context)));
                Work::Gathering(store)
            }
            other => other,
        };
    }

    /// Begins with what comes next.
    fn begin(&mut self, context: &mut Context<Self>) {
        let Work::Gathering(store) = std::mem::replace(&mut self.work, Work::Underway) else { return };
        loop {
            match self.queue.next() {
                None => break self.work = Work::Idle(store),
                Some(Next::Refuse(progress, error)) => self.settle(&[progress], 1, &Err(error)),
                Some(Next::Commit(batch)) => break self.commit(store, batch, context),
                Some(Next::Job(job)) => break self.run(store, job, context),
            }
        }
    }

    fn commit(&self, mut store: Store, batch: Batch, context: &mut Context<Self>) {
        let Batch { writes, progress } = batch;
        let count = writes.len();
        let committed = actix_rt::task::spawn_blocking(move || {
            let outcome = store.commit(&writes);
            (store, outcome)
        });
        context.spawn(committed.into_actor(self).map(move |committed, this, context| match committed {
            Ok((store, outcome)) => {
                this.settle(&progress, count, &outcome);
                this.resume(store, context);
            }
            Err(error) => stop(&error, context),
        }));
    }

    fn run(&self, mut store: Store, job: Job, context: &mut Context<Self>) {
        let ran = actix_rt::task::spawn_blocking(move || {
            (job.0)(&mut store);
            store
        });
        context.spawn(ran.into_actor(self).map(|ran, this, context| match ran {
            Ok(store) => this.resume(store, context),
            Err(error) => stop(&error, context),
        }));
    }

    /// Tells each ledger how its writes ended.
    fn settle(&mut self, progress: &[Progress], count: usize, outcome: &Result<(), WriteError>) {
        let dropped = if outcome.is_err() { self.queue.fail(progress) } else { 0 };
        self.depth.fetch_sub(count + dropped, Ordering::Relaxed);
        if let Err(error) = outcome {
            error!(%error, writes = count, dropped, "writes failed");
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

    fn resume(&mut self, store: Store, context: &mut Context<Self>) {
        self.work = Work::Idle(store);
        self.gather(context);
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

impl Handler<Job> for Committer {
    type Result = ();

    fn handle(&mut self, job: Job, context: &mut Context<Self>) {
        self.queue.push_job(job);
        self.gather(context);
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

/// The blocking threads are gone, which happens only while the whole runtime ends.
fn stop(error: &tokio::task::JoinError, context: &mut Context<Committer>) {
    error!(%error, "the database is lost to its persister");
    context.stop();
}
