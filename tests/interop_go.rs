//! Our driver with a host on the official Go packages, and our host with a driver on them.
//!
//! The Go programs are in `tests/interop/go`. They are built where `go` is found and the modules can be had; where not, each of
//! these tests says on standard error what it did not show.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

const CALLBOARD: &str = env!("CARGO_BIN_EXE_callboard");

/// Where the Go programs are, or why they are not.
fn go_programs() -> Result<&'static Path, &'static str> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = BUILT.get_or_init(build);
    built.as_deref().map_err(String::as_str)
}

fn build() -> Result<PathBuf, String> {
    let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop/go");
    let programs = Path::new(env!("CARGO_TARGET_TMPDIR")).join("interop-go");
    let go = |arguments: &[&str]| {
        let mut command = Command::new("go");
        command.args(arguments).current_dir(&module).stdin(Stdio::null()).output()
    };
    match go(&["list", "-deps", "-f", "", "./..."]) {
        Err(error) => return Err(format!("there is no go: {error}")),
        Ok(listed) if !listed.status.success() => {
            return Err(format!("the modules cannot be had: {}", String::from_utf8_lossy(&listed.stderr)));
        }
        Ok(_) => {}
    }
    // One package at a time: the packages are many, and this is not the only test that runs.
    let output = programs.to_str().expect("a path that is text");
    let built = go(&["build", "-buildvcs=false", "-p", "1", "-o", &format!("{output}/"), "./..."])
        .expect("it ran before");
    assert!(
        built.status.success(),
        "the Go programs do not build: {}",
        String::from_utf8_lossy(&built.stderr)
    );
    Ok(programs)
}

/// The Go programs, or none after it has been said what is not shown.
fn go_programs_or_say(what: &str) -> Option<&'static Path> {
    match go_programs() {
        Ok(programs) => Some(programs),
        Err(why) => {
            eprintln!("SKIPPED: {what} is not shown, since {why}");
            None
        }
    }
}

/// Runs the Go host and gives the lines that it printed; it prints one for each step that was as it should be.
fn host(programs: &Path, arguments: &[&str]) -> Vec<String> {
    let mut command = Command::new(programs.join("host"));
    let Output { status, stdout, stderr } =
        command.args(arguments).stdin(Stdio::null()).output().expect("it runs");
    let (said, log) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "the Go host failed after these steps:\n{said}\nits log:\n{log}");
    said.lines().map(str::to_owned).collect()
}

#[test]
fn a_host_on_the_go_packages_runs_tasks_through_our_driver_and_recovers_one_after_a_kill() {
    let Some(programs) = go_programs_or_say("our driver under a Go host") else { return };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let said = host(programs, &["run", CALLBOARD, directory.path().to_str().expect("text")]);
    assert_eq!(
        said,
        [
            "plugin exec, type driver, api [v0.1.0]",
            "capabilities: signals true, exec true",
            "healthy",
            "event of task-1: started",
            "output: good evening",
            "task-1 is running",
            "stats: memory and processes",
            "exec: code 3",
            "exec streaming: code 0",
            "task-1 exited: code 5, signal 0",
            "event of task-1: exited",
            "task-1 destroyed",
            "task-2 stopped",
            "driver killed",
            "task-3 recovered",
            "task-3 exited: code 7, signal 0",
            "driver ended",
        ]
    );
}

#[test]
fn a_host_on_the_go_packages_dies_and_the_next_one_reattaches_to_our_driver_prc_07() {
    let Some(programs) = go_programs_or_say("our driver reattached by a Go host") else { return };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let place = directory.path().to_str().expect("text");
    assert_eq!(host(programs, &["begin", CALLBOARD, place]), ["left behind: driver and task-4"]);
    // The pipes of the driver's output ended with its host; it must not end with them.
    let said = host(programs, &["resume", place]);
    assert_eq!(said, ["reattached", "task-4 is running", "task-4 exited: code 9, signal 0", "driver ended"]);
}
