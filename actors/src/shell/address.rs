//! Addresses: where messages are handed in, counted at the door, and refused there when there are too many.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, ready};

use actix::Recipient;
use tokio::sync::oneshot;

use super::conversation::Message;
use super::feed::{Backlog, FeedSender, SubscriberReport, Subscription, feed};
use crate::kernel::{Machine, StopMode};

/// Why a question has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// Refused at the door; the message was not taken. Nothing that was taken is overtaken by this.
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
    #[error("{actor} is not running; the message was not answered")]
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

/// What goes through the door.
pub(crate) enum Letter<M: Machine> {
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

impl<M: Machine> actix::Message for Letter<M> {
    type Result = ();
}

/// Counts one message as in flight until it is dropped.
pub(crate) struct Permit(Arc<Door>);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Who asked, if anybody waits for the answer, and the place it takes at the door.
pub(crate) struct Asker<M: Machine> {
    pub(crate) reply: Option<ReplySender<M>>,
    pub(crate) permit: Option<Permit>,
}

impl<M: Machine> Asker<M> {
    /// Says why there is no answer.
    pub(crate) fn refuse(self, error: AskError) {
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

/// The door of an actor: its name, what is in flight, and what has happened to it so far. It outlives the lives of the actor.
#[derive(Debug)]
pub(crate) struct Door {
    pub(crate) name: String,
    limit: usize,
    in_flight: AtomicUsize,
    pub(crate) crashes: AtomicU64,
    pub(crate) rebuilds: AtomicU64,
    pub(crate) steps: AtomicU64,
}

impl Door {
    fn admit(self: &Arc<Self>) -> Result<Permit, AskError> {
        let in_flight = self.in_flight.fetch_add(1, Ordering::Relaxed);
        let permit = Permit(Arc::clone(self));
        if in_flight < self.limit {
            return Ok(permit);
        }
        Err(AskError::Busy { actor: self.name.clone(), in_flight, limit: self.limit })
    }

    pub(crate) fn not_running(&self) -> AskError {
        AskError::NotRunning { actor: self.name.clone() }
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

struct Seat<M: Machine> {
    door: Arc<Door>,
    chair: Mutex<Chair<M>>,
    /// The queues of those who subscribed here.
    subscribers: Mutex<Vec<Weak<dyn Backlog>>>,
}

/// Who sits at an address.
struct Chair<M: Machine> {
    holder: Option<Recipient<Letter<M>>>,
    /// Grows with each actor that takes the seat, so that a former one cannot give away what is not its own.
    sitting: u64,
}

/// The address of an actor that runs machine `M`. It stays valid when the actor crashes or is restarted by its supervisor.
///
/// Messages of one sender arrive in the order in which [`ask`](Self::ask), [`tell`](Self::tell) and
/// [`notify`](Self::notify) were called; whatever is taken runs to its end once, whether or not anyone waits for the answer.
pub struct Address<M: Machine> {
    seat: Arc<Seat<M>>,
}

impl<M: Machine> Clone for Address<M> {
    fn clone(&self) -> Self {
        Self { seat: Arc::clone(&self.seat) }
    }
}

impl<M: Machine> fmt::Debug for Address<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Address").field("actor", &self.seat.door.name).finish_non_exhaustive()
    }
}

impl<M: Machine> Address<M> {
    /// An address that nobody holds yet, so that it can be handed out before its actor starts. At most `limit` messages may
    /// be in flight.
    #[must_use]
    pub fn vacant(name: impl Into<String>, limit: usize) -> Self {
        let door = Door {
            name: name.into(),
            limit,
            in_flight: AtomicUsize::new(0),
            crashes: AtomicU64::new(0),
            rebuilds: AtomicU64::new(0),
            steps: AtomicU64::new(0),
        };
        Self {
            seat: Arc::new(Seat {
                door: Arc::new(door),
                chair: Mutex::new(Chair { holder: None, sitting: 0 }),
                subscribers: Mutex::default(),
            }),
        }
    }

    /// The name of the actor.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.seat.door.name
    }

    /// What can be seen of the actor now.
    #[must_use]
    pub fn vitals(&self) -> Vitals {
        let door = &self.seat.door;
        Vitals {
            mailbox_depth: door.in_flight.load(Ordering::Relaxed),
            steps: door.steps.load(Ordering::Relaxed),
            crashes: door.crashes.load(Ordering::Relaxed),
            rebuilds: door.rebuilds.load(Ordering::Relaxed),
        }
    }

    /// Hands a message in, at once, and gives a future of its answer. The message counts even if the future is dropped.
    pub fn ask<Q: Message<M>>(&self, message: Q) -> Asking<M, Q> {
        let (sender, receiver) = oneshot::channel();
        let refused = match self.seat.door.admit() {
            Ok(permit) => {
                let letter = Letter::Ask { ask: message.into_ask(), reply: Some(sender), permit };
                self.deliver(letter).err()
            }
            Err(busy) => Some(busy),
        };
        Asking { door: Arc::clone(&self.seat.door), receiver, refused, question: PhantomData }
    }

    /// Hands a message in whose answer nobody needs.
    ///
    /// # Errors
    /// [`AskError::Busy`] or [`AskError::NotRunning`]; the message was not taken.
    pub fn tell<Q: Message<M>>(&self, message: Q) -> Result<(), AskError> {
        let permit = self.seat.door.admit()?;
        self.deliver(Letter::Ask { ask: message.into_ask(), reply: None, permit })
    }

    /// Hands in news that may not be lost and that its sender bounds itself, such as a child's report to its parent. It
    /// counts as in flight but is never refused for being one too many.
    ///
    /// # Errors
    /// [`AskError::NotRunning`] if nobody is there to hear it.
    pub fn notify<Q: Message<M>>(&self, message: Q) -> Result<(), AskError> {
        self.seat.door.in_flight.fetch_add(1, Ordering::Relaxed);
        let permit = Permit(Arc::clone(&self.seat.door));
        self.deliver(Letter::Ask { ask: message.into_ask(), reply: None, permit })
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
        let seat = Arc::downgrade(&self.seat);
        let (sender, subscription) = feed(subscriber.into(), capacity, move || {
            if let Some(seat) = seat.upgrade() {
                // Nobody there means that the feed has ended, which its reader learns from the feed itself.
                let _ = Self { seat }.deliver(Letter::Resync);
            }
        });
        let backlog = sender.backlog();
        self.deliver(Letter::Subscribe(sender))?;
        let mut subscribers = self.seat.subscribers.lock().unwrap_or_else(PoisonError::into_inner);
        subscribers.retain(|other| other.upgrade().is_some_and(|other| other.report().is_some()));
        subscribers.push(backlog);
        drop(subscribers);
        Ok(subscription)
    }

    /// Who subscribes at present, and how each keeps up.
    #[must_use]
    pub fn subscribers(&self) -> Vec<SubscriberReport> {
        let subscribers = self.seat.subscribers.lock().unwrap_or_else(PoisonError::into_inner);
        subscribers.iter().filter_map(|backlog| backlog.upgrade()?.report()).collect()
    }

    /// Asks the actor to end. What was handed in before is handled before.
    ///
    /// # Errors
    /// [`AskError::NotRunning`] if it has ended already.
    pub fn request_stop(&self, mode: StopMode) -> Result<(), AskError> {
        self.deliver(Letter::Stop(mode))
    }

    /// Lets something go wrong in the actor, when its mailbox has come that far: for scripts, drills and tests of what follows.
    ///
    /// # Errors
    /// [`AskError::NotRunning`] if nobody is there to drill.
    pub fn drill(&self, drill: Drill) -> Result<(), AskError> {
        self.deliver(Letter::Drill(drill))
    }

    pub(crate) fn door(&self) -> Arc<Door> {
        Arc::clone(&self.seat.door)
    }

    /// Gives the seat to an actor. The number names this sitting.
    pub(crate) fn take_seat(&self, holder: Recipient<Letter<M>>) -> u64 {
        let mut chair = self.lock();
        chair.sitting += 1;
        chair.holder = Some(holder);
        chair.sitting
    }

    /// Leaves the seat, unless another actor has it by now.
    pub(crate) fn leave_seat(&self, sitting: u64) {
        let mut chair = self.lock();
        if chair.sitting == sitting {
            chair.holder = None;
        }
    }

    /// Asks the actor of this sitting to end, and nobody who came after it.
    pub(crate) fn request_stop_of(&self, sitting: u64, mode: StopMode) {
        let chair = self.lock();
        if let Some(holder) = chair.holder.as_ref().filter(|_| chair.sitting == sitting) {
            holder.do_send(Letter::Stop(mode));
        }
    }

    fn deliver(&self, letter: Letter<M>) -> Result<(), AskError> {
        match &self.lock().holder {
            Some(recipient) if recipient.connected() => {
                recipient.do_send(letter);
                Ok(())
            }
            Some(_) | None => Err(self.seat.door.not_running()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Chair<M>> {
        self.seat.chair.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The answer to come. It knows what it is for, and dropping it takes nothing back.
#[must_use = "the message is on its way, but its outcome is lost unless this is awaited"]
pub struct Asking<M: Machine, Q> {
    door: Arc<Door>,
    receiver: oneshot::Receiver<Result<M::Answer, AskError>>,
    refused: Option<AskError>,
    question: PhantomData<fn() -> Q>,
}

impl<M: Machine, Q> fmt::Debug for Asking<M, Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asking").field("actor", &self.door.name).finish_non_exhaustive()
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
            Err(_sender_dropped) => Err(self.door.not_running()),
        };
        Poll::Ready(answer.and_then(|answer| {
            Q::from_answer(answer).ok_or_else(|| AskError::Crashed {
                actor: self.door.name.clone(),
                message: "it answered another question than was asked".to_owned(),
            })
        }))
    }
}
