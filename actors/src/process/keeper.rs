//! The keeper: a process beside the host that ends the leftovers of its plugins' process groups after the host was killed.
//!
//! The kernel kills a plugin's own process with its host, but not its descendants: a shell that wraps the plugin dies and
//! the plugin lives on as an orphan process. So the host starts a keeper with a pipe to it. When the host ends in any way,
//! the kernel closes the pipe, and the keeper kills the remaining processes in the host's process groups.
//!
//! Foreign processes are never hit: a process is ours only if its environment has the mark with this host's random tag *and*
//! it is still in the group that the mark names; and the signal is sent through a file descriptor of the very process that
//! was checked (no PID reuse). A mark may also name any group: that of processes that survive their host on purpose but
//! must not survive a demonstration. Processes that left their group on purpose, such as a mount helper in its own session,
//! are left running, as in a graceful stop.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, BufRead, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal, setsid};

use super::bound::Binder;
use super::environment::Environment;
use super::guard;
use super::system::{ProcessStatus, random_bytes};
use crate::vocabulary::hex;

/// The subcommand of our program that calls [`keep`].
const SUBCOMMAND: &str = "keeper";
/// The environment variable that marks a process: the host's tag, a colon, and the id of its process group.
pub(super) const MARK: &str = "CALLBOARD_BOUND";
/// The value in place of a group id when the mark is valid in any group.
const ANY_GROUP: &str = "any";
/// The limit of searches; each finds processes that were forked since the one before.
const LOOKS_MAX: usize = 250;
/// The limit of retries that find only processes with an unknown environment, since they are in the middle of an `exec`.
const VAIN_LOOKS_MAX: usize = 25;
const PAUSE: Duration = Duration::from_millis(20);

/// The host's end of its keeper.
#[derive(Debug)]
pub struct Keeper {
    tag: String,
    pipe: ChildStdin,
    child: Child,
}

impl Keeper {
    /// Starts the keeper of this host.
    ///
    /// # Errors
    /// When the system cannot provide random bytes, a process or a pipe.
    pub fn start() -> io::Result<Self> {
        Self::started(Path::new(""))
    }

    /// Starts the keeper of this host with a guard: processes that survive the host and write below this directory cannot
    /// fill the disk while no host reads it.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_with_outputs(outputs: &Path) -> io::Result<Self> {
        Self::started(outputs)
    }

    fn started(outputs: &Path) -> io::Result<Self> {
        let tag = random_tag()?;
        // Through the intermediate stage: the keeper survives the host and must keep none of its file descriptors.
        let mut child = Binder::this_program()
            .command_of_its_own(Path::new("/proc/self/exe"), Some(Path::new("callboard")))
            .arg(SUBCOMMAND)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()?;
        let mut pipe = child.stdin.take().ok_or_else(|| io::Error::other("it has no pipe"))?;
        writeln!(pipe, "{tag}")?;
        pipe.write_all(&[outputs.as_os_str().as_encoded_bytes(), b"\n"].concat())?;
        Ok(Self { tag, pipe, child })
    }

    /// The tag in the marks of this host's processes.
    #[must_use]
    pub fn tag(&self) -> &str {
        &self.tag
    }

    /// The environment variable and its value that make a process end with the host of this keeper, in whatever group or
    /// session it is: for processes that survive their host on purpose and must not survive a demonstration.
    #[must_use]
    pub fn host_mark(&self) -> (&'static str, String) {
        (MARK, format!("{}:{ANY_GROUP}", self.tag))
    }

    /// That mark of this process itself, as a variable and its value, if it has one.
    #[must_use]
    pub fn own_host_mark() -> Option<(&'static str, String)> {
        let value = std::env::var(MARK).ok().filter(|value| value.ends_with(ANY_GROUP))?;
        Some((MARK, value))
    }

    /// Releases the keeper in a graceful stop: it searches once more, and ends.
    pub fn release(self) {
        let Self { pipe, mut child, .. } = self;
        drop(pipe);
        if let Err(error) = child.wait() {
            tracing::warn!(error = %error, "cannot wait for the keeper of the process groups");
        }
    }
}

fn random_tag() -> io::Result<String> {
    Ok(hex(&random_bytes::<16>()?))
}

/// Runs as the keeper: reads its host's tag, waits for the end of the host, and kills the leftovers of its process groups.
///
/// # Errors
/// When no tag arrives, or the list of processes cannot be read.
pub fn keep() -> io::Result<()> {
    // A separate session: a signal that ends the host, such as Ctrl-C in its terminal, must not end its keeper.
    setsid()?;
    let mut input = io::stdin().lock();
    let mut tag = String::new();
    input.read_line(&mut tag)?;
    let tag = tag.trim();
    if tag.len() != 32 {
        return Err(io::Error::other(
            "missing host tag on standard input; `callboard run` starts its keeper itself",
        ));
    }
    let mut outputs = Vec::new();
    input.read_until(b'\n', &mut outputs)?;
    io::copy(&mut input, &mut io::sink())?;
    let ended = end_left(tag);
    let outputs = Path::new(OsStr::from_bytes(outputs.strip_suffix(b"\n").unwrap_or_default()));
    if outputs.is_absolute() {
        guard::begin(outputs)?;
    }
    ended
}

fn end_left(tag: &str) -> io::Result<()> {
    let mut vain_looks = 0;
    for _ in 0..LOOKS_MAX {
        let Left { ours, is_any_unknown } = look(tag)?;
        if ours.is_empty() && (!is_any_unknown || vain_looks == VAIN_LOOKS_MAX) {
            return Ok(());
        }
        vain_looks = if ours.is_empty() { vain_looks + 1 } else { 0 };
        ours.into_iter().for_each(|pid| kill(pid, tag));
        std::thread::sleep(PAUSE);
    }
    Err(io::Error::other("some processes of the host's groups cannot be ended"))
}

struct Left {
    /// All processes that are marked with the tag and still in the group that the mark names, if it names one.
    ours: Vec<Pid>,
    /// Whether some processes have an unknown environment at this moment.
    is_any_unknown: bool,
}

fn look(tag: &str) -> io::Result<Left> {
    let entries = fs::read_dir("/proc")?.filter_map(Result::ok);
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut left = Left { ours: Vec::new(), is_any_unknown: false };
    for pid in numbers.filter_map(Pid::from_raw) {
        match is_ours(pid, tag) {
            Some(true) => left.ours.push(pid),
            Some(false) => {}
            None => left.is_any_unknown = true,
        }
    }
    Ok(left)
}

/// `None` if it is unknown at this moment.
fn is_ours(pid: Pid, tag: &str) -> Option<bool> {
    // The environment of a process that has ended meanwhile, or of another user, cannot be read: it is not ours.
    let environment = Environment::of(pid.as_raw_nonzero().get().unsigned_abs());
    if environment.is_unknown() {
        return None;
    }
    let is_in_its_group = || {
        let status = ProcessStatus::of(pid.as_raw_nonzero().get());
        status.is_some_and(|status| environment.has(MARK, &mark(tag, status.group)))
    };
    let is_marked = environment.value(MARK).is_some();
    Some(is_marked && (environment.has(MARK, &format!("{tag}:{ANY_GROUP}")) || is_in_its_group()))
}

pub(super) fn mark(tag: &str, group: u32) -> String {
    format!("{tag}:{group}")
}

fn kill(pid: Pid, tag: &str) {
    let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else { return };
    // Checked again after the file descriptor is open: from here on PID reuse is impossible. If it is unknown at this
    // moment, the next search decides.
    if is_ours(pid, tag) == Some(true) {
        // It may have ended already.
        let _ = pidfd_send_signal(&process, Signal::KILL);
    }
}
