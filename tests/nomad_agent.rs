//! Tests our driver in a whole Nomad agent, as an operator installs it (TH092, TH093).
//!
//! The agent is the program that `CALLBOARD_NOMAD` names, or `nomad` of the search path. If there is none, or if this is not run by
//! root, as Nomad's clients are, the test reports on standard error what it skipped.

mod program;

use std::fs::{self, File, OpenOptions};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use program::left::{kill_if_there, processes_of};
use program::{CALLBOARD, Stage};
use rustix::process::{Pid, Signal, geteuid, kill_process};
use serde_json::Value;

/// More time than any step of these tests takes on the slowest machine.
const LONG: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(200);

/// The victims of a round, in order.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Victim {
    /// The driver, by SIGKILL.
    Driver,
    /// The agent, by SIGKILL.
    Agent,
    /// The agent, by the signal on which it stops in order.
    AgentInOrder,
}

#[test]
fn a_task_in_a_nomad_agent_outlives_kills_of_agent_and_driver_in_one_copy_th092() {
    let Some(mut node) = Node::new() else { return };
    let directory = node.path("").display().to_string();
    node.run(
        "web",
        &format!(
            "echo $$ >> {directory}/web.pids; trap 'echo usr1' USR1; i=0; \
             while [ ! -e {directory}/web.end ]; do i=$((i+1)); echo line $i; sleep 0.2; done; exit 7"
        ),
    );
    let own = node.copies("web");
    assert_eq!(own.len(), 1);

    use Victim::{Agent, AgentInOrder, Driver};
    for order in [&[Driver][..], &[Agent], &[Agent, Driver], &[Driver, Agent], &[AgentInOrder]] {
        order.iter().for_each(|victim| node.take_away(*victim));
        node.begin_again();
        node.until(&format!("its driver serves the task after {order:?}"), || {
            node.beside("web", "exit 3") == Some(3)
        });
        assert_eq!(node.copies("web"), own, "the same copy after {order:?}: {}", node.log());
    }

    let signalled = node.nomad(&["alloc", "signal", "-s", "USR1", &node.allocation("web")]);
    assert!(signalled.status.success(), "{signalled:?}");
    node.until("the signal is heard", || node.output("web").contains("usr1\n"));
    let said = node.output("web");
    let lines: Vec<&str> = said.lines().filter(|line| line.starts_with("line ")).collect();
    let all: Vec<String> = (1..=lines.len()).map(|number| format!("line {number}")).collect();
    assert_eq!(lines, all, "each line once and in order");

    // The task ends while neither of them runs.
    node.take_away(Agent);
    node.take_away(Driver);
    fs::write(node.path("web.end"), "").expect("it can be written");
    node.until("the task ends", || own.iter().all(|pid| !lives(*pid)));
    node.begin_again();
    node.until("its exit code is told", || node.exit_codes("web") == [7]);
    assert_eq!(node.copies("web"), own, "it was started once");
}

#[test]
fn a_task_in_a_nomad_agent_is_stopped_and_leaves_nothing_th093() {
    let Some(node) = Node::new() else { return };
    let directory = node.path("").display().to_string();
    node.run("web", &format!("echo $$ >> {directory}/web.pids; while :; do sleep 0.2; done"));
    let own = node.copies("web");
    let stopped = node.nomad(&["job", "stop", "-purge", "web"]);
    assert!(stopped.status.success(), "{stopped:?}");
    node.until("the task is gone", || own.iter().all(|pid| !lives(*pid)));
    node.until("what the driver kept is gone", || {
        let found = Command::new("find").arg(node.path("data")).args(["-path", "*/.callboard/*"]).output();
        found.expect("there is find").stdout.is_empty()
    });
}

/// A machine with a Nomad agent that is both server and client.
struct Node {
    program: PathBuf,
    stage: Stage,
    http: u16,
    agent: Option<Child>,
}

impl Node {
    /// Runs an agent with our driver, or reports why not.
    fn new() -> Option<Self> {
        let what = "our driver in a whole Nomad agent";
        if !geteuid().is_root() {
            eprintln!("SKIPPED: {what} is not shown, since its client has to be run by root");
            return None;
        }
        let Some(program) = nomad() else {
            eprintln!(
                "SKIPPED: {what} is not shown, since there is no `nomad`, and CALLBOARD_NOMAD names none"
            );
            return None;
        };
        let stage = Stage::new("");
        let directory = stage.directory.path();
        let plugins = directory.join("plugins");
        fs::create_dir(&plugins).expect("room");
        fs::copy(CALLBOARD, plugins.join("callboard")).expect("room");
        fs::set_permissions(plugins.join("callboard"), fs::Permissions::from_mode(0o755))
            .expect("it is ours");
        let [http, rpc, serf] = free_ports();
        let path = |name: &str| directory.join(name).display().to_string();
        let configuration = format!(
            "data_dir = {:?}\nplugin_dir = {:?}\nbind_addr = \"127.0.0.1\"\ndisable_update_check = true\n\
             ports {{\n  http = {http}\n  rpc = {rpc}\n  serf = {serf}\n}}\n\
             advertise {{\n  http = \"127.0.0.1:{http}\"\n  rpc = \"127.0.0.1:{rpc}\"\n  \
             serf = \"127.0.0.1:{serf}\"\n}}\n\
             server {{\n  enabled = true\n  bootstrap_expect = 1\n}}\n\
             client {{\n  enabled = true\n  servers = [\"127.0.0.1:{rpc}\"]\n  cpu_total_compute = 4000\n  \
             options = {{\n    \"fingerprint.denylist\" = \"env_aws,env_gce,env_azure,env_digitalocean\"\n  }}\n}}\n\
             plugin \"callboard\" {{\n  args = [\"plugin\", \"exec\"]\n}}\n",
            path("data"),
            path("plugins"),
        );
        fs::write(directory.join("agent.hcl"), configuration).expect("room");
        let mut node = Self { program, stage, http, agent: None };
        node.begin_again();
        Some(node)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.stage.directory.path().join(name)
    }

    /// Starts the agent if it does not run, and waits until it and the driver are ready.
    fn begin_again(&mut self) {
        if self.agent.is_none() {
            let log = OpenOptions::new().create(true).append(true).open(self.path("log")).expect("room");
            let errors = log.try_clone().expect("a descriptor");
            let mut agent = Command::new(&self.program);
            agent.args(["agent", "-config"]).arg(self.path("agent.hcl"));
            let agent = agent.stdin(Stdio::null()).stdout(log).stderr(errors).spawn().expect("it starts");
            self.agent = Some(agent);
        }
        self.until("a ready client with a healthy driver", || {
            let node = self.json(&["node", "status", "-self", "-json"]);
            node["Status"] == "ready" && node["Drivers"]["callboard_exec"]["Healthy"] == true
        });
    }

    /// Runs a job with one task, which is this script and records its process.
    fn run(&self, name: &str, script: &str) {
        let job = format!(
            "job {name:?} {{\n  type = \"batch\"\n  group \"all\" {{\n\
             restart {{\n  attempts = 0\n  mode = \"fail\"\n}}\nreschedule {{\n  attempts = 0\n  unlimited = false\n}}\n\
             task {name:?} {{\n  driver = \"callboard_exec\"\n  kill_timeout = \"5s\"\n\
             config {{\n  command = \"/bin/sh\"\n  args = [\"-c\", {script:?}]\n}}\n\
             resources {{\n  cpu = 50\n  memory = 32\n}}\n}}\n}}\n}}\n"
        );
        let file = self.path("job.hcl");
        fs::write(&file, job).expect("room");
        let file = file.display().to_string();
        let asked = self.nomad(&["job", "run", "-detach", &file]);
        assert!(asked.status.success(), "{asked:?}");
        self.until("the task runs", || !self.copies(name).is_empty());
    }

    /// The processes of a task, one for each start.
    fn copies(&self, name: &str) -> Vec<u64> {
        let text = fs::read_to_string(self.path(&format!("{name}.pids"))).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }

    fn take_away(&mut self, victim: Victim) {
        match victim {
            Victim::Driver => {
                let program = self.path("plugins/callboard").display().to_string();
                let drivers = processes_of(&program);
                drivers.iter().copied().for_each(kill_if_there);
                self.until("the driver is gone", || drivers.iter().all(|driver| !lives(*driver)));
            }
            Victim::Agent | Victim::AgentInOrder => {
                let mut agent = self.agent.take().expect("it runs");
                let signal = if victim == Victim::Agent { Signal::KILL } else { Signal::INT };
                kill_process(Pid::from_child(&agent), signal).expect("it runs");
                agent.wait().expect("it ends");
            }
        }
    }

    fn nomad(&self, words: &[&str]) -> Output {
        let mut command = Command::new(&self.program);
        command.args(words).env("NOMAD_ADDR", format!("http://127.0.0.1:{}", self.http));
        command.stdin(Stdio::null()).output().expect("it runs")
    }

    /// The agent's answer in JSON; null if it does not answer yet.
    fn json(&self, words: &[&str]) -> Value {
        serde_json::from_slice(&self.nomad(words).stdout).unwrap_or_default()
    }

    fn allocation(&self, job: &str) -> String {
        let allocations = self.json(&["job", "allocs", "-json", job]);
        allocations[0]["ID"].as_str().expect("there is one").to_owned()
    }

    /// The exit code of a command beside a task; `None` if it cannot be run.
    fn beside(&self, job: &str, script: &str) -> Option<i32> {
        let allocation = self.allocation(job);
        let words = ["alloc", "exec", "-i=false", "-t=false", &allocation, "/bin/sh", "-c", script];
        self.nomad(&words).status.code().filter(|code| *code != 1)
    }

    fn output(&self, job: &str) -> String {
        String::from_utf8_lossy(&self.nomad(&["alloc", "logs", &self.allocation(job)]).stdout).into_owned()
    }

    /// The exit codes of a task that the agent reported.
    fn exit_codes(&self, job: &str) -> Vec<i64> {
        let allocation = self.json(&["alloc", "status", "-json", &self.allocation(job)]);
        let events = allocation["TaskStates"][job]["Events"].as_array().cloned().unwrap_or_default();
        let ended = events.iter().filter(|event| event["Type"] == "Terminated");
        ended.filter_map(|event| event["ExitCode"].as_i64()).collect()
    }

    fn until(&self, what: &str, holds: impl Fn() -> bool) {
        let began = Instant::now();
        while !holds() {
            assert!(began.elapsed() < LONG, "{what}: {}", self.log());
            std::thread::sleep(PAUSE);
        }
    }

    /// The last lines of the agent's log, the newest first.
    fn log(&self) -> String {
        let text = fs::read_to_string(self.path("log")).unwrap_or_default();
        text.lines().rev().take(40).collect::<Vec<_>>().join("\n")
    }
}

impl Drop for Node {
    /// Kills the agent; the supervisors of tasks and pipes outlive it, and its stage kills them.
    fn drop(&mut self) {
        if let Some(mut agent) = self.agent.take() {
            // A process that has ended already receives no signal.
            let _ = agent.kill();
            let _ = agent.wait();
        }
    }
}

/// Ports that had no listener at this moment.
fn free_ports() -> [u16; 3] {
    let held = [(); 3].map(|()| TcpListener::bind(("127.0.0.1", 0)).expect("a free port"));
    held.map(|port| port.local_addr().expect("it has an address").port())
}

/// The agent's program.
fn nomad() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("CALLBOARD_NOMAD") {
        return Some(PathBuf::from(named));
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|place| place.join("nomad")).find(|file| File::open(file).is_ok())
}

/// Whether this process lives: a zombie does not.
fn lives(pid: u64) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    !stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z'))
}
