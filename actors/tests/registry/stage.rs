//! The surroundings of the stories: a registry on a store that outlives it, plugins that answer or not, and time.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use callboard_actors::registry::{
    self, Active, CheckOutcome, Deregister, Deregistered, Describe, Description, IdentityCheck, LeaveCause,
    List, MemoryStore, Register, Registered, Registry, RegistryNews, RegistryOptions, RegistryView,
};
use callboard_actors::shell::{Address, FeedItem, Running, Settings, Store, Subscription};
use callboard_actors::vocabulary::{
    AllocationId, FailoverPolicy, PluginKey, PluginName, Registration, SocketPath,
};
use futures_util::future::LocalBoxFuture;

pub(crate) use super::story::story;

/// How long the stories let a restored registration wait for its owner.
pub(crate) const GRACE: Duration = Duration::from_secs(60);

pub(crate) type Feed = Subscription<RegistryNews, RegistryView>;

pub(crate) fn plugin(text: &str) -> PluginKey {
    let (plugin_type, name) = text.split_once('/').expect("TYPE/NAME");
    PluginKey::new(plugin_type.parse().expect("a type"), PluginName::new(name).expect("a name"))
}

pub(crate) fn allocation(id: &str) -> AllocationId {
    AllocationId::new(id).expect("an id")
}

/// An allocation registers for these plugins, at its own socket.
pub(crate) fn register(id: &str, plugins: &[&str]) -> Register {
    Register {
        policy: None,
        plugins: plugins.iter().copied().map(plugin).collect(),
        allocation: allocation(id),
        socket: SocketPath::new(format!("/run/{id}/csi.sock")).expect("a path"),
        provider: Some("zfs.example".into()),
        version: Some("1.0".into()),
        options: Arc::new(BTreeMap::new()),
    }
}

pub(crate) fn deregister(id: &str, plugins: &[&str]) -> Deregister {
    let plugins = plugins.iter().copied().map(plugin).collect();
    Deregister { plugins, allocation: allocation(id), cause: LeaveCause::Stopped }
}

/// The allocations whose restored plugins answer under their names.
#[derive(Debug, Clone, Default)]
pub(crate) struct Living(Rc<RefCell<BTreeSet<AllocationId>>>);

impl Living {
    pub(crate) fn answers(&self, id: &str) {
        self.0.borrow_mut().insert(allocation(id));
    }
}

impl IdentityCheck for Living {
    fn check(&mut self, registration: Arc<Registration>) -> LocalBoxFuture<'static, CheckOutcome> {
        let living = Rc::clone(&self.0);
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(5)).await;
            if living.borrow().contains(&registration.allocation) {
                CheckOutcome::Proven
            } else {
                CheckOutcome::NotProven("no listener".to_owned())
            }
        })
    }
}

/// A registry with its surroundings.
pub(crate) struct Fixture {
    pub(crate) registry: Address<Registry>,
    pub(crate) running: Running,
    pub(crate) settings: Settings,
    pub(crate) living: Living,
}

impl Fixture {
    pub(crate) fn on(store: impl Store<Registry>) -> Self {
        Self::with(store, 1_024, Living::default())
    }

    pub(crate) fn with(store: impl Store<Registry>, limit: usize, living: Living) -> Self {
        let registry = Address::vacant("registry", limit);
        let settings = Settings { seed: Some(7), ..Settings::default() };
        // No actor checks plugins here, so none proves to be fit.
        let policy = FailoverPolicy::Newest;
        let options = RegistryOptions { restore_grace: GRACE, policy, ..RegistryOptions::default() };
        let running = registry::start(&registry, options, living.clone(), store, settings.clone());
        Self { registry, running, settings, living }
    }

    /// The host is killed, and its next run begins on the same store.
    pub(crate) async fn next_run(self, store: &MemoryStore) -> Self {
        self.running.kill();
        self.running.ended().await;
        store.begin_run();
        Self::with(store.clone(), 1_024, self.living)
    }

    pub(crate) async fn register(&self, id: &str, plugins: &[&str]) -> Registered {
        self.registry.ask(register(id, plugins)).await.expect("it runs").expect("it is well formed")
    }

    pub(crate) async fn deregister(&self, id: &str, plugins: &[&str]) -> Deregistered {
        self.registry.ask(deregister(id, plugins)).await.expect("it runs")
    }

    pub(crate) async fn describe(&self, key: &str) -> Description {
        *self.registry.ask(Describe { plugin: plugin(key) }).await.expect("it runs")
    }

    /// The allocation that work is routed to.
    pub(crate) async fn active(&self, key: &str) -> Option<String> {
        self.describe(key).await.active.map(|active| name_of(&active))
    }

    /// All allocations, in the order of their registrations.
    pub(crate) async fn listed(&self) -> Vec<String> {
        let entries = self.registry.ask(List).await.expect("it runs");
        entries.iter().map(|entry| entry.registration.allocation.to_string()).collect()
    }

    /// A subscriber that has read its first snapshot.
    pub(crate) async fn subscribe(&self) -> Feed {
        let mut feed = self.registry.subscribe("test", 1_024).expect("it runs");
        assert!(matches!(feed.next().await, Some(FeedItem::Snapshot { .. })));
        feed
    }
}

pub(crate) fn name_of(active: &Active) -> String {
    active.registration.allocation.to_string()
}

/// The news that has arrived, as short sentences.
pub(crate) fn told(feed: &mut Feed) -> Vec<String> {
    let short = |active: &Option<Active>| active.as_ref().map_or("none".to_owned(), name_of);
    std::iter::from_fn(|| feed.try_next())
        .map(|item| match item {
            FeedItem::Snapshot { .. } => "snapshot".to_owned(),
            FeedItem::Lagged { missed } => format!("missed {missed}"),
            FeedItem::Change { news, .. } => match news {
                RegistryNews::Registered(entry) => format!("{} came", entry.registration.allocation),
                RegistryNews::Updated(entry) => format!("{} changed", entry.registration.allocation),
                RegistryNews::Renewed(entry) => format!("{} renewed", entry.registration.allocation),
                RegistryNews::Deregistered(entry, why) => {
                    format!("{} left: {why:?}", entry.registration.allocation)
                }
                RegistryNews::ActiveChanged { plugin, from, to, reason: _ } => {
                    format!("{plugin}: {} -> {}", short(&from), short(&to))
                }
            },
        })
        .collect()
}

/// Lets everything that is ready now run.
pub(crate) async fn settle_down() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// Lets the registry handle a timer that is due at this moment. No time passes.
pub(crate) async fn handle_what_is_due() {
    for _ in 0..16 {
        tokio::task::yield_now().await;
    }
}

/// Lets virtual time pass.
pub(crate) async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}
