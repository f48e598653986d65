//! Restarts the actors of a host one after the other, while real plugins are registered: afterwards everything is as before, and
//! continues to work.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use callboard::actors::allocations::{
    AllocationPhase, AllocationSpec, ListAllocations, PrepareAllocation, StopAllocation, TaskExited,
    TaskStarted,
};
use callboard::actors::instances::{Dispense, Dispensed};
use callboard::actors::inventory::TakeInventory;
use callboard::actors::registry::{Describe, Description, List};
use callboard::actors::shell::{Address, FeedItem, Machine, Subscription};
use callboard::actors::supervisor::{RestartChild, StopOutcome};
use callboard::actors::vocabulary::{
    AllocationId, Generation, PluginKey, PluginName, PluginType, Role, SocketPath, TaskName,
};
use callboard::host::Host;
use futures_util::future::join_all;
use tempfile::TempDir;

/// More time than any step of these tests takes on the slowest machine.
const LONG: Duration = Duration::from_secs(30);

/// Every child of the root, in start order.
const CHILDREN: [&str; 9] = [
    "persister",
    "processes",
    "registry",
    "instances",
    "drivers",
    "allocations",
    "inventory",
    "catalog",
    "volumes",
];

#[actix::test]
async fn whichever_actor_is_started_again_everything_is_as_before_s1_r1_r2() {
    // A registration that lost its place is active again only after 10 s, so the hosts run side by side.
    join_all(CHILDREN.map(survives_a_restart)).await;
}

async fn survives_a_restart(name: &str) {
    let mut stage = Stage::open().await;
    stage.begin("first").await;
    stage.begin("second").await;
    let before = stage.settled("second", &["first"]).await;

    stage.restart(name).await;
    let after = stage.settled("second", &["first"]).await;
    // Its connection ends with the owner of the instances, and another connection has another generation (I2).
    let is_same = after.generation == before.generation;
    assert_eq!(is_same, name != "instances", "{name}: {} after {}", after.generation, before.generation);
    assert!(after.generation >= before.generation, "{name}");
    stage.all_run(name).await;

    // The recovery is real: an ended plugin leaves, the next one takes over, and a registration gets a number above all others.
    stage.exit("second").await;
    let failed_over = stage.settled("first", &[]).await;
    // It was active in its first generation, so it now has another. A new owner of the instances may have given it that generation before
    // the generation of the second: then it is warm, and keeps it.
    let is_above = failed_over.generation > after.generation;
    assert!(is_above || name == "instances" && failed_over.generation > before.generation, "{name}");
    stage.begin("second").await;
    let again = stage.settled("second", &["first"]).await;
    assert!(again.generation > failed_over.generation.max(after.generation), "{name}");
    stage.end(name).await;
}

#[actix::test]
async fn all_actors_started_again_at_once_leave_nothing_behind_s1_s4() {
    let mut stage = Stage::open().await;
    stage.begin("first").await;
    stage.begin("second").await;
    let mut before = stage.settled("second", &["first"]).await;
    for _ in 0..3 {
        let restarts = CHILDREN.map(|name| {
            let restart = RestartChild { name: name.to_owned() };
            stage.host.supervisor().ask(restart)
        });
        for restart in restarts {
            restart.await.expect("the root lives").expect("it starts");
        }
        let after = stage.settled("second", &["first"]).await;
        assert!(after.generation > before.generation, "another connection is another generation (I2)");
        before = after;
    }
    stage.all_run("all").await;
    stage.end("all").await;
}

#[actix::test]
async fn a_subscription_ends_with_its_actor_and_a_new_one_begins_with_a_snapshot_r6() {
    let mut stage = Stage::open().await;
    stage.begin("first").await;
    stage.settled("first", &[]).await;
    let host = stage.host.clone();
    follow_through(&mut stage, "registry", host.registry()).await;
    follow_through(&mut stage, "instances", host.instances()).await;
    follow_through(&mut stage, "inventory", host.inventory()).await;
    follow_through(&mut stage, "allocations", host.allocations()).await;
    stage.end("subscriptions").await;
}

#[actix::test]
async fn an_allocation_that_is_stopped_while_its_owner_is_started_again_is_gone_in_the_end_a4() {
    let mut stage = Stage::open().await;
    stage.begin("first").await;
    stage.begin("second").await;
    stage.settled("second", &["first"]).await;
    let stopping =
        stage.host.allocations().ask(StopAllocation { allocation: id("second"), even_if_used: false });
    stage.restart("allocations").await;
    // The caller receives an answer in any case.
    let _ = within(stopping).await;
    stage.settled("first", &[]).await;
    let deadline = tokio::time::Instant::now() + LONG;
    while within(stage.host.allocations().ask(ListAllocations)).await.expect("it runs").len() > 1 {
        assert!(tokio::time::Instant::now() < deadline, "it is not gone");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(!stage.socket_dir("second").exists(), "its directory is gone");
    stage.end("stopping").await;
}

async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(LONG, future).await.expect("it takes too long")
}

/// Reads a feed to its clean end over a restart, and subscribes again.
async fn follow_through<M: Machine>(stage: &mut Stage, name: &str, address: &Address<M>) {
    let mut feed: Subscription<M::News, M::View> = address.subscribe("test", 64).expect("it runs");
    assert!(matches!(within(feed.next()).await, Some(FeedItem::Snapshot { .. })), "{name}");
    stage.restart(name).await;
    while within(feed.next()).await.is_some() {}
    let mut feed = address.subscribe("test", 64).expect("it runs again");
    assert!(matches!(within(feed.next()).await, Some(FeedItem::Snapshot { .. })), "{name}");
    stage.settled("first", &[]).await;
}

fn id(allocation: &str) -> AllocationId {
    AllocationId::new(allocation).expect("a good id")
}

fn plugin(plugin_type: PluginType) -> PluginKey {
    PluginKey::new(plugin_type, PluginName::new("zfs").expect("a good name"))
}

/// A plugin's process. It is killed when this is dropped.
struct Process(Child);

impl Process {
    fn serve(socket: &SocketPath) -> Self {
        let child = Command::new(env!("CARGO_BIN_EXE_callboard"))
            .args(["plugin", "hostpath"])
            .env("CSI_ENDPOINT", socket.to_endpoint())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        Self(child)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A host with plugins in their own processes.
struct Stage {
    directory: TempDir,
    host: Host,
    processes: Vec<(AllocationId, Process)>,
}

impl Stage {
    async fn open() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let host = host_at(directory.path()).await;
        Self { directory, host, processes: Vec::new() }
    }

    fn socket_dir(&self, allocation: &str) -> PathBuf {
        self.directory.path().join("csi/plugins").join(allocation)
    }

    async fn begin(&mut self, allocation: &str) {
        let task = TaskName::new("plugin").expect("a good name");
        let name = PluginName::new("zfs").expect("a good name");
        let spec = AllocationSpec::new(id(allocation), task, name, Role::Monolith);
        let prepared = within(self.host.allocations().ask(PrepareAllocation { spec })).await;
        let context = prepared.expect("it runs").expect("it can be prepared");
        self.processes.push((id(allocation), Process::serve(&context.socket)));
        let started = TaskStarted { allocation: id(allocation) };
        within(self.host.allocations().ask(started)).await.expect("it runs").expect("it is known");
        self.until_registered(allocation).await;
    }

    async fn exit(&mut self, allocation: &str) {
        self.processes.retain(|(other, _)| *other != id(allocation));
        let exited = TaskExited { allocation: id(allocation), how: "signal 9".to_owned() };
        within(self.host.allocations().ask(exited)).await.expect("it runs").expect("it is known");
    }

    async fn restart(&self, name: &str) {
        let restart = RestartChild { name: name.to_owned() };
        within(self.host.supervisor().ask(restart)).await.expect("the root lives").expect("it starts");
    }

    async fn until_registered(&self, allocation: &str) {
        let deadline = tokio::time::Instant::now() + LONG;
        loop {
            let all = within(self.host.allocations().ask(ListAllocations)).await.expect("it runs");
            let status = all.into_iter().find(|status| status.allocation == id(allocation));
            if status.as_ref().is_some_and(|status| status.phase == AllocationPhase::Registered) {
                return;
            }
            assert!(tokio::time::Instant::now() < deadline, "{allocation} is not registered: {status:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn described(&self, kind: PluginType) -> Description {
        let deadline = tokio::time::Instant::now() + LONG;
        loop {
            match within(self.host.registry().ask(Describe { plugin: plugin(kind) })).await {
                Ok(described) => return *described,
                // The registry learns by its next write that the database was closed and opened again, and the requests that
                // wait behind that write must be repeated.
                Err(error) => assert!(error.is_transient(), "{error}"),
            }
            assert!(tokio::time::Instant::now() < deadline, "the registry does not recover");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until both halves are routed to this allocation, with these standbys in this order, and the plugin can be dispensed.
    async fn settled(&self, active: &str, standby: &[&str]) -> Dispensed {
        let deadline = tokio::time::Instant::now() + LONG;
        for kind in [PluginType::CsiController, PluginType::CsiNode] {
            loop {
                let described = self.described(kind).await;
                let is_active = described.active.as_ref().map(|a| a.registration.allocation.as_str());
                let others: Vec<&str> = described
                    .standby
                    .iter()
                    .map(|other| other.entry.registration.allocation.as_str())
                    .collect();
                if is_active == Some(active) && others == standby && described.provisional.is_empty() {
                    break;
                }
                assert!(tokio::time::Instant::now() < deadline, "not settled: {described:?}");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        for allocation in standby.iter().chain([&active]) {
            self.until_registered(allocation).await;
        }
        self.dispensed(active).await
    }

    async fn dispensed(&self, allocation: &str) -> Dispensed {
        let deadline = tokio::time::Instant::now() + LONG;
        loop {
            let dispense = Dispense { plugin: plugin(PluginType::CsiNode), within: Duration::from_secs(1) };
            match within(self.host.instances().ask(dispense)).await {
                Ok(Ok(dispensed)) if dispensed.allocation == id(allocation) => {
                    let described = self.described(PluginType::CsiNode).await;
                    let active: Option<Generation> = described.active.map(|active| active.generation);
                    if Some(dispensed.generation) == active {
                        return dispensed;
                    }
                    // After several restarts the generation may change between the two requests.
                    let handed_out = dispensed.generation;
                    assert!(
                        tokio::time::Instant::now() < deadline,
                        "{handed_out} stays, and {active:?} is active"
                    );
                }
                other => {
                    assert!(tokio::time::Instant::now() < deadline, "{allocation} cannot be had: {other:?}");
                }
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn all_run(&self, name: &str) {
        let tree = within(self.host.tree()).await.expect("the root lives");
        let names: Vec<&str> = tree.children.iter().map(|child| child.name.as_str()).collect();
        assert_eq!(names, CHILDREN);
        for child in &tree.children {
            assert_eq!(child.state, "running", "{} after the restart of {name}", child.name);
        }
        let inventory = within(self.host.inventory().ask(TakeInventory)).await;
        assert!(inventory.is_ok(), "{name}: {inventory:?}");
    }

    /// Stops the host, and checks that nothing is left of it.
    async fn end(mut self, name: &str) {
        let report = within(self.host.stop()).await;
        for child in &report.children {
            assert_eq!(child.ending, StopOutcome::Stopped, "{} after the restart of {name}", child.name);
        }
        self.processes.clear();
        assert!(!self.socket_dir("first").exists() && !self.socket_dir("second").exists());
        let host = host_at(self.directory.path()).await;
        assert_eq!(within(host.registry().ask(List)).await, Ok(vec![]), "{name}: all were deregistered");
        within(host.stop()).await;
    }
}

async fn host_at(directory: &Path) -> Host {
    Host::builder(directory).start().await.expect("it starts")
}
