//! What outlives the driver of the tasks that it was told to start: by which id, and where the state of each is kept.
//!
//! A driver may be killed after it has started a task and before its host has heard of it. Nobody has a handle then, and the
//! next driver could not even say that there is such a task. So with `--state-dir` the driver notes where it is going to look,
//! before it starts anything (PRC-09). Nothing that may be secret is noted.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use callboard_proto::drivers::TaskConfig;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use super::config;

/// The longest note that is read, in bytes.
const NOTE_BYTES_MAX: u64 = 64 * 1_024;

/// What is noted of one task.
#[derive(Debug, Serialize, Deserialize)]
struct Note {
    id: String,
    name: String,
    alloc_id: String,
    alloc_dir: String,
}

/// The notes of a driver; none without a directory for them.
#[derive(Debug, Clone)]
pub(super) struct TaskMemory(Option<PathBuf>);

impl TaskMemory {
    /// The notes below a state directory.
    pub(super) fn below(state_dir: Option<&Path>) -> Self {
        Self(state_dir.map(|directory| directory.join("tasks")))
    }

    /// Notes a task that is about to be started.
    pub(super) fn note(&self, task: &TaskConfig) -> io::Result<()> {
        let Some(directory) = &self.0 else { return Ok(()) };
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let TaskConfig { id, name, alloc_id, alloc_dir, .. } = task.clone();
        let text = serde_json::to_vec(&Note { id, name, alloc_id, alloc_dir })?;
        // Put in its place as a whole, so that a driver that is killed meanwhile leaves no half of it.
        let (path, next) = (self.of(directory, &task.id), directory.join("next"));
        open(&next, OpenOptions::new().write(true).create(true).truncate(true))?.write_all(&text)?;
        fs::rename(next, path)
    }

    /// What was noted of a task: enough to find its state, and no more.
    pub(super) fn recall(&self, task_id: &str) -> io::Result<Option<TaskConfig>> {
        let Some(directory) = &self.0 else { return Ok(None) };
        let mut text = Vec::new();
        match open(&self.of(directory, task_id), OpenOptions::new().read(true)) {
            Ok(file) => file.take(NOTE_BYTES_MAX).read_to_end(&mut text)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let Note { id, name, alloc_id, alloc_dir } = serde_json::from_slice(&text)?;
        Ok((id == task_id).then(|| TaskConfig { id, name, alloc_id, alloc_dir, ..TaskConfig::default() }))
    }

    /// Forgets a task of which nothing is left.
    pub(super) fn forget(&self, task_id: &str) -> io::Result<()> {
        let Some(directory) = &self.0 else { return Ok(()) };
        match fs::remove_file(self.of(directory, task_id)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn of(&self, directory: &Path, task_id: &str) -> PathBuf {
        directory.join(config::short_name(task_id))
    }
}

fn open(path: &Path, options: &mut OpenOptions) -> io::Result<fs::File> {
    let no_follow = i32::try_from(OFlags::NOFOLLOW.bits()).expect("the flag has a small value");
    options.mode(0o600).custom_flags(no_follow).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_noted_without_its_secrets_found_again_and_forgotten_prc_09() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let memory = TaskMemory::below(Some(directory.path()));
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
    fn without_a_directory_nothing_is_noted() {
        let memory = TaskMemory::below(None);
        memory.note(&TaskConfig::default()).expect("nothing to do");
        assert_eq!(memory.recall("").expect("no error"), None);
    }
}
