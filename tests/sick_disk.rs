//! Tests a real host on a disk that hangs, is full or loses synced data: it stays visible, takes over, stops and shuts down in bounded
//! time, refuses new promises, and continues when the disk is repaired (SHELL-1A, P3).
//!
//! The disk is made sick by a library that is loaded into the host and intercepts its system calls. One host runs on a small file
//! system that is really full; if the user may not mount one, that test reports so and tests nothing.

#[path = "support/filler.rs"]
mod filler;
#[path = "support/preloaded.rs"]
mod preloaded;
mod program;

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use callboard::host::Host;
use filler::Filler;
use preloaded::{Preloaded, own_disk};
use program::{Program, Stage, TIMEOUT, allocation, driven, lives, pid_of, plugin, task, until_true};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// The time limit of a status, whatever the disk does. It is much more than a status takes, for a busy machine.
const STATUS_WITHIN: Duration = Duration::from_secs(5);
/// A disk that does not answer counts as sick after 3 s.
const SICK_WITHIN: Duration = Duration::from_secs(15);
const STOP_WITHIN: Duration = Duration::from_secs(25);

/// A host whose disk can be made sick.
struct Sick {
    stage: Stage,
    preloaded: Preloaded,
}

/// Two allocations of a plugin.
fn two() -> String {
    ["a", "b"].map(|name| allocation(name, "disks", "node", &[], "")).concat()
}

/// Waits until both are healthy.
fn until_both_serve(program: &Program<'_>) {
    program.until("both", |status| {
        let disks = plugin(status, "csi-node", "disks");
        let is_healthy = |name| task(status, name)["health"] == "healthy";
        disks["health"] == "healthy" && is_healthy("a") && is_healthy("b")
    });
}

impl Sick {
    fn new() -> Self {
        let stage = Stage::new("");
        let directory = stage.directory.path().display().to_string();
        let task = driven::task(&directory, "web", "");
        stage.configure(&format!("{}[[driver]]\nname = \"exec\"\n{task}", two()));
        let preloaded = Preloaded::below(stage.directory.path());
        Self { stage, preloaded }
    }

    fn disk(&self, state: &str) {
        self.preloaded.disk(state);
    }

    fn run(&self) -> Program<'_> {
        self.disk("ok");
        let program = self.stage.run_as(&[], &self.preloaded.environment());
        until_both_serve(&program);
        driven::until_running(&program, "web");
        program
    }
}

fn other(name: &str) -> &'static str {
    if name == "a" { "b" } else { "a" }
}

/// Sends a command, and fails if it takes longer than the limit.
fn within(program: &Program<'_>, limit: Duration, words: &[&str]) -> Output {
    let began = Instant::now();
    let output = program.ask(words);
    let took = began.elapsed();
    assert!(took < limit, "{words:?} took {took:?}: {}", program.log());
    output
}

/// Waits until the status is as wished; each status must arrive in time.
fn until(program: &Program<'_>, limit: Duration, what: &str, is_wished: impl Fn(&Value) -> bool) -> Value {
    let began = Instant::now();
    loop {
        let output = within(program, STATUS_WITHIN, &["status", "--json"]);
        let status: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
        if is_wished(&status) {
            return status;
        }
        assert!(began.elapsed() < limit, "{what} does not come: {status:#}\n{}", program.log());
    }
}

/// Kills the plugin that serves, and waits until the other one serves.
fn fail_over(program: &Program<'_>) -> String {
    let status = program.json(&["status"]);
    let active = plugin(&status, "csi-node", "disks")["active"].as_str().expect("one serves").to_owned();
    let pid = i32::try_from(pid_of(&status, &active)).expect("it is a process id");
    kill_process(Pid::from_raw(pid).expect("it is one"), Signal::KILL).expect("it lives");
    let standby = other(&active);
    until(program, SICK_WITHIN, "the takeover", |status| {
        let disks = plugin(status, "csi-node", "disks");
        disks["active"] == standby && disks["health"] == "healthy"
    });
    standby.to_owned()
}

/// Embeds a host on its own thread; its disk hangs from its start to its end.
fn embed(data_dir: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let host = Host::builder(data_dir).start_on_own_thread().await.expect("it starts");
        own_disk("hang");
        let report = host.stop().await;
        let what: Vec<_> = report.not_in_order().map(|child| format!("{child:?}")).collect();
        assert!(what.iter().any(|child| child.contains("may be lost")), "{what:?}");
    });
}

#[test]
fn a_host_on_a_thread_of_its_own_ends_although_its_disk_never_answers_s3() {
    const DATA_DIR: &str = "EMBEDDED_DATA_DIR";
    if let Ok(data_dir) = std::env::var(DATA_DIR) {
        return embed(&data_dir);
    }
    let sick = Sick::new();
    sick.disk("ok");
    let test = std::env::current_exe().expect("it runs");
    let mut program = Command::new(test)
        .args(["--exact", "a_host_on_a_thread_of_its_own_ends_although_its_disk_never_answers_s3"])
        .env(DATA_DIR, sick.stage.data_dir())
        .envs(sick.preloaded.environment())
        .spawn()
        .expect("it starts");
    let began = Instant::now();
    let status = loop {
        if let Some(status) = program.try_wait().expect("it is ours") {
            break status;
        }
        if began.elapsed() > TIMEOUT {
            program.kill().expect("it is ours");
            panic!("it does not end");
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    assert!(status.success(), "{status}");
}

fn is_sick(status: &Value) -> bool {
    status["host"]["disk"]["health"] == "sick"
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// The exit code and the output of `health`.
fn health(program: &Program<'_>) -> (Option<i32>, Value) {
    let output = within(program, STATUS_WITHIN, &["health", "--json"]);
    (output.status.code(), serde_json::from_slice(&output.stdout).expect("it is JSON"))
}

/// Whether the disk is listed as not well.
fn has_disk(health: &Value) -> bool {
    let troubles = health["not_well"].as_array().expect("a list");
    troubles.iter().any(|trouble| trouble["kind"] == "host" && trouble["name"] == "disk")
}

#[test]
fn a_host_whose_disk_hangs_takes_over_is_seen_stops_and_ends_shell_1a() {
    let sick = Sick::new();
    let program = sick.run();
    sick.disk("hang");
    let active = fail_over(&program);
    let status = until(&program, SICK_WITHIN, "the sick disk", is_sick);
    let disk = &status["host"]["disk"];
    assert!(disk["reason"].as_str().expect("a reason").contains("no answer within 3s"), "{disk}");
    assert!(disk["unwritten"].as_u64() > Some(0) && disk["since_unix_ms"].as_u64() > Some(0), "{disk}");
    let names = disk["unwritten_names"].as_array().expect("a list");
    let concerned = format!("registration csi-node/disks of {}", other(&active));
    assert!(
        names.iter().any(|name| name.as_str().is_some_and(|name| name.starts_with(&concerned))),
        "{disk}"
    );
    // The killed plugin runs again. Its registration is not on disk, and its allocation reports what it waits for.
    until(&program, SICK_WITHIN, "the plugin that was started again", |status| {
        let again = task(status, other(&active));
        let waits = again["state"] == "registering" && again["reason"].is_string();
        let disks = plugin(status, "csi-node", "disks");
        // Its row has the same health as the row of its plugin: that of its instance, whatever is on disk.
        let is_healthy = again["health"] == "healthy" && disks["healthy"] == 2;
        again["task"] == "running" && waits && is_healthy && disks["registered"] == 2
    });
    let text = said(&within(&program, STATUS_WITHIN, &["status"]));
    assert!(text.contains("disk sick") && !text.contains("all is well"), "{text}");
    assert!(text.contains("not on disk: ") && text.contains(&concerned), "{text}");
    for words in [&["health"][..], &["status", "--check"]] {
        let told = within(&program, STATUS_WITHIN, words);
        assert_eq!(told.status.code(), Some(3), "{words:?}: {}", said(&told));
        assert!(said(&told).contains(&concerned), "{}", said(&told));
    }
    assert!(within(&program, STATUS_WITHIN, &["tree"]).status.success());

    let stopped = within(&program, STOP_WITHIN, &["stop", &active]);
    assert_eq!(stopped.status.code(), Some(1), "{}", said(&stopped));
    assert!(said(&stopped).contains("not on disk"), "{}", said(&stopped));

    // The task is stopped through its driver, and is not started again.
    until_true("the task has begun", TIMEOUT, || driven::starts(&sick.stage, "web").len() == 1);
    let own = driven::starts(&sick.stage, "web")[0];
    let stopped = within(&program, STOP_WITHIN, &["stop", "web"]);
    assert!(said(&stopped).contains("task/web"), "{}", said(&stopped));
    until_true("its process is gone", TIMEOUT, || !lives(own));
    let refused = within(&program, STOP_WITHIN, &["start", "web"]);
    assert!(!refused.status.success() && said(&refused).contains("no answer within"), "{}", said(&refused));
    let status = until(&program, STOP_WITHIN, "the stopped task", |status| {
        driven::find(status, "tasks", "web")["state"] == "stopped"
    });
    let driver = driven::driver_pid(&status);

    let ended = within(&program, STOP_WITHIN, &["shutdown"]);
    assert!(!lives(driver), "the process of a driver ends with its host: {}", said(&ended));
    assert_eq!(ended.status.code(), Some(1), "{}", said(&ended));
    assert!(said(&ended).contains("may be lost"), "{}", said(&ended));
    assert!(said(&ended).contains("task web") && said(&ended).contains(&concerned), "{}", said(&ended));
    let (status, _) = program.ended();
    assert_eq!(status.code(), Some(1));

    // The next host reads the state on disk, and repairs it.
    let program = sick.run();
    assert!(program.ask(&["shutdown"]).status.success());
}

#[test]
fn a_host_whose_disk_hangs_at_its_start_says_so_and_ends_when_told_p3_s3() {
    let sick = Sick::new();
    sick.disk("hang");
    let program = sick.stage.begin_as(&sick.preloaded.environment());
    let waits = "the database is not open yet: its disk does not answer";
    until_true("it says what it waits for", SICK_WITHIN, || program.log().contains(waits));
    for (words, code) in [(&["status"][..], 1), (&["health"], 3), (&["status", "--check"], 3)] {
        let asked = program.ask(words);
        assert_eq!(asked.status.code(), Some(code), "{}", said(&asked));
        assert!(said(&asked).contains("does not answer: it is starting or ending"), "{}", said(&asked));
    }
    let began = Instant::now();
    program.signal(Signal::TERM);
    let log = sick.stage.directory.path().join("stderr");
    let (status, _) = program.ended();
    assert!(began.elapsed() < STATUS_WITHIN, "it took {:?}", began.elapsed());
    let log = std::fs::read_to_string(log).expect("it is there");
    assert_eq!(status.code(), Some(0), "nothing was begun, and nothing is lost: {log}");
    assert!(log.ends_with("SIGTERM came before the database was open: nothing was started\n"), "{log}");

    // It continues by itself when the disk answers.
    let program = sick.stage.begin_as(&sick.preloaded.environment());
    until_true("it waits again", SICK_WITHIN, || program.log().contains(waits));
    sick.disk("ok");
    until_true("it answers", SICK_WITHIN, || program.ask(&["status"]).status.success());
    until_both_serve(&program);
    assert!(within(&program, STOP_WITHIN, &["shutdown"]).status.success());
}

#[test]
fn a_disk_that_answers_when_its_host_goes_on_after_a_pause_is_not_sick_p3() {
    /// Longer than a commit may take.
    const PAUSE: Duration = Duration::from_secs(4);
    const SICK: &str = "the disk takes no writes";
    let sick = Sick::new();
    let program = sick.run();
    let status = program.json(&["status"]);
    let (a, b) = (pid_of(&status, "a"), pid_of(&status, "b"));
    for pid in [a, b] {
        sick.disk("hang");
        let pid = Pid::from_raw(i32::try_from(pid).expect("it is a process id")).expect("it is one");
        kill_process(pid, Signal::KILL).expect("it lives");
        let held = sick.stage.directory.path().join("disk.held");
        until_true("a commit is held", TIMEOUT, || held.exists());
        program.signal(Signal::STOP);
        std::fs::remove_file(held).expect("it is there");
        assert!(!program.log().contains(SICK), "this machine is too slow to try it: {}", program.log());
        // The pause itself is tested, so it must last.
        std::thread::sleep(PAUSE);
        sick.disk("ok");
        program.signal(Signal::CONT);
        program.until("all is written", |status| status["host"]["disk"]["unwritten"] == 0);
        until_both_serve(&program);
        assert!(!program.log().contains(SICK), "{}", program.log());
    }
    assert!(program.log().contains("the host did not run for a while"), "{}", program.log());
}

#[test]
fn a_host_on_a_full_disk_refuses_promises_and_goes_on_when_there_is_room_p3() {
    let sick = Sick::new();
    for state in ["full", "lost"] {
        let program = sick.run();
        sick.disk(state);
        let active = fail_over(&program);
        until(&program, SICK_WITHIN, "the sick disk", is_sick);
        let (code, troubles) = health(&program);
        assert!(code == Some(3) && has_disk(&troubles), "{troubles}");
        // No process of its driver is started meanwhile, so no launch is counted.
        driven::kill(driven::driver_pid(&program.json(&["status"])));
        until(&program, SICK_WITHIN, "a launch that is refused", |status| {
            driven::find(status, "drivers", "exec")["reason"].to_string().contains("nothing was begun")
        });
        // The allocation ends, but its end is not on disk.
        let stopped = within(&program, STOP_WITHIN, &["stop", &active]);
        assert_eq!(stopped.status.code(), Some(1), "{}", said(&stopped));
        assert!(said(&stopped).contains("not on disk"), "{}", said(&stopped));
        // The killed plugin runs again, but is not registered: that would be a promise.
        sick.disk("ok");
        until(&program, SICK_WITHIN, "the sound disk", |status| {
            let disk = &status["host"]["disk"];
            disk["health"] == "sound" && disk["unwritten"] == 0
        });
        let status = driven::until_running(&program, "web");
        assert_eq!(driven::find(&status, "drivers", "exec")["launches"], 2, "{status:#}");
        let started = within(&program, STOP_WITHIN, &["start", &active]);
        assert!(started.status.success(), "{}", said(&started));
        until(&program, SICK_WITHIN, "a standby", |status| {
            plugin(status, "csi-node", "disks")["standby"]
                .as_array()
                .is_some_and(|standby| standby.len() == 1)
        });
        let (_, troubles) = health(&program);
        assert!(!has_disk(&troubles), "{troubles}");
        let ended = within(&program, STOP_WITHIN, &["shutdown"]);
        assert!(ended.status.success(), "{}", said(&ended));
    }
}

#[test]
fn a_surviving_process_that_a_full_disk_does_not_let_be_launched_is_charged_no_restart_p3() {
    let sick = Sick::new();
    let restart = "[restart]\nattempts = 2\ndelay = \"50ms\"\n".to_owned();
    sick.stage.configure(&(restart + &allocation("a", "disks", "node", &[], "survives = true")));
    sick.disk("ok");
    let program = sick.stage.run_as(&[], &sick.preloaded.environment());
    program.until_active("csi-node", "disks", "a");
    sick.disk("full");
    let pid = i32::try_from(pid_of(&program.json(&["status"]), "a")).expect("it is a process id");
    kill_process(Pid::from_raw(pid).expect("it is one"), Signal::KILL).expect("it lives");
    let is_try = |line: &&str| line.contains("an allocation is not started again yet");
    until_true("more tries than restarts are allowed", TIMEOUT, || {
        program.log().lines().filter(is_try).count() > 4
    });
    let (_, unknown) = program.refusal(&["start", "nosuch"]);
    assert!(unknown.contains("nosuch") && !unknown.contains("write"), "{unknown}");
    // Only its end has used up a restart.
    assert_eq!(task(&program.json(&["status"]), "a")["restarts"], 1);
    sick.disk("ok");
    program.until_active("csi-node", "disks", "a");
    assert!(program.ask(&["shutdown"]).status.success());
}

/// The log is on a full disk, or goes to a reader that is gone or does not read.
#[test]
fn a_host_whose_log_takes_no_lines_takes_over_and_ends_in_order_p3_s3() {
    let full_pipe = "exec 3<>reader; dd if=/dev/zero of=reader bs=4096 count=1024 oflag=nonblock 2>&-; exec \"$@\" 2>reader";
    for log in [
        "exec \"$@\" 2>/dev/full",
        // The reader is gone, or does not read.
        "exec \"$@\" 3<>reader 2>reader 3<&-",
        full_pipe,
    ] {
        let stage = Stage::new(&two());
        let exec = format!("cd {} && mkfifo reader && {log}", stage.directory.path().display());
        let program = stage.run_through(&["sh", "-c", &exec, "sh"]);
        until_both_serve(&program);
        fail_over(&program);
        until_both_serve(&program);
        let ended = within(&program, STOP_WITHIN, &["shutdown"]);
        assert!(ended.status.success(), "{log}: {}", said(&ended));
        assert_eq!(program.ended().0.code(), Some(0), "{log}");
    }
}

#[test]
fn a_host_on_a_full_disk_shuts_down_and_says_what_is_lost_s3() {
    let sick = Sick::new();
    let program = sick.run();
    sick.disk("full");
    fail_over(&program);
    until(&program, SICK_WITHIN, "the sick disk", is_sick);
    program.signal(Signal::TERM);
    let (status, printed) = program.ended();
    assert_eq!(status.code(), Some(1), "{printed}");
    assert!(printed.contains("are lost") && printed.contains("registration csi-node/disks of"), "{printed}");
}

/// Set for a test that runs itself in its own mount namespace.
const INSIDE: &str = "SMALL_DISK_INSIDE";

/// Mounts a file system of 16 MiB as the data directory. Returns false, and reports why, if that is not possible.
fn mount_small(stage: &Stage) -> bool {
    mount(stage, "size=16m")
}

/// The same, with this size limit.
fn mount(stage: &Stage, limit: &str) -> bool {
    let data_dir = stage.data_dir();
    std::fs::create_dir(&data_dir).expect("it can be made");
    let mut mount = Command::new("mount");
    let mounted =
        mount.args(["-t", "tmpfs", "-o", &format!("{limit},mode=0700"), "tmpfs"]).arg(&data_dir).output();
    let mounted = mounted.expect("mount is there");
    if !mounted.status.success() {
        eprintln!("NOT RUN: nothing can be mounted here: {}", said(&mounted));
    }
    mounted.status.success()
}

/// Runs this test again in its own mount namespace, and in these additional namespaces.
fn run_apart(name: &str, namespaces: &[&str]) {
    let test = std::env::current_exe().expect("it runs");
    let apart = [namespaces, &["--mount", "--propagation", "private"]].concat();
    let is_possible = Command::new("unshare").args(&apart).arg("true").output();
    if !is_possible.as_ref().is_ok_and(|output| output.status.success()) {
        return eprintln!("NOT RUN: this machine forbids a mount namespace to this user: {is_possible:?}");
    }
    let mut inside = Command::new("unshare");
    inside.args(&apart).arg(test).args(["--exact", name, "--nocapture"]).env(INSIDE, "yes");
    let lived = inside.output().expect("it starts");
    eprint!("{}", said(&lived));
    assert!(lived.status.success(), "{}", lived.status);
}

/// A host on a small file system that fills up: no library intercepts its system calls.
fn live_on_a_small_disk() {
    let stage = Stage::new(&two());
    if !mount_small(&stage) {
        return;
    }
    let program = stage.run();
    until_both_serve(&program);

    let filler = Filler::take_all_room(stage.data_dir().join("filler"));
    let active = fail_over(&program);
    until(&program, SICK_WITHIN, "the full disk", is_sick);
    // The host may be faster than the filler when the database frees room: then one write succeeds.
    until_true("people see the full disk", SICK_WITHIN, || {
        let text = said(&within(&program, STATUS_WITHIN, &["status"]));
        text.contains("disk sick") && text.contains("space")
    });
    let stopped = within(&program, STOP_WITHIN, &["stop", &active]);
    let (code, is_unwritten) = (stopped.status.code(), said(&stopped).contains("not on disk"));
    assert_eq!(code, Some(i32::from(is_unwritten)), "{}", said(&stopped));

    drop(filler);
    until(&program, SICK_WITHIN, "the sound disk", |status| {
        let disk = &status["host"]["disk"];
        disk["health"] == "sound" && disk["unwritten"] == 0
    });
    assert!(within(&program, STOP_WITHIN, &["start", &active]).status.success());
    until_both_serve(&program);
    let ended = within(&program, STOP_WITHIN, &["shutdown"]);
    assert!(ended.status.success(), "{}", said(&ended));
}

#[test]
fn a_host_on_a_file_system_that_is_full_takes_over_stops_and_goes_on_when_there_is_room_p3_shell_1a() {
    if std::env::var_os(INSIDE).is_some() {
        return live_on_a_small_disk();
    }
    run_apart(
        "a_host_on_a_file_system_that_is_full_takes_over_stops_and_goes_on_when_there_is_room_p3_shell_1a",
        &["--user", "--map-root-user"],
    );
}

/// Stops a task whose file system is full: its supervisor has reserved room for its exit.
fn stop_a_task_on_a_small_disk() {
    let stage = Stage::new("");
    let task = driven::task(&stage.directory.path().display().to_string(), "web", "");
    stage.configure(&format!("[[driver]]\nname = \"exec\"\n{task}"));
    if !mount_small(&stage) {
        return;
    }
    let program = stage.run();
    driven::until_running(&program, "web");
    let filler = Filler::take_all_room(stage.data_dir().join("filler"));
    let stopped = within(&program, STOP_WITHIN, &["stop", "web"]);
    assert!(said(&stopped).contains("ended by signal"), "{}", said(&stopped));
    drop(filler);
}

#[test]
fn a_task_on_a_file_system_that_is_full_is_stopped_and_its_exit_is_known_p3() {
    if std::env::var_os(INSIDE).is_some() {
        return stop_a_task_on_a_small_disk();
    }
    // A user namespace has no user to whom the directories of a task could be given.
    if !rustix::process::geteuid().is_root() {
        return eprintln!("NOT RUN: this needs root");
    }
    run_apart("a_task_on_a_file_system_that_is_full_is_stopped_and_its_exit_is_known_p3", &[]);
}

/// Checks the reason of a driver that can write neither its handshake nor its reason.
fn launch_where_no_output_can_be_written() {
    let stage = Stage::new("[[driver]]\nname = \"exec\"\n");
    let processes = stage.data_dir().join("processes");
    std::fs::create_dir_all(&processes).expect("they can be made");
    for directory in [&stage.data_dir(), &processes] {
        std::fs::set_permissions(directory, PermissionsExt::from_mode(0o700)).expect("it is ours");
    }
    let mut mount = Command::new("mount");
    let mounted = mount.args(["-t", "tmpfs", "-o", "size=64k,mode=0700", "tmpfs"]).arg(&processes).output();
    let mounted = mounted.expect("mount is there");
    if !mounted.status.success() {
        return eprintln!("NOT RUN: nothing can be mounted here: {}", said(&mounted));
    }
    let program = stage.run();
    let driver = |status: &Value| driven::find(status, "drivers", "exec").clone();
    let status = program.until("the driver", |status| driver(status)["health"] == "healthy");
    let filler = Filler::take_all_room(processes.join("filler"));
    driven::kill(driven::driver_pid(&status));
    program.until("the full disk as the reason", |status| {
        driver(status)["reason"].to_string().contains("no space is left on the file system of")
    });
    drop(filler);
    program.until("the driver again", |status| driver(status)["health"] == "healthy");
}

#[test]
fn a_driver_whose_output_a_full_disk_does_not_take_is_told_with_that_and_comes_back_p3_log_01() {
    if std::env::var_os(INSIDE).is_some() {
        return launch_where_no_output_can_be_written();
    }
    run_apart(
        "a_driver_whose_output_a_full_disk_does_not_take_is_told_with_that_and_comes_back_p3_log_01",
        &["--user", "--map-root-user"],
    );
}

/// Starts an allocation while there is no room for its directories.
fn start_where_no_directory_can_be_made() {
    let late = allocation("late", "disks", "node", &[], "start = false");
    let stage = Stage::new(&format!("[restart]\nattempts = 1\ndelay = \"100ms\"\n{late}"));
    if !mount(&stage, "nr_inodes=100") {
        return;
    }
    let program = stage.run();
    program.until("a host that runs", |status| task(status, "late")["task"] == "stopped");
    let names = stage.data_dir().join("names");
    std::fs::create_dir(&names).expect("there is room for it");
    let taken = (0..).take_while(|number| std::fs::write(names.join(number.to_string()), "").is_ok()).count();
    assert!(taken < 100, "the file system has room for {taken} files");

    let started = within(&program, STATUS_WITHIN, &["start", "late"]);
    // It is tried more often than it may be restarted.
    let waits = "an allocation is not started yet";
    until_true("the third try", SICK_WITHIN, || program.log().matches(waits).count() >= 3);
    let status = program.json(&["status"]);
    let late = task(&status, "late");
    let event = late["last_event"].as_str().expect("a text");
    assert!(event.contains("No space left on device"), "{event}: {}", said(&started));
    assert_eq!(late["restarts"], 0);

    std::fs::remove_dir_all(&names).expect("it is ours");
    let status = program.until("the plugin", |status| task(status, "late")["health"] == "healthy");
    assert_eq!(task(&status, "late")["restarts"], 0);
}

#[test]
fn an_allocation_whose_directories_a_full_disk_does_not_let_be_made_starts_when_there_is_room_p3() {
    if std::env::var_os(INSIDE).is_some() {
        return start_where_no_directory_can_be_made();
    }
    run_apart(
        "an_allocation_whose_directories_a_full_disk_does_not_let_be_made_starts_when_there_is_room_p3",
        &["--user", "--map-root-user"],
    );
}
