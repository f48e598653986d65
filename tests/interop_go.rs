//! Tests our driver with a host on the official Go packages, and our host with a driver on them.
//!
//! The Go programs are in `tests/interop/go`. They are built if `go` is found and the modules are available; otherwise each of these
//! tests reports on standard error what it skipped.

mod support;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use callboard::actors::driver::client::{
    DriverClient as TypedClient, DriverError, StartOutcome, TaskConfig as TypedConfig, TaskEnd,
    TaskHandle as TypedHandle, TaskId,
};
use callboard::actors::driver::{DriverHealth, GapReason, TaskEventItem, TaskKey};
use callboard::actors::drivers::{RegisterTaskHandler, Wanted};
use callboard::actors::eventor::TaskEvents;
use callboard::actors::goplugin::{
    Connection, Handshake, HandshakeScan, HandshakeTerms, Limits, LineReader, PluginConfig, PluginLine,
    ScanLimits,
};
use callboard::actors::hclspec::{Config, schema_from_wire};
use callboard::actors::vocabulary::{PluginType, TaskName};
use callboard::host::Host;
use callboard::plugin::schema;
use callboard_actors::rpc::Channel;
use callboard_proto::drivers::driver_client::DriverClient;
use callboard_proto::drivers::fingerprint_response::HealthState;
use callboard_proto::drivers::{
    CapabilitiesRequest, DestroyTaskRequest, DriverTaskEvent, FingerprintRequest, InitRequest,
    InspectTaskRequest, RecoverTaskRequest, SignalTaskRequest, StartTaskRequest, StopTaskRequest, TaskConfig,
    TaskConfigSchemaRequest, TaskEventsRequest, TaskHandle, TaskState, WaitTaskRequest, WaitTaskResponse,
};
use callboard_proto::structs::attribute::Value;
use rustix::process::{Pid, Signal, kill_process};
use tonic::{Code, Streaming};

use support::drivers::{DriverStage, add, driver_name, remove, until_driver};
use support::go::ECHO_AND_HOST;
use support::{Watch, id};

const CALLBOARD: &str = env!("CARGO_BIN_EXE_callboard");

/// More time than any step of these tests takes on the slowest machine.
const LONG: Duration = Duration::from_secs(30);

/// The Go programs; or `None`, after reporting what is skipped.
fn go_programs_or_say(what: &str) -> Option<&'static Path> {
    ECHO_AND_HOST.or_say(what)
}

/// Runs the Go host and returns the lines that it printed: one for each step that succeeded.
fn host(programs: &Path, arguments: &[&str]) -> Vec<String> {
    let mut command = Command::new(programs.join("host"));
    let Output { status, stdout, stderr } =
        command.args(arguments).stdin(Stdio::null()).output().expect("it runs");
    let (said, log) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "the Go host failed after these steps:\n{said}\nits log:\n{log}");
    said.lines().map(str::to_owned).collect()
}

#[test]
fn a_host_on_the_go_packages_runs_tasks_through_our_driver_and_recovers_one_after_a_kill() {
    let Some(programs) = go_programs_or_say("our driver under a Go host") else { return };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let said = host(programs, &["run", CALLBOARD, directory.path().to_str().expect("text")]);
    assert_eq!(
        said,
        [
            "plugin callboard_exec, type driver, api [v0.1.0]",
            "capabilities: signals true, exec true",
            "healthy",
            "event of task-1: started",
            "output: good evening",
            "task-1 is running",
            "stats: memory and processes",
            "exec: code 3",
            "exec streaming: code 0",
            "task-1 exited: code 5, signal 0",
            "event of task-1: exited",
            "task-1 destroyed",
            "task-2 stopped",
            "driver killed",
            "task-3 recovered",
            "task-3 exited: code 7, signal 0",
            "driver ended",
        ]
    );
}

#[test]
fn a_host_on_the_go_packages_dies_and_the_next_one_reattaches_to_our_driver_prc_07() {
    let Some(programs) = go_programs_or_say("our driver reattached by a Go host") else { return };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let place = directory.path().to_str().expect("text");
    assert_eq!(host(programs, &["begin", CALLBOARD, place]), ["left behind: driver and task-4"]);
    // The pipes of the driver's output ended with its host; the driver must continue without them.
    let said = host(programs, &["resume", place]);
    assert_eq!(said, ["reattached", "task-4 is running", "task-4 exited: code 9, signal 0", "driver ended"]);
}

#[tokio::test]
async fn a_driver_on_the_go_packages_is_read_configured_and_ended_by_our_parts_of_a_host_d20_d50_d72_d102_d113()
 {
    let Some(programs) = go_programs_or_say("a Go driver under our host's parts") else { return };
    let mut plugin = GoDriver::start(programs).await;
    let connection = plugin.connection.clone();
    connection.ping(LONG).await.expect("it lives");
    let info = connection.plugin_info(LONG).await.expect("it says who it is");
    assert_eq!((info.name.as_str(), &*info.version, info.plugin_type), ("echo", "1.2.3", PluginType::Driver));
    let schema = connection.config_schema(LONG).await.expect("it answers").expect("it takes a configuration");
    let written = Config::from_hcl("greeter = \"the doorman\"").expect("well formed");
    let value = schema_from_wire(&schema).expect("a good schema").decode(&written).expect("it fits");
    let api_version = info.api_versions[0].clone();
    let config = PluginConfig { msgpack: value.to_msgpack(), nomad: None, api_version };
    connection.set_config(config, LONG).await.expect("it takes it");

    let mut driver = plugin.driver();
    let init = driver.init(InitRequest {}).await;
    assert_eq!(init.expect_err("this version of the packages has none (D109)").code(), Code::Unimplemented);
    assert!(
        driver
            .capabilities(CapabilitiesRequest {})
            .await
            .expect("some")
            .into_inner()
            .capabilities
            .expect("some")
            .exec
    );
    let mut reports = driver.fingerprint(FingerprintRequest {}).await.expect("a stream").into_inner();
    let report = reports.message().await.expect("a report").expect("a report");
    assert_eq!(report.health, HealthState::Healthy as i32);
    let value = |name: &str| report.attributes[name].value.clone().expect("a value");
    assert_eq!(
        value("driver.echo.greeter"),
        Value::StringVal("the doorman".to_owned()),
        "what was configured"
    );
    assert_eq!(
        (value("driver.echo.room"), &*report.attributes["driver.echo.room"].unit),
        (Value::IntVal(64), "MiB")
    );

    let line = plugin.line_that_says("configured").await;
    assert_eq!(line.message, "configured", "its log is read");
    connection.shutdown(LONG).await.expect("it is told to end");
    assert!(plugin.child.wait().expect("our child").success());
}

#[tokio::test]
async fn tasks_run_through_a_driver_on_the_go_packages_d103_d106_d107() {
    let Some(programs) = go_programs_or_say("tasks through a Go driver") else { return };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let plugin = GoDriver::start(programs).await;
    let mut driver = plugin.driver();
    let output = directory.path().join("out");
    let long = plugin.task("t2", "text = \"x\"\nsleep = \"1h\"", &output).await;
    driver.start_task(StartTaskRequest { task: Some(long) }).await.expect("it starts");
    let mut events = plugin.events_once_one_has_come("t2").await;
    let output = directory.path().join("out-1");
    let short = plugin.task("t1", "text = \"good evening\"\nexit_code = 4", &output).await;
    let handle = driver
        .start_task(StartTaskRequest { task: Some(short) })
        .await
        .expect("it starts")
        .into_inner()
        .handle;
    assert_eq!(handle.expect("a handle").state, TaskState::Running as i32);
    assert_eq!(exit(wait(&mut driver, "t1").await), (4, 0));
    assert_eq!(std::fs::read_to_string(&output).expect("it wrote"), "good evening\n");
    assert_eq!(next_of(&mut events, "t1").await.message, "started");
    let event = next_of(&mut events, "t1").await;
    assert_eq!(
        (&*event.message, &*event.alloc_id, &*event.task_name),
        ("exited with code 4, signal 0", "a", "main")
    );
    assert!(!event.annotations.contains_key("callboard.sequence"), "it knows of no positions");

    let inspected =
        driver.inspect_task(InspectTaskRequest { task_id: "t2".to_owned() }).await.expect("it is known");
    assert_eq!(inspected.into_inner().task.expect("a status").state, TaskState::Running as i32);
    let stop = StopTaskRequest {
        task_id: "t2".to_owned(),
        timeout: LONG.try_into().ok(),
        signal: "SIGINT".to_owned(),
    };
    driver.stop_task(stop).await.expect("it ends");
    assert_eq!(exit(wait(&mut driver, "t2").await), (0, 2));
    let destroy = DestroyTaskRequest { task_id: "t2".to_owned(), force: false };
    driver.destroy_task(destroy).await.expect("it has ended");
    let lost = RecoverTaskRequest { handle: Some(handle_of("t2")), ..Default::default() };
    let refused = driver.recover_task(lost).await.expect_err("its tasks end with it");
    assert!(refused.message().contains("task not found"), "{refused}");
}

/// The Go driver under a whole host: what it receives, and the events that its tasks' handler receives, across its death.
#[actix::test]
async fn a_host_runs_a_driver_on_the_go_packages_and_brings_it_back_when_it_is_killed_prc_05_evt_02_evt_03() {
    let Some(programs) = go_programs_or_say("a Go driver under our host") else { return };
    let stage = DriverStage::new();
    let host = stage.host().await;
    let mut watch = Watch::on(host.drivers());
    let mut spec = stage.driver("echo", programs.join("driver"), &[]);
    spec.config = configuration("enabled = true\ngreeter = \"the doorman\"");
    add(&host, &spec).await;
    let report = until_driver(&mut watch, "echo", DriverHealth::Healthy).await;
    assert_eq!(report.attributes["driver.echo.greeter"].to_string(), "the doorman");

    let task = TaskKey::new(id("a"), TaskName::new("main").unwrap());
    let (sink, mut events) = host.task_journals().open(100, None);
    let register = RegisterTaskHandler { driver: driver_name("echo"), task, sink };
    host.drivers().ask(register).await.unwrap().unwrap();
    let client = dispense_driver(&host).await;
    let (long, handle) = start_task(&stage, &client, "long", "text = \"x\"\nsleep = \"1h\"").await;
    next_about(&mut events, &client, &long).await;
    let (short, _) = start_task(&stage, &client, "short", "text = \"good evening\"\nexit_code = 4").await;
    assert_eq!(client.wait_task(&short, LONG).await.unwrap().end, TaskEnd::Exited(4));
    assert_eq!(std::fs::read_to_string(stage.path("short.out")).unwrap(), "good evening\n");
    until_event(&mut events, "short", "exited with code 4, signal 0").await;

    // A caller that waits for a task gets the error that the driver is gone, and that a retry can help.
    let waiting = client.wait_task(&long, LONG);
    let killing = async {
        let pid = i32::try_from(report.pid.expect("it runs")).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    };
    let (waited, ()) = tokio::join!(waiting, killing);
    let is_gone =
        |error: &DriverError| matches!(error, DriverError::PluginGone { is_worth_retrying: true, .. });
    assert!(waited.as_ref().is_err_and(is_gone), "{waited:?}");
    let again = until_driver(&mut watch, "echo", DriverHealth::Healthy).await;
    assert!(again.pid != report.pid && again.generation > report.generation && client.is_gone());
    assert_eq!(again.attributes["driver.echo.greeter"].to_string(), "the doorman", "it was configured again");

    // Its tasks ended with it, and it reports that; a new task runs, and the same handler receives its events, after the gap.
    let client = dispense_driver(&host).await;
    let refused = client.recover_task(&handle, LONG).await.unwrap_err();
    assert!(refused.to_string().contains("task not found"), "{refused}");
    let (third, _) = start_task(&stage, &client, "third", "text = \"x\"\nsleep = \"1h\"").await;
    let heard = next_about(&mut events, &client, &third).await;
    let gap = TaskEventItem::Gap { missed: None, reason: GapReason::Interrupted };
    assert_eq!(heard.iter().filter(|item| **item == gap).count(), 1, "{heard:?}");
    client.stop_task(&third, LONG, "SIGINT", LONG).await.unwrap();
    assert_eq!(client.wait_task(&third, LONG).await.unwrap().end, TaskEnd::Signalled(2));
    until_event(&mut events, "third", "exited with code 0, signal 2").await;
    remove(&host, "echo").await;
    assert_eq!(stage.living(), [], "nothing of it runs");
    host.stop().await;
}

/// The configuration of the Go driver, encoded by its schema.
fn configuration(hcl: &str) -> Vec<u8> {
    let spec = schema::object([
        ("enabled", schema::required("enabled", "bool")),
        ("greeter", schema::optional("greeter", "string")),
    ]);
    let written = Config::from_hcl(hcl).expect("well formed");
    schema_from_wire(&spec).expect("a good schema").decode(&written).expect("it fits").to_msgpack()
}

async fn dispense_driver(host: &Host) -> TypedClient {
    host.leases().driver(&driver_name("echo"), Wanted::Healthy, LONG).await.unwrap()
}

/// Starts a task of the handler, with a configuration in HCL that is encoded by the driver's own schema.
async fn start_task(
    stage: &DriverStage,
    client: &TypedClient,
    task_id: &str,
    hcl: &str,
) -> (TaskId, TypedHandle) {
    let schema = schema_from_wire(&client.task_config_schema(LONG).await.unwrap()).expect("a good schema");
    let written = schema.decode(&Config::from_hcl(hcl).expect("well formed")).expect("it fits");
    let task = TaskId::new(task_id).unwrap();
    let name = TaskName::new("main").unwrap();
    let mut config = TypedConfig::new(task.clone(), id("a"), name, written.to_msgpack());
    config.stdout_path = stage.path(&format!("{task_id}.out"));
    match client.start_task(&config, LONG).await.unwrap() {
        StartOutcome::Started { handle, .. } => (task, handle),
        refused => panic!("{refused:?}"),
    }
}

/// The events that the handler receives, up to an event of this task. A server on the Go packages loses an event that occurs before
/// it knows of the stream, so the task is signalled until an event has arrived.
async fn next_about(events: &mut TaskEvents, client: &TypedClient, task: &TaskId) -> Vec<TaskEventItem> {
    let mut heard = Vec::new();
    loop {
        client.signal_task(task, "SIGUSR1", LONG).await.unwrap();
        while let Ok(item) = tokio::time::timeout(Duration::from_millis(20), events.next()).await {
            let item = item.expect("it is watched");
            let is_it = matches!(&item, TaskEventItem::Event { event, position: None } if *event.task_id == *task.as_str());
            heard.push(item);
            if is_it {
                return heard;
            }
        }
    }
}

async fn until_event(events: &mut TaskEvents, task_id: &str, message: &str) {
    loop {
        let item = tokio::time::timeout(LONG, events.next()).await.expect("in time").expect("it is watched");
        if let TaskEventItem::Event { event, .. } = item
            && *event.task_id == *task_id
            && event.message == message
        {
            return;
        }
    }
}

fn handle_of(task_id: &str) -> TaskHandle {
    let config = TaskConfig { id: task_id.to_owned(), ..Default::default() };
    TaskHandle { version: 1, config: Some(config), ..Default::default() }
}

async fn wait(driver: &mut DriverClient<Channel>, task_id: &str) -> WaitTaskResponse {
    let waiting = driver.wait_task(WaitTaskRequest { task_id: task_id.to_owned() });
    tokio::time::timeout(LONG, waiting).await.expect("in time").expect("it is known").into_inner()
}

fn exit(response: WaitTaskResponse) -> (i32, i32) {
    assert_eq!(response.err, "");
    let result = response.result.expect("a result");
    (result.exit_code, result.signal)
}

async fn next_of(events: &mut Streaming<DriverTaskEvent>, task_id: &str) -> DriverTaskEvent {
    loop {
        let event = tokio::time::timeout(LONG, events.message()).await.expect("in time").expect("no error");
        if let Some(event) = event.filter(|event| event.task_id == task_id) {
            return event;
        }
    }
}

/// A driver on the Go packages, started as a host starts it. It is killed when it is dropped.
struct GoDriver {
    child: Child,
    connection: Connection,
    log: tokio::sync::mpsc::UnboundedReceiver<PluginLine>,
}

impl GoDriver {
    async fn start(programs: &Path) -> Self {
        let terms = HandshakeTerms::nomad(None);
        let mut child = Command::new(programs.join("driver"))
            .env_clear()
            .envs(terms.environment())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut errors = BufReader::new(child.stderr.take().expect("piped"));
        let (told, log) = tokio::sync::mpsc::unbounded_channel();
        std::thread::spawn(move || {
            let (mut reader, mut line) = (LineReader::new(), Vec::new());
            while errors.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
                reader.push(&line).into_iter().for_each(|line| drop(told.send(line)));
                line.clear();
            }
        });
        let handshake = read_handshake(terms, child.stdout.take().expect("piped"));
        let connection = Connection::dial(&handshake.endpoint, Limits::default()).await.expect("it listens");
        Self { child, connection, log }
    }

    fn driver(&self) -> DriverClient<Channel> {
        DriverClient::new(self.connection.channel())
    }

    /// The stream of task events. A server on the Go packages answers only with the first event, and loses an event that occurs before
    /// it knows of the stream, so a task is signalled until an event has arrived.
    async fn events_once_one_has_come(&self, task_id: &str) -> Streaming<DriverTaskEvent> {
        let mut subscriber = self.driver();
        let mut subscribing = tokio::spawn(async move { subscriber.task_events(TaskEventsRequest {}).await });
        loop {
            let signal = SignalTaskRequest { task_id: task_id.to_owned(), signal: "SIGUSR1".to_owned() };
            self.driver().signal_task(signal).await.expect("it runs");
            if let Ok(stream) = tokio::time::timeout(Duration::from_millis(20), &mut subscribing).await {
                return stream.expect("no panic").expect("a stream").into_inner();
            }
        }
    }

    /// A task whose configuration is written in HCL and encoded by the driver's own schema.
    async fn task(&self, id: &str, hcl: &str, output: &Path) -> TaskConfig {
        let schema = self.driver().task_config_schema(TaskConfigSchemaRequest {}).await.expect("it answers");
        let schema = schema_from_wire(&schema.into_inner().spec.expect("a schema")).expect("a good one");
        let written = Config::from_hcl(hcl).expect("well formed");
        TaskConfig {
            id: id.to_owned(),
            name: "main".to_owned(),
            alloc_id: "a".to_owned(),
            msgpack_driver_config: schema.decode(&written).expect("it fits").to_msgpack(),
            stdout_path: output.display().to_string(),
            ..Default::default()
        }
    }

    async fn line_that_says(&mut self, message: &str) -> PluginLine {
        loop {
            let line =
                tokio::time::timeout(LONG, self.log.recv()).await.expect("in time").expect("it goes on");
            if line.message == message {
                return line;
            }
        }
    }
}

impl Drop for GoDriver {
    fn drop(&mut self) {
        // A process that has ended already receives no signal.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read_handshake(terms: HandshakeTerms, output: std::process::ChildStdout) -> Handshake {
    let mut scan = HandshakeScan::new(terms, ScanLimits::default());
    for line in BufReader::new(output).lines() {
        if let Some(handshake) = scan.take(&line.expect("text")).expect("a good line") {
            return handshake;
        }
    }
    panic!("{}", scan.ended());
}
