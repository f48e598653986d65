//! Tests the timeline of a real host, as it is sent over the admin socket.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod program;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use program::{CALLBOARD, Stage, allocation, until_true};
use rustix::process::Signal;
use serde_json::Value;

/// The deadline of things that take milliseconds on an idle machine.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A client that watches the timeline.
struct Watcher {
    child: Child,
    lines: Box<dyn Iterator<Item = String>>,
    said: Vec<Value>,
}

impl Watcher {
    /// Starts to watch, and waits until the client misses nothing from then on.
    fn of(stage: &Stage) -> Self {
        Self::with(stage, &[])
    }

    /// The same with further arguments.
    fn with(stage: &Stage, arguments: &[&str]) -> Self {
        let mut child = Command::new(CALLBOARD)
            .args(["watch", "--timeline", "--json"])
            .args(arguments)
            .arg("--data-dir")
            .arg(stage.data_dir())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let mut watcher = Self { child, lines: Box::new(lines), said: Vec::new() };
        watcher.until("timeline", "you", "messages from now on");
        watcher
    }

    /// Reads until the timeline has this message between these two.
    fn until(&mut self, from: &str, to: &str, message: &str) {
        loop {
            let line = self.lines.next().unwrap_or_else(|| panic!("no {message:?} in {:#?}", self.said));
            let said: Value = serde_json::from_str(&line).unwrap();
            let is_it = said["from"] == from && said["to"] == to;
            let is_it = is_it && said["message"].as_str().unwrap().starts_with(message);
            self.said.push(said);
            if is_it {
                return;
            }
        }
    }

    /// The position of this message between these two in the timeline.
    fn place(&self, from: &str, to: &str, message: &str) -> usize {
        let is_it = |said: &Value| {
            said["from"] == from && said["to"] == to && said["message"].as_str().unwrap().starts_with(message)
        };
        self.said.iter().position(is_it).unwrap_or_else(|| panic!("no {message:?} in {:#?}", self.said))
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_cause_stands_before_its_consequence_from_the_start_of_a_plugin_to_its_end() {
    let stage = Stage::new(&allocation("a", "zfs", "node", &[], "start = false"));
    let host = stage.run();
    let mut watcher = Watcher::of(&stage);
    assert!(host.ask(&["start", "a"]).status.success());
    watcher.until("process a", "instances", "healthy");
    assert!(host.ask(&["stop", "a"]).status.success());
    watcher.until("process a", "agent", "stopped");

    let course = [
        ("agent", "allocation a", "prepare to be started"),
        ("allocation a", "agent", "prepared"),
        ("agent", "process a", "run as process"),
        ("process a", "allocation a", "ready"),
        ("allocation a", "registry", "Register"),
        ("registry", "everyone", "active: none → a"),
        ("instances", "process a", "who are you"),
        ("process a", "instances", "healthy"),
        ("agent", "allocation a", "stop"),
        ("allocation a", "registry", "Deregister"),
        ("registry", "everyone", "active: a → none"),
        ("instances", "process a", "retire"),
        ("allocation a", "agent", "deregistered"),
        ("agent", "process a", "ending process"),
        ("process a", "agent", "stopped"),
    ];
    let places = course.map(|(from, to, message)| watcher.place(from, to, message));
    assert!(places.is_sorted(), "{places:?} in {:#?}", watcher.said);

    let numbers: Vec<_> = watcher.said.iter().map(|said| said["number"].as_u64().unwrap()).collect();
    assert!(numbers.iter().copied().eq(1..=numbers.len() as u64), "{numbers:?}");
    let active = &watcher.said[watcher.place("registry", "everyone", "active: none → a")];
    assert_eq!((&active["plugin"], &active["allocation"]), (&"csi-node/zfs".into(), &"a".into()));
    assert!(active["generation"].is_u64(), "{active}");
}

#[test]
fn what_waits_for_the_disk_stands_behind_its_gate_and_the_gate_behind_what_closed_it_shell_1() {
    let stage = Stage::new(&allocation("a", "zfs", "node", &[], "start = false"));
    let host = stage.run();
    let mut watcher = Watcher::with(&stage, &["--gates"]);
    assert!(host.ask(&["start", "a"]).status.success());
    watcher.until("disk", "registry", "on disk");

    let course = [
        ("process a", "allocation a", "ready"),
        ("registry", "disk", "write "),
        ("registry", "everyone", "active: none → a"),
        ("disk", "registry", "on disk"),
    ];
    let places = course.map(|(from, to, message)| watcher.place(from, to, message));
    assert!(places.is_sorted(), "{places:?} in {:#?}", watcher.said);
    let [_, closes, _, opens] = places.map(|place| &watcher.said[place]);
    assert_eq!((&closes["gate"], &opens["gate"]), (&"closes".into(), &"opens".into()));
    assert!(closes["write"].is_u64() && closes["write"] == opens["write"], "{closes} {opens}");

    let mut plain = Watcher::of(&stage);
    assert!(host.ask(&["stop", "a"]).status.success());
    plain.until("registry", "everyone", "active: a → none");
    assert!(
        plain.said.iter().all(|said| said["gate"].is_null()),
        "they were not requested: {:#?}",
        plain.said
    );
}

#[test]
fn the_picture_of_a_running_host_has_the_gate_below_what_closed_it_shell_1() {
    let stage = Stage::new(&allocation("a", "zfs", "node", &[], "start = false"));
    let host = stage.run();
    let picture = stage.directory.path().join("run.mmd");
    let mut drawing = Command::new(CALLBOARD)
        .args(["watch", "--timeline", "--diagram"])
        .arg(&picture)
        .arg("--data-dir")
        .arg(stage.data_dir())
        .spawn()
        .unwrap();
    let drawn = || std::fs::read_to_string(&picture).unwrap_or_default();
    until_true("the picture is begun", TIMEOUT, || drawn().contains("sequenceDiagram"));
    assert!(host.ask(&["start", "a"]).status.success());
    until_true("the registration is drawn", TIMEOUT, || drawn().contains("on disk"));

    let text = drawn();
    let title = format!("the running host of {}: messages between its actors", stage.data_dir().display());
    assert!(text.contains(&title), "{text}");
    let course = ["Register", "write", "active: none", "on disk"];
    let places = course.map(|words| text.find(words).unwrap_or_else(|| panic!("no {words:?} in {text}")));
    assert!(places.is_sorted(), "{places:?} in {text}");
    host.signal(Signal::TERM);
    assert_eq!(host.ended().0.code(), Some(0));
    assert!(drawing.wait().unwrap().success());
}

#[test]
fn who_watches_does_not_hold_up_the_end_of_the_host() {
    let stage = Stage::new(&allocation("a", "zfs", "monolith", &[], "start = true"));
    let host = stage.run();
    let mut watcher = Watcher::of(&stage);
    host.signal(Signal::TERM);
    assert_eq!(host.ended().0.code(), Some(0));
    watcher.child.wait().unwrap();
}
