//! Provides a directory for a driver, a driver in it, and clients that send whatever a test wants.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use callboard::actors::driver::{
    EVENTS_AFTER_METADATA, EVENTS_FROM_THE_BEGINNING, EVENTS_STREAM_METADATA, EventPosition,
};
use callboard::plugin::Cookie;
use callboard_proto::drivers::driver_client::DriverClient;
use callboard_proto::drivers::*;
use callboard_proto::goplugin::Empty;
use callboard_proto::goplugin::grpc_controller_client::GrpcControllerClient;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Streaming};

/// More time than any step of these tests takes on the slowest machine.
pub(crate) const LONG: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(5);

/// The surroundings of a driver: one directory for everything.
pub(crate) struct Place {
    pub(crate) directory: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        fs::create_dir(directory.path().join("sockets")).expect("room");
        Self { directory }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read(self.path(name)).map(|text| String::from_utf8_lossy(&text).into_owned()).unwrap_or_default()
    }

    pub(crate) async fn until(&self, name: &str, text: &str) {
        until(&format!("{name} holds {text:?}"), || self.read(name) == text).await;
    }

    pub(crate) async fn until_lines(&self, name: &str, count: usize) -> Vec<String> {
        until(&format!("{name} has {count} lines"), || self.read(name).lines().count() >= count).await;
        self.read(name).lines().map(str::to_owned).collect()
    }

    /// Starts a driver without connecting to it.
    pub(crate) fn spawn(&self, arguments: &[&str]) -> Raw {
        let log = File::options().append(true).create(true).open(self.path("stderr")).expect("room");
        let child = Command::new(env!("CARGO_BIN_EXE_callboard"))
            .args(["plugin", "exec"])
            .args(arguments)
            .env_clear()
            .env(Cookie::NOMAD.key, Cookie::NOMAD.value)
            .env("PLUGIN_PROTOCOL_VERSIONS", "2")
            .env("PLUGIN_UNIX_SOCKET_DIR", self.path("sockets"))
            .env("XDG_RUNTIME_DIR", self.path("runtime"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .expect("it starts");
        Raw(child)
    }

    /// Starts a driver and connects to it.
    pub(crate) async fn start(&self, arguments: &[&str]) -> Plugin {
        let mut raw = self.spawn(arguments);
        let mut output = BufReader::new(raw.0.stdout.take().expect("piped"));
        let mut line = String::new();
        output.read_line(&mut line).expect("it says where it is");
        let socket = PathBuf::from(line.split('|').nth(3).expect("a path"));
        let channel = connect(&socket).await;
        // Its output is read to the end, so that a flood does not block it.
        std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
        let driver = DriverClient::new(channel.clone());
        Plugin { raw, line, socket, channel, driver }
    }

    pub(crate) async fn shut_down(&self, line: &str) {
        let channel = connect(Path::new(line.split('|').nth(3).expect("a path"))).await;
        // The answer may be lost with the connection.
        let _ = GrpcControllerClient::new(channel).shutdown(Empty {}).await;
    }

    pub(crate) fn task(&self, id: &str, command: &[&str]) -> TaskConfig {
        let name = format!("{id}-task");
        fs::create_dir_all(self.path("alloc").join(&name)).expect("room");
        let config = serde_json::json!({ "command": command[0], "args": &command[1..] });
        TaskConfig {
            id: id.to_owned(),
            name,
            alloc_id: "a".to_owned(),
            alloc_dir: self.path("alloc").display().to_string(),
            env: [("WORD".to_owned(), "hello".to_owned())].into(),
            msgpack_driver_config: rmp_serde::to_vec_named(&config).expect("it can be written"),
            stdout_path: self.path(&format!("{id}.out")).display().to_string(),
            stderr_path: self.path(&format!("{id}.err")).display().to_string(),
            ..Default::default()
        }
    }

    pub(crate) fn shell(&self, id: &str, script: &str) -> TaskConfig {
        self.task(id, &["/bin/sh", "-c", script])
    }
}

impl Place {
    /// Every living process whose command line names this place, except drivers.
    pub(crate) fn living(&self) -> Vec<i32> {
        let mark = self.path("").display().to_string();
        let numbers = fs::read_dir("/proc").expect("it is there").flatten();
        let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let mut living: Vec<i32> = numbers.filter(|pid| Self::command_of(*pid).contains(&mark)).collect();
        living.retain(|pid| !Self::command_of(*pid).contains("plugin exec --"));
        living
    }

    /// The words of a process's command line.
    pub(crate) fn command_of(pid: i32) -> String {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).replace('\0', " ")
    }
}

impl Drop for Place {
    /// Kills the tasks that a test has left: they would outlive it, as they outlive their driver.
    fn drop(&mut self) {
        let Ok(tasks) = fs::read_dir(self.path("alloc")) else { return };
        for place in tasks
            .flatten()
            .filter_map(|task| fs::read_dir(task.path().join(".callboard")).ok())
            .flatten()
            .flatten()
        {
            let Ok(mut control) =
                fs::OpenOptions::new().read(true).write(true).open(place.path().join("control"))
            else {
                continue;
            };
            let _ = std::io::Write::write_all(&mut control, b"kill\n");
        }
    }
}

pub(crate) async fn connect(socket: &Path) -> Channel {
    let endpoint = Endpoint::try_from(format!("unix://{}", socket.display())).expect("a path");
    endpoint.connect().await.expect("it listens before it says so (D32)")
}

/// A process that is killed when it is dropped.
pub(crate) struct Raw(pub(crate) Child);

impl Drop for Raw {
    fn drop(&mut self) {
        // A process that has ended already receives no signal.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A running driver, and a connection to it.
pub(crate) struct Plugin {
    pub(crate) raw: Raw,
    pub(crate) line: String,
    pub(crate) socket: PathBuf,
    pub(crate) channel: Channel,
    pub(crate) driver: DriverClient<Channel>,
}

impl Plugin {
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.raw.0), signal).expect("it is our child and not reaped");
    }

    pub(crate) async fn end(&mut self) -> ExitStatus {
        let began = Instant::now();
        loop {
            if let Some(status) = self.raw.0.try_wait().expect("it is our child") {
                return status;
            }
            assert!(began.elapsed() < LONG, "the driver does not end");
            tokio::time::sleep(PAUSE).await;
        }
    }

    pub(crate) async fn kill(mut self) {
        self.signal(Signal::KILL);
        assert_eq!(self.end().await.signal(), Some(9));
    }

    pub(crate) async fn start(&mut self, task: TaskConfig) -> Result<TaskHandle, tonic::Status> {
        let answer = self.driver.start_task(StartTaskRequest { task: Some(task) }).await?;
        Ok(answer.into_inner().handle.expect("a handle"))
    }

    pub(crate) async fn recover(&mut self, handle: TaskHandle) -> Result<(), tonic::Status> {
        let request = RecoverTaskRequest { handle: Some(handle), ..Default::default() };
        self.driver.recover_task(request).await.map(drop)
    }

    /// Exit code, signal, and the reason why these cannot be relied on.
    pub(crate) async fn wait(&mut self, task_id: &str) -> (i32, i32, String) {
        let request = WaitTaskRequest { task_id: task_id.to_owned() };
        let waiting = tokio::time::timeout(LONG, self.driver.wait_task(request));
        let answer = waiting.await.expect("it ends").expect("it is known").into_inner();
        let result = answer.result.expect("a result");
        (result.exit_code, result.signal, answer.err)
    }

    pub(crate) async fn wait_code(&mut self, task_id: &str) -> Result<(), Code> {
        let request = WaitTaskRequest { task_id: task_id.to_owned() };
        self.driver.wait_task(request).await.map(drop).map_err(|status| status.code())
    }

    pub(crate) async fn stop(&mut self, task_id: &str, timeout: Duration, signal: &str) -> Result<(), Code> {
        let timeout = Some(timeout.try_into().expect("a span"));
        let request = StopTaskRequest { task_id: task_id.to_owned(), timeout, signal: signal.to_owned() };
        self.driver.stop_task(request).await.map(drop).map_err(|status| status.code())
    }

    pub(crate) async fn signal_task(&mut self, task_id: &str, signal: &str) -> Result<(), Code> {
        let request = SignalTaskRequest { task_id: task_id.to_owned(), signal: signal.to_owned() };
        self.driver.signal_task(request).await.map(drop).map_err(|status| status.code())
    }

    pub(crate) async fn destroy(&mut self, task_id: &str, force: bool) -> Result<(), Code> {
        let request = DestroyTaskRequest { task_id: task_id.to_owned(), force };
        self.driver.destroy_task(request).await.map(drop).map_err(|status| status.code())
    }

    pub(crate) async fn inspect(&mut self, task_id: &str) -> InspectTaskResponse {
        let request = InspectTaskRequest { task_id: task_id.to_owned() };
        self.driver.inspect_task(request).await.expect("it is known").into_inner()
    }

    /// Kills the supervisor of a task, and returns the process of the task itself.
    pub(crate) async fn lose_supervisor(&mut self, task_id: &str) -> i32 {
        let attributes = self.inspect(task_id).await.driver.expect("attributes").attributes;
        let pid = |name: &str| attributes[name].parse::<i32>().expect("a number");
        let supervisor = pid("supervisor_pid");
        kill_process(Pid::from_raw(supervisor).expect("a number"), Signal::KILL).expect("it is ours");
        until("the supervisor ends", || !lives(supervisor)).await;
        pid("pid")
    }

    pub(crate) async fn stats(&mut self, task_id: &str) -> Streaming<TaskStatsResponse> {
        let collection_interval = Some(Duration::from_millis(50).try_into().expect("a span"));
        let request = TaskStatsRequest { task_id: task_id.to_owned(), collection_interval };
        self.driver.task_stats(request).await.expect("it is known").into_inner()
    }

    pub(crate) async fn exec(
        &mut self,
        task_id: &str,
        command: &[&str],
        timeout: Duration,
    ) -> Result<ExecTaskResponse, tonic::Status> {
        let command = command.iter().map(|word| (*word).to_owned()).collect();
        let timeout = Some(timeout.try_into().expect("a span"));
        let request = ExecTaskRequest { task_id: task_id.to_owned(), command, timeout };
        self.driver.exec_task(request).await.map(tonic::Response::into_inner)
    }

    pub(crate) async fn events(&mut self, after: Option<&EventPosition>) -> Streaming<DriverTaskEvent> {
        let mut request = Request::new(TaskEventsRequest {});
        let from = after.map_or(EVENTS_FROM_THE_BEGINNING.to_owned(), ToString::to_string);
        request.metadata_mut().insert(EVENTS_AFTER_METADATA, from.parse().expect("plain text"));
        let response = self.driver.task_events(request).await.expect("a stream");
        assert!(response.metadata().contains_key(EVENTS_STREAM_METADATA), "the stream is named at once");
        response.into_inner()
    }
}

pub(crate) async fn next(events: &mut Streaming<DriverTaskEvent>) -> DriverTaskEvent {
    let event = tokio::time::timeout(LONG, events.message()).await.expect("an event in time");
    event.expect("no error").expect("no end")
}

pub(crate) async fn until(what: &str, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < LONG, "{what}");
        tokio::time::sleep(PAUSE).await;
    }
}

/// Whether this process lives: a zombie does not.
pub(crate) fn lives(pid: i32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    !stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z'))
}
