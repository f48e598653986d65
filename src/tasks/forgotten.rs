//! Forgotten tasks whose directories still exist. They are recorded on disk until the directories are gone, so that a failed
//! removal is retried, by this run of the host and by the next (T050).

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use callboard_actors::allocdir::TaskNames;
use callboard_actors::datadir;
use callboard_actors::vocabulary::{AllocationId, TaskName};
use rustix::fs::OFlags;

/// The pause after the first failed attempt; it doubles with each further one.
pub(super) const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause.
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// The forgotten tasks of one host with directories to remove. Each is an empty file, `ALLOCATION.TASK`, in a directory.
#[derive(Debug)]
pub(super) struct Forgotten {
    directory: PathBuf,
    /// The tasks whose removal is in progress.
    at_work: Mutex<BTreeSet<TaskNames>>,
}

impl Forgotten {
    /// Uses this directory, which is created with the first record.
    pub(super) fn new(directory: PathBuf) -> Self {
        Self { directory, at_work: Mutex::default() }
    }

    /// Records a task whose directories have to be removed.
    ///
    /// # Errors
    /// If the record cannot be written.
    pub(super) fn note(&self, names: &TaskNames) -> io::Result<()> {
        datadir::enter_or_make(&self.directory, 0o700)?;
        datadir::open_file(&self.file(names), OFlags::WRONLY | OFlags::CREATE, 0o600)?;
        let directory = datadir::enter(&self.directory, OFlags::empty())?;
        Ok(rustix::fs::fsync(directory)?)
    }

    /// Deletes a record: the directories are gone, or needed again.
    ///
    /// # Errors
    /// If the record cannot be deleted.
    pub(super) fn settle(&self, names: &TaskNames) -> io::Result<()> {
        match datadir::remove_file(&self.file(names)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// All records. Files without the name of a task are ignored.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub(super) fn all(&self) -> io::Result<BTreeSet<TaskNames>> {
        let entries = match fs::read_dir(&self.directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
            entries => entries?,
        };
        let mut all = BTreeSet::new();
        for entry in entries {
            all.extend(entry?.file_name().to_str().and_then(names_of));
        }
        Ok(all)
    }

    /// Claims the removal of this task for the caller; `false` if it is already in progress.
    pub(super) fn begin(&self, names: &TaskNames) -> bool {
        self.at_work.lock().unwrap_or_else(PoisonError::into_inner).insert(names.clone())
    }

    pub(super) fn end(&self, names: &TaskNames) {
        self.at_work.lock().unwrap_or_else(PoisonError::into_inner).remove(names);
    }

    fn file(&self, names: &TaskNames) -> PathBuf {
        self.directory.join(format!("{}.{}", names.allocation, names.task))
    }
}

fn names_of(file: &str) -> Option<TaskNames> {
    let (allocation, task) = file.split_once('.')?;
    Some(TaskNames { allocation: AllocationId::new(allocation).ok()?, task: TaskName::new(task).ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_to_be_removed_is_known_to_the_next_run_until_it_is_gone_t050() {
        let directory = tempfile::tempdir().unwrap();
        let forgotten = || Forgotten::new(directory.path().join("forgotten"));
        let names = |task: &str| TaskNames {
            allocation: AllocationId::new("01234567-89ab-8cde-8f01-23456789abcd").unwrap(),
            task: TaskName::new(task).unwrap(),
        };
        assert_eq!(forgotten().all().unwrap(), BTreeSet::new());
        forgotten().settle(&names("web")).unwrap();
        for task in ["web", "a.b", "web"] {
            forgotten().note(&names(task)).unwrap();
        }
        fs::write(directory.path().join("forgotten/notes"), "").unwrap();
        assert_eq!(forgotten().all().unwrap(), [names("a.b"), names("web")].into());
        forgotten().settle(&names("a.b")).unwrap();
        assert_eq!(forgotten().all().unwrap(), [names("web")].into());
        let one = forgotten();
        assert!(one.begin(&names("web")) && !one.begin(&names("web")));
        one.end(&names("web"));
        assert!(one.begin(&names("web")));
    }
}
