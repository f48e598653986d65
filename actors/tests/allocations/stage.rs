//! A host of allocations, with a real registry and real instances, or with neighbours that record what they receive.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use callboard_actors::allocation::{
    Addresses, AllocationOptions, Layout, Neighbours, RegisterOutcome, RetiredOutcome,
};
use callboard_actors::allocations::{
    self, AllocationPhase, AllocationSpec, AllocationStatus, AllocationStopped, Allocations,
    AllocationsMemory, AllocationsNews, AllocationsOptions, AllocationsView, ListAllocations,
    PrepareAllocation, PrepareError, StopAllocation, TaskContext, TaskEvent, TaskEventKind, TaskExited,
    TaskStarted,
};
use callboard_actors::csi::ListenerCheck;
use callboard_actors::instances::AwaitRetired;
use callboard_actors::registry::{Deregister, Deregistered, Register, Registered};
use callboard_actors::shell::{Address, AskError, FeedItem, Running, Settings, Subscription};
use callboard_actors::vocabulary::{AllocationId, Health, PluginKey, PluginName, Role, SocketPath, TaskName};
use futures_util::future::LocalBoxFuture;
use tempfile::TempDir;
use tokio::net::UnixListener;

use crate::fixture::{Fixture, LONG, allocation};

/// A host of allocations.
pub(crate) struct Stage {
    pub(crate) directory: TempDir,
    pub(crate) data_dir: PathBuf,
    pub(crate) runtime_dir: PathBuf,
    pub(crate) allocations: Address<Allocations>,
    pub(crate) running: Running,
    pub(crate) news: Subscription<AllocationsNews, AllocationsView>,
}

impl Stage {
    /// Uses a short data directory and these neighbours.
    pub(crate) fn open(neighbours: Rc<dyn Neighbours>) -> Self {
        Self::open_at("data", neighbours)
    }

    /// Uses a data directory of this name.
    pub(crate) fn open_at(data_dir: &str, neighbours: Rc<dyn Neighbours>) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (data_dir, runtime_dir) = (directory.path().join(data_dir), directory.path().join("run"));
        for made in [&data_dir, &runtime_dir] {
            std::fs::create_dir_all(made).expect("it can be made");
        }
        let options = options(&data_dir, &runtime_dir);
        let (allocations, running) = start(options, neighbours);
        let news = allocations.subscribe("test", 4_096).expect("it runs");
        Self { directory, data_dir, runtime_dir, allocations, running, news }
    }

    /// Uses a real registry and real instances.
    pub(crate) fn in_fixture(fixture: &Fixture, data_dir: &str) -> Self {
        Self::open_at(data_dir, addresses(fixture))
    }

    pub(crate) async fn prepare(&self, spec: &AllocationSpec) -> Result<TaskContext, PrepareError> {
        self.allocations.ask(PrepareAllocation { spec: spec.clone() }).await.expect("it runs")
    }

    pub(crate) async fn started(&self, spec: &AllocationSpec) {
        let started = TaskStarted { allocation: spec.allocation.clone() };
        self.allocations.ask(started).await.expect("it runs").expect("it is known");
    }

    pub(crate) async fn exited(&self, spec: &AllocationSpec) {
        let exited = TaskExited { allocation: spec.allocation.clone(), how: "signal 9".to_owned() };
        self.allocations.ask(exited).await.expect("it runs").expect("it is known");
    }

    pub(crate) async fn stop(&self, spec: &AllocationSpec) -> AllocationStopped {
        let stop = StopAllocation { allocation: spec.allocation.clone(), even_if_used: false };
        self.allocations.ask(stop).await.expect("it runs").expect("it is known")
    }

    pub(crate) async fn list(&self) -> Vec<AllocationStatus> {
        self.allocations.ask(ListAllocations).await.expect("it runs")
    }

    pub(crate) async fn next(&mut self) -> AllocationsNews {
        loop {
            let item = tokio::time::timeout(LONG, self.news.next()).await.expect("news come");
            if let FeedItem::Change { news, .. } = item.expect("the allocations live") {
                return news;
            }
        }
    }

    /// Waits until an allocation has reached this phase.
    pub(crate) async fn until(&mut self, spec: &AllocationSpec, phase: AllocationPhase) -> AllocationStatus {
        loop {
            match self.next().await {
                AllocationsNews::Changed(status)
                    if status.allocation == spec.allocation && status.phase == phase =>
                {
                    return status;
                }
                AllocationsNews::Changed(_)
                | AllocationsNews::Gone(_)
                | AllocationsNews::Refused { .. }
                | AllocationsNews::Task(_)
                | AllocationsNews::RestartRequested { .. } => {}
            }
        }
    }

    /// Waits for an event of this kind.
    pub(crate) async fn event(&mut self, kind: TaskEventKind) -> TaskEvent {
        loop {
            match self.next().await {
                AllocationsNews::Task(event) if event.kind == kind => return event,
                AllocationsNews::Changed(_)
                | AllocationsNews::Gone(_)
                | AllocationsNews::Refused { .. }
                | AllocationsNews::Task(_)
                | AllocationsNews::RestartRequested { .. } => {}
            }
        }
    }

    /// All news that was published and has not been read.
    pub(crate) fn rest(&mut self) -> Vec<AllocationsNews> {
        let items = std::iter::from_fn(|| self.news.try_next());
        let news = items.filter_map(|item| match item {
            FeedItem::Change { news, .. } => Some(news),
            FeedItem::Snapshot { .. } | FeedItem::Lagged { .. } => None,
        });
        news.collect()
    }
}

pub(crate) fn addresses(fixture: &Fixture) -> Rc<dyn Neighbours> {
    let (registry, instances) = (fixture.registry.clone(), fixture.instances.clone());
    Rc::new(Addresses {
        registry,
        instances,
        volumes: None,
        listeners: ListenerCheck::default(),
        database: None,
    })
}

pub(crate) fn options(data_dir: &Path, runtime_dir: &Path) -> AllocationsOptions {
    let layout = Layout::new(data_dir, runtime_dir).expect("good directories");
    AllocationsOptions::new(layout)
}

pub(crate) fn start(
    options: AllocationsOptions,
    neighbours: Rc<dyn Neighbours>,
) -> (Address<Allocations>, Running) {
    let address = Address::vacant("allocations", 4_096);
    let running = start_again(&address, options, neighbours, AllocationsMemory::default());
    (address, running)
}

/// Starts the owner at an address without an actor, with this memory.
pub(crate) fn start_again(
    address: &Address<Allocations>,
    options: AllocationsOptions,
    neighbours: Rc<dyn Neighbours>,
    memory: AllocationsMemory,
) -> Running {
    let settings = Settings { seed: Some(7), ..Settings::default() };
    allocations::start(address, options, neighbours, memory, settings)
}

/// A node plugin.
pub(crate) fn spec(id: &str, plugin: &str) -> AllocationSpec {
    let task = TaskName::new("plugin").expect("a good name");
    let plugin = PluginName::new(plugin).expect("a good name");
    AllocationSpec::new(allocation(id), task, plugin, Role::Node)
}

/// Leaves a socket file behind, as a killed process does.
pub(crate) fn leave_corpse(socket: &SocketPath) {
    drop(std::os::unix::net::UnixListener::bind(socket.as_path()).expect("the path is free"));
}

/// Listens, and answers nothing.
pub(crate) fn listen(socket: &SocketPath) -> UnixListener {
    UnixListener::bind(socket.as_path()).expect("the path is free")
}

/// Every socket below a directory.
pub(crate) fn sockets_below(directory: &Path) -> Vec<PathBuf> {
    use std::os::unix::fs::FileTypeExt;
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).expect("it is there") {
        let entry = entry.expect("it can be read");
        let kind = entry.file_type().expect("it can be read");
        if kind.is_dir() {
            found.extend(sockets_below(&entry.path()));
        } else if kind.is_socket() {
            found.push(entry.path());
        }
    }
    found
}

pub(crate) fn default_call_deadline() -> Duration {
    AllocationOptions::default().call_deadline
}

/// Neighbours that grant everything and record it. No instance calls a plugin.
#[derive(Debug, Default, Clone)]
pub(crate) struct Minutes(Rc<RefCell<Vec<&'static str>>>);

impl Minutes {
    /// The messages received since the last call of this function.
    pub(crate) fn take(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.0.borrow_mut())
    }

    fn note(&self, heard: &'static str) {
        self.0.borrow_mut().push(heard);
    }
}

impl Neighbours for Minutes {
    fn register(&self, _: Register) -> LocalBoxFuture<'static, RegisterOutcome> {
        self.note("register");
        Box::pin(async { Ok(Ok(Registered::New)) })
    }

    fn deregister(&self, message: Deregister) -> LocalBoxFuture<'static, Result<Deregistered, AskError>> {
        self.note("deregister");
        Box::pin(async { Ok(Deregistered::Removed(message.plugins)) })
    }

    fn health_of(
        &self,
        _: AllocationId,
        _: Vec<PluginKey>,
    ) -> LocalBoxFuture<'static, Result<Vec<Health>, AskError>> {
        self.note("health");
        Box::pin(async { Ok(Vec::new()) })
    }

    fn await_retired(&self, _: AwaitRetired) -> LocalBoxFuture<'static, RetiredOutcome> {
        self.note("retired");
        Box::pin(async { Ok(Ok(())) })
    }
}
