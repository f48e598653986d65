//! The log writer program.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use rustix::fs::OFlags;

use crate::datadir;

/// The subcommand of our program that calls [`write_logs`](super::write_logs).
const SUBCOMMAND: &str = "log-writer";
/// The file for its own standard error, such as a panic.
const ERRORS_FILE: &str = "log-writer.err";
const ERRORS_BYTES_MAX: u64 = 64 * 1_024;

/// The log writer program and its arguments. It is run with `--directory` and a path after its arguments, and must call
/// [`write_logs`](super::write_logs) with that path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogProgram {
    path: PathBuf,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
}

impl LogProgram {
    /// Uses the running program, which must be `callboard`: the same file, even if it has been replaced on disk.
    #[must_use]
    pub fn this_program() -> Self {
        Self::callboard("/proc/self/exe")
    }

    /// Uses this `callboard`, for a host program that is another one.
    #[must_use]
    pub fn callboard(path: impl Into<PathBuf>) -> Self {
        Self::new(path, [SUBCOMMAND])
    }

    /// Any program, with these arguments before ours.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        let arguments = arguments.into_iter().map(Into::into).collect();
        Self { path: path.into(), arguments, environment: Vec::new() }
    }

    /// Adds a variable to its environment, which is otherwise empty.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Starts it. It survives the process that starts it, and is reaped as long as that lives.
    pub(super) fn start(&self, directory: &Path) -> io::Result<()> {
        let errors = directory.join(ERRORS_FILE);
        let is_long = std::fs::metadata(&errors).is_ok_and(|seen| seen.len() > ERRORS_BYTES_MAX);
        let change = if is_long { OFlags::TRUNC } else { OFlags::APPEND };
        let errors = datadir::open_file(&errors, OFlags::WRONLY | OFlags::CREATE | change, 0o600)?;
        let mut child = Command::new(&self.path)
            .arg0("callboard-logs")
            .args(&self.arguments)
            .arg("--directory")
            .arg(directory)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(errors)
            .spawn()?;
        let reaper = thread::Builder::new().name("log writer".to_owned()).stack_size(64 * 1_024);
        reaper.spawn(move || child.wait()).map(drop)
    }
}
