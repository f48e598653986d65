//! Runs plugins in their own processes, as the tasks of allocations.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Instant;

use callboard::actors::allocations::{
    AllocationSpec, AllocationStopped, PrepareAllocation, PrepareError, StopAllocation, TaskContext,
    TaskExited, TaskStarted,
};
use callboard::actors::vocabulary::{PluginName, Role, TaskName};
use callboard::host::Host;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::{LONG, PAUSE, Stage, id};

/// An allocation whose task is the reference plugin. Its process is killed when this is dropped.
pub(crate) struct Task {
    pub(crate) spec: AllocationSpec,
    pub(crate) arguments: Vec<String>,
    log: PathBuf,
    /// Whether a shell script starts the plugin, and stays when the plugin has ended.
    is_wrapped: bool,
    process: Option<Child>,
}

/// Starts the plugin, which is its arguments, and continues when the plugin has ended.
const WRAPPER: &str = "\"$@\"; exec sleep 1000";

impl Task {
    pub(crate) fn new(stage: &Stage, allocation: &str, plugin: &str, role: Role) -> Self {
        let task = TaskName::new("plugin").unwrap();
        let spec = AllocationSpec::new(id(allocation), task, PluginName::new(plugin).unwrap(), role);
        let log = stage.path(&format!("{allocation}.log"));
        Self {
            spec,
            arguments: vec![format!("--role={}", role.as_str())],
            log,
            is_wrapped: false,
            process: None,
        }
    }

    /// Puts it behind a wrapper script; the host knows the process of the wrapper.
    pub(crate) fn behind_a_wrapper(mut self) -> Self {
        self.is_wrapped = true;
        self
    }

    /// Adds arguments for the next start of its plugin.
    pub(crate) fn with(mut self, arguments: &[&str]) -> Self {
        self.arguments.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        self
    }

    pub(crate) async fn prepare(&self, host: &Host) -> Result<TaskContext, PrepareError> {
        host.allocations().ask(PrepareAllocation { spec: self.spec.clone() }).await.unwrap()
    }

    /// Prepares it, starts its process, and reports the start.
    pub(crate) async fn start(&mut self, host: &Host) {
        let context = self.prepare(host).await.unwrap();
        self.spawn(&context);
        self.say_started(host).await;
    }

    pub(crate) fn spawn(&mut self, context: &TaskContext) {
        assert!(self.process.is_none(), "it runs already");
        let log = File::options().create(true).append(true).open(&self.log).unwrap();
        let program = env!("CARGO_BIN_EXE_callboard");
        let mut command = if self.is_wrapped { Command::new("/bin/sh") } else { Command::new(program) };
        if self.is_wrapped {
            // Its own group, so that everything it has started can be killed.
            command.args(["-c", WRAPPER, "wrapper", program]).process_group(0);
        }
        let process = command
            .args(["plugin", "hostpath"])
            .args(&self.arguments)
            .envs(&context.environment)
            .env("RUST_LOG", "callboard=debug")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        self.process = Some(process);
    }

    pub(crate) async fn say_started(&self, host: &Host) {
        let allocation = self.spec.allocation.clone();
        host.allocations().ask(TaskStarted { allocation }).await.unwrap().unwrap();
    }

    pub(crate) async fn say_exited(&self, host: &Host, how: &str) {
        let exited = TaskExited { allocation: self.spec.allocation.clone(), how: how.to_owned() };
        host.allocations().ask(exited).await.unwrap().unwrap();
    }

    /// Kills its process, reaps it, and reports its exit.
    pub(crate) async fn kill(&mut self, host: &Host) {
        self.signal(Signal::KILL);
        self.end().await;
        self.say_exited(host, "signal 9").await;
    }

    /// Stops it in order: first the allocation, then the process.
    pub(crate) async fn stop(&mut self, host: &Host) -> AllocationStopped {
        let stop = StopAllocation { allocation: self.spec.allocation.clone(), even_if_used: false };
        let stopped = host.allocations().ask(stop).await.unwrap().unwrap();
        if self.process.is_some() {
            self.signal(Signal::TERM);
            self.end().await;
        }
        stopped
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(self.process.as_ref().unwrap()), signal).unwrap();
    }

    /// Sends a signal to the plugin but not to its wrapper, which stays.
    pub(crate) fn signal_behind_the_wrapper(&self, signal: Signal) {
        let wrapper = self.process.as_ref().unwrap().id();
        let children = fs::read_to_string(format!("/proc/{wrapper}/task/{wrapper}/children")).unwrap();
        let plugin = children.trim().parse().unwrap_or_else(|error| panic!("{error}: {children:?}"));
        kill_process(Pid::from_raw(plugin).unwrap(), signal).unwrap();
    }

    /// Waits until its process has ended.
    pub(crate) async fn end(&mut self) -> ExitStatus {
        let mut process = self.process.take().unwrap();
        let began = Instant::now();
        loop {
            if let Some(status) = process.try_wait().unwrap() {
                return status;
            }
            if began.elapsed() > LONG {
                process.kill().unwrap();
                panic!("it does not end: {}", self.said());
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Its whole output.
    pub(crate) fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// The calls that it has received, in order, over all its lives.
    pub(crate) fn received(&self) -> Vec<String> {
        let said = self.said();
        let called = said.lines().filter(|line| line.contains("called"));
        called.filter_map(|line| Some(line.split_once("rpc=")?.1.trim().to_owned())).collect()
    }

    /// The number of calls of this RPC, over all its lives.
    pub(crate) fn calls(&self, rpc: &str) -> usize {
        self.received().iter().filter(|call| *call == rpc).count()
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            if self.is_wrapped {
                let _ = kill_process_group(Pid::from_child(process), Signal::KILL);
            }
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// The number of child processes of this process, including zombies.
pub(crate) fn children_of_this() -> usize {
    let mut count = 0;
    for thread in fs::read_dir("/proc/self/task").unwrap() {
        let children = fs::read_to_string(thread.unwrap().path().join("children")).unwrap_or_default();
        count += children.split_whitespace().count();
    }
    count
}
