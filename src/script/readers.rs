//! Subscribers of the script, each with a queue of its own.

use std::collections::BTreeMap;
use std::fmt;

use callboard_actors::eventor::TaskEvents;
use callboard_actors::shell::{Address, AskError, FeedItem, Machine, Subscription};

use super::told;
use crate::timeline::news_sentence;

/// The next item that a subscriber reads.
pub(super) enum Read {
    /// A line.
    Line(String),
    /// No item is available now.
    Nothing,
}

type Next = Box<dyn FnMut() -> Read>;

/// The subscribers of a script, by name.
#[derive(Default)]
pub(super) struct Readers(BTreeMap<String, Next>);

impl fmt::Debug for Readers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Readers").field(&self.0.keys()).finish()
    }
}

impl Readers {
    /// Subscribes to the news of an actor. `size` reports the size of its view.
    pub(super) fn subscribe<M: Machine<News: 'static, View: 'static>>(
        &mut self,
        name: &str,
        address: &Address<M>,
        capacity: usize,
        size: fn(&M::View) -> usize,
    ) -> Result<(), AskError> {
        let mut subscription = address.subscribe(name, capacity)?;
        self.0.insert(name.to_owned(), Box::new(move || read(&mut subscription, size)));
        Ok(())
    }

    /// Reads the events that a task's handler has not read.
    pub(super) fn handle(&mut self, name: &str, mut events: TaskEvents) {
        let read = move || events.try_next().map_or(Read::Nothing, |item| Read::Line(told::event(&item)));
        self.0.insert(name.to_owned(), Box::new(read));
    }

    /// Ends a subscription. False means that there is no subscriber of this name.
    pub(super) fn end(&mut self, name: &str) -> bool {
        self.0.remove(name).is_some()
    }

    /// Lets a subscriber read one item. `None` means that there is no subscriber of this name.
    pub(super) fn next(&mut self, name: &str) -> Option<Read> {
        self.0.get_mut(name).map(|next| next())
    }
}

fn read<N: 'static, V>(subscription: &mut Subscription<N, V>, size: fn(&V) -> usize) -> Read {
    Read::Line(match subscription.try_next() {
        None => return Read::Nothing,
        Some(FeedItem::Snapshot { number, view }) => {
            format!("snapshot after change {number}, of {}", size(&view))
        }
        Some(FeedItem::Change { number, news }) => {
            format!("change {number}: {}", news_sentence(&news).unwrap_or_default())
        }
        Some(FeedItem::Lagged { missed }) => format!("missed {missed} changes"),
    })
}
