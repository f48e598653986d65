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
    /// number of tasks that have pipes already. If that cannot be recorded, as on a full disk, the created pipes are removed.
    pub(super) fn make(directory: &Path, spec: &LogSpec, others: usize) -> Result<Self, LogsError> {
        spec.check()?;
        datadir::enter_or_make(directory, 0o700).map_err(not_written(directory))?;
        let before = record::read(directory, &spec.key);
        let was_open = before.as_ref().is_some_and(|record| record.is_open);
        let known = before.map(|record| record.logs.pipes);
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
        let held = Self { logs, pipes: [out, err], _stages: stages };
        if let Err(error) = Record::new(held.logs.clone(), true).write(directory) {
            if !was_open {
                // The error of the record is more informative.
                let _ = held.remove_pipes(directory);
            }
            return Err(not_written(directory)(error));
        }
        Ok(held)
    }

    /// Reopens the pipes that an earlier run of the host has recorded. `None` if they were removed, and only the record of the removal
    /// could not be written.
    pub(super) fn take_up(directory: &Path, logs: &OpenLogs) -> Result<Option<Self>, LogsError> {
        let spec = &logs.spec;
        let place = with_descriptors(|| HeldDirectory::open(&spec.root, &spec.directory))?;
        if LogStream::ALL.into_iter().all(|stream| place.is_missing(&spec.pipe_name(stream))) {
            Record::new(logs.clone(), false).write(directory).map_err(not_written(directory))?;
            return Ok(None);
        }
        let ours = HeldDirectory::open(directory, Path::new(""))?;
        let pipe = |stream, id: PipeId| {
            with_descriptors(|| place.open_pipe(&spec.pipe_name(stream), Some(id))).map(|(pipe, _)| pipe)
        };
        let stage = |stream| {
            with_descriptors(|| ours.make_pipe(&spec.stage_name(stream), None)).map(|(pipe, _)| pipe)
        };
        let [stdout, stderr] = LogStream::ALL;
        let pipes = [pipe(stdout, logs.pipes[0])?, pipe(stderr, logs.pipes[1])?];
        Ok(Some(Self { logs: logs.clone(), pipes, _stages: [stage(stdout)?, stage(stderr)?] }))
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

    /// Closes and removes the pipes; a file that has replaced one stays. The record still names the place of the logs. The pipes go
    /// first: a full disk takes no record, and a later run that finds pipes would read them forever.
    pub(super) fn let_go(self, directory: &Path) -> Result<(), LogsError> {
        let removed = self.remove_pipes(directory);
        let recorded = Record::new(self.logs, false).write(directory).map_err(not_written(directory));
        removed.and(recorded)
    }

    fn remove_pipes(&self, directory: &Path) -> Result<(), LogsError> {
        let spec = &self.logs.spec;
        for stream in LogStream::ALL {
            match datadir::remove_file(&directory.join(spec.stage_name(stream))) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(not_written(directory)(error));
                }
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

fn not_written(directory: &Path) -> impl Fn(io::Error) -> LogsError + use<> {
    let directory = directory.to_owned();
    move |source| LogsError::Record { directory: directory.clone(), source }
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
                "raised the limit of open files for the pipes of tasks"
            );
            open()
        }
        opened => opened,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;
    use crate::logmon::{Collection, Retention};

    fn place() -> (tempfile::TempDir, PathBuf, LogSpec) {
        let place = tempfile::tempdir().expect("a temporary directory");
        fs::create_dir(place.path().join("logs")).expect("a directory");
        let spec = LogSpec {
            key: "web".to_owned(),
            name: "web".to_owned(),
            root: place.path().to_owned(),
            directory: PathBuf::from("logs"),
            collection: Collection::Keep(Retention::default()),
        };
        let ours = place.path().join("logmon");
        (place, ours, spec)
    }

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).expect("a directory");
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// No record can be written from now on, as on a full disk.
    fn no_record(ours: &Path) -> PathBuf {
        let in_the_way = ours.join("web.new");
        fs::create_dir_all(&in_the_way).expect("a directory");
        in_the_way
    }

    #[test]
    fn pipes_that_cannot_be_recorded_are_not_left_behind_s4() {
        let (place, ours, spec) = place();
        no_record(&ours);
        let refused = Held::make(&ours, &spec, 0).expect_err("no record can be written");
        assert!(matches!(refused, LogsError::Record { .. }), "{refused}");
        assert_eq!(names(&place.path().join("logs")), [""; 0]);
        assert_eq!(names(&ours), ["web.new"], "what is in the way is not ours");
    }

    #[test]
    fn pipes_are_removed_also_if_that_cannot_be_recorded_and_the_next_run_holds_none_s4() {
        let (place, ours, spec) = place();
        let held = Held::make(&ours, &spec, 0).expect("they are made");
        let logs = held.logs.clone();
        let in_the_way = no_record(&ours);
        held.let_go(&ours).expect_err("no record can be written");
        assert_eq!(names(&place.path().join("logs")), [""; 0]);
        assert_eq!(names(&ours), ["web.json", "web.new"]);
        fs::remove_dir(in_the_way).expect("it is removed");
        assert!(record::read(&ours, "web").expect("a record").is_open);
        assert!(Held::take_up(&ours, &logs).expect("nothing fails").is_none(), "there is nothing to hold");
        assert!(!record::read(&ours, "web").expect("a record").is_open, "it is corrected");
        assert_eq!(names(&ours), ["web.json"]);
    }
}
