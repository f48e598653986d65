//! Runs task drivers under real hosts, as real processes.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use callboard::actors::driver::{DriverHealth, DriverReport, DriverSpec};
use callboard::actors::drivers::{
    AddDriver, Added, DriversNews, DriversOptions, DriversView, RemoveDriver, Removed,
};
use callboard::actors::goplugin::HandshakeTerms;
use callboard::actors::process::{Executable, Lifetime, ProcessSpec};
use callboard::actors::vocabulary::{Backoff, DriverName};
use callboard::host::{Host, HostBuilder};
use rustix::process::{Pid, Signal, kill_process};

use super::{Stage, Watch};

/// The program whose subcommand is the reference driver.
pub(crate) const CALLBOARD: &str = env!("CARGO_BIN_EXE_callboard");

pub(crate) type DriversWatch = Watch<DriversNews, DriversView>;

/// A stage for drivers. All processes that were started on it are killed with it, also those of a test that failed.
pub(crate) struct DriverStage {
    stage: Stage,
}

impl DriverStage {
    pub(crate) fn new() -> Self {
        let stage = Stage::new();
        std::fs::create_dir(stage.path("sockets")).unwrap();
        Self { stage }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.stage.path(name)
    }

    /// A host that retries soon, and has short deadlines for answers.
    pub(crate) fn builder(&self) -> HostBuilder {
        self.builder_with(|_| {})
    }

    /// The same, with other options of its drivers.
    pub(crate) fn builder_with(&self, change: impl FnOnce(&mut DriversOptions)) -> HostBuilder {
        let mut options = DriversOptions::default();
        options.limits.backoff = Backoff {
            first: Duration::from_millis(100),
            longest: Duration::from_millis(200),
            ..options.limits.backoff
        };
        options.limits.step_deadline = Duration::from_secs(3);
        options.eventor.backoff = Backoff { first: Duration::from_millis(100), ..options.eventor.backoff };
        change(&mut options);
        self.stage.builder().drivers(options)
    }

    pub(crate) async fn host(&self) -> Host {
        self.builder().start().await.unwrap()
    }

    /// The handshake terms under which every driver of this stage is started.
    pub(crate) fn terms(&self) -> HandshakeTerms {
        HandshakeTerms::nomad(Some(self.path("sockets")))
    }

    /// A driver that runs this program with these arguments.
    pub(crate) fn driver(&self, name: &str, program: impl Into<PathBuf>, arguments: &[&str]) -> DriverSpec {
        let mut process = ProcessSpec::new(Executable::at(program));
        process.arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        process.environment = [
            ("CALLBOARD".to_owned(), CALLBOARD.to_owned()),
            ("STAGE".to_owned(), self.path("").display().to_string()),
            ("RUST_LOG".to_owned(), "warn".to_owned()),
        ]
        .into();
        process.lifetime = Lifetime::Surviving;
        process.handshake = Some(self.terms());
        process.stop_grace = Duration::from_secs(2);
        let mut spec = DriverSpec::new(driver_name(name), process);
        // The reference driver reports a name of its own, and tests name drivers differently.
        spec.said_name = None;
        spec.api_version = "v0.1.0".to_owned();
        spec.polite_deadline = Duration::from_secs(1);
        spec.stop_grace = Duration::from_secs(2);
        spec
    }

    /// The reference driver.
    pub(crate) fn exec(&self, name: &str, arguments: &[&str]) -> DriverSpec {
        let named = ["plugin", "exec", "--name", name, "--allow-builtin-name"];
        self.driver(name, CALLBOARD, &[&named, arguments].concat())
    }

    /// A driver that is a shell script, with the reference driver as `$CALLBOARD` and this stage's directory as `$STAGE`.
    pub(crate) fn shell(&self, name: &str, script: &str) -> DriverSpec {
        self.driver(name, "/bin/sh", &["-c", script])
    }

    /// Every living process that was started on this stage.
    pub(crate) fn living(&self) -> Vec<Pid> {
        let mark = format!("STAGE={}", self.path("").display()).into_bytes();
        let processes = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
            let pid = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
            environment.split(|byte| *byte == 0).any(|entry| entry == mark).then(|| Pid::from_raw(pid))?
        });
        processes.collect()
    }
}

impl Drop for DriverStage {
    fn drop(&mut self) {
        for pid in self.living() {
            // A process that has ended meanwhile receives no signal.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

pub(crate) fn driver_name(name: &str) -> DriverName {
    DriverName::new(name).unwrap()
}

pub(crate) async fn add(host: &Host, spec: &DriverSpec) {
    let added = host.drivers().ask(AddDriver { spec: spec.clone() }).await.unwrap();
    assert_eq!(added, Ok(Added::New));
}

pub(crate) async fn remove(host: &Host, name: &str) -> Removed {
    host.drivers().ask(RemoveDriver { name: driver_name(name) }).await.unwrap().unwrap()
}

/// Waits until a driver is reported with this health, and returns that report.
pub(crate) async fn until_driver(watch: &mut DriversWatch, name: &str, health: DriverHealth) -> DriverReport {
    watch
        .until(&format!("driver {name} is {health}"), |news| match news {
            DriversNews::Reported(report) | DriversNews::Left(report) => {
                (report.name == driver_name(name) && report.health == health).then(|| report.clone())
            }
            DriversNews::DeadLetters { .. } | DriversNews::EventsInterrupted { .. } => None,
        })
        .await
}

/// Waits until a driver is reported not to serve for a reason with all of these words in it.
pub(crate) async fn until_reason(watch: &mut DriversWatch, name: &str, words: &[&str]) -> DriverReport {
    watch
        .until(&format!("driver {name} is unhealthy for {words:?}"), |news| match news {
            DriversNews::Reported(report) => {
                let is_told = words.iter().all(|word| report.reason.contains(word));
                let is_it = report.name == driver_name(name) && report.health == DriverHealth::Unhealthy;
                (is_it && is_told).then(|| report.clone())
            }
            DriversNews::Left(_)
            | DriversNews::DeadLetters { .. }
            | DriversNews::EventsInterrupted { .. } => None,
        })
        .await
}

/// Creates an executable file of this text through another process: no child that is spawned meanwhile holds it open for writing.
pub(crate) fn write_program(path: &Path, text: &str) {
    let order = "printf %s \"$2\" > \"$1\" && chmod 755 \"$1\"";
    let done = Command::new("/bin/sh").args(["-c", order, "sh"]).arg(path).arg(text).status().unwrap();
    assert!(done.success());
}
