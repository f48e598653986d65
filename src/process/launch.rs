//! The launch of a process.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use super::Binder;
use super::copying::copy;
use super::log;
use super::owner::{KilledOnDrop, Process};
use super::spec::ProcessSpec;
use super::tail::Tail;

/// Why a process was not launched. Nothing of it is left.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// Its log file cannot be opened.
    #[error("cannot open the log {path} of {name}: {source}")]
    Log {
        /// The process.
        name: String,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The system refused the process, or the means to watch it.
    #[error("cannot start a process for {name}: {source}")]
    System {
        /// The process.
        name: String,
        /// The system's error.
        source: io::Error,
    },
}

/// Starts a process, bound to its host by `binder`. It has an owner from this instant: if the handle is lost in any way, the
/// process is killed and reaped (PRC-02).
///
/// Call it from the thread of the host: when that thread ends, the kernel kills the process.
///
/// # Errors
/// [`LaunchError`]. A command that cannot be executed is reported as an ending, with exit code 126 or 127.
///
/// # Panics
/// Outside of a tokio runtime with I/O.
pub fn launch(spec: &ProcessSpec, binder: &Binder) -> Result<Process, LaunchError> {
    let log = log::open(&spec.log).map_err(|source| LaunchError::Log {
        name: spec.name.clone(),
        path: spec.log.path.clone(),
        source,
    })?;
    let failed = |source| LaunchError::System { name: spec.name.clone(), source };
    let tail = Tail::default();
    let (reader, writer) = io::pipe().map_err(failed)?;
    let log_ended = copy(reader, log, tail.clone()).map_err(failed)?;
    let child = spawn(spec, binder, writer).map_err(failed)?;
    Process::own(KilledOnDrop::new(child), tail, log_ended).map_err(failed)
}

fn spawn(spec: &ProcessSpec, binder: &Binder, output: io::PipeWriter) -> io::Result<Child> {
    let mut command: Command = binder.command(&spec.program, None);
    command
        .args(&spec.arguments)
        .env_clear()
        .envs(&spec.environment)
        .current_dir("/")
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .spawn()
}
