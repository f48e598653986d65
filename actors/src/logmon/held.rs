//! The pipes of one task as the host holds them: open, so that writers never get EPIPE (TH020).

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::logs::LogsError;
use super::pipes::{self, HeldDirectory, PipeError};
use super::protocol::{OpenLogs, PipeId};
use super::record::{self, Record};
use super::sink::STAGE_BYTES;
use super::{LogSpec, LogStream};
use crate::datadir;

/// The buffer size of each pipe if there are few tasks.
const PIPE_BYTES_MAX: usize = 1 << 20;
/// The first tasks get this size, the next ones a quarter of it, and all others the default of the system (64 KiB). So a
/// thousand tasks with a failed disk use some 400 MiB in the kernel, and no more.
const LARGE_TASKS: usize = 32;
const MIDDLE_TASKS: usize = 256;

#[derive(Debug)]
pub(super) struct Held {
    pub(super) logs: OpenLogs,
    pipes: [OwnedFd; 2],
    /// Kept open so that bytes on their way to the files survive the log writer.
    _stages: [OwnedFd; 2],
}

impl Held {
    /// Creates the pipes of a task, or reuses existing ones that are ours, and records that they are held. `others` is the
    /// number of tasks that have pipes already.
    pub(super) fn make(directory: &Path, spec: &LogSpec, others: usize) -> Result<Self, LogsError> {
        spec.check()?;
        let failed = |source| LogsError::Record { directory: directory.to_owned(), source };
        datadir::enter_or_make(directory, 0o700).map_err(failed)?;
        let known = record::read(directory, &spec.key).map(|record| record.logs.pipes);
        let size = match others {
            0..LARGE_TASKS => Some(PIPE_BYTES_MAX),
            LARGE_TASKS..MIDDLE_TASKS => Some(PIPE_BYTES_MAX / 4),
            _ => None,
        };
        let place = with_descriptors(|| HeldDirectory::open(&spec.root, &spec.directory))?;
        let make = |place: &HeldDirectory, name: &str, known, size: Option<usize>| {
            let (pipe, id) = with_descriptors(|| place.make_pipe(name, known))?;
            if let Some(size) = size {
                pipes::grow(&pipe, size);
            }
            Ok::<_, PipeError>((pipe, id))
        };
        let [stdout, stderr] = LogStream::ALL;
        let pipe = |stream, place_in: usize| {
            make(&place, &spec.pipe_name(stream), known.map(|known| known[place_in]), size)
        };
        let ((out, out_id), (err, err_id)) = (pipe(stdout, 0)?, pipe(stderr, 1)?);
        let logs = OpenLogs { spec: spec.clone(), pipes: [out_id, err_id] };
        let ours = HeldDirectory::open(directory, Path::new(""))?;
        let stage_size = size.map(|size| (size / 4).min(STAGE_BYTES));
        let stage = |stream| make(&ours, &spec.stage_name(stream), None, stage_size);
        let stages = [stage(stdout)?.0, stage(stderr)?.0];
        Record::new(logs.clone(), true).write(directory).map_err(failed)?;
        Ok(Self { logs, pipes: [out, err], _stages: stages })
    }

    /// Reopens the pipes that an earlier run of the host has recorded.
    pub(super) fn take_up(directory: &Path, logs: &OpenLogs) -> Result<Self, LogsError> {
        let spec = &logs.spec;
        let place = with_descriptors(|| HeldDirectory::open(&spec.root, &spec.directory))?;
        let ours = HeldDirectory::open(directory, Path::new(""))?;
        let pipe = |stream, id: PipeId| {
            with_descriptors(|| place.open_pipe(&spec.pipe_name(stream), Some(id))).map(|(pipe, _)| pipe)
        };
        let stage = |stream| {
            with_descriptors(|| ours.make_pipe(&spec.stage_name(stream), None)).map(|(pipe, _)| pipe)
        };
        let [stdout, stderr] = LogStream::ALL;
        let pipes = [pipe(stdout, logs.pipes[0])?, pipe(stderr, logs.pipes[1])?];
        Ok(Self { logs: logs.clone(), pipes, _stages: [stage(stdout)?, stage(stderr)?] })
    }

    pub(super) fn drain_full(&self) -> io::Result<u64> {
        let mut drained = 0;
        for pipe in self.pipes.iter().filter(|pipe| pipes::is_full(pipe)) {
            drained += pipes::drain(pipe, nowhere()?)?;
        }
        Ok(drained)
    }

    pub(super) fn waiting(&self) -> u64 {
        self.pipes.iter().map(|pipe| pipes::waiting(pipe).unwrap_or_default()).sum()
    }

    /// Closes and removes the pipes; a file that has replaced one stays. The record still says where the logs are.
    pub(super) fn let_go(self, directory: &Path) -> Result<(), LogsError> {
        let spec = &self.logs.spec;
        let failed = |source| LogsError::Record { directory: directory.to_owned(), source };
        Record::new(self.logs.clone(), false).write(directory).map_err(failed)?;
        for stream in LogStream::ALL {
            match datadir::remove_file(&directory.join(spec.stage_name(stream))) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
                Ok(()) | Err(_) => {}
            }
        }
        let place = match HeldDirectory::open(&spec.root, &spec.directory) {
            // It was removed with its directory.
            Err(PipeError::Directory { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Ok(());
            }
            place => place?,
        };
        for (stream, id) in LogStream::ALL.into_iter().zip(self.logs.pipes) {
            place.remove_pipe(&spec.pipe_name(stream), id)?;
        }
        Ok(())
    }
}

fn nowhere() -> io::Result<File> {
    OpenOptions::new().write(true).open("/dev/null")
}

/// Opens something, and raises the limit of file descriptors only if necessary, since children inherit it.
fn with_descriptors<T>(open: impl Fn() -> Result<T, PipeError>) -> Result<T, PipeError> {
    let is_short = |error: &PipeError| match error {
        PipeError::Directory { source, .. } | PipeError::System { source, .. } => {
            source.raw_os_error() == Some(rustix::io::Errno::MFILE.raw_os_error())
        }
        PipeError::Foreign { .. } => false,
    };
    match open() {
        Err(error) if is_short(&error) => {
            let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
            if current == maximum
                || setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_err()
            {
                return Err(error);
            }
            tracing::info!(
                from = current,
                to = maximum,
                "the limit for open files is raised, for the pipes of many tasks"
            );
            open()
        }
        opened => opened,
    }
}
