//! Tests processes of plugins with real processes: bound to their host, stopped in order, always reaped.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use callboard::process::{
    Binder, EndedBy, LogSpec, Process, ProcessEnding, ProcessExit, ProcessSpec, launch, usual_environment,
};
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

const CALLBOARD: &str = env!("CARGO_BIN_EXE_callboard");
/// Far more than any step of these tests takes.
const TIMEOUT: Duration = Duration::from_secs(20);

fn story<F: Future<Output = ()>>(tell: impl FnOnce(TempDir) -> F) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    actix_rt::System::new()
        .block_on(async { timeout(TIMEOUT, tell(directory)).await })
        .expect("it ends in time");
}

fn shell(directory: &Path, script: &str) -> ProcessSpec {
    ProcessSpec {
        name: "a".to_owned(),
        program: PathBuf::from("/bin/sh"),
        arguments: vec!["-c".to_owned(), script.to_owned()],
        environment: usual_environment(),
        log: LogSpec::at(directory.join("logs/a.log")),
    }
}

fn started(directory: &Path, script: &str) -> Process {
    launch(&shell(directory, script), &Binder::program(CALLBOARD)).expect("a shell starts")
}

async fn ran(directory: &Path, script: &str) -> ProcessEnding {
    started(directory, script).ended().await
}

/// Waits until a file has a line, and returns it.
async fn line_of(path: &Path) -> String {
    loop {
        match std::fs::read_to_string(path) {
            Ok(text) if text.ends_with('\n') => return text.trim().to_owned(),
            Ok(_) | Err(_) => sleep(Duration::from_millis(5)).await,
        }
    }
}

/// Whether there is a process with this number that is not a zombie.
fn lives(pid: &str) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    !stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z'))
}

async fn is_gone(pid: &str) {
    while lives(pid) {
        sleep(Duration::from_millis(5)).await;
    }
}

#[test]
fn an_exit_code_a_signal_and_the_last_words_are_told_log_05() {
    story(|directory| async move {
        let ending = ran(directory.path(), "echo starting; echo 'no pool named tank' >&2; exit 3").await;
        assert_eq!(ending.to_string(), "exit code 3, last output: starting | no pool named tank");
        let ending = ran(directory.path(), "kill -SEGV $$").await;
        assert_eq!((ending.exit, ending.by), (ProcessExit::Signal(11), EndedBy::Itself));
        let log = std::fs::read_to_string(directory.path().join("logs/a.log")).expect("the log");
        assert_eq!(log, "starting\nno pool named tank\n", "the log holds the output of both runs");
    });
}

#[test]
fn a_command_that_cannot_be_executed_ends_with_the_reason() {
    story(|directory| async move {
        for (program, code, reason) in
            [("/nowhere/plugin", 127, "No such file or directory"), ("/etc/passwd", 126, "Permission denied")]
        {
            let spec = ProcessSpec { program: PathBuf::from(program), ..shell(directory.path(), "") };
            let process = launch(&spec, &Binder::program(CALLBOARD)).expect("our own program starts");
            let ending = process.ended().await;
            assert_eq!(ending.exit, ProcessExit::Code(code));
            let words = ending.last_words.expect("it says why");
            assert!(words.contains(program) && words.contains(reason), "{words}");
        }
    });
}

#[test]
fn a_log_that_cannot_be_written_is_told_before_anything_starts() {
    story(|directory| async move {
        std::fs::write(directory.path().join("logs"), "a file").expect("a file in the way");
        let error =
            launch(&shell(directory.path(), "true"), &Binder::program(CALLBOARD)).expect_err("in the way");
        assert!(error.to_string().starts_with("cannot open the log /"), "{error}");
    });
}

#[test]
fn the_environment_is_what_the_spec_says_and_nothing_else() {
    story(|directory| async move {
        let mut spec = shell(directory.path(), "env");
        spec.program = PathBuf::from("/usr/bin/env");
        spec.arguments = vec![];
        spec.environment = BTreeMap::from([("CSI_ENDPOINT".to_owned(), "unix:///s".to_owned())]);
        let ending = launch(&spec, &Binder::program(CALLBOARD)).expect("it starts").ended().await;
        assert_eq!(ending.exit, ProcessExit::Code(0));
        let log = std::fs::read_to_string(directory.path().join("logs/a.log")).expect("the log");
        assert_eq!(log, "CSI_ENDPOINT=unix:///s\n");
    });
}

#[test]
fn a_process_that_is_asked_to_end_ends_by_sigterm() {
    story(|directory| async move {
        let mark = directory.path().join("ready");
        let script =
            format!("trap 'exit 7' TERM; echo $$ > {}; while :; do sleep 0.01; done", mark.display());
        let process = started(directory.path(), &script);
        line_of(&mark).await;
        process.stop(Duration::from_secs(10));
        let ending = process.ended().await;
        assert_eq!((ending.exit, ending.by), (ProcessExit::Code(7), EndedBy::Request));
        assert_eq!(ending.to_string(), "exit code 7 when asked to end");
    });
}

#[test]
fn a_process_that_ignores_sigterm_is_killed_after_its_grace() {
    story(|directory| async move {
        let mark = directory.path().join("ready");
        let script = format!("trap '' TERM; echo $$ > {}; while :; do sleep 0.01; done", mark.display());
        let process = started(directory.path(), &script);
        line_of(&mark).await;
        let asked = Instant::now();
        process.stop(Duration::from_millis(300));
        let ending = process.ended().await;
        assert_eq!((ending.exit, ending.by), (ProcessExit::Signal(9), EndedBy::Force));
        assert!(asked.elapsed() >= Duration::from_millis(300));
    });
}

#[test]
fn what_a_process_leaves_of_its_group_ends_with_it() {
    story(|directory| async move {
        let mark = directory.path().join("child");
        let script = format!("sleep 1000 & echo $! > {}; exit 0", mark.display());
        let ending = ran(directory.path(), &script).await;
        assert_eq!(ending.exit, ProcessExit::Code(0));
        is_gone(&line_of(&mark).await).await;
    });
}

#[test]
fn a_process_whose_handle_is_lost_is_killed_and_reaped_prc_02() {
    story(|directory| async move {
        let process = started(directory.path(), "sleep 1000");
        let pid = process.pid().to_string();
        let ended = process.ended();
        drop(process);
        assert_eq!(ended.await.by, EndedBy::Force);
        assert!(!Path::new("/proc").join(pid).exists(), "not even a zombie is left");
    });
}

#[test]
fn two_hundred_processes_started_and_given_up_leave_no_zombie_and_no_descriptor_prc_10() {
    story(|directory| async move {
        let descriptors = || std::fs::read_dir("/proc/self/fd").expect("our descriptors").count();
        ran(directory.path(), "true").await;
        let before = descriptors();
        let mut pids = Vec::new();
        for round in 0..200_u32 {
            let process = started(directory.path(), "sleep 1000");
            pids.push(process.pid());
            match round % 3 {
                0 => process.stop(Duration::ZERO),
                1 => process.stop(Duration::from_secs(5)),
                _ => {}
            }
            let ended = process.ended();
            if round % 3 == 2 {
                drop(process);
            }
            ended.await;
        }
        for pid in pids {
            assert!(!Path::new("/proc").join(pid.to_string()).exists(), "process {pid} is left");
        }
        // The other tests of this file run in this process too, so a few descriptors are opened and closed meanwhile.
        while descriptors() > before + 50 {
            sleep(Duration::from_millis(20)).await;
        }
    });
}

#[test]
fn the_kernel_kills_a_process_whose_host_is_killed_prc_04() {
    story(|directory| async move {
        let mark = directory.path().join("plugin");
        // A shell plays the host: it starts a bound process as `run` does, and is killed with SIGKILL.
        let plugin = format!("echo $$ > {}; exec sleep 1000", mark.display());
        let script = format!("{CALLBOARD} bound --parent $$ -- /bin/sh -c '{plugin}' & wait");
        let mut host = Command::new("/bin/sh").args(["-c", &script]).spawn().expect("a shell starts");
        let pid = line_of(&mark).await;
        assert!(lives(&pid));
        host.kill().expect("it lives");
        host.wait().expect("it is our child");
        timeout(Duration::from_secs(1), is_gone(&pid)).await.expect("it is gone within a second");
    });
}

#[test]
fn a_process_whose_host_died_before_it_was_bound_does_not_start_prc_04() {
    let output = Command::new(CALLBOARD)
        .args(["bound", "--parent", "1", "--", "/bin/echo", "started"])
        .stdin(Stdio::null())
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said.trim(), "callboard: the host process 1 has ended; \"/bin/echo\" is not started");
}

/// Runs the keeper of a host that has ended already, until it has done its work.
fn keep_for_a_dead_host(tag: &str) {
    let mut keeper = Command::new(CALLBOARD).arg("keeper").stdin(Stdio::piped()).spawn().expect("it starts");
    let mut host = keeper.stdin.take().expect("a pipe");
    host.write_all(format!("{tag}\n\n").as_bytes()).expect("it listens");
    drop(host);
    assert!(keeper.wait().expect("it is our child").success());
}

/// A process that is killed at the end of the test, whatever its result.
struct Left(Child);

impl Left {
    fn start(command: &mut Command) -> Self {
        Self(command.process_group(0).spawn().expect("it starts"))
    }

    async fn ends(&mut self) -> bool {
        // A killed process may need a moment to disappear.
        let pid = self.0.id().to_string();
        timeout(Duration::from_millis(500), is_gone(&pid)).await.is_ok()
    }
}

impl Drop for Left {
    fn drop(&mut self) {
        // A process that has ended already needs no signal.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn what_a_killed_host_leaves_ends_also_in_the_middle_of_an_exec_prc_04() {
    story(|directory| async move {
        let again = "exec /bin/sh -c \"$0\" \"$0\"";
        let mut left = 0;
        for round in 0..40 {
            let tag = format!("{:016x}{round:016x}", std::process::id());
            let mark = directory.path().join(format!("{round}"));
            let script = format!("echo $$ > {}; {again}", mark.display());
            let mut command = Command::new(CALLBOARD);
            command.args(["bound", "--tag", &tag, "--", "/bin/sh", "-c", &script, again]);
            let mut process = Left::start(&mut command);
            line_of(&mark).await;
            keep_for_a_dead_host(&tag);
            left += u32::from(!process.ends().await);
        }
        assert_eq!(left, 0, "of 40");
    });
}

#[test]
fn what_is_not_of_a_dead_host_or_has_left_its_group_is_not_touched_by_its_keeper_prc_01_prc_03() {
    story(|_| async move {
        let tag = format!("{:032x}", u128::from(std::process::id()) << 64);
        let mut command = Command::new("/bin/sleep");
        let mut without_environment = Left::start(command.arg("600").env_clear());
        let mut moved = Left::start(command.env("CALLBOARD_BOUND", format!("{tag}:1")));
        let mut leashed = Left::start(command.env("CALLBOARD_BOUND", format!("{tag}:any")));
        keep_for_a_dead_host(&tag);
        assert!(leashed.ends().await);
        for process in [&mut without_environment, &mut moved] {
            assert!(process.0.try_wait().expect("it is our child").is_none());
        }
    });
}
