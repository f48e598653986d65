//! Tests the costs of a host, and that nothing grows: waiting delays no other caller, and ended incarnations leave nothing behind.

mod support;

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use callboard::actors::allocations::AdoptAllocation;
use callboard::actors::instances::{Dispense, DispenseError};
use callboard::actors::registry::{Register, WaitError, WaitForPlugin};
use callboard::actors::supervisor::StopOutcome;
use callboard::actors::vocabulary::{PluginKey, Role};
use callboard::host::Host;
use tokio::sync::{Mutex, MutexGuard};

use support::{LONG, Stage, Task, dispense, id, node, until};

/// These tests measure their process, so only one of them runs at a time.
async fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::const_new(());
    ALONE.lock().await
}

/// The median time of dispensing a plugin that is available.
async fn latency(host: &Host, plugin: &PluginKey) -> Duration {
    let mut times = Vec::new();
    for _ in 0..300 {
        let began = Instant::now();
        dispense(host, plugin, LONG).await.unwrap();
        times.push(began.elapsed());
    }
    times.sort();
    times[times.len() / 2]
}

#[actix::test]
async fn a_hundred_callers_that_wait_for_a_plugin_that_never_comes_delay_no_other_scl_02() {
    let _alone = alone().await;
    let stage = Stage::new();
    let host = stage.host().await;
    let (absent, stuck, quick) = (node("absent"), node("stuck"), node("quick"));
    let mut silent = Task::new(&stage, "a", "absent", Role::Node).with(&["--never-ready"]);
    let mut hanging = Task::new(&stage, "s", "stuck", Role::Node).with(&["--hang=NodeGetCapabilities"]);
    let mut serving = Task::new(&stage, "q", "quick", Role::Node);
    serving.start(&host).await;
    dispense(&host, &quick, LONG).await.unwrap();
    let undisturbed = latency(&host, &quick).await;

    silent.start(&host).await;
    hanging.start(&host).await;
    host.registry().ask(WaitForPlugin { plugin: stuck.clone(), within: LONG }).await.unwrap().unwrap();
    let within = Duration::from_secs(3_600);
    let wait = |plugin: &PluginKey| host.instances().ask(Dispense { plugin: plugin.clone(), within });
    let waiting: Vec<_> = (0..50).flat_map(|_| [wait(&absent), wait(&stuck)]).collect();
    let also: Vec<_> =
        (0..100).map(|_| host.registry().ask(WaitForPlugin { plugin: absent.clone(), within })).collect();
    let disturbed = latency(&host, &quick).await;
    println!("handed out in {undisturbed:?} undisturbed, in {disturbed:?} with 200 who wait");
    assert!(disturbed < 3 * undisturbed + Duration::from_millis(1), "{undisturbed:?}, then {disturbed:?}");

    let report = host.stop().await;
    println!("stopped in {:?}", report.took);
    assert!(report.took < Duration::from_secs(10), "{report:?}");
    assert!(report.children.iter().all(|child| child.ending == StopOutcome::Stopped), "{report:?}");
    for waiter in waiting {
        let error = waiter.await.unwrap().unwrap_err();
        assert!(matches!(error, DispenseError::Stopping { .. }), "{error}");
    }
    for waiter in also {
        if let Ok(answer) = waiter.await {
            assert!(matches!(answer, Err(WaitError::NotRegistered { .. })), "{answer:?}");
        }
    }
}

/// The resources that this process holds.
#[derive(Debug, Clone, Copy)]
struct Held {
    descriptors: usize,
    /// Tasks of connections. The runtime does not count the tasks of actors, which live in a local set: those show in memory.
    connection_tasks: usize,
    kibibytes: usize,
}

impl Held {
    fn now() -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        Self {
            descriptors: fs::read_dir("/proc/self/fd").unwrap().count(),
            connection_tasks: tokio::runtime::Handle::current().metrics().num_alive_tasks(),
            kibibytes: resident.trim().trim_end_matches("kB").trim().parse().unwrap(),
        }
    }

    /// Whether this is no more than at first; memory may vary by a few mebibytes.
    fn is_within(self, base: Self) -> bool {
        self.descriptors <= base.descriptors
            && self.connection_tasks <= base.connection_tasks
            && self.kibibytes <= base.kibibytes + 4 * 1_024
    }
}

/// Waits until the process holds no more than at first.
async fn back_to(base: Held, what: &str) {
    let mut held = Held::now();
    println!("{what}: {base:?} at first, {held:?} now");
    let began = Instant::now();
    while !held.is_within(base) {
        assert!(began.elapsed() < Duration::from_secs(10), "{what}: {base:?} at first, {held:?} now");
        tokio::time::sleep(Duration::from_millis(50)).await;
        held = Held::now();
    }
}

#[actix::test]
async fn a_plugin_that_is_restarted_again_and_again_leaves_nothing_behind_scl_06() {
    let _alone = alone().await;
    let stage = Stage::new();
    let host = stage.host().await;
    let mut task = Task::new(&stage, "a", "zfs", Role::Monolith);
    let mut base = None;
    for cycle in 0..80 {
        task.start(&host).await;
        dispense(&host, &node("zfs"), LONG).await.unwrap();
        task.kill(&host).await;
        if cycle == 20 {
            until("it is away", async || stage_is_calm(&host).await).await;
            base = Some(Held::now());
        }
    }
    until("it is away", async || stage_is_calm(&host).await).await;
    back_to(base.unwrap(), "restarts of a plugin").await;
    task.stop(&host).await;
    host.stop().await;
}

async fn stage_is_calm(host: &Host) -> bool {
    matches!(dispense(host, &node("zfs"), Duration::ZERO).await, Err(DispenseError::NotServed { .. }))
}

#[actix::test]
async fn a_host_that_is_started_again_and_again_leaves_nothing_behind_scl_06_s4() {
    let _alone = alone().await;
    let stage = Stage::new();
    let plugin = node("zfs");
    let mut task = Task::new(&stage, "a", "zfs", Role::Node);
    let host = stage.host().await;
    task.start(&host).await;
    dispense(&host, &plugin, LONG).await.unwrap();
    host.detach().await;
    let mut base = None;
    for cycle in 0..60 {
        let host = stage.host().await;
        host.allocations().ask(AdoptAllocation { spec: task.spec.clone() }).await.unwrap().unwrap();
        task.say_started(&host).await;
        dispense(&host, &plugin, LONG).await.unwrap();
        host.detach().await;
        if cycle == 10 {
            base = Some(Held::now());
        }
    }
    back_to(base.unwrap(), "restarts of a host around a living plugin").await;
}

#[actix::test]
async fn ten_thousand_registrations_that_came_and_went_leave_nothing_behind_scl_06() {
    let _alone = alone().await;
    let stage = Stage::new();
    let host = stage.host().await;
    let plugin = node("zfs");
    let register = |number: u32| Register {
        policy: None,
        plugins: vec![plugin.clone()],
        allocation: id(&format!("a{number}")),
        socket: callboard::actors::vocabulary::SocketPath::new("/nowhere/csi.sock").unwrap(),
        provider: None,
        version: None,
        options: Arc::default(),
    };
    let mut base = None;
    for hundred in 0..100 {
        let came: Vec<_> =
            (0..100).map(|number| host.registry().ask(register(hundred * 100 + number))).collect();
        for registered in came {
            registered.await.unwrap().unwrap();
        }
        let deregistration = |number: u32| callboard::actors::registry::Deregister {
            plugins: vec![plugin.clone()],
            allocation: id(&format!("a{}", hundred * 100 + number)),
            cause: callboard::actors::registry::LeaveCause::Stopped,
        };
        let went: Vec<_> = (0..100).map(|number| host.registry().ask(deregistration(number))).collect();
        for deregistered in went {
            deregistered.await.unwrap();
        }
        if hundred == 20 {
            until("none is there", async || stage_is_calm(&host).await).await;
            base = Some(Held::now());
        }
    }
    until("none is there", async || stage_is_calm(&host).await).await;
    back_to(base.unwrap(), "registrations").await;
    host.stop().await;
}

#[actix::test]
async fn plugins_that_are_killed_a_hundred_times_leave_a_socket_for_each_that_lives_sec_02() {
    let _alone = alone().await;
    let seed =
        std::env::var("CALLBOARD_SEED").map_or_else(|_| fastrand::u64(..), |seed| seed.parse().unwrap());
    println!("CALLBOARD_SEED={seed} repeats this");
    let mut random = fastrand::Rng::with_seed(seed);
    let stage = Stage::new();
    let host = stage.host().await;
    let mut tasks: Vec<Task> =
        (0..4).map(|number| Task::new(&stage, &format!("a{number}"), "zfs", Role::Node)).collect();
    for task in &mut tasks {
        task.start(&host).await;
    }
    for _ in 0..100 {
        let task = random.choice(&mut tasks).unwrap();
        // It is killed in any state: not listening yet, being probed, registered, or active.
        tokio::time::sleep(Duration::from_micros(random.u64(..40_000))).await;
        task.kill(&host).await;
        assert!(stage.sockets().len() <= 4, "a dead socket is replaced, and not joined by another");
        task.start(&host).await;
    }
    dispense(&host, &node("zfs"), LONG).await.unwrap();
    let (living, dying) = tasks.split_at_mut(2);
    for task in dying {
        task.kill(&host).await;
        assert!(task.stop(&host).await.remarks.is_empty());
    }
    let expected: Vec<PathBuf> = living
        .iter()
        .map(|task| stage.data_dir().join(format!("csi/plugins/{}/csi.sock", task.spec.allocation)))
        .collect();
    until("a socket for each that lives", async || stage.sockets() == expected).await;
    for task in living {
        task.stop(&host).await;
    }
    assert_eq!(stage.sockets(), Vec::<PathBuf>::new());
    assert_eq!(host.notices().recent(), []);
    host.stop().await;
}

/// Starts processes as fast as it can, on its own thread, until it is dropped.
struct Spawner {
    is_over: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Spawner {
    fn begin() -> Self {
        let is_over = Arc::<AtomicBool>::default();
        let told = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || {
            while !told.load(Ordering::Relaxed) {
                Command::new("true").status().unwrap();
            }
        });
        Self { is_over, thread: Some(thread) }
    }
}

impl Drop for Spawner {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

#[actix::test]
async fn a_directory_is_free_once_its_host_has_stopped_whatever_is_just_being_started_p5() {
    let _alone = alone().await;
    let stage = Stage::new();
    let _spawners = [Spawner::begin(), Spawner::begin(), Spawner::begin()];
    for _ in 0..30 {
        stage.host().await.stop().await;
    }
}
