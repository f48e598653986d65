//! Tests foreign processes on the node of a running host program that take what belongs to others.

mod program;

use std::cell::RefCell;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};

use callboard::actors::ownership::default_marks_dir;
use program::{CALLBOARD, Stage, TIMEOUT, refusal, until_true};
use serde_json::Value;

/// An allocation whose process never listens.
fn silent(name: &str) -> String {
    format!(
        "[[allocation]]\nname = {name:?}\nplugin = \"zfs\"\ntype = \"node\"\ncommand = \"/bin/sleep\"\nargs = [\"1000\"]\n"
    )
}

#[test]
fn a_process_that_listens_at_the_socket_of_another_allocation_is_refused_and_both_are_named_sec_02() {
    let stage = Stage::new(&silent("quiet"));
    let program = stage.run();
    let status =
        program.until("a process runs", |status| program::task(status, "quiet")["task"] == "running");
    let task = program::pid_of(&status, "quiet");
    let socket = stage.data_dir().join("csi/plugins/quiet/csi.sock");
    let _stranger = UnixListener::bind(&socket).expect("the path is free");
    let said = format!("process {} (", std::process::id());
    let expected = format!("allocation quiet (pid {task})");
    program.until("the stranger is named", |status| {
        let text = status.to_string();
        text.contains(&said) && text.contains(&expected) && text.contains("no request was sent to it")
    });
}

#[test]
fn a_plugin_behind_a_wrapper_that_leaves_it_alone_is_the_allocations_own_process_sec_02() {
    let script =
        format!("setsid {CALLBOARD} plugin hostpath --endpoint \"$CSI_ENDPOINT\" --role node & wait");
    let stage = Stage::new(&format!(
        "[[allocation]]\nname = \"wrapped\"\nplugin = \"zfs\"\ntype = \"node\"\ncommand = \"/bin/sh\"\nargs = [\"-c\", {script:?}]\n"
    ));
    let program = stage.run();
    program.until_active("csi-node", "zfs", "wrapped");
}

#[test]
fn a_plugin_that_shows_nothing_of_its_task_serves_only_where_any_may_listen_sec_02() {
    // A process without a parent, in its own session and without environment: as a container runtime or systemd starts it.
    let script = format!(
        "(setsid env -i {CALLBOARD} plugin hostpath --endpoint \"$CSI_ENDPOINT\" --role node &); exec sleep 1000"
    );
    let allocation = |name: &str, rest: &str| {
        format!(
            "[[allocation]]\nname = {name:?}\nplugin = {name:?}\ntype = \"node\"\ncommand = \"/bin/sh\"\nargs = [\"-c\", {script:?}]\n{rest}\n"
        )
    };
    let stage = Stage::new(&format!("{}{}", allocation("own", ""), allocation("any", "listener = \"any\"")));
    let program = stage.run();
    program.until_active("csi-node", "any", "any");
    let status = program.until("the other one is refused", |status| {
        status.to_string().contains("set listener = \\\"any\\\" for this allocation")
    });
    let listener = |name: &str| program::task(&status, name)["watching"]["listener"].clone();
    assert_eq!((listener("own"), listener("any")), ("own".into(), "any".into()));
}

#[test]
fn a_host_with_mounts_of_its_own_starts_at_the_path_of_another_one_p5() {
    let stage = Stage::new("");
    let host = stage.run();
    until_true("it runs", TIMEOUT, || host.log().contains("the host runs"));
    let (outer, config) = (stage.directory.path(), stage.config());
    // As in another container, the parent directory has other contents in that namespace.
    let script = format!(
        "cat {config:?} > /tmp/host.toml.$$ && mount -t tmpfs -o mode=0700 tmpfs {outer:?} && \
         mv /tmp/host.toml.$$ {config:?} && exec {CALLBOARD} run --config {config:?}"
    );
    let mut second = Command::new("unshare");
    second.args(["--mount", "--propagation", "private", "sh", "-c", &script]);
    let log = outer.join("second.log");
    second.stdout(Stdio::null()).stderr(File::create(&log).expect("a file"));
    let second = RefCell::new(second.spawn().expect("it starts"));
    let said = || std::fs::read_to_string(&log).expect("its log");
    until_true("the second host runs or is refused", TIMEOUT, || {
        said().contains("the host runs") || second.borrow_mut().try_wait().expect("it is our child").is_some()
    });
    let is_possible = !said().contains("unshare failed") && !said().contains("permission denied");
    // A host that was refused has ended already.
    let _ = second.borrow_mut().kill();
    second.borrow_mut().wait().expect("it is our child");
    if !is_possible {
        eprintln!("NOT RUN: mounts of its own need root");
        return;
    }
    assert!(said().contains("the host runs"), "{}", said());
}

/// The answer of a host at this socket path, which may have moved.
fn asked_at(socket: &Path, words: &[&str]) -> Output {
    Command::new(CALLBOARD).args(words).arg("--socket").arg(socket).output().expect("it runs")
}

fn status_at(socket: &Path) -> Value {
    serde_json::from_slice(&asked_at(socket, &["status", "--json"]).stdout).expect("it answers")
}

/// A `callboard watch` on a host on which nothing else happens.
struct Watched {
    child: Child,
    news: Receiver<Value>,
}

impl Watched {
    fn begin(stage: &Stage) -> Self {
        let mut command = Command::new(CALLBOARD);
        command.args(["watch", "--json", "--data-dir"]).arg(stage.data_dir()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it runs");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let (tell, news) = channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                // The test may have ended.
                let _ = tell.send(serde_json::from_str(&line).expect("it is JSON"));
            }
        });
        let watched = Self { child, news };
        assert_eq!(watched.next()["news"], "snapshot");
        watched
    }

    fn next(&self) -> Value {
        self.news.recv_timeout(TIMEOUT).expect("news in time")
    }

    /// The state of the data directory in the next change that the host reports.
    fn until_host_changed(&self) -> String {
        loop {
            let news = self.next();
            if news["news"] == "host_changed" {
                return news["about"]["data_dir_problem"].to_string();
            }
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // A process that has ended already receives no signal.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_data_directory_that_is_removed_or_replaced_is_told_and_no_second_host_starts_beside_p5() {
    let stage = Stage::new("");
    let host = stage.run();
    // The host answers before it has created everything that it keeps in its directory.
    until_true("it runs", TIMEOUT, || host.log().contains("the host runs"));
    assert_eq!(host.json(&["status"])["host"]["data_dir_problem"], Value::Null);
    assert_eq!(host.json(&["health"])["well"], true);
    let watched = Watched::begin(&stage);
    let aside = stage.directory.path().join("aside");
    std::fs::rename(stage.data_dir(), &aside).expect("it is ours");
    let problem = || status_at(&aside.join("admin.sock"))["host"]["data_dir_problem"].to_string();
    until_true("the loss is told", TIMEOUT, || problem().contains("was removed or renamed"));
    assert!(host.log().contains("the data directory is lost"), "{}", host.log());
    assert!(watched.until_host_changed().contains("was removed or renamed"));
    let health = asked_at(&aside.join("admin.sock"), &["health"]);
    let told = String::from_utf8_lossy(&health.stdout);
    assert_eq!(health.status.code(), Some(3), "{told}");
    assert!(told.contains("data directory") && told.contains("was removed or renamed"), "{told}");

    let second = || {
        let command = Command::new(CALLBOARD).args(["run", "--config"]).arg(stage.config()).output();
        let output = command.expect("it runs");
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    if default_marks_dir().is_none() {
        eprintln!("NOT RUN: hosts of this user do not see each other");
        return;
    }
    // A supervisor that starts a host if none runs does not start one here.
    let asked_by_path = || {
        let health = host.ask(&["health"]);
        let told = String::from_utf8_lossy(&health.stderr).into_owned();
        assert_eq!(health.status.code(), Some(3), "{told}");
        assert!(told.contains("a host that runs had its data at this path"), "{told}");
    };
    asked_by_path();
    let told = second();
    assert!(told.contains("a host that runs had its data at this path"), "{told}");
    assert!(!stage.data_dir().exists(), "nothing is made for a host that does not start");

    std::fs::create_dir(stage.data_dir()).expect("the path is free");
    until_true("the other directory is told", TIMEOUT, || {
        problem().contains("another directory is in the place")
    });
    asked_by_path();
    assert!(second().contains("a host that runs had its data at this path"));
    std::fs::remove_dir(stage.data_dir()).expect("nothing was put there");
    std::fs::rename(&aside, stage.data_dir()).expect("the path is free");
    assert!(watched.until_host_changed().contains("another directory is in the place"));
    host.until("it is in its place again", |status| status["host"]["data_dir_problem"].is_null());
    assert_eq!(watched.until_host_changed(), "null");
    assert_eq!(host.json(&["health"])["well"], true);
    let (code, said) = refusal(&host.ask(&["stop", "nothing"]));
    assert_eq!(code, 1, "{said}");
}

#[test]
fn a_host_makes_nothing_behind_a_link_in_the_place_of_its_data_directory_nor_in_a_new_one_sec_02() {
    let later = "start = false\nstop_grace = \"1s\"";
    let silent = |name: &str| silent(name).replace("type = ", &format!("{later}\ntype = "));
    let task = "[[task]]\nname = \"web\"\ndriver = \"exec\"\nstart = false\nconfig = { command = \"/bin/sleep\", args = [\"1000\"] }\n";
    let stage = Stage::new(&format!(
        "restart.delay = \"50ms\"\n{}{}[[driver]]\nname = \"exec\"\n{task}",
        silent("first"),
        silent("second")
    ));
    let host = stage.run();
    let driver = |status: &Value| status["drivers"][0].clone();
    let status = host.until("the driver is healthy", |status| driver(status)["health"] == "healthy");
    let [data, aside, elsewhere] =
        ["data", "aside", "elsewhere"].map(|name| stage.directory.path().join(name));
    std::fs::create_dir(&elsewhere).expect("a directory");
    std::fs::rename(&data, &aside).expect("it is ours");
    std::os::unix::fs::symlink(&elsewhere, &data).expect("the path is free");
    let socket = aside.join("admin.sock");
    let says = |list: &str, name: &str, reason: &str| {
        until_true(&format!("{name} says why it does not start"), TIMEOUT, || {
            let status = status_at(&socket);
            let mut rows = status[list].as_array().expect("a list").iter();
            rows.any(|row| row["name"] == name && row.to_string().contains(reason))
        });
    };
    let tried = |list: &str, name: &str, reason: &str| {
        asked_at(&socket, &["start", name]);
        says(list, name, reason);
    };
    let (replaced, removed) =
        ("another directory is in the place of", "the data directory was removed or renamed");
    let is_empty = || std::fs::read_dir(&elsewhere).expect("it is there").next().is_none();
    let pid = driver(&status)["pid"].as_u64().expect("it runs");
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).expect("a pid")).expect("a pid");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it lives");

    tried("allocations", "first", replaced);
    says("drivers", "exec", replaced);
    tried("tasks", "web", replaced);
    assert!(is_empty(), "nothing is made behind the link");

    std::fs::remove_file(&data).expect("the link");
    tried("allocations", "second", removed);
    says("drivers", "exec", removed);
    assert!(!data.exists(), "it is not made anew");
    std::fs::rename(&aside, &data).expect("the path is free");
    host.until("all goes on", |status| {
        let runs = |name: &str| program::task(status, name)["task"] == "running";
        runs("first")
            && runs("second")
            && driver(status)["health"] == "healthy"
            && status["tasks"][0]["state"] == "running"
    });
    assert!(is_empty());
}
