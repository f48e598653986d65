//! The effect handler of a machine.

use futures_util::future::LocalBoxFuture;

use crate::kernel::{Machine, Never};

/// Makes the calls that a machine asks for. It decides nothing: what came back is told to the machine as it is.
pub trait EffectHandler<M: Machine>: 'static {
    /// Starts a call. The future runs beside the actor, under the deadline that the machine gave, and is dropped when the
    /// actor ends or is rebuilt.
    fn call(&mut self, call: M::Call) -> LocalBoxFuture<'static, M::Outcome>;

    /// Hears the machine's news in the instant in which they leave, one by one and in order: the way to pass them on to a
    /// parent who gave a recipient, and must not miss one. The default keeps them to the subscribers.
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
