//! Runs `callboard run` with third-party drivers, and a task whose living copies can be counted.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::program::driven::{driver_pid_of, find};
use crate::program::left::{kill_if_there, names, processes};
use crate::program::{Program, Stage, TIMEOUT};

/// More time than any step of these tests takes on a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(90);

/// A third-party driver, as the configuration names it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    /// The name that the driver reports.
    pub(crate) driver: &'static str,
    /// Its configuration, as an inline table.
    pub(crate) config: &'static str,
    /// Whether a task runs in a chroot: it then writes at a path inside it, and the test reads the file below the task's tree.
    pub(crate) is_chroot: bool,
}

pub(crate) const RAW_EXEC: Kind = Kind { driver: "raw_exec", config: "{ enabled = true }", is_chroot: false };
pub(crate) const EXEC: Kind = Kind { driver: "exec", config: "{}", is_chroot: true };
pub(crate) const JAVA: Kind = Kind { driver: "java", config: "{}", is_chroot: true };
pub(crate) const MOCK: Kind = Kind { driver: "mock_driver", config: "{}", is_chroot: false };
pub(crate) const DOCKER: Kind = Kind { driver: "docker", config: "{}", is_chroot: false };
pub(crate) const FORGETFUL: Kind = Kind { driver: "forgetful", config: "{}", is_chroot: false };

/// Drivers from one plugin directory, and a task `web` that sleeps.
pub(crate) struct Rig {
    stage: Stage,
    plugins: PathBuf,
    /// The argument of `sleep`; no other process of this machine has it.
    token: String,
}

impl Rig {
    pub(crate) fn new(plugins: &Path) -> Self {
        let token = format!("100000.{:09}", fastrand::u32(0..1_000_000_000));
        Self { stage: Stage::new(""), plugins: plugins.to_owned(), token }
    }

    /// Writes a configuration with this driver and these tasks.
    pub(crate) fn configure(&self, kind: Kind, tasks: &str) {
        let Kind { driver, config, .. } = kind;
        self.stage.configure(&format!(
            "plugin_dir = {:?}\n\n[restart]\nattempts = 1000\ndelay = \"10ms\"\n\n\
             [[driver]]\nname = {driver:?}\nplugin = \"drivers\"\nargs = [{driver:?}]\nconfig = {config}\n\n{tasks}",
            self.plugins
        ));
    }

    /// A task that runs a script in `/bin/sh`.
    pub(crate) fn shell(&self, kind: Kind, name: &str, script: &str, more: &str) -> String {
        format!(
            "[[task]]\nname = {name:?}\ndriver = {:?}\nconfig = {{ command = \"/bin/sh\", args = [\"-c\", {script:?}] }}\n{more}\n\n",
            kind.driver
        )
    }

    /// The task `web`: it records each of its starts, and detects a second copy: it holds a lock of the kernel while it sleeps, and a
    /// copy that does not get the lock records itself.
    pub(crate) fn web(&self, kind: Kind) -> String {
        self.shell(kind, "web", &self.alone(kind), "")
    }

    /// The script of [`Rig::web`].
    pub(crate) fn alone(&self, kind: Kind) -> String {
        let place = if kind.is_chroot { "$NOMAD_ALLOC_DIR/data".to_owned() } else { self.path("") };
        format!(
            "exec 9>>{place}/lock; flock -n 9 || {{ echo $$ >>{place}/doubled; exit 99; }}; \
             echo $$ >>{place}/starts; echo started; exec sleep {}",
            self.token
        )
    }

    /// A path on the stage.
    pub(crate) fn path(&self, name: &str) -> String {
        self.stage.directory.path().join(name).display().to_string().trim_end_matches('/').to_owned()
    }

    pub(crate) fn stage(&self) -> &Stage {
        &self.stage
    }

    /// The contents of a file that a task wrote: on the stage or, from a chroot, in the directory of its allocation.
    pub(crate) fn written(&self, name: &str) -> String {
        let beside = fs::read_to_string(self.path(name)).unwrap_or_default();
        let allocations = fs::read_dir(self.stage.data_dir().join("alloc")).into_iter().flatten().flatten();
        let below = allocations.map(|allocation| allocation.path().join("alloc/data").join(name));
        below.fold(beside, |text, path| text + &fs::read_to_string(path).unwrap_or_default())
    }

    /// The number of starts of the task.
    pub(crate) fn starts(&self) -> usize {
        self.written("starts").lines().count()
    }

    /// The last argument of the task's own process; no other process of this machine has it.
    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// The processes of the machine that are copies of the task.
    pub(crate) fn copies(&self) -> Vec<u64> {
        processes(|pid| command_line(pid).iter().rfind(|word| !word.is_empty()) == Some(&self.token))
    }

    /// The executors of the tasks of this rig.
    pub(crate) fn executors(&self) -> Vec<u64> {
        let place = self.path("");
        processes(|pid| {
            let words = command_line(pid);
            words.get(1).is_some_and(|word| word == "executor")
                && words.get(2).is_some_and(|word| word.contains(&place))
        })
    }

    /// Waits until the driver is healthy and the task runs in exactly one copy.
    pub(crate) fn until_one_copy(&self, program: &Program<'_>, kind: Kind) -> Value {
        let status = program.until_within(LONG, "the task in one copy", |status| {
            find(status, "drivers", kind.driver)["health"] == "healthy"
                && find(status, "tasks", "web")["state"] == "running"
                && self.copies().len() == 1
        });
        assert_eq!(self.written("doubled"), "", "a second copy began beside the first: {}", program.log());
        status
    }

    /// Waits for a condition outside of the host.
    pub(crate) fn until(&self, program: &Program<'_>, what: &str, is_so: impl Fn() -> bool) {
        let began = Instant::now();
        while !is_so() {
            assert!(began.elapsed() < TIMEOUT, "{what} does not come: {}", program.log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Stops the host, and checks that nothing is left of what it ran.
    pub(crate) fn stop(&self, program: Program<'_>) {
        program.signal(Signal::TERM);
        let (ended, said) = program.ended();
        assert!(ended.success(), "{said}");
        assert_eq!(self.copies(), [0; 0], "no copy is left: {said}");
        self.until_gone("executors", || self.executors().is_empty());
    }

    fn until_gone(&self, what: &str, is_so: impl Fn() -> bool) {
        let began = Instant::now();
        while !is_so() {
            assert!(began.elapsed() < TIMEOUT, "{what} are left");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Every process with this stage's path in its arguments or environment, or with the token.
    fn living(&self) -> Vec<u64> {
        let place = self.path("");
        processes(|pid| names(pid, &place) || names(pid, &self.token))
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        // A later search finds what a killed process has started meanwhile.
        for _ in 0..5 {
            self.living().into_iter().for_each(kill_if_there);
        }
    }
}

/// The driver's process.
pub(crate) fn driver(status: &Value, kind: Kind) -> u64 {
    driver_pid_of(status, kind.driver)
}

fn command_line(pid: u64) -> Vec<String> {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    bytes.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}
