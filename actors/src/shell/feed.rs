//! Feeds: a snapshot, then every change, numbered, through a bounded queue per subscriber.
//!
//! Publishing never waits. A subscriber that lags loses changes, receives their number, and gets a new snapshot (R6, SCL-01).
//!
//! Publisher and reader may be on different threads, so `actors/tests/threads` model-checks this file with shuttle.

use std::collections::VecDeque;
use std::fmt;
use std::sync::PoisonError;
use std::task::{Poll, Waker};

use callboard_machines::FeedItem;

use crate::sync::{Arc, Mutex, MutexGuard, Weak};

/// How a subscriber keeps up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriberReport {
    /// The name that the subscriber gave itself.
    pub name: String,
    /// The number of unread items.
    pub unread: usize,
    /// How often its queue was full.
    pub lags: u64,
    /// How many changes it missed because of that.
    pub missed: u64,
}

/// The result of putting a change into a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// It is in the queue, or counted as missed by a subscriber that lags already.
    Done,
    /// The queue became full, for the first time since its reader had caught up.
    Lags,
    /// The subscription was dropped.
    Abandoned,
}

struct Queue<N, V> {
    name: String,
    items: VecDeque<FeedItem<N, V>>,
    capacity: usize,
    /// Set once the queue was full: the number of changes dropped since. Nothing is queued until a new snapshot.
    missed: Option<u64>,
    /// How often it was full in total; the next field counts all dropped changes.
    lags: u64,
    missed_ever: u64,
    resync_asked: bool,
    ended: bool,
    abandoned: bool,
    reader: Option<Waker>,
}

impl<N, V> Queue<N, V> {
    /// Unlocks the queue, and wakes the reader if it waits.
    fn wake(mut queue: MutexGuard<'_, Self>) {
        let reader = queue.reader.take();
        drop(queue);
        if let Some(reader) = reader {
            reader.wake();
        }
    }

    fn is_full(&self) -> bool {
        self.items.len() >= self.capacity
    }

    /// Queues a snapshot without growing beyond the capacity, however often one comes.
    fn take_snapshot(&mut self, snapshot: FeedItem<N, V>) {
        let is_full = self.is_full();
        match self.missed {
            // The reader has asked for it, so it has read everything and there is room.
            Some(missed) if self.resync_asked => {
                if missed > 0 {
                    self.items.push_back(FeedItem::Lagged { missed });
                }
                self.items.push_back(snapshot);
                self.missed = None;
                self.resync_asked = false;
            }
            Some(_) => {}
            None => match self.items.back_mut() {
                Some(last @ FeedItem::Snapshot { .. }) => *last = snapshot,
                Some(_) if is_full => self.missed = Some(0),
                Some(_) | None => self.items.push_back(snapshot),
            },
        }
    }
}

struct Shared<N, V> {
    queue: Mutex<Queue<N, V>>,
}

impl<N, V> Shared<N, V> {
    fn lock(&self) -> MutexGuard<'_, Queue<N, V>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A queue of any item type, for reports on how its reader keeps up.
pub(crate) trait Backlog: Send + Sync {
    /// How its reader keeps up; `None` if the subscription was dropped.
    fn report(&self) -> Option<SubscriberReport>;

    /// Whether the subscription still exists.
    fn is_read(&self) -> bool;
}

impl<N: Send, V: Send> Backlog for Shared<N, V> {
    fn is_read(&self) -> bool {
        let queue = self.lock();
        !queue.abandoned && !queue.ended
    }

    fn report(&self) -> Option<SubscriberReport> {
        let queue = self.lock();
        (!queue.abandoned && !queue.ended).then(|| SubscriberReport {
            name: queue.name.clone(),
            unread: queue.items.len(),
            lags: queue.lags,
            missed: queue.missed_ever,
        })
    }
}

/// The publishing end of one subscription.
pub(crate) struct FeedSender<N, V> {
    shared: Arc<Shared<N, V>>,
}

/// Callback that asks the publisher for a new snapshot.
type Resync = Box<dyn Fn() + Send + Sync>;

/// The reading end of a feed. Dropping it ends the subscription.
pub struct Subscription<N, V> {
    shared: Arc<Shared<N, V>>,
    resync: Resync,
}

impl<N, V> fmt::Debug for Subscription<N, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription").finish_non_exhaustive()
    }
}

impl<N, V> fmt::Debug for FeedSender<N, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FeedSender").finish_non_exhaustive()
    }
}

/// Creates both ends of a feed with a queue of at most `capacity` items.
pub(crate) fn feed<N, V>(
    name: String,
    capacity: usize,
    resync: impl Fn() + Send + Sync + 'static,
) -> (FeedSender<N, V>, Subscription<N, V>) {
    let queue = Queue {
        name,
        items: VecDeque::new(),
        capacity: capacity.max(2),
        missed: None,
        lags: 0,
        missed_ever: 0,
        resync_asked: false,
        ended: false,
        abandoned: false,
        reader: None,
    };
    let shared = Arc::new(Shared { queue: Mutex::new(queue) });
    (FeedSender { shared: Arc::clone(&shared) }, Subscription { shared, resync: Box::new(resync) })
}

impl<N: Send + 'static, V: Send + 'static> FeedSender<N, V> {
    /// The queue, for reports on how its reader keeps up.
    pub(crate) fn backlog(&self) -> Weak<dyn Backlog> {
        let shared: Arc<dyn Backlog> = self.shared.clone();
        Arc::downgrade(&shared)
    }
}

impl<N: Send, V: Send> FeedSender<N, V> {
    /// Queues a change, or counts it as missed.
    pub(crate) fn change(&self, number: u64, news: N) -> Delivery {
        let mut queue = self.shared.lock();
        if queue.abandoned {
            return Delivery::Abandoned;
        }
        match queue.missed {
            None if !queue.is_full() => {
                queue.items.push_back(FeedItem::Change { number, news });
                Queue::wake(queue);
            }
            // Nothing was queued, so the reader is not woken.
            missed => {
                queue.missed = Some(missed.unwrap_or(0) + 1);
                queue.missed_ever += 1;
                if missed.unwrap_or(0) == 0 {
                    queue.lags += 1;
                    return Delivery::Lags;
                }
            }
        }
        Delivery::Done
    }

    /// How its reader keeps up; `None` if the subscription was dropped.
    pub(crate) fn report(&self) -> Option<SubscriberReport> {
        self.shared.report()
    }

    /// Queues a snapshot, after the count of missed changes. If there is no room, the reader asks for a new one later.
    pub(crate) fn snapshot(&self, number: u64, view: V) {
        let mut queue = self.shared.lock();
        queue.take_snapshot(FeedItem::Snapshot { number, view });
        Queue::wake(queue);
    }

    /// Whether changes are missing and the reader has asked for a snapshot.
    pub(crate) fn is_behind(&self) -> bool {
        self.shared.lock().resync_asked
    }

    /// Whether an unsolicited snapshot is useful: a lagging reader will ask for one anyway.
    pub(crate) fn takes_snapshots(&self) -> bool {
        let queue = self.shared.lock();
        queue.missed.is_none() || queue.resync_asked
    }

    /// Whether the subscription was dropped.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.shared.lock().abandoned
    }
}

impl<N, V> Drop for FeedSender<N, V> {
    fn drop(&mut self) {
        let mut queue = self.shared.lock();
        queue.ended = true;
        Queue::wake(queue);
    }
}

impl<N, V> Subscription<N, V> {
    /// Waits for the next item. `None` means that the publisher has ended and all its items were read. Cancel-safe.
    pub async fn next(&mut self) -> Option<FeedItem<N, V>> {
        std::future::poll_fn(|context| self.look(Some(context.waker()))).await
    }

    /// The next item, without waiting.
    pub fn try_next(&mut self) -> Option<FeedItem<N, V>> {
        match self.look(None) {
            Poll::Ready(item) => item,
            Poll::Pending => None,
        }
    }

    /// Takes the next item. If there is none, `reader` is woken when there is.
    fn look(&mut self, reader: Option<&Waker>) -> Poll<Option<FeedItem<N, V>>> {
        let mut queue = self.shared.lock();
        if let item @ Some(_) = queue.items.pop_front() {
            return Poll::Ready(item);
        }
        if queue.ended {
            let missed = queue.missed.take().filter(|missed| *missed > 0);
            return Poll::Ready(missed.map(|missed| FeedItem::Lagged { missed }));
        }
        let former = std::mem::replace(&mut queue.reader, reader.cloned());
        let is_behind = queue.missed.is_some() && !queue.resync_asked;
        queue.resync_asked |= is_behind;
        drop(queue);
        drop(former);
        if is_behind {
            (self.resync)();
        }
        Poll::Pending
    }
}

impl<N, V> Drop for Subscription<N, V> {
    fn drop(&mut self) {
        let mut queue = self.shared.lock();
        queue.abandoned = true;
        // Dropping these may run foreign code, which must not find the queue locked.
        let unread = (std::mem::take(&mut queue.items), queue.reader.take());
        drop(queue);
        drop(unread);
    }
}
