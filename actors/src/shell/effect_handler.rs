//! The effect handler of a machine.

use futures_util::future::LocalBoxFuture;

use crate::kernel::{Machine, Never};

/// Makes the calls that a machine requests. It decides nothing: the machine receives each outcome unchanged.
pub trait EffectHandler<M: Machine>: 'static {
    /// Starts a call. The future runs concurrently with the actor, under the deadline that the machine gave, and is dropped
    /// when the actor ends or is rebuilt.
    fn call(&mut self, call: M::Call) -> LocalBoxFuture<'static, M::Outcome>;

    /// Makes a call whose outcome is there at once, without a future and a task for it. The machine hears of it after the effects of
    /// the same step and before anything else. By default no call is one.
    ///
    /// # Errors
    /// The call, which is then started by [`call`](Self::call).
    fn call_at_once(&mut self, call: M::Call) -> Result<M::Outcome, M::Call> {
        Err(call)
    }

    /// Callback for the machine's news, one by one and in order, at the moment they leave. Used to forward them without loss
    /// to the recipient that a parent gave. By default only subscribers receive them.
    fn published(&mut self, news: &M::News) {
        let _ = news;
    }
}

/// The effect handler of a machine that makes no calls.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoEffectHandler;

impl<M: Machine<Call = Never>> EffectHandler<M> for NoEffectHandler {
    fn call(&mut self, call: Never) -> LocalBoxFuture<'static, M::Outcome> {
        match call {}
    }
}
