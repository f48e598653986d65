//! A registry under test: in memory or on disk, with held registrations and usually one subscriber.

use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use actix_rt::Arbiter;
use callboard_actors::persister::{DiskHealth, MakeBackend, Options, Persister};
use callboard_actors::registry::{
    CheckOutcome, DurableStore, IdentityCheck, MemoryStore, Registry, RegistryNews, RegistryOptions,
    RegistryView, start,
};
use callboard_actors::shell::{
    Address, Database, FeedItem, IN_FLIGHT_MAX, Notices, Running, Settings, StopMode, Store, Subscription,
};
use callboard_actors::vocabulary::{AllocationId, Registration};
use futures_util::future::{LocalBoxFuture, join_all};
use tokio::sync::oneshot;

use super::clients::{RegistryClient, apart, closed_loop, plugin, registration};
use super::disk::{directory, first_row};

/// The capacity of the subscriber's queue.
const UNREAD_MAX: usize = 4_096;
/// The number of concurrent registrations when the registry is filled.
const FILLED_AT_ONCE: u64 = 1_024;

/// A liveness check without plugins: a bench has none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NoAnswer;

impl IdentityCheck for NoAnswer {
    fn check(&mut self, _: Arc<Registration>) -> LocalBoxFuture<'static, CheckOutcome> {
        Box::pin(std::future::ready(CheckOutcome::NotProven("no answer in a bench".to_owned())))
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Reading {
    changes: Rc<Cell<u64>>,
    missed: Rc<Cell<u64>>,
}

/// A registry in memory without a subscriber, on its own thread.
pub(crate) struct RigElsewhere {
    pub(crate) registry: Address<Registry>,
    end: oneshot::Sender<()>,
    ended: oneshot::Receiver<()>,
}

impl RigElsewhere {
    pub(crate) async fn on(arbiter: &Arbiter, held: Held) -> Self {
        let ((begun, registry), (end, is_to_end), (tell, ended)) =
            (oneshot::channel(), oneshot::channel(), oneshot::channel());
        let run = move || async move {
            let rig = Rig::in_memory_with(held, false).await;
            let _ = begun.send(rig.registry.clone());
            // A dropped sender also requests the end.
            let _ = is_to_end.await;
            rig.end().await;
            let _ = tell.send(());
        };
        arbiter.spawn_fn(move || {
            actix_rt::spawn(run());
        });
        Self { registry: registry.await.expect("the registry begins"), end, ended }
    }

    pub(crate) async fn end(self) {
        let _ = self.end.send(());
        self.ended.await.expect("the registry ends");
    }
}

/// The registrations held before a measurement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Held {
    /// Their number.
    pub(crate) registrations: u64,
    /// The number of plugins that they are distributed over.
    pub(crate) plugins: u64,
}

impl Held {
    /// Each registration has a plugin of its own.
    pub(crate) const fn apart(registrations: u64) -> Self {
        Self { registrations, plugins: registrations }
    }
}

/// A registry with at most one subscriber.
pub(crate) struct Rig {
    pub(crate) registry: Address<Registry>,
    reading: Option<Reading>,
    running: Running,
    persister: Option<Persister>,
}

impl Rig {
    pub(crate) async fn in_memory(held: u64) -> Self {
        Self::in_memory_with(Held::apart(held), true).await
    }

    pub(crate) async fn in_memory_with(held: Held, is_read: bool) -> Self {
        Self::start(store(), None, held, is_read, Settings::default()).await
    }

    /// One with a subscriber, and with these settings.
    pub(crate) async fn in_memory_as(held: Held, settings: Settings) -> Self {
        Self::start(store(), None, held, true, settings).await
    }

    pub(crate) async fn on_disk(directory: &Path, held: u64) -> Self {
        Self::on_disk_with(directory, Held::apart(held)).await
    }

    pub(crate) async fn on_disk_with(directory: &Path, held: Held) -> Self {
        let persister = open(directory).await;
        let store = DurableStore::new(&Database::opened(persister.clone(), Notices::default()));
        Self::start(store, Some(persister), held, true, Settings::default()).await
    }

    /// An empty one on disk, over this storage.
    pub(crate) async fn on_backend(directory: &Path, backend: MakeBackend) -> Self {
        let options = Options { backend: Some(backend), ..Options::new(directory) };
        let persister = Persister::open(options).await.expect("the directory is ours");
        let store = DurableStore::new(&Database::opened(persister.clone(), Notices::default()));
        Self::start(store, Some(persister), Held::apart(0), true, Settings::default()).await
    }

    /// The health of the disk; sound in memory.
    pub(crate) fn disk(&self) -> DiskHealth {
        self.persister.as_ref().map_or(DiskHealth::Sound, |persister| persister.disk().health())
    }

    async fn start(
        store: impl Store<Registry>,
        persister: Option<Persister>,
        held: Held,
        is_read: bool,
        settings: Settings,
    ) -> Self {
        let registry = Address::vacant("registry", IN_FLIGHT_MAX);
        let running = start(&registry, RegistryOptions::default(), NoAnswer, store, settings);
        fill(&registry, held).await;
        let reading = is_read.then(|| read(&registry));
        Self { registry, reading, running, persister }
    }

    /// The number of commits; 0 in memory.
    pub(crate) fn commits(&self) -> u64 {
        self.persister.as_ref().map_or(0, Persister::commits)
    }

    pub(crate) async fn end(self) {
        self.running.request_stop(StopMode::Stop);
        self.running.ended().await;
        if let Some(persister) = self.persister {
            persister.close().await.expect("the persister runs");
        }
        if let Some(reading) = self.reading {
            assert_eq!(reading.missed.get(), 0, "the subscriber kept up");
            assert!(reading.changes.get() > 0, "the subscriber read");
        }
    }
}

/// An empty store in memory.
fn store() -> MemoryStore {
    let store = MemoryStore::default();
    store.begin_run();
    store
}

/// A subscriber to the active registrations.
pub(crate) struct Actives(Subscription<RegistryNews, RegistryView>);

impl Actives {
    pub(crate) async fn of(registry: &Address<Registry>) -> Self {
        let mut news = registry.subscribe("bench", 64).expect("the registry runs");
        news.next().await.expect("a snapshot comes first");
        Self(news)
    }

    /// Reads up to the next change of an active registration, and returns the new active one.
    pub(crate) async fn changed(&mut self) -> AllocationId {
        loop {
            match self.0.next().await.expect("the registry runs") {
                FeedItem::Change { news: RegistryNews::ActiveChanged { to: Some(active), .. }, .. } => {
                    return active.registration.allocation.clone();
                }
                FeedItem::Change { .. } => {}
                FeedItem::Snapshot { .. } | FeedItem::Lagged { .. } => panic!("the subscriber keeps up"),
            }
        }
    }
}

pub(crate) async fn open(directory: &Path) -> Persister {
    Persister::open(Options::new(directory)).await.expect("the directory is ours")
}

pub(crate) async fn fill(registry: &Address<Registry>, held: Held) {
    let Held { registrations, plugins } = held;
    let mut numbers = (0..registrations).peekable();
    while numbers.peek().is_some() {
        let chunk = numbers.by_ref().take(FILLED_AT_ONCE as usize);
        let register = |n| registry.register(registration(held_plugin(n % plugins), &format!("held-{n}")));
        join_all(chunk.map(register)).await;
    }
}

/// A row as the registry writes it.
pub(crate) async fn row_of_registry() -> Vec<u8> {
    let place = directory();
    let rig = Rig::on_disk(place.path(), 1).await;
    closed_loop(&rig.registry, &apart(1), 1).await;
    rig.end().await;
    first_row(&place.path().join("callboard.redb"))
}

/// The plugin of the `n`th held registration.
pub(crate) fn held_plugin(n: u64) -> callboard_actors::vocabulary::PluginKey {
    plugin(format!("held-{n}"))
}

/// Reads all notifications of the registry, as fast as they arrive.
fn read(registry: &Address<Registry>) -> Reading {
    let mut subscription = registry.subscribe("bench", UNREAD_MAX).expect("the registry runs");
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
