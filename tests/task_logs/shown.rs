//! Tests `callboard run` with tasks that write, and `callboard logs`.

use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

use crate::program::driven::{find, kill, until_running};
use crate::program::{CALLBOARD, Program, Stage, TIMEOUT, lives, until_true};

/// A task that writes numbered lines through a write-only descriptor, as tasks of other drivers have it, and then sleeps.
fn counting(name: &str, lines: u32, pause: &str, logs: &str) -> String {
    let script = format!(
        "exec 1>/proc/self/fd/1; i=0; while [ $i -lt {lines} ]; do i=$((i+1)); echo \"line $i\"; {pause} done; exec sleep 1000"
    );
    format!(
        "[[task]]\nname = {name:?}\ndriver = \"exec\"\nconfig = {{ command = \"/bin/sh\", args = [\"-c\", {script:?}] }}\n\
         [task.logs]\n{logs}\n"
    )
}

fn stage(tasks: &str) -> Stage {
    let stage = Stage::new("");
    stage.configure(&format!("[[driver]]\nname = \"exec\"\n{tasks}"));
    stage
}

/// The output of `callboard logs`, with or without a host.
fn logs(stage: &Stage, words: &[&str]) -> String {
    let output = Command::new(CALLBOARD).arg("logs").args(words).arg("--config").arg(stage.config()).output();
    let output = output.expect("it runs");
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("it is text")
}

/// The log writer of a stage.
fn log_writer(stage: &Stage) -> Option<u64> {
    let ours = stage.data_dir().join("logmon");
    let ours = ours.to_str().expect("it is text");
    let processes = std::fs::read_dir("/proc").expect("it is there").flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u64>().ok());
    let is_it = |pid: &u64| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<_> = words.split(|byte| *byte == 0).collect();
        words.contains(&&b"log-writer"[..]) && words.contains(&ours.as_bytes())
    };
    pids.into_iter().find(|pid| is_it(pid) && lives(*pid))
}

/// A client that follows a log, and the text that it has received so far.
struct Follower {
    child: Child,
    heard: Arc<Mutex<String>>,
}

impl Follower {
    fn of(stage: &Stage, words: &[&str]) -> Self {
        let mut command = Command::new(CALLBOARD);
        command.args(["logs", "--follow"]).args(words).arg("--config").arg(stage.config());
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
        let mut output = child.stdout.take().expect("a pipe");
        let heard = Arc::<Mutex<String>>::default();
        let hearing = Arc::clone(&heard);
        std::thread::spawn(move || {
            let mut bytes = [0; 65_536];
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                hearing
                    .lock()
                    .expect("no panic")
                    .push_str(std::str::from_utf8(&bytes[..count]).expect("plain text"));
            }
        });
        Self { child, heard }
    }

    fn heard(&self) -> String {
        self.heard.lock().expect("no panic").clone()
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn assert_numbered(text: &str, lines: u32) {
    for (place, line) in text.lines().enumerate() {
        assert_eq!(line, format!("line {}", place + 1), "each line once, in order and whole");
    }
    assert_eq!(text.lines().count(), lines as usize);
}

fn end(program: Program<'_>) {
    program.signal(rustix::process::Signal::TERM);
    assert!(program.ended().0.success());
}

#[test]
fn host_and_log_writer_are_killed_at_random_and_every_line_is_there_once_and_followed_th020_t191() {
    const LINES: u32 = 100_000;
    let stage = stage(&counting("web", LINES, "", "max_files = 500\nmax_file_size = \"64KiB\""));
    let mut program = stage.run();
    until_running(&program, "web");
    let follower = Follower::of(&stage, &["web"]);
    let mut random = fastrand::Rng::with_seed(22);
    for round in 0..8 {
        std::thread::sleep(Duration::from_millis(random.u64(0..80)));
        match round % 2 {
            0 => {
                until_true("there is a log writer", TIMEOUT, || log_writer(&stage).is_some());
                kill(log_writer(&stage).expect("it runs"));
                // Only one of the two may be dead at a time: the host is killed only after another log writer runs.
                program.until("another one", |status| {
                    find(status, "tasks", "web")["logs"]["state"] == "collected"
                        && log_writer(&stage).is_some()
                });
            }
            _ => {
                program.kill();
                program = stage.run();
            }
        }
    }
    let last = format!("line {LINES}\n");
    until_true("everything is followed", TIMEOUT * 2, || follower.heard().ends_with(&last));
    assert_numbered(&follower.heard(), LINES);
    assert_numbered(&logs(&stage, &["web"]), LINES);
    let status = until_running(&program, "web");
    assert_eq!(find(&status, "tasks", "web")["restarts"], 0, "nothing ended it: {status:#}");
    end(program);
    until_true("the log writer has ended", TIMEOUT, || log_writer(&stage).is_none());
    // The logs are also available without a host, but the pipes are gone.
    assert_eq!(logs(&stage, &["web", "--tail", "1"]), last);
    assert!(pipes(&stage).is_empty(), "{:?}", pipes(&stage));
}

fn pipes(stage: &Stage) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left = vec![stage.data_dir()];
    while let Some(directory) = left.pop() {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            let kind = entry.file_type().expect("it can be looked at");
            if kind.is_dir() {
                left.push(entry.path());
            } else if std::os::unix::fs::FileTypeExt::is_fifo(&kind)
                && entry.path().to_str().unwrap().contains("web")
            {
                found.push(entry.path());
            }
        }
    }
    // Other pipes, of the driver itself, are not ours.
    found.retain(|path| path.extension().is_some_and(|ending| ending == "fifo" || ending == "stage"));
    found
}

#[test]
fn status_tells_how_the_logs_of_a_task_fare_and_a_dead_log_writer_is_replaced_th021_t068_t194() {
    let stage = stage(&counting("web", 3, "", ""));
    let program = stage.run();
    let status = program
        .until("collected logs", |status| find(status, "tasks", "web")["logs"]["state"] == "collected");
    let told = &find(&status, "tasks", "web")["logs"];
    assert_eq!((&told["reason"], &told["dropped_bytes"]), (&Value::Null, &0.into()));
    until_true("its lines", TIMEOUT, || logs(&stage, &["web"]) == "line 1\nline 2\nline 3\n");
    let first = log_writer(&stage).expect("it runs");
    kill(first);
    until_true("another one", TIMEOUT, || log_writer(&stage).is_some_and(|pid| pid != first));
    program.until("collected again", |status| find(status, "tasks", "web")["logs"]["state"] == "collected");
    until_true("it is told", TIMEOUT, || program.log().contains("the log writer has ended"));
    let documented = include_str!("../../docs/command-line.md");
    for key in ["logs", "dropped_bytes"] {
        assert!(documented.contains(&format!("`{key}`")), "docs/command-line.md does not describe {key}");
    }
    program.json(&["stop", "web"]);
    let status = program.until("no pipes", |status| find(status, "tasks", "web")["logs"].is_null());
    assert_eq!(find(&status, "tasks", "web")["state"], "stopped");
    end(program);
}

#[test]
fn logs_are_found_by_name_and_a_wrong_name_is_told_with_what_was_meant() {
    let quiet = "[[task]]\nname = \"quiet\"\ndriver = \"exec\"\nstart = false\nconfig = { command = \"/bin/true\" }\n";
    let stage = stage(&format!("{}{quiet}", counting("web", 100, "", "")));
    let refusal = |words: &[&str]| {
        let output =
            Command::new(CALLBOARD).arg("logs").args(words).arg("--config").arg(stage.config()).output();
        crate::program::refusal(&output.expect("it runs"))
    };
    // Without a host, and before the first start of a host.
    let (code, said) = refusal(&["web"]);
    assert_eq!((code, said.as_str()), (1, "callboard: task web has no logs yet"));
    let program = stage.run();
    until_running(&program, "web");
    until_true("all lines", TIMEOUT, || logs(&stage, &["web"]).lines().count() == 100);
    assert_eq!(logs(&stage, &["web", "--tail", "2"]), "line 99\nline 100\n");
    assert_eq!(logs(&stage, &["task/web", "--stderr"]), "");
    let json = logs(&stage, &["web", "--tail", "1", "--json"]);
    let line: Value = serde_json::from_str(&json).expect("it is JSON");
    assert_eq!(
        line,
        serde_json::json!({ "kind": "task", "name": "web", "stream": "stdout", "line": "line 100" })
    );
    // The output of the driver itself, which may be empty.
    logs(&stage, &["exec"]);
    for (words, told) in [
        (&["weeb"][..], "did you mean \"web\"?"),
        (&["quiet"][..], "task quiet has no logs yet"),
        (&["driver/web"][..], "neither a task nor an allocation nor a driver"),
    ] {
        let (code, said) = refusal(words);
        assert!(code == 1 && said.contains(told), "{words:?}: {said}");
    }
    let asked = program.ask(&["logs", "web", "--tail", "1"]);
    assert_eq!(asked.stdout, b"line 100\n", "by the data directory too");
    end(program);
}

#[test]
fn logs_that_are_disabled_go_nowhere_and_block_no_task_th003_t061() {
    let stage = stage(&counting("web", 50_000, "", "disabled = true"));
    let program = stage.run();
    let status = until_running(&program, "web");
    assert!(find(&status, "tasks", "web")["logs"].is_null(), "{status:#}");
    assert!(pipes(&stage).is_empty());
    end(program);
}
