//! What a task driver starts for its tasks, and how it outlives the driver, every launch of it and the host (TH030, TH032).

use std::io::Read;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use callboard_actors::process::{EndedBy, ProcessSpec};
use callboard_actors::shell::StopMode;
use tokio::time::sleep;

use crate::stage::{Fixture, HANDSHAKE, Stage, is_gone, kill, lives, pid_in, plugin, story};

/// The environment variable that marks the stand-in. Its value is the file for its process id.
const STAND_IN: &str = "EXECUTOR_PID_FILE";
/// The name of its socket, as Go's plugins choose them.
const SOCKET: &str = "plugin1234567890";

/// Not a test: the stand-in for an executor, in a process of its own that a driver has started. It does what executors do: it
/// listens below the directory that the driver received, whose environment it has inherited.
#[test]
fn executor_stand_in() {
    let Some(pid_file) = std::env::var_os(STAND_IN).map(PathBuf::from) else { return };
    let directory = PathBuf::from(std::env::var_os("PLUGIN_UNIX_SOCKET_DIR").expect("it is told"));
    let listener = UnixListener::bind(directory.join(SOCKET)).expect("a socket");
    let fresh = pid_file.with_extension("new");
    std::fs::write(&fresh, format!("{}\n", std::process::id())).expect("room");
    std::fs::rename(fresh, pid_file).expect("room");
    while listener.accept().is_ok() {}
}

/// A driver that starts one executor, in a session of its own, unless there is one; then it is ready. It does not become another
/// program after that, since that program would not match the record.
fn driver(stage: &Stage, directory: &Path) -> ProcessSpec {
    let script = format!(
        "[ -e \"${STAND_IN}\" ] || setsid \"$EXECUTOR\" --exact executors::executor_stand_in --nocapture \
         >/dev/null 2>&1 </dev/null &\n\
         while [ ! -e \"${STAND_IN}\" ]; do sleep 0.01; done\n\
         echo \"$PLUGIN_UNIX_SOCKET_DIR\" > \"$TOLD\"; echo '{HANDSHAKE}'; sleep 1000; :"
    );
    let mut spec = plugin(&script);
    let program = std::env::current_exe().expect("this program").display().to_string();
    for (name, value) in [
        ("EXECUTOR", program),
        (STAND_IN, directory.join("executor.pid").display().to_string()),
        ("TOLD", stage.path("told").display().to_string()),
    ] {
        spec.environment.insert(name.to_owned(), value);
    }
    spec
}

/// An executor that ends with the test in every case.
struct Executor {
    pid: u32,
    socket: PathBuf,
}

impl Executor {
    async fn of(stage: &Stage, name: &str) -> Self {
        let pid = pid_in(&stage.path("executor.pid")).await;
        Self { pid, socket: stage.output(name, "sockets").join(SOCKET) }
    }

    fn is_served(&self, when: &str) {
        assert!(lives(self.pid), "{when}: it has ended");
        let mut connected =
            UnixStream::connect(&self.socket).unwrap_or_else(|error| panic!("{when}: {error}"));
        assert_eq!(connected.read(&mut [0]).expect("it is answered"), 0);
    }

    async fn end(&self) {
        kill(self.pid);
        is_gone(self.pid).await;
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        kill(self.pid);
    }
}

async fn told(stage: &Stage) -> PathBuf {
    PathBuf::from(crate::stage::line_of(&stage.path("told")).await)
}

/// Waits until the host has settled the processes of earlier runs: launches wait for that.
async fn settled(fixture: &Fixture) {
    let ended = fixture.launch("settled", crate::stage::shell("true")).await.expect("it starts");
    fixture.ended(&ended).await;
}

#[test]
fn an_executor_and_its_socket_outlive_every_end_of_its_driver_and_of_the_host_t030_t032_th030_th031_th032() {
    story(|stage| async move {
        let fixture = stage.open();
        let spec = || driver(&stage, stage.data_dir());
        let launched = fixture.launch("driver-a", spec()).await.expect("it is ready");
        let executor = Executor::of(&stage, "driver-a").await;
        executor.is_served("while its driver runs");
        let place = told(&stage).await;
        assert_eq!(Some(place.as_path()), executor.socket.parent());
        kill(launched.pid);
        assert_eq!(fixture.ended(&launched).await.by, EndedBy::Itself);
        executor.is_served("after its driver was killed");
        fixture.launch("driver-a", spec()).await.expect("it is ready again");
        assert_eq!(told(&stage).await, place, "the path of its sockets never changes");
        fixture.stop("driver-a", Duration::from_secs(2)).await;
        executor.is_served("after its driver was stopped");
        let mut failing = spec();
        failing.arguments[1] = "exit 3".to_owned();
        fixture.launch("driver-a", failing).await.expect_err("it says no handshake");
        executor.is_served("after a launch that failed");
        fixture.launch("driver-a", spec()).await.expect("it is ready again");
        fixture.end(StopMode::Stop).await;
        executor.is_served("after the host has ended its driver");
        let fixture = stage.open();
        settled(&fixture).await;
        executor.is_served("after the next host has swept");
        fixture.launch("driver-a", spec()).await.expect("it is ready again");
        fixture.kill().await;
        let fixture = stage.open();
        fixture.recall("driver-a").await;
        executor.is_served("after a host that was killed");
        fixture.stop("driver-a", Duration::ZERO).await;
        executor.is_served("after its driver was killed by its host");
        executor.end().await;
        fixture.launch("driver-a", spec()).await.expect("it is ready again");
        assert!(!executor.socket.exists(), "no process has it open any more");
        fixture.stop("driver-a", Duration::ZERO).await;
        fixture.end(StopMode::Stop).await;
        let fixture = stage.open();
        settled(&fixture).await;
        assert!(!place.exists(), "no record names it, and nothing lives there");
        fixture.end(StopMode::Stop).await;
    });
}

#[test]
fn a_plugin_that_is_only_asked_who_it_is_takes_nothing_along_that_it_started_th030_th032() {
    story(|stage| async move {
        let fixture = stage.open();
        let spec = ProcessSpec { output_kept_bytes: 0, ..driver(&stage, stage.data_dir()) };
        fixture.launch("catalog-1-a", spec.clone()).await.expect("it is ready");
        let executor = Executor::of(&stage, "catalog-1-a").await;
        fixture.stop("catalog-1-a", Duration::from_secs(2)).await;
        executor.is_served("after it was asked");
        fixture.end(StopMode::Stop).await;
        let fixture = stage.open();
        settled(&fixture).await;
        executor.is_served("after the next host has swept");
        executor.end().await;
        fixture.end(StopMode::Stop).await;
        let fixture = stage.open();
        settled(&fixture).await;
        assert!(!executor.socket.parent().expect("a directory").exists());
        fixture.end(StopMode::Stop).await;
    });
}

#[test]
fn the_socket_of_a_driver_that_was_killed_goes_with_it_th030() {
    story(|stage| async move {
        let fixture = stage.open();
        // The executor is not in a session of its own here: it is in the driver's group and ends with it.
        let mut spec = driver(&stage, stage.data_dir());
        spec.arguments[1] = spec.arguments[1].replace("setsid ", "");
        let launched = fixture.launch("driver-a", spec).await.expect("it is ready");
        let executor = Executor::of(&stage, "driver-a").await;
        executor.is_served("while its driver runs");
        kill(launched.pid);
        fixture.ended(&launched).await;
        while executor.socket.exists() {
            sleep(Duration::from_millis(5)).await;
        }
        assert!(!lives(executor.pid));
        fixture.end(StopMode::Stop).await;
    });
}
