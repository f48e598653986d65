//! A registry under test: in memory or on disk, with what it holds and one subscriber that reads.

use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use callboard_actors::persister::{Options, Persister};
use callboard_actors::registry::{
    CheckOutcome, DurableStore, IdentityCheck, MemoryStore, Registry, RegistryOptions, start,
};
use callboard_actors::shell::{
    Address, FeedItem, IN_FLIGHT_MAX, Notices, Running, Settings, StopMode, Store,
};
use callboard_actors::vocabulary::Registration;
use futures_util::future::{LocalBoxFuture, join_all};

use super::clients::{Desk, plugin, registration};

/// How many news may wait for the subscriber.
const UNREAD_MAX: usize = 4_096;
/// How many registrations are handed in at once when the registry is filled.
const FILLED_AT_ONCE: u64 = 1_024;

/// Nobody is there to be asked in a bench.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NobodyAnswers;

impl IdentityCheck for NobodyAnswers {
    fn check(&mut self, _: Arc<Registration>) -> LocalBoxFuture<'static, CheckOutcome> {
        Box::pin(std::future::ready(CheckOutcome::NotProven("nobody answers in a bench".to_owned())))
    }
}

/// What a subscriber has read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reading {
    changes: Rc<Cell<u64>>,
    missed: Rc<Cell<u64>>,
}

/// A registry with one subscriber.
pub(crate) struct Rig {
    pub(crate) registry: Address<Registry>,
    pub(crate) reading: Reading,
    running: Running,
    persister: Option<Persister>,
}

impl Rig {
    pub(crate) async fn in_memory(held: u64) -> Self {
        let store = MemoryStore::default();
        store.begin_run();
        Self::start(store, None, held).await
    }

    pub(crate) async fn on_disk(directory: &Path, held: u64) -> Self {
        let persister = open(directory).await;
        let store = DurableStore::new(persister.clone(), Notices::default());
        Self::start(store, Some(persister), held).await
    }

    async fn start(store: impl Store<Registry>, persister: Option<Persister>, held: u64) -> Self {
        let registry = Address::vacant("registry", IN_FLIGHT_MAX);
        let running = start(&registry, RegistryOptions::default(), NobodyAnswers, store, Settings::default());
        fill(&registry, held).await;
        let reading = read(&registry);
        Self { registry, reading, running, persister }
    }

    /// Ends the registry and closes its database.
    pub(crate) async fn end(self) {
        self.running.request_stop(StopMode::Stop);
        self.running.ended().await;
        if let Some(persister) = self.persister {
            persister.close().await.expect("the persister runs");
        }
        assert_eq!(self.reading.missed.get(), 0, "the subscriber kept up");
        assert!(self.reading.changes.get() > 0, "the subscriber read");
    }
}

/// Opens the database of a directory.
pub(crate) async fn open(directory: &Path) -> Persister {
    Persister::open(Options::new(directory)).await.expect("the directory is ours")
}

/// Registers this many, each the only one of its plugin.
pub(crate) async fn fill(registry: &Address<Registry>, held: u64) {
    let mut numbers = (0..held).peekable();
    while numbers.peek().is_some() {
        let chunk = numbers.by_ref().take(FILLED_AT_ONCE as usize);
        join_all(chunk.map(|n| registry.register(registration(held_plugin(n), &format!("held-{n}"))))).await;
    }
}

/// The plugin of the `n`th registration that is held.
pub(crate) fn held_plugin(n: u64) -> callboard_actors::vocabulary::PluginKey {
    plugin(format!("held-{n}"))
}

/// Reads all news of the registry, as fast as they come.
fn read(registry: &Address<Registry>) -> Reading {
    let mut subscription = registry.subscribe(UNREAD_MAX).expect("the registry runs");
    let reading = Reading::default();
    let read = reading.clone();
    actix_rt::spawn(async move {
        while let Some(item) = subscription.next().await {
            match item {
                FeedItem::Change { .. } => read.changes.set(read.changes.get() + 1),
                FeedItem::Lagged { missed } => read.missed.set(read.missed.get() + missed),
                FeedItem::Snapshot { .. } => {}
            }
        }
    });
    reading
}
