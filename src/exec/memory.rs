//! The notes about started tasks, which outlive the driver: the id of each, and the place of its state.
//!
//! A driver may be killed after it has started a task and before its host has the handle. Then the next driver could not even
//! know that the task exists. So the driver writes a note with the place of the task's state before it starts the task
//! (PRC-09). Notes contain no secrets.
//!
//! The notes are in the state directory, if one was given; else in the runtime directory of the system, so that recovery does
//! not depend on a flag. Several drivers may share the latter, since task ids are unique. A reboot ends all tasks and empties
//! it. Notes of tasks without state are swept in both places.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use callboard_proto::drivers::TaskConfig;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use super::config;
use super::place::TaskPlace;

const NOTE_BYTES_MAX: u64 = 64 * 1_024;

/// The age at which a note may be swept.
const YOUNG: Duration = Duration::from_secs(3_600);
/// The mode bits that let others write.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// The note about one task.
#[derive(Debug, Serialize, Deserialize)]
struct Note {
    id: String,
    name: String,
    alloc_id: String,
    alloc_dir: String,
}

#[derive(Debug, Clone)]
pub(super) struct TaskMemory {
    directory: PathBuf,
    /// Whether it is the default directory, shared with other drivers.
    is_shared: bool,
    /// Set after notes of tasks without state were swept: once per driver process.
    swept: Arc<OnceLock<()>>,
}

impl TaskMemory {
    /// The notes below a state directory, or in the system's runtime directory.
    pub(super) fn of(state_dir: Option<&Path>) -> Self {
        match state_dir {
            Some(directory) => {
                Self { directory: directory.join("tasks"), is_shared: false, swept: Arc::default() }
            }
            None => Self::shared(&runtime_directory()),
        }
    }

    fn shared(runtime: &Path) -> Self {
        Self { directory: runtime.join("callboard-exec"), is_shared: true, swept: Arc::default() }
    }

    /// Writes a note for a task that is about to be started. If the default directory does not allow it, the task is started anyway: its
    /// handle is enough to recover it.
    pub(super) fn note(&self, task: &TaskConfig) -> io::Result<()> {
        let noted = self.try_note(task);
        match noted {
            Err(error) if self.is_shared => {
                tracing::warn!(
                    directory = %self.directory.display(), error = %error,
                    "cannot record started tasks; name another directory with --state-dir"
                );
                Ok(())
            }
            other => other,
        }
    }

    fn try_note(&self, task: &TaskConfig) -> io::Result<()> {
        let directory = &self.directory;
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        if self.is_shared {
            check_ours(directory)?;
        }
        self.swept.get_or_init(|| sweep(directory));
        let TaskConfig { id, name, alloc_id, alloc_dir, .. } = task.clone();
        let text = serde_json::to_vec(&Note { id, name, alloc_id, alloc_dir })?;
        // Replaced atomically by a rename: a driver that is killed meanwhile leaves no partial note.
        let next = directory.join(format!("next.{}", std::process::id()));
        open(&next, OpenOptions::new().write(true).create(true).truncate(true))?.write_all(&text)?;
        fs::rename(next, self.place(&task.id))
    }

    /// Reads the note about a task: just enough to find its state.
    pub(super) fn recall(&self, task_id: &str) -> io::Result<Option<TaskConfig>> {
        if self.is_shared && check_ours(&self.directory).is_err() {
            return Ok(None);
        }
        let Some(Note { id, name, alloc_id, alloc_dir }) = read(&self.place(task_id))? else {
            return Ok(None);
        };
        Ok((id == task_id).then(|| TaskConfig { id, name, alloc_id, alloc_dir, ..TaskConfig::default() }))
    }

    /// Deletes the note of a task that has nothing left.
    pub(super) fn forget(&self, task_id: &str) -> io::Result<()> {
        match fs::remove_file(self.place(task_id)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn place(&self, task_id: &str) -> PathBuf {
        self.directory.join(config::short_name(task_id))
    }
}

/// The system's directory for files that do not survive a reboot.
fn runtime_directory() -> PathBuf {
    let named = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    let user = rustix::process::geteuid();
    named.unwrap_or_else(|| match user.is_root() {
        true => PathBuf::from("/run"),
        false => std::env::temp_dir().join(format!("callboard-{}", user.as_raw())),
    })
}

/// Fails unless this user owns the directory and other users cannot write to it: another user may have created it.
fn check_ours(directory: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(directory)?;
    let is_ours = found.is_dir()
        && found.uid() == rustix::process::geteuid().as_raw()
        && found.mode() & WRITABLE_BY_OTHERS == 0;
    if is_ours { Ok(()) } else { Err(io::Error::other("it is not a directory of this user alone")) }
}

/// Deletes notes of tasks without state: their allocation was removed without a request to destroy them. Young notes stay:
/// their tasks may be about to get a state.
fn sweep(directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let age =
            entry.metadata().and_then(|found| found.modified()).map(|at| at.elapsed().unwrap_or_default());
        if age.is_ok_and(|age| age > YOUNG) && is_stale(&entry.path()) {
            // Another driver may have deleted it.
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn is_stale(path: &Path) -> bool {
    let Ok(Some(note)) = read(path) else { return true };
    !TaskPlace::of(&Path::new(&note.alloc_dir).join(&note.name), &note.id).path().exists()
}

fn read(path: &Path) -> io::Result<Option<Note>> {
    let mut text = Vec::new();
    match open(path, OpenOptions::new().read(true)) {
        Ok(file) => file.take(NOTE_BYTES_MAX).read_to_end(&mut text)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    Ok(Some(serde_json::from_slice(&text)?))
}

fn open(path: &Path, options: &mut OpenOptions) -> io::Result<fs::File> {
    let no_follow = i32::try_from(OFlags::NOFOLLOW.bits()).expect("the flag has a small value");
    options.mode(0o600).custom_flags(no_follow).open(path)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_task_is_noted_without_its_secrets_found_again_and_forgotten_prc_09() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let memory = TaskMemory::of(Some(directory.path()));
        let noted = TaskConfig {
            id: "web/main/1".to_owned(),
            name: "main".to_owned(),
            alloc_id: "web".to_owned(),
            alloc_dir: "/allocs/web".to_owned(),
            ..TaskConfig::default()
        };
        let env = [("PASSWORD".to_owned(), "secret".to_owned())].into();
        memory.note(&TaskConfig { env, ..noted.clone() }).expect("room");
        assert_eq!(memory.recall("web/main/1").expect("it is ours"), Some(noted));
        assert_eq!(memory.recall("web/main/2").expect("no error"), None);
        memory.forget("web/main/1").expect("it is ours");
        memory.forget("web/main/1").expect("it is gone already");
        assert_eq!(memory.recall("web/main/1").expect("no error"), None);
    }

    #[test]
    fn notes_of_unknown_tasks_are_kept_where_they_are_ours_and_hinder_nothing_elsewhere_t174() {
        let runtime = tempfile::tempdir().expect("a temporary directory");
        let memory = TaskMemory::shared(runtime.path());
        let task = TaskConfig { id: "t".to_owned(), name: "main".to_owned(), ..TaskConfig::default() };
        memory.note(&task).expect("room");
        assert!(memory.recall("t").expect("it is ours").is_some());
        let old = std::time::SystemTime::now() - 2 * YOUNG;
        let note = File::options().write(true).open(memory.place("t")).expect("the note");
        note.set_modified(old).expect("it is ours");
        let memory = TaskMemory::shared(runtime.path());
        memory.note(&TaskConfig { id: "u".to_owned(), ..task.clone() }).expect("room");
        assert!(memory.recall("t").expect("no error").is_none(), "it has left no state");
        assert!(memory.recall("u").expect("no error").is_some(), "it is young");
        let others = fs::Permissions::from_mode(0o777);
        fs::set_permissions(runtime.path().join("callboard-exec"), others).expect("it is ours");
        memory.note(&task).expect("it is started all the same");
        assert!(memory.recall("u").expect("no error").is_none(), "anybody may have put it there");
    }
}
