//! Runs a real `callboard run` for tests: writes its configuration, uses its admin socket, and kills it when it is dropped.

#![allow(dead_code, reason = "each test binary uses its own part of this")]

pub(crate) mod driven;
pub(crate) mod left;
mod mounts;
pub(crate) mod namespace;

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// The program under test.
pub(crate) const CALLBOARD: &str = env!("CARGO_BIN_EXE_callboard");
/// Far more than any step of these tests takes, also on a busy machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(120);

/// One allocation of a configuration.
pub(crate) fn allocation(name: &str, plugin: &str, role: &str, arguments: &[&str], more: &str) -> String {
    let arguments: Vec<_> = ["plugin", "hostpath", "--endpoint", "${CSI_ENDPOINT}", "--role", role]
        .iter()
        .chain(arguments)
        .map(|argument| format!("{argument:?}"))
        .collect();
    format!(
        "[[allocation]]\nname = {name:?}\nplugin = {plugin:?}\ntype = {role:?}\ncommand = {CALLBOARD:?}\nargs = [{}]\n{more}\n",
        arguments.join(", ")
    )
}

/// A directory with a configuration in it.
pub(crate) struct Stage {
    /// Removed with everything in it when the stage is dropped.
    pub(crate) directory: TempDir,
}

impl Stage {
    pub(crate) fn new(configuration: &str) -> Self {
        let stage = Self { directory: tempfile::tempdir().expect("a temporary directory") };
        stage.configure(configuration);
        stage
    }

    /// Writes the configuration, with the data directory as its first line.
    pub(crate) fn configure(&self, configuration: &str) {
        let text = format!("data_dir = {:?}\n{configuration}", self.data_dir());
        std::fs::write(self.config(), text).expect("it can be written");
    }

    pub(crate) fn data_dir(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.directory.path().join("host.toml")
    }

    /// Starts a host and waits until it answers.
    pub(crate) fn run(&self) -> Program<'_> {
        self.run_as(&[], &[])
    }

    /// The same with more arguments, and with more in its environment.
    pub(crate) fn run_as(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Program<'_> {
        self.until_it_answers(self.begin_through(&[CALLBOARD], arguments, environment))
    }

    /// Starts a host through a command that executes it, and waits until it answers.
    pub(crate) fn run_through(&self, command: &[&str]) -> Program<'_> {
        self.until_it_answers(self.begin_through(&[command, &[CALLBOARD]].concat(), &[], &[]))
    }

    fn until_it_answers<'s>(&'s self, program: Program<'s>) -> Program<'s> {
        let began = Instant::now();
        while !program.ask(&["status"]).status.success() {
            assert!(began.elapsed() < TIMEOUT, "the host does not answer: {}", program.log());
            std::thread::sleep(Duration::from_millis(10));
        }
        program
    }

    /// Starts a host.
    pub(crate) fn begin(&self) -> Program<'_> {
        self.begin_as(&[])
    }

    /// The same with more in its environment.
    pub(crate) fn begin_as(&self, environment: &[(&str, &str)]) -> Program<'_> {
        self.begin_through(&[CALLBOARD], &[], environment)
    }

    fn begin_through(
        &self,
        command: &[&str],
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> Program<'_> {
        let file = |name: &str| std::fs::File::create(self.directory.path().join(name)).expect("a file");
        let child = Command::new(command[0])
            .args(&command[1..])
            .args(["run", "--config"])
            .arg(self.config())
            .args(arguments)
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(file("stdout"))
            .stderr(file("stderr"))
            .spawn()
            .expect("it starts");
        Program { stage: self, child }
    }
}

impl Drop for Stage {
    /// Kills the processes that outlive a killed host, and unmounts everything on the stage: removing its directory would go through a
    /// bind mount of another directory and empty that.
    fn drop(&mut self) {
        left::kill_below(self.directory.path());
        if !mounts::detach_below(self.directory.path()) {
            eprintln!("{} stays, since something is mounted there", self.directory.path().display());
            self.directory.disable_cleanup(true);
        }
    }
}

/// A running host program.
pub(crate) struct Program<'s> {
    stage: &'s Stage,
    child: Child,
}

impl Drop for Program<'_> {
    fn drop(&mut self) {
        // A process that has ended already receives no signal.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Program<'_> {
    /// Sends it a command, by its data directory.
    pub(crate) fn ask(&self, words: &[&str]) -> Output {
        let mut command = Command::new(CALLBOARD);
        command.args(words).arg("--data-dir").arg(self.stage.data_dir());
        command.stdin(Stdio::null()).output().expect("it runs")
    }

    /// Sends it a command, and parses the JSON of the answer.
    pub(crate) fn json(&self, words: &[&str]) -> Value {
        let output = self.ask(&[words, &["--json"]].concat());
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("it is JSON")
    }

    /// Sends it a command that it must refuse; returns the exit code and the one line of the error.
    pub(crate) fn refusal(&self, words: &[&str]) -> (i32, String) {
        refusal(&self.ask(words))
    }

    /// Waits until its status is as wished.
    pub(crate) fn until(&self, what: &str, is_wished: impl Fn(&Value) -> bool) -> Value {
        self.until_within(TIMEOUT, what, is_wished)
    }

    /// Waits within this time until its status is as wished.
    pub(crate) fn until_within(
        &self,
        within: Duration,
        what: &str,
        is_wished: impl Fn(&Value) -> bool,
    ) -> Value {
        let began = Instant::now();
        loop {
            let status = self.json(&["status"]);
            if is_wished(&status) {
                return status;
            }
            assert!(began.elapsed() < within, "{what} does not come: {status:#}\n{}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until this allocation is the active one of a plugin, and healthy.
    pub(crate) fn until_active(&self, plugin_type: &str, name: &str, allocation: &str) -> Value {
        let what = format!("{allocation} as the active one of {plugin_type}/{name}");
        let status = self.until(&what, |status| {
            let plugin = plugin(status, plugin_type, name);
            plugin["active"] == allocation && plugin["health"] == "healthy"
        });
        plugin(&status, plugin_type, name).clone()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).expect("it is our child and not reaped");
    }

    pub(crate) fn kill(mut self) {
        self.signal(Signal::KILL);
        let status = self.child.wait().expect("it is our child");
        assert_eq!(status.signal(), Some(9), "it has ended before: {}", self.log());
    }

    /// Waits for its end; returns its exit status and its output.
    pub(crate) fn ended(mut self) -> (ExitStatus, String) {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("it is our child") {
                let printed = std::fs::read_to_string(self.stage.directory.path().join("stdout"));
                return (status, printed.expect("it is there"));
            }
            assert!(began.elapsed() < TIMEOUT, "the host does not end: {}", self.log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Its standard error.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.stage.directory.path().join("stderr")).expect("it is there")
    }
}

/// The exit code and the one line of the error.
pub(crate) fn refusal(output: &Output) -> (i32, String) {
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    assert_eq!(said.lines().count(), 1, "one clear sentence: {said}");
    (output.status.code().expect("it ends by itself"), said)
}

/// One plugin of a status, or null.
pub(crate) fn plugin<'v>(status: &'v Value, plugin_type: &str, name: &str) -> &'v Value {
    let plugins = status["plugins"].as_array().expect("a list");
    plugins.iter().find(|p| p["type"] == plugin_type && p["name"] == name).unwrap_or(&Value::Null)
}

/// One allocation of a status, or null.
pub(crate) fn task<'v>(status: &'v Value, name: &str) -> &'v Value {
    let allocations = status["allocations"].as_array().expect("a list");
    allocations.iter().find(|a| a["name"] == name).unwrap_or(&Value::Null)
}

/// The process of an allocation.
pub(crate) fn pid_of(status: &Value, name: &str) -> u64 {
    task(status, name)["pid"].as_u64().expect("it runs")
}

/// Whether there is such a process, even a zombie.
pub(crate) fn exists(pid: u64) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}

/// Whether this process lives: a zombie of another parent does not.
pub(crate) fn lives(pid: u64) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    !stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z'))
}

/// Waits until something holds.
pub(crate) fn until_true(what: &str, within: Duration, holds: impl Fn() -> bool) {
    until_true_or(String::new, what, within, holds);
}

/// Waits until something holds; if it never does, fails with this text.
pub(crate) fn until_true_or(
    shown: impl Fn() -> String,
    what: &str,
    within: Duration,
    holds: impl Fn() -> bool,
) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < within, "{what} within {within:?}: {}", shown());
        std::thread::sleep(Duration::from_millis(5));
    }
}
