//! A user and mount namespace for the demo, in which it may mount without root.
//!
//! ```text
//!   demo ──pipe──► `callboard namespace hold`: makes the namespace, and keeps it until the pipe is closed
//!     └──spawns──► `callboard namespace enter`: enters it, and becomes a host
//! ```
//!
//! Its mounts are visible only in it, and end with its last process. A program with one thread has to make and enter it, so the demo itself
//! stays outside.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use callboard_actors::mounts::MountTable;
use rustix::io::Errno;
use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::process::{getegid, geteuid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, LinkNameSpaceType, UnshareFlags, configure_capability_in_ambient_set,
    move_into_link_name_space, set_capabilities,
};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdin, Command as Spawning};

use super::error::DemoError;

/// The holder's message when the namespace exists. Any other message is the reason why it does not.
const MADE: &str = "made";
/// The user id of root in a user namespace of its own. It must not be 0: a host that is root gives directories of tasks to `nobody`, and
/// such a namespace has only one user.
const USER_OF_ROOT: u32 = 1000;

const MAKING: &str = "make a user and mount namespace";

/// Why the system refuses a namespace.
#[derive(Debug, thiserror::Error)]
#[error("cannot {doing}: {source}")]
pub(crate) struct NamespaceError {
    doing: &'static str,
    source: io::Error,
}

fn failed<E: Into<io::Error>>(doing: &'static str) -> impl FnOnce(E) -> NamespaceError {
    move |source| NamespaceError { doing, source: source.into() }
}

/// Makes a namespace, reports the result on standard output, and keeps the namespace until standard input ends.
///
/// # Errors
/// When standard output cannot be written, or standard input not read.
pub(crate) fn hold() -> io::Result<()> {
    let said = make().map_or_else(|error| error.to_string(), |()| MADE.to_owned());
    writeln!(io::stdout(), "{}", said.escape_debug())?;
    io::copy(&mut io::stdin().lock(), &mut io::sink()).map(drop)
}

fn make() -> Result<(), NamespaceError> {
    // Root may mount without another user namespace, unless it is the root of a container.
    if !(geteuid().is_root() && unshare(UnshareFlags::NEWNS).is_ok()) {
        make_for_user()?;
    }
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .map_err(failed("keep the mounts of a mount namespace to itself"))
}

/// Makes a user namespace with one user and one group, the present ones, and a mount namespace that belongs to it.
fn make_for_user() -> Result<(), NamespaceError> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS).map_err(|error| match error {
        // "No space left on device" would be mistaken for a full disk.
        Errno::NOSPC | Errno::USERS => {
            let limits = "the limit of user.max_user_namespaces or user.max_mnt_namespaces is reached";
            failed(MAKING)(io::Error::other(limits))
        }
        error => failed(MAKING)(error),
    })?;
    let inside = |id| if id == 0 { USER_OF_ROOT } else { id };
    let write = |file, text: String| {
        fs::write(Path::new("/proc/self").join(file), text)
            .map_err(failed("name the user of a user namespace"))
    };
    write("setgroups", "deny".to_owned())?;
    write("uid_map", format!("{} {user} 1", inside(user)))?;
    write("gid_map", format!("{} {group} 1", inside(group)))
}

#[allow(deprecated, reason = "what takes its place is unsafe, for flags that are not used here")]
fn unshare(flags: UnshareFlags) -> rustix::io::Result<()> {
    rustix::thread::unshare(flags)
}

/// Enters the namespaces of the holder with this process id, and becomes a command with the right to mount. Returns only on failure.
#[must_use]
pub(crate) fn enter(holder: u32, command: &[OsString]) -> NamespaceError {
    let Some((program, arguments)) = command.split_first() else {
        return failed("become a command")(io::Error::from(io::ErrorKind::InvalidInput));
    };
    if let Err(error) = join(holder) {
        return error;
    }
    failed("become a host in the namespace of the demo")(Command::new(program).args(arguments).exec())
}

fn join(holder: u32) -> Result<(), NamespaceError> {
    let doing = "enter the namespace of the demo";
    let of_holder = |name: &str| PathBuf::from(format!("/proc/{holder}/ns/{name}"));
    let (own, its) = (fs::read_link("/proc/self/ns/user"), fs::read_link(of_holder("user")));
    let users = its.map_err(failed(doing))? != own.map_err(failed(doing))?;
    let enter = |name: &str, kind| {
        let namespace = File::open(of_holder(name)).map_err(failed(doing))?;
        move_into_link_name_space(namespace.as_fd(), Some(kind)).map_err(failed(doing))
    };
    if users {
        enter("user", LinkNameSpaceType::User)?;
    }
    enter("mnt", LinkNameSpaceType::Mount)?;
    if users { keep_right_to_mount() } else { Ok(()) }
}

/// A user who is not root has all rights in the namespace until its program execs another. This keeps the right to mount.
fn keep_right_to_mount() -> Result<(), NamespaceError> {
    let right = CapabilitySet::SYS_ADMIN;
    set_capabilities(None, CapabilitySets { effective: right, permitted: right, inheritable: right })
        .and_then(|()| configure_capability_in_ambient_set(right, true))
        .map_err(failed("keep the right to mount"))
}

/// The namespace, which the demo keeps until this value is dropped.
#[derive(Debug)]
pub(super) struct Namespace {
    holder: Child,
    pid: u32,
    pipe: ChildStdin,
}

impl Namespace {
    /// Makes a namespace. The text is the reason why the system refuses it.
    pub(super) async fn make(program: &Path) -> Result<Result<Self, String>, DemoError> {
        let failed = |source| DemoError::Start { program: program.to_owned(), source };
        let mut command = Spawning::new(program);
        // In a process group of its own: Ctrl-C reaches only the demo.
        command.args(["namespace", "hold"]).process_group(0).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut holder = command.spawn().map_err(failed)?;
        let (Some(pid), Some(pipe), Some(output)) = (holder.id(), holder.stdin.take(), holder.stdout.take())
        else {
            return Err(failed(io::Error::other("it has no pipes")));
        };
        let mut said = String::new();
        BufReader::new(output).read_line(&mut said).await.map_err(failed)?;
        match said.trim_end() {
            MADE => Ok(Ok(Self { holder, pid, pipe })),
            "" => Ok(Err("the process that was to make a namespace has ended without a report".to_owned())),
            reason => Ok(Err(reason.to_owned())),
        }
    }

    /// The arguments with which our program runs a command in it; the command follows.
    pub(super) fn arguments(&self) -> [String; 5] {
        ["namespace", "enter", "--holder", &self.pid.to_string(), "--"].map(str::to_owned)
    }

    /// The mounts in it.
    pub(super) fn mounts(&self) -> Result<MountTable, DemoError> {
        let path = PathBuf::from(format!("/proc/{}/mountinfo", self.pid));
        let table = fs::read(&path).and_then(|text| MountTable::parse(&text).map_err(io::Error::other));
        table.map_err(|source| DemoError::File { what: "read", path, source })
    }

    /// Releases it: it ends with its last process.
    pub(super) async fn release(self) {
        let Self { mut holder, pipe, .. } = self;
        drop(pipe);
        // It has already ended if it was killed.
        let _ = holder.wait().await;
    }
}
