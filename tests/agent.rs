//! Tests the agent with real processes, and with allocations and volumes that agree to every request and record it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use callboard::agent::{
    self, Agent, AgentMemory, AgentNews, AgentOptions, AllocationService, AllocationVolume, Answered,
    ClaimTrouble, ListTasks, NoVolumes, ProcessHome, StartTask, StopTask, TaskPhase, TaskReport, Unreleased,
    VolumeClaims,
};
use callboard::config::{AllocationConfig, RestartPolicy};
use callboard::host::Host;
use callboard::process::{Binder, usual_environment};
use callboard_actors::allocations::{
    AllocationSpec, AllocationStopped, AllocationsNews, AllocationsView, PrepareError, RestartWhen,
    StopAllocationError, TaskContext, UnknownAllocation,
};
use callboard_actors::instances::{AwaitHealthy, AwaitHealthyError};
use callboard_actors::shell::{Address, FeedItem, Running, Settings, StopMode, Subscription};
use callboard_actors::supervisor::RestartChild;
use callboard_actors::vocabulary::{
    AllocationId, PluginName, Probing, Role, SocketPath, VolumeName, VolumeNamespace,
};
use callboard_actors::volume::{ObservedEnd, VolumeKey};
use futures_util::future::LocalBoxFuture;
use tempfile::TempDir;
use tokio::time::timeout;

/// Far more than any step of these tests takes.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Agrees to every request and records it.
#[derive(Clone, Default)]
struct AgreeingHost(Rc<RefCell<Vec<String>>>);

impl AgreeingHost {
    fn note<T: 'static>(&self, line: String, answer: T) -> LocalBoxFuture<'static, Answered<T>> {
        self.0.borrow_mut().push(line);
        Box::pin(std::future::ready(Ok(answer)))
    }
}

impl AllocationService for AgreeingHost {
    fn prepare(
        &self,
        spec: AllocationSpec,
    ) -> LocalBoxFuture<'static, Answered<Result<TaskContext, PrepareError>>> {
        let socket = SocketPath::new("/nowhere.sock").expect("a good path");
        let environment = BTreeMap::from([("CSI_ENDPOINT".to_owned(), socket.to_endpoint())]);
        self.note(
            format!("prepare {}", spec.allocation),
            Ok(TaskContext { environment, mounts: vec![], socket }),
        )
    }

    fn adopt(
        &self,
        spec: AllocationSpec,
    ) -> LocalBoxFuture<'static, Answered<Result<TaskContext, PrepareError>>> {
        self.prepare(spec)
    }

    fn started(
        &self,
        allocation: AllocationId,
    ) -> LocalBoxFuture<'static, Answered<Result<(), UnknownAllocation>>> {
        self.note(format!("started {allocation}"), Ok(()))
    }

    fn exited(
        &self,
        allocation: AllocationId,
        how: String,
    ) -> LocalBoxFuture<'static, Answered<Result<(), UnknownAllocation>>> {
        self.note(format!("exited {allocation}: {how}"), Ok(()))
    }

    fn stop(
        &self,
        allocation: AllocationId,
        _even_if_used: bool,
    ) -> LocalBoxFuture<'static, Answered<Result<AllocationStopped, StopAllocationError>>> {
        self.note(format!("stop {allocation}"), Ok(AllocationStopped { deregistered: true, remarks: vec![] }))
    }

    fn healthy(
        &self,
        awaited: AwaitHealthy,
    ) -> LocalBoxFuture<'static, Answered<Result<(), AwaitHealthyError>>> {
        self.note(format!("healthy {}", awaited.allocation), Ok(()))
    }

    fn follow(
        &mut self,
        _afresh: bool,
    ) -> LocalBoxFuture<'static, Answered<Vec<FeedItem<AllocationsNews, AllocationsView>>>> {
        Box::pin(std::future::pending())
    }
}

impl VolumeClaims for AgreeingHost {
    fn claim(
        &self,
        user: AllocationId,
        volumes: Vec<AllocationVolume>,
        _within: Duration,
    ) -> LocalBoxFuture<'static, Result<BTreeMap<VolumeKey, PathBuf>, ClaimTrouble>> {
        let names = volumes.iter().map(|volume| volume.volume.to_string()).collect::<Vec<_>>().join(" ");
        self.0.borrow_mut().push(format!("claim {user} {names}"));
        let path = |volume: AllocationVolume| {
            let path = PathBuf::from(format!("/claims/{user}/{}", volume.volume.name));
            (volume.volume, path)
        };
        let claimed = Ok(volumes.into_iter().map(path).collect());
        Box::pin(std::future::ready(claimed))
    }

    fn ended(
        &self,
        user: AllocationId,
        observed: ObservedEnd,
        _within: Duration,
    ) -> LocalBoxFuture<'static, Result<(), Unreleased>> {
        self.0.borrow_mut().push(format!("ended {user} {observed:?}"));
        Box::pin(std::future::ready(Ok(())))
    }
}

struct Stage {
    address: Address<Agent>,
    running: Running,
    host: AgreeingHost,
    feed: Subscription<AgentNews, Vec<TaskReport>>,
    directory: TempDir,
}

fn id(name: &str) -> AllocationId {
    AllocationId::new(name).expect("a good name")
}

fn allocation(name: &str, script: &str) -> AllocationConfig {
    AllocationConfig {
        name: id(name),
        plugin: PluginName::new("zfs").expect("a good name"),
        role: Role::Node,
        program: PathBuf::from("/bin/sh"),
        arguments: vec!["-c".to_owned(), script.to_owned(), "sh".to_owned(), "${CSI_ENDPOINT}".to_owned()],
        environment: BTreeMap::new(),
        health_timeout: Duration::from_secs(30),
        restart_when: RestartWhen::Never,
        probing: Probing::default(),
        failover: None,
        volumes: Vec::new(),
        start: true,
        survives: false,
        stop_grace: Duration::from_secs(5),
    }
}

fn surroundings(directory: &TempDir, allocations: Vec<AllocationConfig>) -> (AgentOptions, ProcessHome) {
    let restart = RestartPolicy::new(2, Duration::from_secs(60), Duration::from_millis(10));
    let options = AgentOptions { allocations, restart, environment: usual_environment() };
    let binder = Binder::program(env!("CARGO_BIN_EXE_callboard"));
    (options, ProcessHome { binder, log_dir: directory.path().join("logs") })
}

fn start(
    address: &Address<Agent>,
    directory: &TempDir,
    allocations: Vec<AllocationConfig>,
    host: AgreeingHost,
    memory: AgentMemory,
) -> Running {
    let (options, home) = surroundings(directory, allocations);
    agent::start(address, options, host.clone(), Rc::new(host), home, memory, Settings::default())
}

impl Stage {
    fn new(allocations: Vec<AllocationConfig>) -> Self {
        Self::with(allocations, AgentMemory::default())
    }

    fn with(allocations: Vec<AllocationConfig>, memory: AgentMemory) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let address = Address::vacant("agent", 64);
        let host = AgreeingHost::default();
        let running = start(&address, &directory, allocations, host.clone(), memory);
        let feed = address.subscribe("test", 1_024).expect("it runs");
        Self { address, running, host, feed, directory }
    }

    /// Waits until a process has written a line.
    async fn line_of_log(&self, name: &str) {
        let log = self.directory.path().join(format!("logs/{name}.log"));
        while !std::fs::read_to_string(&log).is_ok_and(|text| text.ends_with('\n')) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Waits until a task is in this phase and has been restarted this many times.
    async fn until(&mut self, name: &str, phase: TaskPhase, restarts: u64) -> TaskReport {
        loop {
            let tasks = match self.feed.next().await.expect("the agent runs") {
                FeedItem::Snapshot { view, .. } => view,
                FeedItem::Change { news: AgentNews::TaskChanged(task), .. } => vec![task],
                FeedItem::Lagged { missed } => panic!("{missed} changes are missed"),
            };
            let is_meant = |task: &TaskReport| {
                task.allocation == id(name) && task.phase == phase && task.restarts == restarts
            };
            if let Some(task) = tasks.into_iter().find(is_meant) {
                return task;
            }
        }
    }
}

fn story<F: Future<Output = ()>>(tell: impl FnOnce() -> F) {
    let system = actix_rt::System::new();
    system.block_on(async { timeout(TIMEOUT, tell()).await }).expect("it ends in time");
}

fn exists(pid: u32) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}

fn kill(pid: u32) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).expect("a pid")).expect("a pid");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it lives");
}

#[test]
fn a_task_is_started_killed_started_again_and_stopped_in_order_shd_04() {
    story(|| async {
        let mut stage = Stage::new(vec![allocation("a", "echo \"at $1\"; exec sleep 1000")]);
        let first = stage.until("a", TaskPhase::Running, 0).await;
        stage.line_of_log("a").await;
        kill(first.pid.expect("it runs"));
        let second = stage.until("a", TaskPhase::Running, 1).await;
        let pid = second.pid.expect("it runs");
        assert!(exists(pid));
        let stopped = stage
            .address
            .ask(StopTask { allocation: id("a"), even_if_used: false })
            .await
            .expect("it runs")
            .expect("it runs");
        assert!(!exists(pid), "not even a zombie is left");
        let steps: Vec<_> = stopped.steps.iter().map(|step| (&*step.what, &*step.ending)).collect();
        assert_eq!(
            steps,
            [("allocation/a", "deregistered"), ("process/a", "signal 15 (SIGTERM) when asked to end")]
        );
        let told = stage.host.0.borrow();
        let expected =
            ["prepare a", "started a", "exited a: signal 9 (SIGKILL)", "prepare a", "started a", "stop a"];
        assert_eq!(*told, expected);
    });
}

#[test]
fn a_process_finds_its_claimed_volumes_and_they_are_released_when_it_has_ended_v7_v8() {
    story(|| async {
        let volume = VolumeKey {
            namespace: VolumeNamespace::new("default").expect("a good name"),
            name: VolumeName::new("data").expect("a good name"),
        };
        let volumes = vec![AllocationVolume { volume, variable: "DATA".to_owned(), read_only: false }];
        let mut user = allocation("a", "echo \"at $2 and $DATA\"; exec sleep 1000");
        user.arguments.push("--data=${DATA}".to_owned());
        let mut stage = Stage::new(vec![AllocationConfig { volumes, ..user }]);
        let first = stage.until("a", TaskPhase::Running, 0).await;
        stage.line_of_log("a").await;
        let log = std::fs::read_to_string(stage.directory.path().join("logs/a.log")).expect("it has a log");
        assert_eq!(log, "at --data=/claims/a/data and /claims/a/data\n");
        kill(first.pid.expect("it runs"));
        stage.until("a", TaskPhase::Running, 1).await;
        let stopped = stage
            .address
            .ask(StopTask { allocation: id("a"), even_if_used: false })
            .await
            .expect("it runs")
            .expect("it runs");
        let steps: Vec<_> = stopped.steps.iter().map(|step| &*step.what).collect();
        assert_eq!(steps, ["allocation/a", "process/a", "volumes/a"]);
        let told = stage.host.0.borrow();
        let start = ["prepare a", "claim a default/data", "started a"];
        let expected =
            [&start[..], &["exited a: signal 9 (SIGKILL)"], &start, &["stop a", "ended a Exited"]].concat();
        assert_eq!(*told, expected);
    });
}

#[test]
fn a_task_that_ends_too_often_has_failed_and_says_why_log_05() {
    story(|| async {
        let mut stage = Stage::new(vec![allocation("a", "echo no pool named tank; exit 3")]);
        let failed = stage.until("a", TaskPhase::Failed, 2).await;
        assert_eq!(
            failed.last_event,
            "process ended: exit code 3, last output: no pool named tank; given up after 2 restarts within 60s"
        );
        stage
            .address
            .ask(StartTask { allocation: id("a") })
            .await
            .expect("it runs")
            .expect("it is started anew");
        stage.until("a", TaskPhase::Failed, 4).await;
    });
}

#[test]
fn when_all_tasks_are_stopped_no_process_is_left_s4() {
    story(|| async {
        let stubborn = AllocationConfig {
            stop_grace: Duration::from_millis(100),
            ..allocation("b", "trap '' TERM; while :; do sleep 0.01; done")
        };
        let mut stage = Stage::new(vec![allocation("a", "exec sleep 1000"), stubborn]);
        stage.until("b", TaskPhase::Running, 0).await;
        let tasks = stage.address.ask(ListTasks).await.expect("it runs");
        stage.running.request_stop(StopMode::Stop);
        stage.running.ended().await;
        assert_eq!(stage.running.stop_steps().len(), 4);
        assert!(tasks.iter().filter_map(|task| task.pid).all(|pid| !exists(pid)));
        assert!(stage.directory.path().join("logs/a.log").exists());
    });
}

#[test]
fn an_agent_that_is_restarted_goes_on_with_its_processes_s1() {
    story(|| async {
        let (allocations, memory) = (vec![allocation("a", "exec sleep 1000")], AgentMemory::default());
        let mut stage = Stage::with(allocations.clone(), memory.clone());
        let pid = stage.until("a", TaskPhase::Running, 0).await.pid.expect("it runs");
        stage.running.kill();
        stage.running.ended().await;
        stage.running = start(&stage.address, &stage.directory, allocations, stage.host.clone(), memory);
        let tasks = stage.address.ask(ListTasks).await.expect("it runs");
        assert_eq!((tasks[0].phase, tasks[0].pid, tasks[0].restarts), (TaskPhase::Running, Some(pid), 0));
        stage.running.request_stop(StopMode::Stop);
        stage.running.ended().await;
        assert!(!exists(pid));
    });
}

#[test]
fn what_an_agent_left_that_is_gone_is_ended_and_named_s3_s4() {
    story(|| async {
        let stubborn = AllocationConfig {
            stop_grace: Duration::from_millis(100),
            ..allocation("b", "trap '' TERM; echo deaf; while :; do sleep 0.01; done")
        };
        let allocations = vec![allocation("a", "exec sleep 1000"), stubborn, allocation("c", "exit 0")];
        let memory = AgentMemory::default();
        let mut stage = Stage::with(allocations.clone(), memory.clone());
        stage.until("c", TaskPhase::Failed, 2).await;
        stage.line_of_log("b").await;
        let tasks = stage.address.ask(ListTasks).await.expect("it runs");
        stage.running.kill();
        stage.running.ended().await;

        let steps = memory.end_processes(&allocations, StopMode::Stop).await;
        assert!(tasks.iter().filter_map(|task| task.pid).all(|pid| !exists(pid)));
        let told: Vec<_> = steps.iter().map(|step| (&*step.what, &*step.ending, step.is_left)).collect();
        let killed = "ended without the agent: killed after its grace: signal 9 (SIGKILL)";
        let ended = "ended without the agent: signal 15 (SIGTERM) when asked to end";
        assert_eq!(told, [("process/b", killed, false), ("process/a", ended, false)]);
        assert_eq!(memory.end_processes(&allocations, StopMode::Stop).await, [], "nothing is left");
    });
}

#[test]
fn the_agent_of_a_host_is_restarted_with_its_tasks_and_reports_what_it_stopped_s1_s3() {
    story(|| async {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let address = Address::<Agent>::vacant("agent", 64);
        let (options, home) = surroundings(&directory, vec![allocation("a", "exec sleep 1000")]);
        let builder = Host::builder(directory.path().join("data")).binder(home.binder.clone());
        let host = builder
            .part(agent::part(&address, options, home, |_| Rc::new(NoVolumes)))
            .start()
            .await
            .expect("it starts");
        let first = running(&address).await;

        let restart = RestartChild { name: "agent".to_owned() };
        assert_eq!(host.supervisor().ask(restart).await, Ok(Ok(())));
        let second = running(&address).await;
        assert_ne!(first.pid, second.pid);
        assert_eq!(second.restarts, 0, "it counts as no failure");
        let tree = host.tree().await.expect("it runs");
        let node = tree.children.last().expect("it has parts");
        assert_eq!((node.name.as_str(), node.restarts, node.children.len()), ("agent", 1, 1));

        let report = host.stop().await;
        assert_eq!(report.not_in_order().count(), 0, "{report:?}");
        let stopped: Vec<_> = report.children[0].below.iter().map(|step| step.what.as_str()).collect();
        assert_eq!((report.children[0].name.as_str(), stopped), ("agent", vec!["allocation/a", "process/a"]));
        assert!(!exists(second.pid.expect("it ran")));
    });
}

/// Waits until the only task of an agent runs.
async fn running(address: &Address<Agent>) -> TaskReport {
    loop {
        if let Ok(tasks) = address.ask(ListTasks).await
            && let Some(task) = tasks.into_iter().find(|task| task.phase == TaskPhase::Running)
        {
            return task;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[test]
fn an_agent_that_ends_by_force_leaves_no_process_prc_02() {
    story(|| async {
        let mut stage = Stage::new(vec![allocation("a", "exec sleep 1000")]);
        let pid = stage.until("a", TaskPhase::Running, 0).await.pid.expect("it runs");
        stage.running.kill();
        stage.running.ended().await;
        while exists(pid) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
}
