//! Admits calls to one connection, counts them, waits for their end, and cuts them.

use std::collections::HashMap;
use std::fmt;
use std::task::{Context, Poll, Waker};

use callboard_machines::lease::RetireCause;

use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The reason that a connection admits no more calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionEnd {
    /// The plugin closed it, or its process ended. A new lease reaches the plugin when it is back.
    Lost,
    /// The registry routes to another generation or to none, or the host is stopping.
    Retired(RetireCause),
    /// Its instance closed it: it crashed, was killed, or reconnects. A new lease reaches the plugin over the next connection.
    Closed,
}

impl fmt::Display for ConnectionEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost => f.write_str("its connection has ended"),
            Self::Retired(cause) => cause.fmt(f),
            Self::Closed => f.write_str("its instance closed the connection"),
        }
    }
}

/// The reason that a call may not begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotAdmitted<E> {
    /// The connection is closed.
    Closed(E),
    /// This number of calls is in flight.
    Full(usize),
}

#[derive(Debug)]
enum Phase<E> {
    Open,
    Closed(E),
    Cut(E),
}

#[derive(Debug)]
struct Call {
    /// Whether the call only watches: its end is not awaited, and closing the connection cuts it.
    is_watching: bool,
    /// The task to wake when it is cut.
    waker: Option<Waker>,
}

#[derive(Debug)]
struct State<E> {
    phase: Phase<E>,
    /// Whether the plugin behind it is identified and healthy.
    is_lendable: bool,
    leases: usize,
    /// The calls in flight by number.
    calls: HashMap<u64, Call>,
    /// The number of calls that only watch.
    watching: usize,
    next: u64,
    /// The task that waits until no call is in flight.
    drain: Option<Waker>,
}

impl<E> State<E> {
    const fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Open)
    }

    /// The task that waits for the end of the calls in flight, if no call is left.
    fn drained(&mut self) -> Option<Waker> {
        if self.calls.len() == self.watching { self.drain.take() } else { None }
    }
}

/// The calls in flight over one connection, which ends for a reason `E`.
#[derive(Debug)]
pub(crate) struct Gate<E> {
    calls_max: usize,
    state: Mutex<State<E>>,
}

impl<E> Gate<E> {
    fn state(&self) -> MutexGuard<'_, State<E>> {
        // Nothing panics while it is locked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<E: Clone> Gate<E> {
    pub(crate) fn new(calls_max: usize) -> Self {
        let state = State {
            phase: Phase::Open,
            is_lendable: false,
            leases: 0,
            calls: HashMap::new(),
            watching: 0,
            next: 0,
            drain: None,
        };
        Self { calls_max, state: Mutex::new(state) }
    }

    /// Counts a call from now until the pass is dropped.
    pub(crate) fn enter(self: &Arc<Self>) -> Result<Pass<E>, NotAdmitted<E>> {
        self.admit(self.calls_max, false)
    }

    /// [`enter`](Self::enter) for a call of the instance itself, which no call of a lease may block (HLT-03).
    pub(crate) fn enter_unlimited(self: &Arc<Self>) -> Result<Pass<E>, NotAdmitted<E>> {
        self.admit(usize::MAX, false)
    }

    /// [`enter`](Self::enter) for a call that only watches: its end is not awaited, and closing the connection cuts it.
    pub(crate) fn enter_watching(self: &Arc<Self>) -> Result<Pass<E>, NotAdmitted<E>> {
        self.admit(usize::MAX, true)
    }

    fn admit(self: &Arc<Self>, calls_max: usize, is_watching: bool) -> Result<Pass<E>, NotAdmitted<E>> {
        let mut state = self.state();
        if let Phase::Closed(end) | Phase::Cut(end) = &state.phase {
            return Err(NotAdmitted::Closed(end.clone()));
        }
        if state.calls.len() >= calls_max {
            return Err(NotAdmitted::Full(state.calls.len()));
        }
        state.next += 1;
        state.watching += usize::from(is_watching);
        let number = state.next;
        state.calls.insert(number, Call { is_watching, waker: None });
        drop(state);
        Ok(Pass { gate: Arc::clone(self), number })
    }

    pub(crate) fn calls(&self) -> usize {
        self.state().calls.len()
    }

    pub(crate) fn leases(&self) -> usize {
        self.state().leases
    }

    /// Sets whether leases may be given: only while the plugin behind the connection is identified and healthy.
    pub(crate) fn set_lendable(&self, is_lendable: bool) {
        self.state().is_lendable = is_lendable;
    }

    /// Whether a lease may be given.
    pub(crate) fn may_lend(&self) -> bool {
        let state = self.state();
        state.is_lendable && state.is_open()
    }

    /// Counts a lease, if one may be given.
    pub(crate) fn lend(&self) -> bool {
        let mut state = self.state();
        let may_lend = state.is_lendable && state.is_open();
        state.leases += usize::from(may_lend);
        may_lend
    }

    pub(crate) fn give_back(&self) {
        self.state().leases -= 1;
    }

    /// Whether it no longer admits calls.
    pub(crate) fn is_closed(&self) -> bool {
        !self.state().is_open()
    }

    /// The reason that it admits no more calls. `None` while it does.
    pub(crate) fn end(&self) -> Option<E> {
        match &self.state().phase {
            Phase::Open => None,
            Phase::Closed(end) | Phase::Cut(end) => Some(end.clone()),
        }
    }

    /// Admits no more calls, and cuts those that only watch. The first reason is kept.
    pub(crate) fn close(&self, end: E) {
        let mut state = self.state();
        if !state.is_open() {
            return;
        }
        state.phase = Phase::Closed(end);
        let watching = state.calls.values_mut().filter(|call| call.is_watching);
        let wakers: Vec<Waker> = watching.filter_map(|call| call.waker.take()).collect();
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Ready when no call is in flight, except calls that only watch. One task may wait.
    pub(crate) fn poll_drained(&self, context: &Context<'_>) -> Poll<()> {
        let mut state = self.state();
        if state.calls.len() == state.watching {
            return Poll::Ready(());
        }
        let former = state.drain.replace(context.waker().clone());
        drop(state);
        // Dropping a waker may call back into this gate, so the lock is released first.
        drop(former);
        Poll::Pending
    }

    /// Cuts all calls in flight, and returns their number. Idempotent: calls that were cut before are not counted again.
    pub(crate) fn cut(&self, end: E) -> usize {
        let mut state = self.state();
        let end = match &state.phase {
            Phase::Open => end,
            Phase::Closed(first) => first.clone(),
            Phase::Cut(_) => return 0,
        };
        state.phase = Phase::Cut(end);
        let wakers: Vec<Waker> = state.calls.values_mut().filter_map(|call| call.waker.take()).collect();
        let cut = state.calls.len() - state.watching;
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
        cut
    }
}

/// One call in flight.
#[derive(Debug)]
pub(crate) struct Pass<E> {
    gate: Arc<Gate<E>>,
    number: u64,
}

impl<E: Clone> Pass<E> {
    /// From now on the call only watches.
    pub(crate) fn watch(&self) {
        let mut guard = self.gate.state();
        let state = &mut *guard;
        if let Some(call) = state.calls.get_mut(&self.number) {
            state.watching += usize::from(!std::mem::replace(&mut call.is_watching, true));
        }
        let waiting = state.drained();
        drop(guard);
        if let Some(waiting) = waiting {
            waiting.wake();
        }
    }

    /// Ready with the reason when the call is cut.
    pub(crate) fn poll_cut(&self, context: &Context<'_>) -> Poll<E> {
        let mut guard = self.gate.state();
        let state = &mut *guard;
        let call = state.calls.get_mut(&self.number);
        let is_watching = call.as_ref().is_some_and(|call| call.is_watching);
        match &state.phase {
            Phase::Cut(end) => return Poll::Ready(end.clone()),
            Phase::Closed(end) if is_watching => return Poll::Ready(end.clone()),
            Phase::Closed(_) | Phase::Open => {}
        }
        let former = call.and_then(|call| match &call.waker {
            Some(known) if known.will_wake(context.waker()) => None,
            Some(_) | None => call.waker.replace(context.waker().clone()),
        });
        drop(guard);
        drop(former);
        Poll::Pending
    }
}

impl<E> Drop for Pass<E> {
    fn drop(&mut self) {
        let mut state = self.gate.state();
        let own = state.calls.remove(&self.number);
        state.watching -= usize::from(own.as_ref().is_some_and(|call| call.is_watching));
        let waiting = state.drained();
        drop(state);
        drop(own);
        if let Some(waiting) = waiting {
            waiting.wake();
        }
    }
}
