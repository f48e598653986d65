//! Calls that run beside the mailbox, each under its deadline, at most so many at once.

use std::collections::{HashMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use actix::Addr;
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use tokio::task::AbortHandle;

use super::machine::{CallKey, CallLost, Machine};

/// A call that came back, as the actor hears of it.
pub(crate) struct Returned<M: Machine> {
    pub(crate) number: u64,
    pub(crate) key: CallKey,
    pub(crate) call: M::Call,
    pub(crate) outcome: Result<M::Outcome, CallLost>,
}

impl<M: Machine> actix::Message for Returned<M> {
    type Result = ();
}

/// A call that waits for a free place.
pub(crate) struct Planned<M: Machine> {
    pub(crate) key: CallKey,
    pub(crate) deadline: Duration,
    pub(crate) call: M::Call,
}

/// The calls of one actor.
pub(crate) struct Calls<M: Machine> {
    running: HashMap<u64, Option<AbortHandle>>,
    waiting: VecDeque<Planned<M>>,
    next: u64,
    running_max: usize,
    waiting_max: usize,
}

impl<M: Machine> Calls<M> {
    pub(crate) fn new(running_max: usize, waiting_max: usize) -> Self {
        Self { running: HashMap::new(), waiting: VecDeque::new(), next: 0, running_max, waiting_max }
    }

    /// Takes a call in. One too many comes back at once, as lost.
    pub(crate) fn plan<A>(&mut self, planned: Planned<M>, to: &Addr<A>)
    where
        A: actix::Actor<Context = actix::Context<A>> + actix::Handler<Returned<M>>,
    {
        if self.running.len() < self.running_max || self.waiting.len() < self.waiting_max {
            self.waiting.push_back(planned);
            return;
        }
        let number = self.next;
        self.next += 1;
        self.running.insert(number, None);
        let Planned { key, call, .. } = planned;
        to.do_send(Returned { number, key, call, outcome: Err(CallLost::Busy(self.waiting.len())) });
    }

    /// The next call that has a place.
    pub(crate) fn next_due(&mut self) -> Option<Planned<M>> {
        if self.running.len() >= self.running_max { None } else { self.waiting.pop_front() }
    }

    /// Runs a call; its outcome goes to `to`.
    pub(crate) fn start<A>(
        &mut self,
        planned: Planned<M>,
        future: LocalBoxFuture<'static, M::Outcome>,
        to: Addr<A>,
    ) where
        A: actix::Actor<Context = actix::Context<A>> + actix::Handler<Returned<M>>,
    {
        let number = self.next;
        self.next += 1;
        let Planned { key, deadline, call } = planned;
        let task = actix_rt::spawn(async move {
            // Giving a call up may panic as well as making it.
            let bounded = async move { tokio::time::timeout(deadline, future).await };
            let outcome = match AssertUnwindSafe(bounded).catch_unwind().await {
                Ok(Ok(outcome)) => Ok(outcome),
                Ok(Err(_elapsed)) => Err(CallLost::DeadlineExceeded(deadline)),
                Err(panic) => Err(CallLost::Crashed(panic_message(&*panic))),
            };
            to.do_send(Returned { number, key, call, outcome });
        });
        self.running.insert(number, Some(task.abort_handle()));
    }

    /// Notes that a call came back. False means that it was given up before.
    pub(crate) fn finished(&mut self, number: u64) -> bool {
        self.running.remove(&number).is_some()
    }

    /// Gives all calls up.
    pub(crate) fn abandon(&mut self) {
        self.waiting.clear();
        for task in self.running.drain().filter_map(|(_, task)| task) {
            task.abort();
        }
    }
}

impl<M: Machine> Drop for Calls<M> {
    fn drop(&mut self) {
        self.abandon();
    }
}

/// What a panic said, if it said anything.
pub(crate) fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}
