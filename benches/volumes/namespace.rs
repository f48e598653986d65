//! A user and mount namespace of its own, in which a plugin may mount without being root.

use std::process::{Command, Stdio};

/// Set in the process that runs inside.
const INSIDE: &str = "CALLBOARD_BENCH_NAMESPACE";

pub(crate) fn is_own() -> bool {
    std::env::var_os(INSIDE).is_some()
}

/// Runs this program again inside the namespace; or prints that this is impossible.
pub(crate) fn run_in_own() {
    if !unshare("true".as_ref()).stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
        println!("not measured: volumes need a mount namespace, which is refused here");
        return;
    }
    let program = std::env::current_exe().expect("this program has a path");
    let mut inside = unshare(program.as_os_str());
    let status = inside.args(std::env::args_os().skip(1)).env(INSIDE, "1").status();
    let status = status.expect("it has run before");
    std::process::exit(status.code().unwrap_or(1));
}

fn unshare(program: &std::ffi::OsStr) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "--"]).arg(program);
    command
}
