//! What a process sees to itself between its birth and the program that it becomes, without a line of unsafe code: our own program
//! is started first, asks the kernel to end it with its host if that is wanted, leaves the host's descriptors and the signals that
//! the host ignores behind, says in its
//! environment which number it has, and then becomes the command.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

use super::descriptors::close_on_exec;
use super::identity::{PROCESS_ID_VARIABLE, TAG_VARIABLE};
use super::ignored::catch_ignored_signals;
use super::keeper::{self, Keeper};

/// The subcommand of our program that [`be_bound`] is reached by.
const SUBCOMMAND: &str = "bound";
/// How often a program that is said to be written to is tried again, and the pause before that.
const BUSY_ATTEMPTS: u32 = 50;
const BUSY_PAUSE: Duration = Duration::from_millis(2);

/// Knows the program whose subcommand `bound` binds a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binder {
    program: PathBuf,
    tag: Option<String>,
}

impl Binder {
    /// Binds by the program that runs, which has to be `callboard`: the very same one, even if its file has been replaced.
    #[must_use]
    pub fn this_program() -> Self {
        Self { program: PathBuf::from("/proc/self/exe"), tag: None }
    }

    /// Binds by this `callboard`, for a host program that is another one.
    #[must_use]
    pub fn program(path: impl Into<PathBuf>) -> Self {
        Self { program: path.into(), tag: None }
    }

    /// Marks the processes, so that this keeper ends what they leave when the host is killed.
    #[must_use]
    pub fn kept_by(mut self, keeper: &Keeper) -> Self {
        self.tag = Some(keeper.tag().to_owned());
        self
    }

    /// The command that becomes `program`, bound to this process. The program sees `name` as its own name, if one is given.
    #[must_use]
    pub fn command(&self, program: &Path, name: Option<&Path>) -> Command {
        let mut command = Command::new(&self.program);
        command.arg(SUBCOMMAND).arg("--parent").arg(std::process::id().to_string());
        if let Some(tag) = &self.tag {
            command.arg("--tag").arg(tag);
        }
        Self::becoming(command, program, name)
    }

    /// The command that becomes `program` and is bound to nobody; for the rest as [`Self::command`].
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

/// Why a process did not become its command.
#[derive(Debug, thiserror::Error)]
pub enum BoundError {
    /// No command was given.
    #[error("no command to become; give one after --")]
    NoCommand,
    /// The host died before the binding was in place; what it wanted started must not start.
    #[error("the host process {parent} has ended; {command:?} is not started")]
    Orphaned {
        /// Which process was to be the parent.
        parent: u32,
        /// What was to be started.
        command: OsString,
    },
    /// The kernel refused the binding.
    #[error("cannot be bound to the host: {source}")]
    Refused {
        /// What it said.
        source: io::Error,
    },
    /// The command cannot be executed.
    #[error("cannot execute {command:?}: {source}")]
    NotExecuted {
        /// Which command.
        command: OsString,
        /// What the system said.
        source: io::Error,
    },
}

impl BoundError {
    /// The exit code for it, as shells give it: 127 for a command that is not there, 126 for one that cannot be run.
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

/// Binds this process to its parent, if one is given, which has to be that one, and becomes the command, marked with the tag of
/// its keeper if it has one. The command sees `name` as its own name, if one is given, and has no descriptors but the standard
/// ones. Returns only if that fails.
///
/// The binding survives the `exec`. Asking first and looking at the parent afterwards leaves no gap: if the parent dies before
/// the look, the look sees it; if it dies after, the kernel kills us.
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
    // Nothing else runs in this process that could open another one.
    close_on_exec();
    let marks = tag.map(|tag| (keeper::MARK, keeper::mark(tag, std::process::id())));
    let mut becoming = Command::new(program);
    becoming.arg0(name.unwrap_or(program)).args(arguments).envs(marks);
    if std::env::var_os(TAG_VARIABLE).is_some() {
        becoming.env(PROCESS_ID_VARIABLE, std::process::id().to_string());
    }
    let source = until_not_busy(|| Err::<(), _>(becoming.exec())).err();
    let source = source.unwrap_or_else(|| io::Error::other("it did not become its command"));
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

/// Tries again for a moment as long as a file is said to be written to: whatever another thread starts just then holds a program
/// open for an instant that was copied just before.
pub(super) fn until_not_busy<T>(mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    for _ in 0..BUSY_ATTEMPTS {
        match attempt() {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => std::thread::sleep(BUSY_PAUSE),
            outcome => return outcome,
        }
    }
    attempt()
}
