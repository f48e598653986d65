//! Requests and answers about volumes and snapshots as messages of the wire, in both directions and without a loss (V10).
//!
//! Both directions of both are public: a host sends requests and reads answers, a plugin or a test the other way round.
//!
//! A message is refused when it cannot be one of our types: a required part is missing, a number is negative, a value of an enum is
//! unknown. Sizes and formats are checked later, by [`Request::check`] and [`Request::check_answer`].

mod controller;
mod groups;
mod listing;
mod metadata;
mod node;
mod parts;
mod snapshots;

use super::Request;
use crate::rpc::Fault;

/// A request that has a message of the wire, as its answer has.
pub trait WireRequest: Request + Sized {
    /// The message of the request.
    type Message;
    /// The message of the answer.
    type AnswerMessage;

    /// The message of the request. Numbers above the limit of the wire, which [`Request::check`] refuses, become that limit.
    fn to_wire(&self) -> Self::Message;

    /// The request of a message.
    ///
    /// # Errors
    /// The field that makes it no request.
    fn from_wire(message: Self::Message) -> Result<Self, Fault>;

    /// The message of an answer.
    fn answer_to_wire(answer: &Self::Answer) -> Self::AnswerMessage;

    /// The answer of a message.
    ///
    /// # Errors
    /// The field that makes it no answer.
    fn answer_from_wire(message: Self::AnswerMessage) -> Result<Self::Answer, Fault>;
}

/// Implements [`WireRequest`] for requests whose answer is empty.
macro_rules! empty_answer {
    ($message:ty) => {
        type AnswerMessage = $message;

        fn answer_to_wire((): &()) -> Self::AnswerMessage {
            Self::AnswerMessage {}
        }

        fn answer_from_wire(_: Self::AnswerMessage) -> Result<(), Fault> {
            Ok(())
        }
    };
}
use empty_answer;

#[cfg(test)]
mod tests;
