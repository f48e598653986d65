//! The effect handler of a machine.

use std::fmt;

use futures_util::FutureExt as _;
use futures_util::future::LocalBoxFuture;

use crate::kernel::{Machine, Never};

/// Makes the calls that a machine requests. It decides nothing: the machine receives each outcome unchanged.
pub trait EffectHandler<M: Machine>: 'static {
    /// Starts a call.
    fn call(&mut self, call: M::Call) -> Started<M::Outcome>;

    /// Callback for the machine's news, one by one and in order, at the moment they leave. Used to forward them without loss
    /// to the recipient that a parent gave. By default only subscribers receive them.
    fn published(&mut self, news: &M::News) {
        let _ = news;
    }
}

/// A call that was started.
pub enum Started<O> {
    /// It is done, without a task for it. The machine receives the outcome after the effects of the same step and before anything else.
    Done(O),
    /// It runs concurrently with the actor, under the deadline that the machine gave, and is dropped when the actor ends or is rebuilt.
    Running(LocalBoxFuture<'static, O>),
}

impl<O> Started<O> {
    /// A call that runs concurrently.
    pub fn running(work: impl Future<Output = O> + 'static) -> Self {
        Self::Running(work.boxed_local())
    }
}

impl<O: fmt::Debug> fmt::Debug for Started<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done(outcome) => f.debug_tuple("Done").field(outcome).finish(),
            Self::Running(_) => f.debug_tuple("Running").finish_non_exhaustive(),
        }
    }
}

/// The effect handler of a machine that makes no calls.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoEffectHandler;

impl<M: Machine<Call = Never>> EffectHandler<M> for NoEffectHandler {
    fn call(&mut self, call: Never) -> Started<M::Outcome> {
        match call {}
    }
}
