//! The keeper: a process beside the host that ends what a killed host leaves of its plugins' process groups.
//!
//! The kernel kills a plugin's own process with its host, but not what that process made: a shell that wraps the plugin dies
//! and the plugin lives on. So the host starts a keeper with a pipe to it. When the host ends, however that comes about, the
//! kernel closes the pipe, and the keeper kills what still belongs to the host's process groups.
//!
//! Nobody else's process is ever hit: a process is ours only if its environment carries the mark with this host's random tag
//! *and* it still is in the group that the mark names; and the signal goes through a descriptor of the very process that was
//! looked at. The mark may also name any group: that is a leash, for what survives its host and must not survive a play.
//! What left its group on purpose, such as a mount helper in a session of its own, is let live, as in an orderly
//! stop.

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

/// The subcommand of our program that [`keep`] is reached by.
const SUBCOMMAND: &str = "keeper";
/// The variable that marks a process: the host's tag, a colon, and the number of its process group.
pub(super) const MARK: &str = "CALLBOARD_BOUND";
/// What a mark names in the place of a group when it holds in any.
const ANY_GROUP: &str = "any";
/// How often at most the keeper looks for processes; each look finds what was forked since the one before.
const LOOKS_MAX: usize = 250;
/// How often at most it looks again when it finds nothing but processes of which nothing is known, since they are in the middle of an
/// `exec`.
const VAIN_LOOKS_MAX: usize = 25;
/// The pause between two looks.
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
    /// When the system gives no randomness, no process or no pipe.
    pub fn start() -> io::Result<Self> {
        Self::started(Path::new(""))
    }

    /// Starts the keeper of this host, which also sees to it that what outlives the host and writes below this directory cannot
    /// fill the disk while no host reads it.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_with_outputs(outputs: &Path) -> io::Result<Self> {
        Self::started(outputs)
    }

    fn started(outputs: &Path) -> io::Result<Self> {
        let tag = random_tag()?;
        // Through the stage that leaves the host's descriptors behind: the keeper outlives the host, and nothing of it may.
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

    /// The tag that marks this host's processes.
    #[must_use]
    pub fn tag(&self) -> &str {
        &self.tag
    }

    /// What a process carries in its environment, as a variable and its value, so that it ends with whoever holds this keeper,
    /// whatever group or session it has gone to: for what survives its host on purpose and must not survive a demonstration.
    #[must_use]
    pub fn leash(&self) -> (&'static str, String) {
        (MARK, format!("{}:{ANY_GROUP}", self.tag))
    }

    /// The leash that this process itself is on, as a variable and its value, if it is on one.
    #[must_use]
    pub fn own_leash() -> Option<(&'static str, String)> {
        let value = std::env::var(MARK).ok().filter(|value| value.ends_with(ANY_GROUP))?;
        Some((MARK, value))
    }

    /// Lets the keeper go, in an orderly end: it looks once more, and ends.
    pub fn release(self) {
        let Self { pipe, mut child, .. } = self;
        drop(pipe);
        if let Err(error) = child.wait() {
            tracing::warn!(error = %error, "the keeper of the process groups cannot be waited for");
        }
    }
}

fn random_tag() -> io::Result<String> {
    Ok(hex(&random_bytes::<16>()?))
}

/// Is the keeper: reads its host's tag, waits for the end of the host, and kills what is left of its process groups.
///
/// # Errors
/// When no tag comes, or the list of processes cannot be read.
pub fn keep() -> io::Result<()> {
    // A session of its own: what ends the host, such as a key in its terminal, must not end its keeper.
    setsid()?;
    let mut input = io::stdin().lock();
    let mut tag = String::new();
    input.read_line(&mut tag)?;
    let tag = tag.trim();
    if tag.len() != 32 {
        return Err(io::Error::other("no tag of a host came; `callboard run` starts its keeper itself"));
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

/// What one look has shown.
struct Left {
    /// Every process that is marked with the tag and still in the group that its mark names, if it names one.
    ours: Vec<Pid>,
    /// Whether there are processes that may be ours, which cannot be told at this moment.
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

/// `None` if that cannot be told at this moment.
fn is_ours(pid: Pid, tag: &str) -> Option<bool> {
    // A process that has ended meanwhile, or is somebody else's, cannot be read and is not ours.
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

/// The mark of a process in this group.
pub(super) fn mark(tag: &str, group: u32) -> String {
    format!("{tag}:{group}")
}

fn kill(pid: Pid, tag: &str) {
    let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else { return };
    // Looked at again behind the descriptor: from here on the number cannot pass to another process unnoticed. Where it cannot be
    // told at this moment, the next look tells.
    if is_ours(pid, tag) == Some(true) {
        // One that has ended already needs no signal.
        let _ = pidfd_send_signal(&process, Signal::KILL);
    }
}
