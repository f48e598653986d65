//! The conversation of a machine with its callers: typed messages for callers, one closed enum for the machine; errors and news.

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

/// Why an ask has no answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum AskError {
    /// The mailbox is full; the message was not accepted. Messages that were accepted keep their order.
    #[error("{actor} is busy: {in_flight} messages are in flight and {limit} are allowed; try again later")]
    Busy {
        /// The addressed actor.
        actor: String,
        /// How many messages were in flight.
        in_flight: usize,
        /// The limit of messages in flight.
        limit: usize,
    },
    /// No actor runs at this address: it is not started yet, restarting, or stopped. If the message was accepted before, its
    /// outcome is unknown; the caller can query the state.
    #[error("{actor} is not running: it is stopped, or about to be started; there is no answer")]
    NotRunning {
        /// The addressed actor.
        actor: String,
    },
    /// The step that handled the message panicked. The message had no effect; the actor continues.
    #[error("{actor} crashed while handling this message, which had no effect: {message}")]
    Crashed {
        /// The addressed actor.
        actor: String,
        /// The panic message.
        message: String,
    },
    /// The write that the answer depends on is lost, or the disk is sick. A message that was begun has its effect when the disk is
    /// sound again, unless the host ends before; a message that was not begun never has an effect.
    #[error(
        "{actor} could not persist this: {error}; {}",
        if *is_begun { "what was started resumes when the disk accepts writes" } else { "nothing was begun" }
    )]
    NotDurable {
        /// The addressed actor.
        actor: String,
        /// The error of the persister.
        error: String,
        /// Whether the actor handled the message.
        is_begun: bool,
    },
    /// The store refused the write that the answer depends on, for instance because a record is too large. It is not handed over again, and
    /// nothing that follows from it takes effect; the actor is rebuilt from its state on disk.
    #[error(
        "{actor} could not persist this: {error}; it is never written, and the same message fails again: change it, or \
         repair the store"
    )]
    NotWritten {
        /// The addressed actor.
        actor: String,
        /// Why the store refused it.
        error: String,
    },
}

impl AskError {
    /// Whether a retry of the same message may succeed. An actor that is restarted and one that has ended with its host are both
    /// [`NotRunning`](Self::NotRunning): an address cannot distinguish them, so the error is transient. A host program that has stopped its
    /// host, or that sees it end, sends the message to the next host.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::Busy { .. } | Self::NotRunning { .. } | Self::NotDurable { .. } => true,
            Self::Crashed { .. } | Self::NotWritten { .. } => false,
        }
    }
}

/// An item that a subscriber reads.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum FeedItem<N, V> {
    /// The state after change `number`. Comes first, and again after [`FeedItem::Lagged`].
    Snapshot {
        /// The number of changes published before it.
        number: u64,
        /// The whole state.
        view: V,
    },
    /// One change.
    Change {
        /// Its position in the order of all changes; the first is 1.
        number: u64,
        /// The change.
        news: N,
    },
    /// The queue was full, and this many changes were dropped. A snapshot follows, unless the publisher has ended.
    Lagged {
        /// The number of changes that are missing.
        missed: u64,
    },
}

/// Declares the messages of a machine: an enum of messages, an enum of answers, and for each message its type of reply. The machine
/// names both as its [`Ask`](Machine::Ask) and [`Answer`](Machine::Answer).
///
/// ```
/// # use callboard_machines::{conversation, kernel::*, vocabulary::Moment};
/// /// Adds to the sum.
/// #[derive(Debug)]
/// pub struct Add(pub u64);
/// conversation! {
///     /// The messages of the adder.
///     pub enum AdderAsk -> AdderAnswer {
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
/// #     fn step(&mut self, input: &Input<Self>, cx: &mut StepContext<Self>) {
/// #         if let Input::Asked { id, ask: AdderAsk::Add(Add(more)), .. } = input {
/// #             self.0 += more;
/// #             cx.reply(*id, AdderAnswer::Add(self.0));
/// #         }
/// #     }
/// #     fn view(&self) -> u64 { self.0 }
/// # }
/// ```
///
/// A message that machines with different conversations accept, such as a message of another crate, is listed in each of them, and each
/// names its machine: `pub enum AdderAsk -> AdderAnswer for Adder { .. }`.
#[macro_export]
macro_rules! conversation {
    (
        $(#[$outer:meta])*
        $visibility:vis enum $ask:ident -> $(#[$of_answer:meta])* $answer:ident {
            $($message:ident => $reply:ty),* $(,)?
        }
    ) => {
        $crate::conversation!(@enums [$(#[$outer])*] $visibility $ask [$(#[$of_answer])*] $answer; $($message => $reply),*);

        $($crate::conversation!(
            @message $message => $reply; $ask -> $answer;
            [<M: $crate::kernel::Machine<Ask = $ask, Answer = $answer>>] M
        );)*
    };

    (
        $(#[$outer:meta])*
        $visibility:vis enum $ask:ident -> $(#[$of_answer:meta])* $answer:ident for $machine:ty {
            $($message:ident => $reply:ty),* $(,)?
        }
    ) => {
        $crate::conversation!(@enums [$(#[$outer])*] $visibility $ask [$(#[$of_answer])*] $answer; $($message => $reply),*);

        $($crate::conversation!(@message $message => $reply; $ask -> $answer; [] $machine);)*
    };

    (
        @enums [$(#[$outer:meta])*] $visibility:vis $ask:ident [$(#[$of_answer:meta])*] $answer:ident;
        $($message:ident => $reply:ty),*
    ) => {
        $(#[$outer])*
        #[derive(Debug)]
        $visibility enum $ask {
            $(#[doc = concat!("[`", stringify!($message), "`] was said.")] $message($message),)*
        }

        #[doc = concat!("What is answered to [`", stringify!($ask), "`].")]
        $(#[$of_answer])*
        #[derive(Debug)]
        $visibility enum $answer {
            $(#[doc = concat!("The answer to [`", stringify!($message), "`].")] $message($reply),)*
        }
    };

    (@message $message:ident => $reply:ty; $ask:ident -> $answer:ident; [$($generics:tt)*] $machine:ty) => {
        impl $($generics)* $crate::Message<$machine> for $message {
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
    };
}
