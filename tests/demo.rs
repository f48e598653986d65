//! Plays the demo from beginning to end on real processes, and interrupts it in every way.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "support/filler.rs"]
mod filler;
#[path = "support/preloaded.rs"]
mod preloaded;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use filler::Filler;
use preloaded::Preloaded;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Longer than the demo may take, so that a late end is reported by the demo itself.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The titles of the chapters.
const CHAPTERS: [&str; 16] = [
    "1. Two allocations register, interleaved",
    "2. Takeover, both ways",
    "3. A plugin is killed",
    "4. A plugin is not ready for a while",
    "5. The host is killed",
    "6. The host comes back, and its allocations in the wrong order",
    "7. The ordered end",
    "8. Tasks run through a driver",
    "9. The driver is killed",
    "10. The host is killed, and its driver is not",
    "11. Tasks first, then their driver",
    "12. Two tasks share a volume",
    "13. A newer version of the plugin replaces it under them",
    "14. The plugin is killed in the middle of a stage",
    "15. The host is killed between unpublish and unstage",
    "16. Tasks first, then their volumes, then the plugin",
];

/// Runs a command without root: its user has no rights except on its own files, even if the test runs as root.
const WITHOUT_ROOT: [&str; 5] = ["unshare", "--user", "--map-user=1000", "--map-group=1000", "--"];

/// A running demo, with its own directory for temporary files.
struct Demo {
    child: Child,
    lines: mpsc::Receiver<String>,
    seen: Vec<String>,
    temporary: TempDir,
}

impl Demo {
    fn play(arguments: &[&str]) -> Self {
        Self::play_through(&[], arguments)
    }

    /// Starts it through another command, which executes the demo.
    fn play_through(command: &[&str], arguments: &[&str]) -> Self {
        Self::play_as(command, arguments, &[])
    }

    /// Starts it with these variables in its environment.
    fn play_with(arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        Self::play_as(&[], arguments, environment)
    }

    fn play_as(command: &[&str], arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let temporary = TempDir::new().unwrap();
        let words = [command, &[env!("CARGO_BIN_EXE_callboard"), "demo"]].concat();
        let mut child = Command::new(words[0])
            .args(&words[1..])
            .args(arguments)
            .env("TMPDIR", temporary.path())
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (send, lines) = mpsc::channel();
        thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| send.send(line)));
        Self { child, lines, seen: Vec::new(), temporary }
    }

    /// Waits for a line that contains this text, and returns it.
    fn line_with(&mut self, text: &str) -> String {
        let given_up = Instant::now() + TIMEOUT;
        loop {
            let line = self.lines.recv_timeout(given_up - Instant::now());
            let line = line.unwrap_or_else(|_| panic!("no line with {text:?} in:\n{}", self.seen.join("\n")));
            self.seen.push(line.clone());
            if line.contains(text) {
                return line;
            }
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for its end; returns its exit status, its output and its error output.
    fn ended(&mut self) -> (ExitStatus, String, String) {
        let given_up = Instant::now() + TIMEOUT;
        while let Ok(line) = self.lines.recv_timeout(given_up - Instant::now()) {
            self.seen.push(line);
        }
        let mut complaints = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut complaints).unwrap();
        let status = self.child.wait().unwrap();
        (status, self.seen.join("\n"), complaints)
    }

    /// Checks that the directory for temporary files is empty again and that every process ends.
    fn left_nothing(&self) {
        let left: Vec<_> =
            fs::read_dir(self.temporary.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(left.is_empty(), "left behind: {left:?}");
        self.all_processes_end();
    }

    /// Waits until every process that the demo reported has ended. They are not our children, so the kernel sends no notification: they
    /// are polled.
    fn all_processes_end(&self) {
        let given_up = Instant::now() + TIMEOUT;
        let processes = process_numbers(&self.seen);
        while !processes.iter().all(|pid| is_gone(*pid)) {
            assert!(Instant::now() < given_up, "left of {processes:?}");
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether the system permits a demo to run under this command; otherwise reports that a test is skipped.
fn permits(command: &[&str], story: &str) -> bool {
    let tried = Command::new(command[0]).args(&command[1..]).arg("true").stderr(Stdio::null()).status();
    let is_permitted = tried.is_ok_and(|status| status.success());
    if !is_permitted {
        eprintln!("SKIPPED: {story} is not shown, since {command:?} is refused here");
    }
    is_permitted
}

/// Every process that the demo reports as started. A driver may be launched before anything subscribes; then a check shows it.
fn process_numbers(lines: &[String]) -> Vec<u32> {
    let told = ["run as process ", "event: started, process ", "[healthy, process "];
    let after = |line: &str, words| {
        let number = line.split_once(words)?.1;
        number.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    };
    lines.iter().filter_map(|line| told.iter().find_map(|words| after(line, words))).collect()
}

/// Whether a process has ended, also if it is not reaped yet.
fn is_gone(pid: u32) -> bool {
    let Ok(stat) = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")) else {
        return true;
    };
    stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z'))
}

#[test]
fn the_demo_plays_every_chapter_every_check_holds_and_nothing_is_left() {
    let began = Instant::now();
    let mut demo = Demo::play(&[]);
    let (status, output, complaints) = demo.ended();
    assert!(status.success(), "{status}\n{output}\n{complaints}");
    assert!(began.elapsed() < Duration::from_secs(90), "it took {:?}", began.elapsed());
    let is_all = !output.contains("volumes were not shown");
    let mut rest = output.as_str();
    for chapter in &CHAPTERS[..if is_all { 16 } else { 12 }] {
        let at =
            rest.find(chapter).unwrap_or_else(|| panic!("no chapter {chapter:?} in its place:\n{output}"));
        rest = &rest[at..];
    }
    assert!(output.matches('✓').count() >= if is_all { 80 } else { 40 }, "{output}");
    assert!(!output.contains('✗') && !output.contains('\u{1b}'), "{output}");
    let processes = process_numbers(&demo.seen);
    assert!(processes.len() >= 16, "{processes:?}\n{output}");
    demo.left_nothing();
}

#[test]
fn a_demo_that_takes_too_long_fails_and_leaves_nothing() {
    let mut demo = Demo::play(&["--limit", "700ms"]);
    let (status, output, complaints) = demo.ended();
    assert_eq!(status.code(), Some(1), "{output}");
    assert!(complaints.contains("was not over within 700ms"), "{complaints}");
    demo.left_nothing();
}

#[test]
fn a_demo_whose_host_dies_unexpectedly_says_so_fails_and_leaves_nothing() {
    let mut demo = Demo::play(&[]);
    let line = demo.line_with("→ host");
    let pid = process_numbers(&[line]).pop().expect("the first line tells the process of the host");
    demo.line_with("2. Takeover");
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL).unwrap();
    let (status, output, complaints) = demo.ended();
    assert_eq!(status.code(), Some(1), "{output}");
    assert!(complaints.contains("the host has ended by itself (signal 9)"), "{complaints}");
    demo.left_nothing();
}

#[test]
fn a_demo_that_is_interrupted_ends_everything_it_has_started() {
    let mut demo = Demo::play(&[]);
    demo.line_with("3. A plugin is killed");
    demo.signal(Signal::INT);
    let (status, output, complaints) = demo.ended();
    assert_eq!(status.code(), Some(130), "{output}\n{complaints}");
    demo.left_nothing();
}

/// If the demo runs as root, tasks that are killed with it leave their mounts.
#[test]
fn a_demo_that_is_interrupted_while_tasks_run_leaves_no_directory_and_no_mount() {
    let mut demo = Demo::play(&[]);
    demo.line_with("9. The driver is killed");
    demo.signal(Signal::INT);
    let (status, output, complaints) = demo.ended();
    assert_eq!(status.code(), Some(130), "{output}\n{complaints}");
    demo.left_nothing();
}

#[test]
fn a_demo_that_is_killed_takes_its_host_and_the_plugins_along() {
    let mut demo = Demo::play(&[]);
    demo.line_with("2. Takeover");
    demo.signal(Signal::KILL);
    let (status, ..) = demo.ended();
    assert!(!status.success());
    let processes = process_numbers(&demo.seen);
    assert!(processes.len() >= 3, "{processes:?}");
    demo.all_processes_end();
}

/// PRC-04: processes that outlive their host do not outlive the demo.
#[test]
fn a_demo_that_is_killed_takes_a_driver_and_tasks_along_that_outlive_their_host_prc_04() {
    for signal in [Signal::KILL, Signal::INT] {
        let mut demo = Demo::play(&[]);
        demo.line_with("→ task batch");
        demo.signal(signal);
        let (status, output, _) = demo.ended();
        assert!(!status.success(), "{output}");
        let driven = ["→ driver exec", "event: started, process "];
        assert!(driven.iter().all(|words| output.contains(words)), "{output}");
        demo.all_processes_end();
    }
}

#[test]
fn a_demo_that_is_to_keep_its_directory_keeps_it() {
    let mut demo = Demo::play(&["--keep", "--limit", "1ms"]);
    let (status, output, _) = demo.ended();
    assert_eq!(status.code(), Some(1));
    let kept = output.lines().find_map(|line| line.strip_prefix("Kept: ")).expect("it says where");
    assert!(fs::read_to_string(Path::new(kept).join("host.toml")).unwrap().contains("name = \"blue\""));
}

#[test]
fn a_demo_without_root_shows_volumes_in_a_user_namespace_of_its_own_and_leaves_nothing() {
    if !permits(
        &[&WITHOUT_ROOT[..], &["unshare", "--user", "--mount", "--map-root-user", "--"]].concat(),
        "it",
    ) {
        return;
    }
    let mut demo = Demo::play_through(&WITHOUT_ROOT, &["--part", "volumes"]);
    let (status, output, complaints) = demo.ended();
    assert!(status.success(), "{status}\n{output}\n{complaints}");
    assert!(output.matches('✓').count() >= 40 && !output.contains("not shown"), "{output}");
    assert_eq!(complaints, "");
    demo.left_nothing();
}

/// Interrupted while the plugin hangs in a call, volumes are mounted, and mount points are closed.
#[test]
fn a_demo_that_is_interrupted_while_volumes_are_in_use_leaves_no_directory_and_no_process() {
    let shows_volumes =
        [&WITHOUT_ROOT[..], &["unshare", "--user", "--mount", "--map-root-user", "--"]].concat();
    if !permits(&shows_volumes, "a demo that is interrupted while volumes are in use") {
        return;
    }
    for (command, line) in
        [(&WITHOUT_ROOT[..], "the call that did it is in flight"), (&[], "→ host              SIGKILL")]
    {
        let mut demo = Demo::play_through(command, &["--part", "volumes"]);
        demo.line_with(line);
        demo.signal(Signal::INT);
        let (status, output, complaints) = demo.ended();
        assert_eq!(status.code(), Some(130), "{output}\n{complaints}");
        assert_eq!(complaints.lines().count(), 1, "{complaints}");
        demo.left_nothing();
    }
}

#[test]
fn a_demo_that_may_mount_nowhere_says_so_plainly_and_fails_only_if_it_shows_nothing() {
    // The limits of a user namespace also apply to the namespaces below it.
    let forbid = "echo 0 > /proc/sys/user/max_user_namespaces && echo 0 > /proc/sys/user/max_mnt_namespaces && exec \"$@\"";
    let options = ["unshare", "--user", "--map-user=1000", "--map-group=1000", "--keep-caps", "--"];
    let forbidden = [&options[..], &["sh", "-c", forbid, "sh"]].concat();
    if !permits(&forbidden, "a demo that may mount nowhere") {
        return;
    }
    let told = "cannot make a user and mount namespace: the limit of user.max_user_namespaces";
    let mut demo = Demo::play_through(&forbidden, &["--part", "volumes"]);
    let (status, output, complaints) = demo.ended();
    assert_eq!(status.code(), Some(1), "{output}");
    assert!(output.contains(told) && output.contains("Mounts need root"), "{output}");
    assert!(complaints.contains("volumes were not shown") && complaints.contains(told), "{complaints}");
    demo.left_nothing();
}

#[test]
fn the_demo_on_a_slow_disk_plays_every_chapter_p3() {
    let directory = TempDir::new().unwrap();
    let preloaded = Preloaded::below(directory.path());
    preloaded.disk("slow");
    let mut demo = Demo::play_with(&["--limit", "80s"], &preloaded.environment());
    let (status, output, complaints) = demo.ended();
    assert!(status.success(), "{status}\n{output}\n{complaints}");
    assert!(output.matches('✓').count() >= 40 && !output.contains('✗'), "{output}");
    demo.left_nothing();
}

/// Checks the error output of a demo whose disk takes no writes: it names what could not be written, and what to do.
fn says_what_is_not_written(complaints: &str, what: &str) {
    for words in [what, "callboard-demo-", "make room there, or set TMPDIR to a directory on another disk"] {
        assert!(complaints.contains(words), "{words:?} is not in:\n{complaints}");
    }
}

/// The disk becomes sick before a plugin is killed: its standby takes over as on a sound disk. A later allocation is not registered, since
/// that would be a promise; so the demo ends, in its time and without leftovers.
fn the_disk_is_sick_from_the_third_chapter_on(state: &str, reason: &str) {
    let directory = TempDir::new().unwrap();
    let preloaded = Preloaded::below(directory.path());
    let mut demo = Demo::play_with(&[], &preloaded.environment());
    demo.line_with(CHAPTERS[2]);
    preloaded.disk(state);
    let taken_over = demo.line_with("process has ended, and");
    assert!(taken_over.contains('✓') && taken_over.contains("takes over"), "{taken_over}");
    let (status, output, complaints) = demo.ended();
    assert_eq!(status.code(), Some(1), "{output}");
    assert!(output.contains('✗') && !output.contains(CHAPTERS[4]), "{output}");
    says_what_is_not_written(&complaints, reason);
    says_what_is_not_written(&complaints, "not on disk: registration csi-");
    demo.left_nothing();
}

#[test]
fn a_demo_whose_disk_is_full_sees_the_takeover_and_leaves_nothing_shell_1a() {
    the_disk_is_sick_from_the_third_chapter_on("full", "no space is left");
}

#[test]
fn a_demo_whose_disk_hangs_sees_the_takeover_and_leaves_nothing_shell_1a() {
    the_disk_is_sick_from_the_third_chapter_on("hang", "no answer within 3s");
}

#[test]
fn a_demo_whose_disk_fails_its_syncs_sees_the_takeover_and_leaves_nothing_shell_1a() {
    the_disk_is_sick_from_the_third_chapter_on("lost", "Input/output error");
}

#[test]
fn a_demo_on_a_disk_that_takes_no_writes_from_the_start_says_what_it_cannot_write_and_leaves_nothing_p3() {
    for (state, reason) in [
        ("full", "callboard.redb: no space is left"),
        ("lost", "callboard.redb: Input/output error"),
        ("hang", "the database is not open yet: its disk does not answer"),
    ] {
        let directory = TempDir::new().unwrap();
        let preloaded = Preloaded::below(directory.path());
        preloaded.disk(state);
        let began = Instant::now();
        let mut demo = Demo::play_with(&[], &preloaded.environment());
        let (status, output, complaints) = demo.ended();
        assert_eq!(status.code(), Some(1), "{output}");
        assert!(began.elapsed() < Duration::from_secs(60), "it took {:?}", began.elapsed());
        assert!(output.contains(CHAPTERS[0]) && !output.contains('✓'), "{output}");
        says_what_is_not_written(&complaints, reason);
        demo.left_nothing();
    }
}

/// A part of the demo whose disk becomes sick when this line is printed. Whatever needs no disk continues; the part ends where a write
/// must be on disk, within its time and without leftovers.
fn the_disk_is_sick_from(part: &str, line: &str, state: &str, unwritten: &str) {
    let directory = TempDir::new().unwrap();
    let preloaded = Preloaded::below(directory.path());
    let mut demo = Demo::play_with(&["--part", part], &preloaded.environment());
    demo.line_with(line);
    preloaded.disk(state);
    let (status, output, complaints) = demo.ended();
    assert_eq!(status.code(), Some(1), "{output}");
    says_what_is_not_written(&complaints, unwritten);
    demo.left_nothing();
}

#[test]
fn a_demo_of_tasks_whose_disk_becomes_sick_says_what_is_not_written_and_leaves_nothing_shell_1a() {
    for state in ["full", "lost", "hang"] {
        the_disk_is_sick_from("tasks", "The driver is killed", state, "not on disk: ");
    }
}

#[test]
fn a_demo_of_volumes_whose_disk_becomes_sick_says_what_is_not_written_and_leaves_nothing_shell_1a() {
    let shows_volumes = ["unshare", "--user", "--mount", "--map-root-user", "--"];
    if !permits(&shows_volumes, "a demo of volumes whose disk becomes sick") {
        return;
    }
    for state in ["full", "lost", "hang"] {
        the_disk_is_sick_from("volumes", "A newer version of the plugin", state, "not on disk: ");
    }
}

/// A part of the demo whose directory for temporary files is a file system of 16 MiB. It is filled before the demo begins, or when this
/// line is printed. No library intercepts system calls. Returns the exit code, the output and the error output.
fn play_on_a_small_file_system(part: &str, filled_at: Option<&str>) -> (Option<i32>, String, String) {
    let small = std::env::temp_dir();
    let fill = || Filler::take_all_room(small.join("filler"));
    let (mut demo, filler);
    if let Some(line) = filled_at {
        demo = Demo::play(&["--part", part]);
        demo.line_with(line);
        filler = fill();
    } else {
        filler = fill();
        demo = Demo::play(&["--part", part]);
    }
    let (status, output, complaints) = demo.ended();
    demo.left_nothing();
    drop(filler);
    assert_eq!(fs::read_dir(&small).unwrap().count(), 1, "only the directory that is as empty as before");
    (status.code(), output, complaints)
}

/// A demo that has no room for its first file, one that cannot start its host, and one whose disk fills up in the middle of a chapter.
#[test]
fn a_demo_on_a_file_system_that_fills_up_says_so_fails_and_leaves_nothing_p3() {
    const INSIDE: &str = "SMALL_DEMO_INSIDE";
    const NAME: &str = "a_demo_on_a_file_system_that_fills_up_says_so_fails_and_leaves_nothing_p3";
    const ROOT: &str = "root";
    if let Ok(inside) = std::env::var(INSIDE) {
        let small = std::env::temp_dir();
        let mut mount = Command::new("mount");
        let mounted = mount.args(["-t", "tmpfs", "-o", "size=16m,mode=0700", "tmpfs"]).arg(&small).output();
        let mounted = mounted.unwrap();
        if !mounted.status.success() {
            return eprintln!(
                "NOT RUN: nothing can be mounted here: {}",
                String::from_utf8_lossy(&mounted.stderr)
            );
        }
        let fails = |part, filled_at, reason| {
            let (code, output, complaints) = play_on_a_small_file_system(part, filled_at);
            assert_eq!(code, Some(1), "{output}");
            says_what_is_not_written(&complaints, reason);
        };
        fails("storage", None, "host.toml: No space left on device");
        fails("storage", Some(CHAPTERS[0]), "no space is left");
        // From here on the database may have enough free room in its own file: then everything continues, and every check passes.
        let (code, output, complaints) = play_on_a_small_file_system("storage", Some(CHAPTERS[2]));
        if code == Some(0) {
            assert!(output.matches('✓').count() >= 20 && !output.contains('✗'), "{output}");
        } else {
            assert_eq!(code, Some(1), "{output}");
            says_what_is_not_written(&complaints, "no space is left");
        }
        if inside == ROOT {
            fails("tasks", Some("The driver is killed"), "no space is left");
            fails("volumes", Some("A newer version of the plugin"), "no space is left");
        } else {
            eprintln!("NOT RUN: only root has other users to run the tasks of the demo as");
        }
        return;
    }
    let is_root = rustix::process::geteuid().is_root();
    let mut apart = vec!["unshare", "--mount", "--propagation", "private"];
    apart.extend(if is_root { &["--"][..] } else { &["--user", "--map-root-user", "--"] });
    if !permits(&apart, "a demo on a small file system") {
        return;
    }
    let small = TempDir::new().unwrap();
    let mut inside = Command::new(apart[0]);
    inside.args(&apart[1..]).arg(std::env::current_exe().unwrap()).args(["--exact", NAME, "--nocapture"]);
    let played = inside
        .env(INSIDE, if is_root { ROOT } else { "a user" })
        .env("TMPDIR", small.path())
        .output()
        .unwrap();
    let said =
        [played.stdout, played.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    eprint!("{said}");
    assert!(played.status.success() && said.contains("1 passed"), "{}", played.status);
}
