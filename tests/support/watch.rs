//! Reads feeds with a deadline; at a timeout, shows everything that was received.

use std::fmt::Debug;
use std::time::Duration;

use callboard::actors::shell::{Address, FeedItem, Machine, Subscription};

use super::LONG;

/// The maximum number of unread items: large enough that no test lags.
const UNREAD: usize = 100_000;

/// A subscriber to one actor's news.
pub(crate) struct Watch<N, V> {
    subscription: Subscription<N, V>,
    heard: Vec<String>,
}

impl<N: Debug + Clone, V: Debug> Watch<N, V> {
    pub(crate) fn on<M: Machine<News = N, View = V>>(address: &Address<M>) -> Self {
        Self { subscription: address.subscribe("test", UNREAD).unwrap(), heard: Vec::new() }
    }

    /// Waits for news that `pick` accepts. Skips snapshots.
    pub(crate) async fn until<T>(&mut self, what: &str, mut pick: impl FnMut(&N) -> Option<T>) -> T {
        loop {
            let next = tokio::time::timeout(LONG, self.subscription.next()).await;
            let Ok(item) = next else { panic!("not within {LONG:?}: {what}\n{}", self.heard.join("\n")) };
            let Some(item) = item else { panic!("it ended before: {what}\n{}", self.heard.join("\n")) };
            self.heard.push(format!("{item:?}"));
            if let FeedItem::Change { news, .. } = &item
                && let Some(picked) = pick(news)
            {
                return picked;
            }
        }
    }

    /// All news since the last read.
    pub(crate) fn so_far(&mut self) -> Vec<N> {
        let mut news = Vec::new();
        while let Some(item) = self.subscription.try_next() {
            self.heard.push(format!("{item:?}"));
            if let FeedItem::Change { news: change, .. } = item {
                news.push(change);
            }
        }
        news
    }

    /// All news since the last read, after this time has passed.
    pub(crate) async fn during(&mut self, time: Duration) -> Vec<N> {
        tokio::time::sleep(time).await;
        self.so_far()
    }
}
