//! Typed messages for callers, one closed enum for the machine.

use std::fmt::Debug;

use crate::kernel::Machine;

/// A message that machine `M` handles, with the type of its reply.
pub trait Message<M: Machine>: Debug + Send + 'static {
    /// The type of the reply.
    type Reply: Send + 'static;

    /// Wraps the message for the machine.
    fn into_ask(self) -> M::Ask;

    /// Unwraps the reply. `None` means that the machine gave the answer of another message, which is a bug in the machine.
    fn from_answer(answer: M::Answer) -> Option<Self::Reply>;
}

/// Declares what can be said to a machine: an enum of messages, an enum of answers, and for each message its type of reply.
///
/// ```
/// # use callboard_actors::{conversation, shell::*, vocabulary::Moment};
/// /// Adds to the sum.
/// #[derive(Debug)]
/// pub struct Add(pub u64);
/// conversation! {
///     /// The messages of the adder.
///     pub enum AdderAsk -> AdderAnswer for Adder {
///         Add => u64,
///     }
/// }
/// # #[derive(Debug)]
/// # pub struct Adder(u64);
/// # impl Machine for Adder {
/// #     const KIND: &'static str = "adder";
/// #     type Config = (); type Image = (); type Ask = AdderAsk; type Answer = AdderAnswer; type Call = Never;
/// #     type Outcome = Never; type Timer = Never; type Change = Never; type News = u64; type View = u64;
/// #     fn restore((): &(), (): (), _: Moment) -> Self { Self(0) }
/// #     fn step(&mut self, _: Moment, input: &Input<Self>, effects: &mut Effects<Self>) {
/// #         if let Input::Asked { id, ask: AdderAsk::Add(Add(more)), .. } = input {
/// #             self.0 += more;
/// #             effects.reply(*id, AdderAnswer::Add(self.0));
/// #         }
/// #     }
/// #     fn view(&self) -> u64 { self.0 }
/// # }
/// ```
#[macro_export]
macro_rules! conversation {
    (
        $(#[$outer:meta])*
        $visibility:vis enum $ask:ident -> $answer:ident for $machine:ty {
            $($message:ident => $reply:ty),* $(,)?
        }
    ) => {
        $(#[$outer])*
        #[derive(Debug)]
        $visibility enum $ask {
            $(#[doc = concat!("[`", stringify!($message), "`] was said.")] $message($message),)*
        }

        #[doc = concat!("What is answered to [`", stringify!($ask), "`].")]
        #[derive(Debug)]
        $visibility enum $answer {
            $(#[doc = concat!("The answer to [`", stringify!($message), "`].")] $message($reply),)*
        }

        $(
            impl $crate::shell::Message<$machine> for $message {
                type Reply = $reply;

                fn into_ask(self) -> $ask {
                    $ask::$message(self)
                }

                fn from_answer(answer: $answer) -> Option<$reply> {
                    #[allow(unreachable_patterns, reason = "a conversation of one message has one kind of answer")]
                    match answer {
                        $answer::$message(reply) => Some(reply),
                        _ => None,
                    }
                }
            }
        )*
    };
}
