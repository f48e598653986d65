//! The baseline of the actors: an actix actor that only answers.

use actix::{Actor, Context, Handler, Message, MessageResult};
use callboard_actors::registry::{Deregister, Deregistered, Register, RegisterError, Registered};

/// Accepts registrations and ignores them.
#[derive(Debug)]
pub(crate) struct Bare;

impl Actor for Bare {
    type Context = Context<Self>;
}

/// Wraps one of our messages as an actix message.
pub(crate) struct Carried<T>(pub(crate) T);

impl Message for Carried<Register> {
    type Result = Result<Registered, RegisterError>;
}

impl Message for Carried<Deregister> {
    type Result = Deregistered;
}

impl Handler<Carried<Register>> for Bare {
    type Result = Result<Registered, RegisterError>;

    fn handle(&mut self, _: Carried<Register>, _: &mut Context<Self>) -> Self::Result {
        Ok(Registered::New)
    }
}

impl Handler<Carried<Deregister>> for Bare {
    type Result = MessageResult<Carried<Deregister>>;

    fn handle(&mut self, Carried(message): Carried<Deregister>, _: &mut Context<Self>) -> Self::Result {
        MessageResult(Deregistered::Removed(message.plugins))
    }
}
