//! How one machine subscribes to another: as a call that returns the next feed items.

use std::rc::Rc;

use callboard_machines::{AskError, FeedItem};
use futures_util::future::LocalBoxFuture;
use tokio::sync::Mutex;

use super::address::Address;
use super::feed::Subscription;
use crate::kernel::Machine;

/// The queue capacity, and the most items that one call returns.
const FOLLOW_CAPACITY: usize = 1_024;

/// The outcome of a call to follow: at least one item, in order; or the error that the other actor is not running.
pub type Followed<M> = Result<Vec<FeedItem<<M as Machine>::News, <M as Machine>::View>>, AskError>;

type Held<M> = Rc<Mutex<Option<Subscription<<M as Machine>::News, <M as Machine>::View>>>>;

/// Subscribes to the actor at an address. A machine keeps exactly one call to it pending. After a rebuild it subscribes
/// again, and so begins with a snapshot.
#[derive(Debug)]
pub struct Follower<M: Machine> {
    name: &'static str,
    address: Address<M>,
    subscription: Held<M>,
}

impl<M: Machine> Follower<M> {
    /// A follower of the actor at this address, with this subscriber name.
    #[must_use]
    pub fn new(name: &'static str, address: Address<M>) -> Self {
        Self { name, address, subscription: Rc::default() }
    }

    /// Waits for the next items, or, `afresh`, for a new snapshot and the items after it. Cancel-safe: items stay queued.
    pub fn follow(&mut self, afresh: bool) -> LocalBoxFuture<'static, Followed<M>> {
        if afresh {
            self.subscription = Rc::default();
        }
        let (name, address) = (self.name, self.address.clone());
        let held = Rc::clone(&self.subscription);
        Box::pin(async move {
            let mut held = held.lock().await;
            if held.is_none() {
                *held = Some(address.subscribe(name, FOLLOW_CAPACITY)?);
            }
            let subscription = held.as_mut().expect("it was put there just now");
            let Some(first) = subscription.next().await else {
                *held = None;
                return Err(AskError::NotRunning { actor: address.name().to_owned() });
            };
            let more = std::iter::from_fn(|| subscription.try_next()).take(FOLLOW_CAPACITY - 1);
            Ok(std::iter::once(first).chain(more).collect())
        })
    }
}
