//! Tests a host that is run with ignored signals, as `nohup` and background jobs of a shell do.

mod program;

use std::process::{Command, Output};

use program::driven::{find, until_running};
use program::{CALLBOARD, Stage};
use rustix::process::Signal;

/// Runs a command with these signals ignored, and waits for its end.
fn run_ignoring(signals: &str, command: &str) -> Output {
    let script = format!("trap '' {signals}; exec {command}");
    Command::new("/bin/sh").args(["-c", &script]).output().expect("there is a shell")
}

/// Whether none of the signals 1 to 31 is ignored; hosts do not handle real-time signals.
fn is_nothing_ignored(output: &Output) -> bool {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mask = text.strip_prefix("SigIgn:").expect("the line of the status");
    u64::from_str_radix(mask.trim(), 16).expect("a mask") & 0x7fff_ffff == 0
}

#[test]
fn a_program_inherits_from_its_host_no_signal_that_is_ignored() {
    let look = "grep SigIgn /proc/self/status";
    assert!(!is_nothing_ignored(&run_ignoring("HUP INT QUIT", look)), "the shell has them ignored");
    let output = run_ignoring("HUP INT QUIT", &format!("{CALLBOARD} bound -- {look}"));
    assert!(is_nothing_ignored(&output), "{output:?}");
}

#[test]
fn a_host_under_nohup_outlives_its_terminal_and_its_tasks_still_hear_their_signals() {
    let stage = Stage::new("");
    // A driver may also ignore signals on its own when it is started.
    let driver = format!("trap '' HUP; exec {CALLBOARD} plugin exec --name exec --allow-builtin-name");
    let script = "trap 'exit 7' HUP; echo began; while :; do sleep 0.05; done";
    stage.configure(&format!(
        "[[driver]]\nname = \"exec\"\ncommand = [\"/bin/sh\", \"-c\", {driver:?}]\n\
         [[task]]\nname = \"web\"\ndriver = \"exec\"\nkill_signal = \"SIGHUP\"\nstop_grace = \"60s\"\n\
         config = {{ command = \"/bin/sh\", args = [\"-c\", {script:?}] }}\n"
    ));
    let program = stage.run_through(&["/bin/sh", "-c", "trap '' HUP; exec \"$0\" \"$@\""]);
    until_running(&program, "web");
    program.signal(Signal::HUP);

    program.until("the task has begun", |_| {
        String::from_utf8_lossy(&program.ask(&["logs", "web"]).stdout).contains("began")
    });
    let stopped = program.json(&["stop", "web"]);
    let status = program.json(&["status"]);
    assert_eq!(find(&status, "tasks", "web")["exit"]["code"], 7, "{stopped:#} {status:#}");
    program.json(&["shutdown"]);
}
