//! Tests our driver under the actions of a Nomad client, on the official Go packages (TH092, TH093): its agents stop in order, are
//! killed and restarted, and return handles without the configuration of the driver.
//!
//! The client is `tests/interop/go/nomadclient`. It is built if `go` is found and the modules are available; otherwise each of these
//! tests reports on standard error what it skipped.

#[path = "support/go.rs"]
mod go;

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, Mode, OFlags, mkfifoat};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use go::NOMAD_CLIENT;

const CALLBOARD: &str = env!("CARGO_BIN_EXE_callboard");
/// More time than any step of these tests takes on the slowest machine.
const LONG: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(5);
/// The task of these tests, as Nomad names it.
const TASK: &str = "1d7e2ab0-3c61-4f0e-9a55-0123456789ab/web/5f2c11aa";
const ALLOCATION: &str = "1d7e2ab0-3c61-4f0e-9a55-0123456789ab";

/// The client; or `None`, after reporting what is skipped.
fn client_or_say(what: &str) -> Option<PathBuf> {
    NOMAD_CLIENT.or_say(what).map(|directory| directory.join("nomadclient"))
}

fn until(what: &str, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < LONG, "{what}");
        std::thread::sleep(PAUSE);
    }
}

/// Whether this process lives: a zombie does not.
fn lives(pid: i32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    !stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z'))
}

fn kill(pid: i32) {
    kill_process(Pid::from_raw(pid).expect("a number"), Signal::KILL).expect("it runs");
    until("a killed process ends", || !lives(pid));
}

/// A node: the files on its disk, and the pipe of the task's output with a reader.
struct Node {
    program: PathBuf,
    directory: TempDir,
    output: File,
}

impl Node {
    fn new(program: PathBuf) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let logs = directory.path().join("alloc").join(ALLOCATION).join("alloc/logs");
        fs::create_dir_all(&logs).expect("room");
        let pipe = logs.join(".web.stdout.fifo");
        mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).expect("room");
        let flags = i32::try_from(OFlags::NONBLOCK.bits()).expect("the flag has a small value");
        let output =
            OpenOptions::new().read(true).write(true).custom_flags(flags).open(&pipe).expect("a FIFO");
        Self { program, directory, output }
    }

    fn path(&self, name: &str) -> String {
        self.directory.path().join(name).display().to_string()
    }

    /// The output of the task since the last call.
    fn written(&self) -> String {
        let mut text = Vec::new();
        // The read ends when the pipe is empty.
        let _ = (&self.output).read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    }

    /// The number of starts of the task.
    fn starts(&self) -> usize {
        fs::read_to_string(self.path("starts")).unwrap_or_default().lines().count()
    }

    /// A script that records its start, counts on its output, and ends on request.
    fn script(&self) -> String {
        format!(
            "echo up >> {0}/starts; trap 'exit 7' USR1; n=0; while ! [ -e {0}/go ]; do n=$((n+1)); echo line $n; sleep 0.05; done; exit 5",
            self.directory.path().display()
        )
    }

    fn agent(&self) -> Agent {
        let log = File::options().append(true).create(true).open(self.path("log")).expect("room");
        let mut child = Command::new(&self.program)
            .args([self.directory.path().as_os_str(), CALLBOARD.as_ref()])
            .args(["plugin", "exec"])
            .env("XDG_RUNTIME_DIR", self.path("runtime"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .expect("it starts");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        let (told, telling) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let value = serde_json::from_str(&line).unwrap_or_else(|_| json!({ "told": line }));
                if told.send(value).is_err() {
                    return;
                }
            }
        });
        let orders = child.stdin.take();
        Agent { child, orders, telling, events: VecDeque::new() }
    }
}

impl Drop for Node {
    /// Kills the task that a test has left: it would outlive the test, as it outlives its driver.
    fn drop(&mut self) {
        let own = self.directory.path().join("alloc").join(ALLOCATION).join("web/.callboard");
        for place in fs::read_dir(own).into_iter().flatten().flatten() {
            let control = OpenOptions::new().read(true).write(true).open(place.path().join("control"));
            let _ = control.map(|mut control| control.write_all(b"kill\n"));
        }
    }
}

/// A running client. It is killed when it is dropped.
struct Agent {
    child: Child,
    orders: Option<ChildStdin>,
    telling: Receiver<Value>,
    events: VecDeque<Value>,
}

impl Drop for Agent {
    fn drop(&mut self) {
        // A process that has ended already receives no signal.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Agent {
    /// The next line with this word; events are queued.
    fn told(&mut self, word: &str) -> Value {
        loop {
            let told =
                self.telling.recv_timeout(LONG).unwrap_or_else(|_| panic!("no {word:?} is told in time"));
            match told["told"].as_str().expect("a word") {
                found if found == word => return told,
                "event" => self.events.push_back(told),
                // Tests that depend on how a process was found check it themselves.
                "not joined" => {}
                _ => panic!("{word:?} was to be told, and not {told}"),
            }
        }
    }

    /// Waits until the client has its driver in this way; returns the driver's process.
    fn driver(&mut self, how: &str) -> i32 {
        i32::try_from(self.told(how)["pid"].as_i64().expect("a number")).expect("a small number")
    }

    fn recovered(&mut self) {
        let told = self.told("recovered");
        assert_eq!((told["id"].as_str(), told.get("error")), (Some(TASK), None), "{told}");
    }

    fn asks(&mut self, mut order: Value) -> Value {
        order["id"] = TASK.into();
        let mut line = order.to_string();
        line.push('\n');
        let orders = self.orders.as_mut().expect("it listens");
        orders.write_all(line.as_bytes()).and_then(|()| orders.flush()).expect("it reads");
        self.told("done")
    }

    fn does(&mut self, order: Value) -> Value {
        let done = self.asks(order);
        assert_eq!(done.get("error"), None, "{done}");
        done
    }

    fn task_pid(&mut self) -> i32 {
        let inspected = self.does(json!({ "do": "inspect" }));
        assert_eq!(inspected["text"], "running");
        inspected["extra"]["pid"].as_str().expect("text").parse().expect("a number")
    }

    fn start(&mut self, node: &Node) -> i32 {
        self.does(json!({ "do": "start", "name": "web", "script": node.script() }));
        until("the task is up", || node.starts() == 1);
        self.task_pid()
    }

    /// Waits for the event of this kind of the task, which must arrive once.
    fn hears(&mut self, kind: &str) {
        while !self.events.iter().any(|event| event["extra"]["kind"] == kind) {
            let event = self.telling.recv_timeout(LONG).unwrap_or_else(|_| panic!("no event {kind:?} comes"));
            assert_eq!(event["told"], "event", "{event}");
            self.events.push_back(event);
        }
        let of_kind = self.events.iter().filter(|event| event["extra"]["kind"] == kind).count();
        assert_eq!(of_kind, 1, "once and no more: {:?}", self.events);
    }

    /// Stops in order.
    fn ends(mut self) {
        drop(self.orders.take());
        self.told("ended");
        assert!(self.child.wait().expect("our child").success());
    }

    fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("our child");
    }
}

/// A task whose agent stops in order and is started again is the same task (T150, T151, T173, T174).
#[test]
fn a_task_outlives_the_orderly_restart_of_its_agent_in_one_copy_t150_t151_t173_t174_th092() {
    let Some(program) = client_or_say("our driver across an orderly restart of an agent") else { return };
    let node = Node::new(program);
    let mut first = node.agent();
    let driver = first.driver("launched");
    let task = first.start(&node);
    first.ends();
    until("the driver ends with its agent", || !lives(driver));
    assert!(lives(task), "and the task does not");

    let mut second = node.agent();
    assert_ne!(second.driver("launched"), driver);
    second.recovered();
    assert_eq!(second.task_pid(), task);
    let output = second.does(json!({ "do": "exec", "command": ["/bin/sh", "-c", "echo $GREETING; exit 4"] }));
    assert_eq!((&output["text"], &output["code"]), (&json!("good evening\n"), &json!(4)));
    let stats = second.does(json!({ "do": "stats" }));
    assert!(stats["memory"].as_u64() > Some(0) && stats["code"].as_u64() > Some(0), "{stats}");
    second.does(json!({ "do": "signal", "signal": "SIGUSR1" }));
    assert_eq!(second.does(json!({ "do": "wait" }))["code"], 7);
    second.hears("exited");
    second.does(json!({ "do": "destroy" }));
    assert!(second.asks(json!({ "do": "inspect" })).get("error").is_some(), "it is gone");
    assert_eq!(node.starts(), 1);
    second.ends();
}

/// The kills of a test between two checks, in every order.
#[derive(Debug, Clone, Copy)]
enum Kill {
    Driver,
    Agent,
    AgentThenDriver,
    DriverThenAgent,
}

#[test]
fn a_task_outlives_kills_of_its_driver_and_its_agent_in_every_order_in_one_copy_th092() {
    let Some(program) = client_or_say("our driver across kills of it and of an agent") else { return };
    let node = Node::new(program);
    let mut agent = node.agent();
    let mut driver = agent.driver("launched");
    let task = agent.start(&node);
    let mut written = String::new();
    let both = [Kill::AgentThenDriver, Kill::DriverThenAgent];
    for what in [[Kill::Driver, Kill::Agent], both, [Kill::Agent, Kill::Driver], both].concat() {
        match what {
            Kill::Driver => {
                kill(driver);
                let orders = agent.orders.as_mut().expect("it listens");
                orders.write_all(b"{\"do\":\"revive\"}\n").expect("it reads");
                driver = agent.driver("launched");
                agent.recovered();
                agent.told("done");
            }
            Kill::Agent => {
                agent.kill();
                agent = node.agent();
                assert_eq!(agent.driver("joined"), driver, "the process that the dead agent left");
                agent.recovered();
            }
            Kill::AgentThenDriver | Kill::DriverThenAgent => {
                if matches!(what, Kill::DriverThenAgent) {
                    kill(driver);
                    agent.kill();
                } else {
                    agent.kill();
                    kill(driver);
                }
                agent = node.agent();
                driver = agent.driver("launched");
                agent.recovered();
            }
        }
        assert_eq!(agent.task_pid(), task, "the same process after {what:?}");
        assert_eq!(node.starts(), 1, "one copy after {what:?}");
        written.push_str(&node.written());
    }
    // The task ends while neither of them runs; both the driver and the client receive its end.
    agent.kill();
    kill(driver);
    fs::write(node.path("go"), "").expect("room");
    until("it ends", || !lives(task));
    let mut agent = node.agent();
    agent.driver("launched");
    agent.recovered();
    assert_eq!(agent.does(json!({ "do": "wait" }))["code"], 5);
    agent.hears("exited");
    written.push_str(&node.written());
    for (number, line) in written.lines().enumerate() {
        assert_eq!(line, format!("line {}", number + 1), "no line is lost, doubled or changed");
    }
    agent.does(json!({ "do": "destroy" }));
    agent.ends();
}

#[test]
fn an_end_that_no_agent_saw_is_told_once_to_the_next_one_that_joins_the_driver_t173_th092() {
    let Some(program) = client_or_say("events of our driver across the death of an agent") else { return };
    let node = Node::new(program);
    let mut first = node.agent();
    let driver = first.driver("launched");
    let task = first.start(&node);
    first.hears("started");
    first.kill();
    fs::write(node.path("go"), "").expect("room");
    until("it ends", || !lives(task));
    let mut second = node.agent();
    assert_eq!(second.driver("joined"), driver);
    second.recovered();
    second.hears("exited");
    assert_eq!(second.does(json!({ "do": "wait" }))["code"], 5);
    second.does(json!({ "do": "destroy" }));
    assert!(!second.events.iter().any(|event| event["extra"]["kind"] == "started"), "that was told before");
    second.ends();
}

#[test]
fn a_task_under_a_nomad_client_is_spoken_with_stopped_and_destroyed_t145_t147_t148_th093() {
    let Some(program) = client_or_say("a terminal and a stop of our driver under a Nomad client") else {
        return;
    };
    let node = Node::new(program);
    let mut agent = node.agent();
    agent.driver("launched");
    agent.start(&node);
    agent.ends();
    // A shell at a terminal, through a driver that has recovered the task.
    let mut agent = node.agent();
    agent.driver("launched");
    agent.recovered();
    let typed =
        ["stty size\n", "33 101", "stty size; echo $GREETING-$((1+1))\n", "evening-2", "exit 6\n", "exit"];
    let shown = agent.does(json!({ "do": "terminal", "command": ["/bin/sh"], "typed": typed }));
    let text = shown["text"].as_str().expect("text");
    assert_eq!(shown["code"], 6, "{text}");
    assert!(text.contains("44 122") && text.contains("good evening-2"), "{text}");
    let unknown = agent.asks(json!({ "do": "signal", "signal": "SIGNAL" }));
    assert!(unknown["error"].as_str().is_some_and(|why| why.contains("no signal")), "{unknown}");
    // No signal is named: the driver that is built into Nomad uses SIGINT.
    agent.does(json!({ "do": "stop", "timeout_ms": 30_000 }));
    let ended = agent.does(json!({ "do": "wait" }));
    assert_eq!(
        (&ended["code"], &ended["signal"], &ended["oom"]),
        (&json!(128 + 2), &json!(2), &json!(false))
    );
    agent.does(json!({ "do": "destroy", "force": true }));
    let own = node.directory.path().join("alloc").join(ALLOCATION).join("web/.callboard");
    assert!(!own.exists(), "nothing of the driver is left in the task's directory");
    let notes = fs::read_dir(node.path("runtime/callboard-exec")).expect("the notes").count();
    assert_eq!(notes, 0, "nor elsewhere");
    agent.ends();
}
