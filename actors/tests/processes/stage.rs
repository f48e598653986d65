//! A host's processes in a temporary directory, with real children that are shells.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use callboard_actors::goplugin::HandshakeTerms;
use callboard_actors::process::{
    Executable, LaunchError, Launched, Lifetime, ProcessEnding, ProcessName, ProcessSpec, ProcessTag, Reach,
    Surroundings,
};
use callboard_actors::processes::{
    self, AwaitEnd, LaunchProcess, ListProcesses, MemoryRecords, Processes, ProcessesNews, ProcessesOptions,
    ProcessesView, RecallProcess, Recalled, StopProcess,
};
use callboard_actors::shell::{
    Address, Ending, FeedItem, IN_FLIGHT_MAX, Running, Settings, StopMode, Subscription,
};
use callboard_actors::vocabulary::Backoff;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::sync::Mutex;
use tokio::time::{sleep, timeout};

/// Far longer than anything here takes.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);
/// A handshake that is accepted.
pub(crate) const HANDSHAKE: &str = "1|2|unix|/run/plugin|grpc|";

/// Runs a story in real time, in a directory of its own.
pub(crate) fn story<F: Future<Output = ()>>(tell: impl FnOnce(Stage) -> F) {
    let stage = Stage::new();
    actix::System::new().block_on(async { timeout(TIMEOUT, tell(stage)).await }).expect("it ends in time");
}

pub(crate) struct Stage {
    directory: TempDir,
    pub(crate) records: MemoryRecords,
    pub(crate) with_control_groups: bool,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        Self { directory, records: MemoryRecords::default(), with_control_groups: false }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn data_dir(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn output(&self, process: &str, file: &str) -> PathBuf {
        self.directory.path().join("processes").join(process).join(file)
    }

    /// The mark of its data directory.
    pub(crate) fn owner(&self) -> Arc<str> {
        callboard_actors::ownership::settle(self.data_dir(), true).expect("a mark")
    }

    /// Starts a run of the host.
    pub(crate) fn open(&self) -> Fixture {
        self.open_with(ProcessesOptions {
            save_every: Duration::from_millis(50),
            restart_backoff: Backoff { first: Duration::from_millis(20), ..Backoff::default() },
            ..ProcessesOptions::new(secret())
        })
    }

    pub(crate) fn open_with(&self, options: ProcessesOptions) -> Fixture {
        let address = Address::vacant("processes", IN_FLIGHT_MAX);
        let surroundings = Surroundings::new(self.data_dir(), self.owner(), None, self.with_control_groups)
            .expect("surroundings");
        let records = self.records.clone();
        let running = processes::start(&address, options, surroundings, records, Settings::default());
        let feed = address.subscribe("test", 4_096).expect("it runs");
        Fixture { address, running, feed: Mutex::new(feed) }
    }

    /// Writes an executable script, through another process: no child that is spawned meanwhile can hold it open for writing.
    pub(crate) fn script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        let order = "cat > \"$1\" && chmod 755 \"$1\"";
        let mut writer = Command::new("/bin/sh")
            .args(["-c", order, "sh"])
            .arg(&path)
            .stdin(Stdio::piped())
            .spawn()
            .expect("a shell");
        writer.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("it is written");
        assert!(writer.wait().expect("it ends").success());
        path
    }
}

fn secret() -> [u8; 16] {
    let mut secret = [0; 16];
    std::io::Read::read_exact(&mut std::fs::File::open("/dev/urandom").expect("randomness"), &mut secret)
        .expect("randomness");
    secret
}

/// One run of a host's processes.
pub(crate) struct Fixture {
    pub(crate) address: Address<Processes>,
    running: Running,
    feed: Mutex<Subscription<ProcessesNews, ProcessesView>>,
}

impl Fixture {
    pub(crate) async fn launch(&self, name_of: &str, spec: ProcessSpec) -> Result<Launched, LaunchError> {
        self.address
            .ask(LaunchProcess { name: name(name_of), spec: spec.into() })
            .await
            .expect("it is answered")
    }

    pub(crate) async fn recall(&self, name_of: &str) -> Recalled {
        let answer = self.address.ask(RecallProcess { name: name(name_of) }).await;
        answer.expect("it is answered").expect("not too many wait")
    }

    pub(crate) async fn stop(&self, name_of: &str, grace: Duration) -> ProcessEnding {
        let stop = StopProcess { name: name(name_of), tag: None, grace };
        self.address.ask(stop).await.expect("it is answered").expect("it was there")
    }

    pub(crate) async fn ended(&self, launched: &Launched) -> ProcessEnding {
        let wait = AwaitEnd { name: launched.name.clone(), tag: launched.tag };
        self.address.ask(wait).await.expect("it is answered").expect("it was there")
    }

    pub(crate) async fn count(&self) -> usize {
        self.address.ask(ListProcesses).await.expect("it is answered").len()
    }

    /// The next news that satisfies this condition.
    pub(crate) async fn news(&self, is_meant: impl Fn(&ProcessesNews) -> bool) -> ProcessesNews {
        let mut feed = self.feed.lock().await;
        loop {
            let item = feed.next().await.expect("it runs");
            if let FeedItem::Change { news, .. } = item
                && is_meant(&news)
            {
                return news;
            }
        }
    }

    pub(crate) async fn end(self, mode: StopMode) {
        self.running.request_stop(mode);
        assert_eq!(self.running.ended().await, Ending::Normal);
    }

    /// Ends the owner as a crash of the whole actor would.
    pub(crate) async fn kill(self) {
        self.running.kill();
        self.running.ended().await;
    }
}

pub(crate) fn name(text: &str) -> ProcessName {
    ProcessName::new(text).expect("a good name")
}

/// A surviving shell that runs this, and is ready at once.
pub(crate) fn shell(script: &str) -> ProcessSpec {
    let mut spec = ProcessSpec::new(Executable::at("/bin/sh"));
    spec.arguments = vec!["-c".to_owned(), script.to_owned()];
    spec.lifetime = Lifetime::Surviving;
    spec.reach = Reach::Group;
    spec.stop_grace = Duration::from_millis(500);
    spec
}

/// A surviving shell that runs this, and is ready when it has printed its handshake.
pub(crate) fn plugin(script: &str) -> ProcessSpec {
    ProcessSpec {
        handshake: Some(HandshakeTerms::nomad(None)),
        start_timeout: Duration::from_secs(20),
        ..shell(script)
    }
}

/// Kills a process. A process that has ended gets no signal.
pub(crate) fn kill(pid: u32) {
    let pid = Pid::from_raw(pid.cast_signed()).expect("a process id");
    let _ = kill_process(pid, Signal::KILL);
}

/// Whether a process with this id exists and is not a zombie.
pub(crate) fn lives(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    !stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z'))
}

pub(crate) async fn is_gone(pid: u32) {
    while lives(pid) {
        sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until a file has a line, and returns it.
pub(crate) async fn line_of(path: &Path) -> String {
    loop {
        match std::fs::read_to_string(path) {
            Ok(text) if text.ends_with('\n') => return text.trim().to_owned(),
            Ok(_) | Err(_) => sleep(Duration::from_millis(5)).await,
        }
    }
}

pub(crate) async fn pid_in(path: &Path) -> u32 {
    line_of(path).await.parse().expect("a process id")
}

/// Waits until this many processes carry this tag: a process in the middle of an exec has no environment for an instant.
pub(crate) async fn all_tagged(tag: ProcessTag, count: usize) {
    let found = loop {
        match tagged(tag).len() {
            found if found < count => sleep(Duration::from_millis(5)).await,
            found => break found,
        }
    };
    assert_eq!(found, count);
}

/// Every living process that carries this tag.
pub(crate) fn tagged(tag: ProcessTag) -> Vec<u32> {
    let wanted = format!("CALLBOARD_PROCESS_TAG={tag}");
    let numbers = std::fs::read_dir("/proc")
        .expect("/proc")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let carries = |pid: &u32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes())
    };
    numbers.filter(carries).collect()
}
