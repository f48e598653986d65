//! The intermediate stage between spawn and the program, without unsafe code. Our own program is started first. It requests
//! the parent-death signal if the process is bound, closes the host's file descriptors, resets signals that the host
//! ignores, stores its PID in the environment, and then execs the command.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

use super::descriptors::close_on_exec;
use super::ignored::catch_ignored_signals;
use super::keeper::{self, Keeper};
use super::{PROCESS_ID_VARIABLE, TAG_VARIABLE};

/// The subcommand of our program that calls [`be_bound`].
const SUBCOMMAND: &str = "bound";
/// How often an `exec` is retried when the file is busy (ETXTBSY), and the pause before each retry.
const BUSY_ATTEMPTS: u32 = 50;
const BUSY_PAUSE: Duration = Duration::from_millis(2);

/// The program with the subcommand `bound`, which binds a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binder {
    program: PathBuf,
    tag: Option<String>,
}

impl Binder {
    /// Uses the running program, which must be `callboard`: the same file, even if it has been replaced on disk.
    #[must_use]
    pub fn this_program() -> Self {
        Self { program: PathBuf::from("/proc/self/exe"), tag: None }
    }

    /// Uses this `callboard`, for a host program that is another program.
    #[must_use]
    pub fn program(path: impl Into<PathBuf>) -> Self {
        Self { program: path.into(), tag: None }
    }

    /// Marks the processes, so that this keeper ends their leftovers when the host is killed.
    #[must_use]
    pub fn kept_by(mut self, keeper: &Keeper) -> Self {
        self.tag = Some(keeper.tag().to_owned());
        self
    }

    /// A command that runs `program`, bound to this process. The program gets `name` as `argv[0]`, if one is given.
    #[must_use]
    pub fn command(&self, program: &Path, name: Option<&Path>) -> Command {
        let mut command = Command::new(&self.program);
        command.arg(SUBCOMMAND).arg("--parent").arg(std::process::id().to_string());
        if let Some(tag) = &self.tag {
            command.arg("--tag").arg(tag);
        }
        Self::becoming(command, program, name)
    }

    /// Like [`Self::command`], but not bound.
    #[must_use]
    pub fn command_of_its_own(&self, program: &Path, name: Option<&Path>) -> Command {
        let mut command = Command::new(&self.program);
        command.arg(SUBCOMMAND);
        Self::becoming(command, program, name)
    }

    fn becoming(mut command: Command, program: &Path, name: Option<&Path>) -> Command {
        if let Some(name) = name {
            command.arg("--name").arg(name);
        }
        command.arg("--").arg(program);
        command
    }
}

/// Why the stage could not exec its command.
#[derive(Debug, thiserror::Error)]
pub enum BoundError {
    /// No command was given.
    #[error("no command given; give one after --")]
    NoCommand,
    /// The host died before the binding was in place; the command must not start.
    #[error("the host process {parent} has ended; {command:?} is not started")]
    Orphaned {
        /// The PID of the expected parent.
        parent: u32,
        /// The command.
        command: OsString,
    },
    /// The kernel refused the binding.
    #[error("cannot be bound to the host: {source}")]
    Refused {
        /// The error of the system.
        source: io::Error,
    },
    /// The command cannot be executed.
    #[error("cannot execute {command:?}: {source}")]
    NotExecuted {
        /// The command.
        command: OsString,
        /// The error of the system.
        source: io::Error,
    },
}

impl BoundError {
    /// Its exit code, as in shells: 127 for a missing command, 126 for one that cannot be executed.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::NotExecuted { source, .. } if source.kind() == io::ErrorKind::NotFound => 127,
            Self::NotExecuted { .. } => 126,
            Self::NoCommand => 2,
            Self::Orphaned { .. } | Self::Refused { .. } => 1,
        }
    }
}

/// Binds this process to its parent, if one is given, and checks that this is the parent; then execs the command, marked
/// with the tag of its keeper if it has one. The command gets `name` as `argv[0]`, if one is given, and only the standard
/// file descriptors. Returns only on failure.
///
/// The binding survives the `exec`. Requesting the signal first and checking the parent afterwards avoids the race: if the
/// parent dies before the check, the check detects it; if it dies later, the kernel kills this process.
#[must_use]
pub fn be_bound(
    parent: Option<u32>,
    tag: Option<&str>,
    name: Option<&OsStr>,
    command: &[OsString],
) -> BoundError {
    let Some((program, arguments)) = command.split_first() else { return BoundError::NoCommand };
    if let Some(parent) = parent
        && let Err(error) = bind(parent, program)
    {
        return error;
    }
    if let Err(source) = catch_ignored_signals() {
        return BoundError::NotExecuted { command: program.clone(), source };
    }
    // This process has no other thread that could open a file descriptor.
    close_on_exec();
    let marks = tag.map(|tag| (keeper::MARK, keeper::mark(tag, std::process::id())));
    let mut becoming = Command::new(program);
    becoming.arg0(name.unwrap_or(program)).args(arguments).envs(marks);
    if std::env::var_os(TAG_VARIABLE).is_some() {
        becoming.env(PROCESS_ID_VARIABLE, std::process::id().to_string());
    }
    let source = until_not_busy(|| Err::<(), _>(becoming.exec())).err();
    let source = source.unwrap_or_else(|| io::Error::other("it did not execute its command"));
    BoundError::NotExecuted { command: program.clone(), source }
}

fn bind(parent: u32, program: &OsStr) -> Result<(), BoundError> {
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| BoundError::Refused { source: error.into() })?;
    let actual = getppid().map(Pid::as_raw_nonzero).map(std::num::NonZeroI32::get);
    if actual.and_then(|pid| u32::try_from(pid).ok()) != Some(parent) {
        return Err(BoundError::Orphaned { parent, command: program.to_owned() });
    }
    Ok(())
}

/// Retries for a moment while a file is busy (ETXTBSY): a fork in another thread briefly holds a copy of the writable file
/// descriptor of a program that was just copied.
pub(super) fn until_not_busy<T>(mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    for _ in 0..BUSY_ATTEMPTS {
        match attempt() {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => std::thread::sleep(BUSY_PAUSE),
            outcome => return outcome,
        }
    }
    attempt()
}
