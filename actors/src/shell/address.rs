//! Addresses: where messages are sent, counted as in flight, and refused when there are too many.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, ready};

use actix::Recipient;
use tokio::sync::oneshot;

use super::conversation::Message;
use super::feed::{Backlog, FeedSender, SubscriberReport, Subscription, feed};
use super::mailbox::{Full, Mailbox, Permit};
use crate::kernel::{Machine, StopMode};

/// Why a question has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// The mailbox is full; the message was not taken. Nothing that was taken is overtaken by this.
    #[error("{actor} is busy: {in_flight} messages are in flight and {limit} are allowed; try again later")]
    Busy {
        /// Whom it was for.
        actor: String,
        /// How many were in flight.
        in_flight: usize,
        /// How many may be.
        limit: usize,
    },
    /// Nobody is at this address: not started yet, between two lives, or stopped. If the message was taken before that,
    /// its outcome is unknown and can be asked for.
    #[error("{actor} is not running: it is stopped, or about to be started; there is no answer")]
    NotRunning {
        /// Whom it was for.
        actor: String,
    },
    /// The step that took the message panicked. It had no effect; the actor goes on.
    #[error("{actor} crashed over this message, which had no effect: {message}")]
    Crashed {
        /// Whom it was for.
        actor: String,
        /// What the panic said.
        message: String,
    },
    /// The write behind which the answer waited failed. What is on disk holds: almost always as if the message had not
    /// been sent, but a commit may fail after it took effect, so ask before trying again where that matters.
    #[error("{actor} could not write this down: {error}")]
    NotDurable {
        /// Whom it was for.
        actor: String,
        /// What the persister said.
        error: String,
    },
}

impl AskError {
    /// Whether the same message may well succeed later.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::Busy { .. } | Self::NotRunning { .. } | Self::NotDurable { .. } => true,
            Self::Crashed { .. } => false,
        }
    }
}

pub(crate) type ReplySender<M> = oneshot::Sender<Result<<M as Machine>::Answer, AskError>>;

/// What is put into the mailbox.
pub(crate) enum Envelope<M: Machine> {
    Ask { ask: M::Ask, reply: Option<ReplySender<M>>, permit: Permit },
    Subscribe(FeedSender<M::News, M::View>),
    Resync,
    Stop(StopMode),
    Drill(Drill),
}

/// What goes wrong in a drill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drill {
    /// The actor crashes, as over a step that panics: its machine is rebuilt, and its budget is charged.
    Crash,
    /// The actor gives up and ends, so that its parent decides.
    GiveUp,
}

impl<M: Machine> actix::Message for Envelope<M> {
    type Result = ();
}

/// Who asked, if anybody waits for the answer, and the place the message takes in the mailbox.
pub(crate) struct Asker<M: Machine> {
    pub(crate) reply: Option<ReplySender<M>>,
    pub(crate) permit: Option<Permit>,
}

impl<M: Machine> Asker<M> {
    /// Gives the place free, and says why there is no answer.
    pub(crate) fn refuse(self, error: AskError) {
        drop(self.permit);
        if let Some(reply) = self.reply {
            // Whoever gave up waiting does not need to know.
            let _ = reply.send(Err(error));
        }
    }

    /// Gives the place free and the answer out.
    pub(crate) fn hear(self, answer: M::Answer) {
        drop(self.permit);
        if let Some(reply) = self.reply {
            // Whoever gave up waiting does not need the answer.
            let _ = reply.send(Ok(answer));
        }
    }
}

/// What can be seen of an actor from outside, as of now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Vitals {
    /// Messages that were taken and neither answered nor set aside to wait for something.
    pub mailbox_depth: usize,
    /// Steps taken.
    pub steps: u64,
    /// Steps that panicked.
    pub crashes: u64,
    /// How often the machine was built anew from disk, after a crash or a failed write.
    pub rebuilds: u64,
}

struct Slot<M: Machine> {
    mailbox: Arc<Mailbox>,
    holder: Mutex<Holder<M>>,
    /// The queues of those who subscribed here.
    subscribers: Mutex<Vec<Weak<dyn Backlog>>>,
}

/// Which actor is behind an address.
struct Holder<M: Machine> {
    recipient: Option<Recipient<Envelope<M>>>,
    /// Grows with each actor that takes the slot, so that a former one cannot vacate it.
    incarnation: u64,
}

/// The address of an actor that runs machine `M`. It stays valid when the actor crashes or is restarted by its supervisor.
///
/// Messages of one sender arrive in the order in which [`ask`](Self::ask), [`tell`](Self::tell) and
/// [`notify`](Self::notify) were called; whatever is taken runs to its end once, whether or not anyone waits for the answer.
pub struct Address<M: Machine> {
    slot: Arc<Slot<M>>,
}

impl<M: Machine> Clone for Address<M> {
    fn clone(&self) -> Self {
        Self { slot: Arc::clone(&self.slot) }
    }
}

impl<M: Machine> fmt::Debug for Address<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Address").field("actor", &self.slot.mailbox.name).finish_non_exhaustive()
    }
}

impl<M: Machine> Address<M> {
    /// An address that nobody holds yet, so that it can be handed out before its actor starts. At most `limit` messages may
    /// be in flight.
    #[must_use]
    pub fn vacant(name: impl Into<String>, limit: usize) -> Self {
        let mailbox = Mailbox::new(name.into(), limit);
        Self {
            slot: Arc::new(Slot {
                mailbox: Arc::new(mailbox),
                holder: Mutex::new(Holder { recipient: None, incarnation: 0 }),
                subscribers: Mutex::default(),
            }),
        }
    }

    /// The name of the actor.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.slot.mailbox.name
    }

    /// What can be seen of the actor now.
    #[must_use]
    pub fn vitals(&self) -> Vitals {
        let mailbox = &self.slot.mailbox;
        Vitals {
            mailbox_depth: mailbox.in_flight(),
            steps: mailbox.steps.load(Ordering::Relaxed),
            crashes: mailbox.crashes.load(Ordering::Relaxed),
            rebuilds: mailbox.rebuilds.load(Ordering::Relaxed),
        }
    }

    /// Hands a message in, at once, and gives a future of its answer. The message counts even if the future is dropped.
    pub fn ask<Q: Message<M>>(&self, message: Q) -> Asking<M, Q> {
        let (sender, receiver) = oneshot::channel();
        let refused = match self.admit() {
            Ok(permit) => {
                let envelope = Envelope::Ask { ask: message.into_ask(), reply: Some(sender), permit };
                self.deliver(envelope).err()
            }
            Err(busy) => Some(busy),
        };
        Asking { mailbox: Arc::clone(&self.slot.mailbox), receiver, refused, question: PhantomData }
    }

    /// Hands a message in whose answer nobody needs.
    ///
    /// # Errors
    /// [`AskError::Busy`] or [`AskError::NotRunning`]; the message was not taken.
    pub fn tell<Q: Message<M>>(&self, message: Q) -> Result<(), AskError> {
        let permit = self.admit()?;
        self.deliver(Envelope::Ask { ask: message.into_ask(), reply: None, permit })
    }

    /// Hands in news that may not be lost and that its sender bounds itself, such as a child's report to its parent. It
    /// counts as in flight but is never refused for being one too many.
    ///
    /// # Errors
    /// [`AskError::NotRunning`] if nobody is there to hear it.
    pub fn notify<Q: Message<M>>(&self, message: Q) -> Result<(), AskError> {
        let permit = self.slot.mailbox.admit_whatever();
        self.deliver(Envelope::Ask { ask: message.into_ask(), reply: None, permit })
    }

    /// Subscribes to the actor's news: a snapshot first, then every change. At most `capacity` items wait unread. By its name a
    /// subscriber is found that does not keep up: in a [`Notice`](super::Notice), and among the
    /// [`subscribers`](Self::subscribers).
    ///
    /// # Errors
    /// [`AskError::NotRunning`] if nobody is there.
    pub fn subscribe(
        &self,
        subscriber: impl Into<String>,
        capacity: usize,
    ) -> Result<Subscription<M::News, M::View>, AskError> {
        let slot = Arc::downgrade(&self.slot);
        let (sender, subscription) = feed(subscriber.into(), capacity, move || {
            if let Some(slot) = slot.upgrade() {
                // Nobody there means that the feed has ended, which its reader learns from the feed itself.
                let _ = Self { slot }.deliver(Envelope::Resync);
            }
        });
        let backlog = sender.backlog();
        self.deliver(Envelope::Subscribe(sender))?;
        let mut subscribers = self.slot.subscribers.lock().unwrap_or_else(PoisonError::into_inner);
        // Those who left are let go of now and then, so that many subscriptions cost no more than their number.
        if subscribers.len().is_power_of_two() {
            subscribers.retain(|other| other.upgrade().is_some_and(|other| other.is_read()));
        }
        subscribers.push(backlog);
        drop(subscribers);
        Ok(subscription)
    }

    /// Who subscribes at present, and how each keeps up.
    #[must_use]
    pub fn subscribers(&self) -> Vec<SubscriberReport> {
        let subscribers = self.slot.subscribers.lock().unwrap_or_else(PoisonError::into_inner);
        subscribers.iter().filter_map(|backlog| backlog.upgrade()?.report()).collect()
    }

    /// Asks the actor to end. What was handed in before is handled before.
    ///
    /// # Errors
    /// [`AskError::NotRunning`] if it has ended already.
    pub fn request_stop(&self, mode: StopMode) -> Result<(), AskError> {
        self.deliver(Envelope::Stop(mode))
    }

    /// Lets something go wrong in the actor, when its mailbox has come that far: for scripts, drills and tests of what follows.
    ///
    /// # Errors
    /// [`AskError::NotRunning`] if nobody is there to drill.
    pub fn drill(&self, drill: Drill) -> Result<(), AskError> {
        self.deliver(Envelope::Drill(drill))
    }

    pub(crate) fn mailbox(&self) -> Arc<Mailbox> {
        Arc::clone(&self.slot.mailbox)
    }

    /// Gives the slot to an actor. The number names this incarnation of it.
    pub(crate) fn occupy(&self, holder: Recipient<Envelope<M>>) -> u64 {
        let mut held = self.lock();
        held.incarnation += 1;
        held.recipient = Some(holder);
        held.incarnation
    }

    /// Leaves the slot, unless another actor has it by now.
    pub(crate) fn vacate(&self, incarnation: u64) {
        let mut held = self.lock();
        if held.incarnation == incarnation {
            held.recipient = None;
        }
    }

    /// Asks the actor of this incarnation to end, and nobody who came after it.
    pub(crate) fn request_stop_of(&self, incarnation: u64, mode: StopMode) {
        let held = self.lock();
        if let Some(holder) = held.recipient.as_ref().filter(|_| held.incarnation == incarnation) {
            holder.do_send(Envelope::Stop(mode));
        }
    }

    fn admit(&self) -> Result<Permit, AskError> {
        let busy =
            |Full { in_flight, limit }| AskError::Busy { actor: self.name().to_owned(), in_flight, limit };
        self.slot.mailbox.admit().map_err(busy)
    }

    fn deliver(&self, envelope: Envelope<M>) -> Result<(), AskError> {
        match &self.lock().recipient {
            Some(recipient) if recipient.connected() => {
                recipient.do_send(envelope);
                Ok(())
            }
            Some(_) | None => Err(not_running(&self.slot.mailbox)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Holder<M>> {
        self.slot.holder.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn not_running(mailbox: &Mailbox) -> AskError {
    AskError::NotRunning { actor: mailbox.name.clone() }
}

/// The answer to come. It knows what it is for, and dropping it takes nothing back.
#[must_use = "the message is on its way, but its outcome is lost unless this is awaited"]
pub struct Asking<M: Machine, Q> {
    mailbox: Arc<Mailbox>,
    receiver: oneshot::Receiver<Result<M::Answer, AskError>>,
    refused: Option<AskError>,
    question: PhantomData<fn() -> Q>,
}

impl<M: Machine, Q> fmt::Debug for Asking<M, Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asking").field("actor", &self.mailbox.name).finish_non_exhaustive()
    }
}

impl<M: Machine, Q: Message<M>> Future for Asking<M, Q> {
    type Output = Result<Q::Reply, AskError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(error) = self.refused.take() {
            return Poll::Ready(Err(error));
        }
        let answer = match ready!(Pin::new(&mut self.receiver).poll(context)) {
            Ok(answer) => answer,
            Err(_sender_dropped) => Err(not_running(&self.mailbox)),
        };
        Poll::Ready(answer.and_then(|answer| {
            Q::from_answer(answer).ok_or_else(|| AskError::Crashed {
                actor: self.mailbox.name.clone(),
                message: "it answered another question than was asked".to_owned(),
            })
        }))
    }
}
