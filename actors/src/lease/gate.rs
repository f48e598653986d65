//! Admits calls to one connection, counts them, waits for their end, and cuts them.

use std::collections::HashMap;
use std::fmt;
use std::task::{Context, Poll, Waker};

use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Why a connection admits no more calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionEnd {
    /// The plugin closed it, or its process ended. A new lease reaches the plugin when it is back.
    Lost,
    /// The registry routes to another generation or to none, or the host is stopping. A new lease reaches the successor, if there is
    /// one.
    Retired,
    /// Its instance closed it: it crashed, was killed, or connects anew. A new lease reaches the plugin over the next connection.
    Closed,
}

impl fmt::Display for ConnectionEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lost => "its connection has ended",
            Self::Retired => "it was retired",
            Self::Closed => "its instance closed the connection",
        })
    }
}

/// Why a call may not begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotAdmitted {
    /// The connection is closed.
    Closed(ConnectionEnd),
    /// So many calls are in flight.
    Full(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    Closed(ConnectionEnd),
    Cut(ConnectionEnd),
}

#[derive(Debug)]
struct State {
    phase: Phase,
    /// Whether the plugin behind it is identified and healthy.
    is_lendable: bool,
    leases: usize,
    /// The calls in flight by number, each with the task to wake when it is cut.
    calls: HashMap<u64, Option<Waker>>,
    next: u64,
    /// The task that waits until no call is in flight.
    drain: Option<Waker>,
}

/// The calls in flight over one connection.
#[derive(Debug)]
pub(crate) struct Gate {
    calls_max: usize,
    state: Mutex<State>,
}

impl Gate {
    pub(crate) fn new(calls_max: usize) -> Self {
        let state = State {
            phase: Phase::Open,
            is_lendable: false,
            leases: 0,
            calls: HashMap::new(),
            next: 0,
            drain: None,
        };
        Self { calls_max, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is locked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call from now until the pass is dropped.
    pub(crate) fn enter(self: &Arc<Self>) -> Result<Pass, NotAdmitted> {
        self.admit(self.calls_max)
    }

    /// The same for a call of the instance itself, which no call of a lease may hold up (HLT-03).
    pub(crate) fn enter_unlimited(self: &Arc<Self>) -> Result<Pass, NotAdmitted> {
        self.admit(usize::MAX)
    }

    fn admit(self: &Arc<Self>, calls_max: usize) -> Result<Pass, NotAdmitted> {
        let mut state = self.state();
        if let Phase::Closed(end) | Phase::Cut(end) = state.phase {
            return Err(NotAdmitted::Closed(end));
        }
        if state.calls.len() >= calls_max {
            return Err(NotAdmitted::Full(state.calls.len()));
        }
        state.next += 1;
        let number = state.next;
        state.calls.insert(number, None);
        drop(state);
        Ok(Pass { gate: Arc::clone(self), number })
    }

    pub(crate) fn calls(&self) -> usize {
        self.state().calls.len()
    }

    pub(crate) fn leases(&self) -> usize {
        self.state().leases
    }

    /// Says whether leases may be given: only while the plugin behind the connection is identified and healthy.
    pub(crate) fn set_lendable(&self, is_lendable: bool) {
        self.state().is_lendable = is_lendable;
    }

    /// Counts a lease, if one may be given.
    pub(crate) fn lend(&self) -> bool {
        let mut state = self.state();
        let may_lend = state.is_lendable && state.phase == Phase::Open;
        state.leases += usize::from(may_lend);
        may_lend
    }

    pub(crate) fn give_back(&self) {
        self.state().leases -= 1;
    }

    /// Admits no more calls. The first reason is kept.
    pub(crate) fn close(&self, end: ConnectionEnd) {
        let mut state = self.state();
        if state.phase == Phase::Open {
            state.phase = Phase::Closed(end);
        }
    }

    /// Ready when no call is in flight. One task may wait.
    pub(crate) fn poll_drained(&self, context: &Context<'_>) -> Poll<()> {
        let mut state = self.state();
        if state.calls.is_empty() {
            return Poll::Ready(());
        }
        let former = state.drain.replace(context.waker().clone());
        drop(state);
        // What a waker drops may come back here, so the lock is released first.
        drop(former);
        Poll::Pending
    }

    /// Cuts all calls in flight, and returns their number. Idempotent: calls that were cut before are not counted again.
    pub(crate) fn cut(&self, end: ConnectionEnd) -> usize {
        let mut state = self.state();
        let end = match state.phase {
            Phase::Open => end,
            Phase::Closed(first) => first,
            Phase::Cut(_) => return 0,
        };
        state.phase = Phase::Cut(end);
        let wakers: Vec<Waker> = state.calls.values_mut().filter_map(Option::take).collect();
        let cut = state.calls.len();
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
        cut
    }
}

/// One call in flight.
#[derive(Debug)]
pub(crate) struct Pass {
    gate: Arc<Gate>,
    number: u64,
}

impl Pass {
    /// Ready when the call is cut.
    pub(crate) fn poll_cut(&self, context: &Context<'_>) -> Poll<()> {
        let mut state = self.gate.state();
        if let Phase::Cut(_) = state.phase {
            return Poll::Ready(());
        }
        let former = state.calls.get_mut(&self.number).and_then(|waker| match waker {
            Some(known) if known.will_wake(context.waker()) => None,
            Some(_) | None => waker.replace(context.waker().clone()),
        });
        drop(state);
        drop(former);
        Poll::Pending
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let mut state = self.gate.state();
        let own = state.calls.remove(&self.number);
        let waiting = if state.calls.is_empty() { state.drain.take() } else { None };
        drop(state);
        drop(own);
        if let Some(waiting) = waiting {
            waiting.wake();
        }
    }
}
