//! Addresses: where messages are sent. Messages in flight are counted, and refused over the limit (backpressure).

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, ready};

use actix::Recipient;
use callboard_machines::{AskError, Message};
use tokio::sync::oneshot;

use super::feed::{Backlog, FeedSender, SubscriberReport, Subscription, feed};
use super::mailbox::{Full, Mailbox, Permit};
use super::reservation::{Reservable, Reservation};
use crate::kernel::{Machine, StopMode, Vitals};

/// Both ends of the feed of a machine.
type FeedEnds<M> = (
    FeedSender<<M as Machine>::News, <M as Machine>::View>,
    Subscription<<M as Machine>::News, <M as Machine>::View>,
);

pub(crate) type ReplySender<M> = oneshot::Sender<Result<<M as Machine>::Answer, AskError>>;

/// The content of a mailbox slot.
pub(crate) enum Envelope<M: Machine> {
    Ask { ask: M::Ask, reply: Option<ReplySender<M>>, permit: Permit },
    Subscribe(FeedSender<M::News, M::View>),
    Resync,
    Describe,
    Stop(StopMode),
    Drill(Drill),
}

/// The fault that a drill injects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drill {
    /// The actor crashes as after a panic in a step: its machine is rebuilt and its restart budget is charged.
    Crash,
    /// The actor gives up and ends; its parent decides about a restart.
    GiveUp,
}

impl<M: Machine> actix::Message for Envelope<M> {
    type Result = ();
}

/// The reply channel of a message, if its sender waits for an answer, and the permit that it takes in the mailbox.
pub(crate) struct Asker<M: Machine> {
    pub(crate) reply: Option<ReplySender<M>>,
    pub(crate) permit: Option<Permit>,
}

impl<M: Machine> Asker<M> {
    /// Releases the permit and replies with an error.
    pub(crate) fn refuse(self, error: AskError) {
        drop(self.permit);
        if let Some(reply) = self.reply {
            // The asker may have dropped its future.
            let _ = reply.send(Err(error));
        }
    }

    /// Releases the permit and sends the answer.
    pub(crate) fn hear(self, answer: M::Answer) {
        drop(self.permit);
        if let Some(reply) = self.reply {
            // The asker may have dropped its future.
            let _ = reply.send(Ok(answer));
        }
    }
}

struct Slot<M: Machine> {
    mailbox: Arc<Mailbox>,
    holder: Mutex<Holder<M>>,
    subscribers: Mutex<Vec<Weak<dyn Backlog>>>,
    reservable: Reservable,
}

/// The actor that holds the slot of an address.
struct Holder<M: Machine> {
    recipient: Option<Recipient<Envelope<M>>>,
    /// Subscribers who wait for the next actor that occupies the slot.
    early: Vec<FeedSender<M::News, M::View>>,
    /// Increases with each actor that occupies the slot, so that a former holder cannot vacate it.
    incarnation: u64,
}

/// The address of an actor that runs machine `M`. It stays valid when the actor crashes or is restarted by its supervisor.
///
/// Messages of one sender arrive in the order in which [`ask`](Self::ask), [`tell`](Self::tell) and [`notify`](Self::notify)
/// were called. An accepted message is handled exactly once, whether or not its sender waits for the answer.
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
    /// An address without an actor, to be passed on before its actor starts. At most `limit` messages may be in flight.
    #[must_use]
    pub fn vacant(name: impl Into<String>, limit: usize) -> Self {
        let name: String = name.into();
        let mailbox = Mailbox::new(name.into(), limit);
        Self {
            slot: Arc::new(Slot {
                mailbox: Arc::new(mailbox),
                holder: Mutex::new(Holder { recipient: None, early: Vec::new(), incarnation: 0 }),
                subscribers: Mutex::default(),
                reservable: Reservable::default(),
            }),
        }
    }

    /// Reserves the address for one host, or another owner of its actors, until the reservation is dropped. `None` if it is
    /// reserved already.
    #[must_use]
    pub fn reserve(&self) -> Option<Reservation> {
        self.slot.reservable.reserve()
    }

    /// The name of the actor.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.slot.mailbox.name
    }

    /// A snapshot of the actor's counters.
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

    /// Sends a message at once and returns a future of its answer. The message is handled even if the future is dropped.
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

    /// Sends a message without waiting for its answer.
    ///
    /// # Errors
    /// [`AskError::Busy`] or [`AskError::NotRunning`]; the message was not accepted.
    pub fn tell<Q: Message<M>>(&self, message: Q) -> Result<(), AskError> {
        let permit = self.admit()?;
        self.deliver(Envelope::Ask { ask: message.into_ask(), reply: None, permit })
    }

    /// Sends a notification that must not be lost and that its sender bounds itself, such as a child's report to its parent.
    /// It counts as in flight but is never refused as `Busy`.
    ///
    /// # Errors
    /// [`AskError::NotRunning`] if no actor holds the slot.
    pub fn notify<Q: Message<M>>(&self, message: Q) -> Result<(), AskError> {
        let permit = self.slot.mailbox.admit_whatever();
        self.deliver(Envelope::Ask { ask: message.into_ask(), reply: None, permit })
    }

    /// Subscribes to the actor's feed: a snapshot first, then every change. At most `capacity` items are queued. The name
    /// identifies a subscriber that lags: in a [`Notice`](super::Notice), and among the [`subscribers`](Self::subscribers).
    ///
    /// # Errors
    /// [`AskError::NotRunning`] if no actor holds the slot.
    pub fn subscribe(
        &self,
        subscriber: impl Into<String>,
        capacity: usize,
    ) -> Result<Subscription<M::News, M::View>, AskError> {
        let (sender, subscription) = self.feed(subscriber.into(), capacity);
        let backlog = sender.backlog();
        self.deliver(Envelope::Subscribe(sender))?;
        self.note_subscriber(backlog);
        Ok(subscription)
    }

    /// Like [`subscribe`](Self::subscribe), also while no actor holds the slot: the feed then begins with the first snapshot of the next
    /// actor that does. Its changes after its first step are not missed.
    #[must_use]
    pub fn subscribe_early(
        &self,
        subscriber: impl Into<String>,
        capacity: usize,
    ) -> Subscription<M::News, M::View> {
        let (sender, subscription) = self.feed(subscriber.into(), capacity);
        let backlog = sender.backlog();
        let mut held = self.lock();
        match &held.recipient {
            Some(recipient) if recipient.connected() => recipient.do_send(Envelope::Subscribe(sender)),
            Some(_) | None => {
                // An abandoned subscription is dropped now, without waiting for an actor that may never start.
                held.early.retain(|early| !early.is_abandoned());
                held.early.push(sender);
            }
        }
        drop(held);
        self.note_subscriber(backlog);
        subscription
    }

    fn feed(&self, subscriber: String, capacity: usize) -> FeedEnds<M> {
        let slot = Arc::downgrade(&self.slot);
        feed(subscriber, capacity, move || {
            if let Some(slot) = slot.upgrade() {
                // If no actor runs, the feed has ended, and the reader receives that from the feed itself.
                let _ = Self { slot }.deliver(Envelope::Resync);
            }
        })
    }

    fn note_subscriber(&self, backlog: Weak<dyn Backlog>) {
        let mut subscribers = self.slot.subscribers.lock().unwrap_or_else(PoisonError::into_inner);
        // Abandoned subscriptions are removed now and then, so that the list stays proportional to the living ones.
        if subscribers.len().is_power_of_two() {
            subscribers.retain(|other| other.upgrade().is_some_and(|other| other.is_read()));
        }
        subscribers.push(backlog);
    }

    /// The present subscribers, and how each keeps up.
    #[must_use]
    pub fn subscribers(&self) -> Vec<SubscriberReport> {
        let subscribers = self.slot.subscribers.lock().unwrap_or_else(PoisonError::into_inner);
        subscribers.iter().filter_map(|backlog| backlog.upgrade()?.report()).collect()
    }

    /// Asks the actor to record its state in the journal, in mailbox order: [`Recorded::Holds`](super::Recorded).
    ///
    /// # Errors
    /// [`AskError::NotRunning`] if no actor holds the slot.
    pub fn describe(&self) -> Result<(), AskError> {
        self.deliver(Envelope::Describe)
    }

    /// Asks the actor to stop. Messages that were sent before are handled first.
    ///
    /// # Errors
    /// [`AskError::NotRunning`] if it has ended already.
    pub fn request_stop(&self, mode: StopMode) -> Result<(), AskError> {
        self.deliver(Envelope::Stop(mode))
    }

    /// Injects a fault into the actor, in mailbox order: for scripts, drills and tests of the recovery.
    ///
    /// # Errors
    /// [`AskError::NotRunning`] if no actor holds the slot.
    pub fn drill(&self, drill: Drill) -> Result<(), AskError> {
        self.deliver(Envelope::Drill(drill))
    }

    pub(crate) fn mailbox(&self) -> Arc<Mailbox> {
        Arc::clone(&self.slot.mailbox)
    }

    /// Gives the slot to an actor. The number returned identifies this incarnation.
    pub(crate) fn occupy(&self, holder: Recipient<Envelope<M>>) -> u64 {
        let mut held = self.lock();
        held.incarnation += 1;
        for subscriber in held.early.drain(..) {
            holder.do_send(Envelope::Subscribe(subscriber));
        }
        held.recipient = Some(holder);
        held.incarnation
    }

    /// Vacates the slot, unless a later incarnation holds it.
    pub(crate) fn vacate(&self, incarnation: u64) {
        let mut held = self.lock();
        if held.incarnation == incarnation {
            held.recipient = None;
        }
    }

    /// Asks the actor of this incarnation to stop; a later incarnation is not affected.
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
    AskError::NotRunning { actor: mailbox.name.to_string() }
}

/// The pending answer of a message. Dropping it does not cancel the message.
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
                actor: self.mailbox.name.to_string(),
                message: "its reply does not match the request".to_owned(),
            })
        }))
    }
}
