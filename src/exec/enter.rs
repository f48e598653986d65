//! The steps of a process of a task before it execs the command: it enters the task's control groups, network and mounts, takes its
//! terminal, and becomes the task's user.
//!
//! The process is this program, started by the supervisor or the driver, since a process can do this only to itself. Until it
//! is the task's user it must not obey the task's environment (`LD_PRELOAD`): the variables are prefixed.
//!
//! ```text
//!  groups ─► network ─► mounts ─► terminal ─► user ─► exec of the command, with its environment, in the present directory
//!     └────────┴──────────┴───────────┴─────────┴────────┴─ error: through standard input if --reports, else as a message and exit code
//! ```

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{Gid, Uid, ioctl_tiocsctty, setsid};
use rustix::thread::{
    LinkNameSpaceType, move_into_link_name_space, set_thread_gid, set_thread_groups, set_thread_uid,
};
use serde::{Deserialize, Serialize};

use super::mounting;
use super::processes::TAG;
use super::record::{BoundMount, TaskContext};

/// The prefix of each variable of the task.
const PREFIX: &str = "task.";
/// The longest report that is read, in bytes.
const REPORT_BYTES_MAX: u64 = 64 * 1_024;
/// The first descriptor behind the standard streams.
const FIRST_FREE: i32 = 3;

/// How a process enters a task. `callboard plugin exec` starts this itself.
#[derive(Debug, Clone, Default, Args)]
pub struct EnterArgs {
    /// Enter this control group
    #[arg(long = "group", value_name = "DIRECTORY")]
    groups: Vec<PathBuf>,

    /// Enter this network namespace
    #[arg(long, value_name = "PATH")]
    network: Option<PathBuf>,

    /// Mount this for the task alone; as JSON
    #[arg(long = "mount", value_name = "JSON", value_parser = read_mount)]
    mounts: Vec<BoundMount>,

    /// Lead a session of its own, with standard input as its terminal
    #[arg(long)]
    terminal: bool,

    /// Become this user
    #[arg(long, value_name = "NUMBER", requires = "gid")]
    uid: Option<u32>,

    /// Become this group
    #[arg(long, value_name = "NUMBER")]
    gid: Option<u32>,

    /// Be a member of this group, too
    #[arg(long = "also-gid", value_name = "NUMBER")]
    also_gids: Vec<u32>,

    /// Report through standard input why there is no command
    #[arg(long, conflicts_with = "terminal")]
    reports: bool,

    /// The command and its arguments
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// Why the command was not started.
#[derive(Debug, thiserror::Error)]
#[error("cannot {doing}: {source}")]
pub struct EnterError {
    doing: String,
    source: io::Error,
}

/// The same, as it is sent to the process that started this one.
#[derive(Debug, Serialize, Deserialize)]
struct Report {
    doing: String,
    errno: Option<i32>,
    reason: String,
}

impl EnterError {
    /// The exit code of a process that ends for this reason, according to the convention of shells.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        if self.source.kind() == io::ErrorKind::NotFound { 127 } else { 126 }
    }

    pub(super) fn kind(&self) -> io::ErrorKind {
        self.source.kind()
    }
}

/// The start of a command in a task, by our own program. The caller still has to set directory and output.
pub(super) fn command(context: &TaskContext, groups: &[PathBuf]) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.args(["plugin", "exec-enter"]).env_clear();
    for group in groups {
        command.arg("--group").arg(group);
    }
    if let Some(network) = &context.network {
        command.arg("--network").arg(network);
    }
    for mount in &context.mounts {
        let text = serde_json::to_string(mount).expect("paths that came as text are text");
        command.arg("--mount").arg(text);
    }
    if let Some(user) = &context.user {
        command.args(["--uid", &user.uid.to_string(), "--gid", &user.gid.to_string()]);
        for gid in &user.groups {
            command.args(["--also-gid", &gid.to_string()]);
        }
    }
    command
}

fn read_mount(text: &str) -> Result<BoundMount, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// The variables of a task with a prefix, so that they have no effect before the exec.
pub(super) fn wrapped(
    variables: impl IntoIterator<Item = (impl AsRef<OsStr>, impl Into<OsString>)>,
) -> impl Iterator<Item = (OsString, OsString)> {
    variables.into_iter().map(|(name, value)| {
        let mut wrapped = OsString::from(PREFIX);
        wrapped.push(name);
        (wrapped, value.into())
    })
}

fn unwrapped(variables: impl Iterator<Item = (OsString, OsString)>) -> Vec<(OsString, OsString)> {
    let of_task = variables.filter_map(|(name, value)| {
        let name = match name == TAG {
            true => name,
            false => OsString::from_vec(name.as_bytes().strip_prefix(PREFIX.as_bytes())?.to_vec()),
        };
        Some((name, value))
    });
    of_task.collect()
}

/// Reads the report of a process that was started with `--reports`: empty once it has become the command.
pub(super) fn outcome(told: impl Read) -> Result<(), EnterError> {
    let mut text = Vec::new();
    // A report that cannot be read counts as no report; the exit of the process shows the rest.
    let _ = told.take(REPORT_BYTES_MAX).read_to_end(&mut text);
    let Ok(Report { doing, errno, reason }) = serde_json::from_slice(&text) else { return Ok(()) };
    let source = errno.map_or_else(|| io::Error::other(reason), io::Error::from_raw_os_error);
    Err(EnterError { doing, source })
}

/// Enters a task and execs the command. Returns only on failure.
#[must_use]
pub fn enter(args: &EnterArgs) -> EnterError {
    let report = match args.reports.then(keep_report).transpose() {
        Ok(report) => report,
        Err(source) => return EnterError { doing: "keep where to report".to_owned(), source },
    };
    let error = try_enter(args);
    if let Some(mut report) = report {
        let reason = error.source.to_string();
        let told = Report { doing: error.doing.clone(), errno: error.source.raw_os_error(), reason };
        // This fails only if the parent has died.
        let _ = report.write_all(&serde_json::to_vec(&told).unwrap_or_default());
    }
    error
}

/// Duplicates the report pipe from standard input, and replaces standard input by `/dev/null`.
fn keep_report() -> io::Result<File> {
    let kept = fcntl_dupfd_cloexec(rustix::stdio::stdin(), FIRST_FREE)?;
    rustix::stdio::dup2_stdin(OpenOptions::new().read(true).open("/dev/null")?)?;
    Ok(File::from(kept))
}

fn try_enter(args: &EnterArgs) -> EnterError {
    match prepare(args) {
        Err(error) => error,
        Ok(()) => {
            let (program, arguments) = args.command.split_first().expect("the arguments require one");
            let variables = unwrapped(std::env::vars_os());
            let program = in_task(program);
            let source = Command::new(&program).args(arguments).env_clear().envs(variables).exec();
            EnterError { doing: format!("run {:?}", program.display().to_string()), source }
        }
    }
}

/// A bare command name is looked up in `local` below the task's directory first, then in that directory, as by the drivers
/// built into Nomad (T044); then in `PATH`.
fn in_task(program: &OsStr) -> PathBuf {
    let is_bare = !program.as_bytes().contains(&b'/');
    let candidates = [Path::new("./local").join(program), Path::new(".").join(program)];
    let found = candidates.into_iter().find(|path| is_bare && path.is_file());
    found.unwrap_or_else(|| PathBuf::from(program))
}

fn prepare(args: &EnterArgs) -> Result<(), EnterError> {
    let failed = |doing: String| |error: io::Error| EnterError { doing, source: error };
    for group in &args.groups {
        let entered = OpenOptions::new()
            .write(true)
            .open(group.join("cgroup.procs"))
            .and_then(|mut processes| processes.write_all(b"0"));
        entered.map_err(failed(format!("enter the control group {}", group.display())))?;
    }
    if let Some(path) = &args.network {
        let entered = File::open(path).and_then(|network| {
            Ok(move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))?)
        });
        entered.map_err(failed(format!("enter the network namespace {}", path.display())))?;
    }
    mounting::enter(&args.mounts).map_err(|(doing, source)| EnterError { doing, source })?;
    if args.terminal {
        let taken = setsid().and_then(|_| ioctl_tiocsctty(rustix::stdio::stdin()));
        taken.map_err(|error| failed("take the terminal".to_owned())(error.into()))?;
    }
    if let (Some(uid), Some(gid)) = (args.uid, args.gid) {
        become_user(uid, gid, &args.also_gids)
            .map_err(|error| failed(format!("become user {uid} of group {gid}"))(error.into()))?;
    }
    Ok(())
}

/// Becomes a user irrevocably: this process has one thread, and all its user and group ids change.
fn become_user(uid: u32, gid: u32, also_gids: &[u32]) -> rustix::io::Result<()> {
    let also: Vec<Gid> = also_gids.iter().map(|gid| Gid::from_raw(*gid)).collect();
    if rustix::process::geteuid().is_root() {
        set_thread_groups(&also)?;
    }
    set_thread_gid(Gid::from_raw(gid))?;
    set_thread_uid(Uid::from_raw(uid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_a_task_mean_nothing_on_the_way_and_arrive_as_they_were() {
        let given = [("LD_PRELOAD", "/evil.so"), ("task.A", ""), ("B", "=")];
        let on_the_way: Vec<_> = wrapped(given).collect();
        assert!(on_the_way.iter().all(|(name, _)| name.as_bytes().starts_with(b"task.")));
        let others = [(OsString::from(TAG), OsString::from("word")), ("HOME".into(), "/root".into())];
        let arrived = unwrapped(on_the_way.into_iter().chain(others));
        let pair = |(name, value): (&str, &str)| (OsString::from(name), OsString::from(value));
        let mut expected: Vec<_> = given.into_iter().map(pair).collect();
        expected.push(pair((TAG, "word")));
        assert_eq!(arrived, expected);
    }

    #[test]
    fn what_was_told_is_the_reason_and_nothing_is_success() {
        assert!(outcome(&b""[..]).is_ok());
        let told = br#"{"doing":"run \"x\"","errno":2,"reason":"no"}"#;
        let error = outcome(&told[..]).expect_err("it was told");
        assert_eq!((error.kind(), error.exit_code()), (io::ErrorKind::NotFound, 127));
        assert!(error.to_string().starts_with("cannot run \"x\": No such file"), "{error}");
    }
}
