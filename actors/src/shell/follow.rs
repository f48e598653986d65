//! How one machine follows the feed of another: as a call that comes back with news.

use std::rc::Rc;

use futures_util::future::LocalBoxFuture;
use tokio::sync::Mutex;

use super::address::{Address, AskError};
use super::feed::{FeedItem, Subscription};
use crate::kernel::Machine;

/// How many items may wait unread, and how many come back from one call at most.
const FOLLOW_CAPACITY: usize = 1_024;

/// What a call to follow comes back with: at least one item, in order; or that the other actor is not there.
pub type Followed<M> = Result<Vec<FeedItem<<M as Machine>::News, <M as Machine>::View>>, AskError>;

type Held<M> = Rc<Mutex<Option<Subscription<<M as Machine>::News, <M as Machine>::View>>>>;

/// Follows the feed of the actor at an address. A machine keeps one call to it under way at any time; after it was rebuilt it
/// follows afresh, and so begins with a snapshot.
#[derive(Debug)]
pub struct Follower<M: Machine> {
    name: &'static str,
    address: Address<M>,
    subscription: Held<M>,
}

impl<M: Machine> Follower<M> {
    /// Will follow the actor at this address, as a subscriber of this name.
    #[must_use]
    pub fn new(name: &'static str, address: Address<M>) -> Self {
        Self { name, address, subscription: Rc::default() }
    }

    /// Waits for what comes next, or, `afresh`, for a new snapshot and what comes after it. Giving up this future loses
    /// nothing: the items stay where they are.
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
