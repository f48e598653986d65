//! The program that is the log writer.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

/// The subcommand of our program that [`write_logs`](super::write_logs) is reached by.
const SUBCOMMAND: &str = "log-writer";
/// What it has to say of its own, such as a panic, goes here.
const ERRORS_FILE: &str = "log-writer.err";
/// When that file is longer, it begins anew.
const ERRORS_BYTES_MAX: u64 = 64 * 1_024;

/// Which program is the log writer, and how it is told so. It is run with `--directory` and a path behind its arguments, and calls
/// [`write_logs`](super::write_logs) with that path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogProgram {
    path: PathBuf,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
}

impl LogProgram {
    /// The program that runs, which has to be `callboard`: the very same one, even if its file has been replaced.
    #[must_use]
    pub fn this_program() -> Self {
        Self::callboard("/proc/self/exe")
    }

    /// This `callboard`, for a host program that is another one.
    #[must_use]
    pub fn callboard(path: impl Into<PathBuf>) -> Self {
        Self::new(path, [SUBCOMMAND])
    }

    /// Any program, with these arguments in front of ours.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        let arguments = arguments.into_iter().map(Into::into).collect();
        Self { path: path.into(), arguments, environment: Vec::new() }
    }

    /// Adds a variable to its environment, which is empty otherwise.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Starts it. It outlives whoever starts it, and is reaped as long as that lives.
    pub(super) fn start(&self, directory: &Path) -> io::Result<()> {
        let errors = directory.join(ERRORS_FILE);
        let is_long = std::fs::metadata(&errors).is_ok_and(|seen| seen.len() > ERRORS_BYTES_MAX);
        let mut options = OpenOptions::new();
        options.create(true).mode(0o600).append(!is_long).write(true).truncate(is_long);
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
            .stderr(options.open(errors)?)
            .spawn()?;
        let reaper = thread::Builder::new().name("log writer".to_owned()).stack_size(64 * 1_024);
        reaper.spawn(move || child.wait()).map(drop)
    }
}
