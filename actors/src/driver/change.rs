//! Detects that a program that was refused has been replaced or changed.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

/// The polling interval for changes of a program.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// The identity of a state of a file: its place on the disk, its size, and the times of its contents and its attributes.
/// The default is the state of a missing file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct FileState(Option<[i128; 7]>);

impl FileState {
    /// The present state of the file at this path.
    pub(super) async fn of(path: PathBuf) -> Self {
        let look = move || std::fs::metadata(path).ok();
        let metadata = actix_rt::task::spawn_blocking(look).await.ok().flatten();
        Self(metadata.map(|file| {
            let (device, inode, size) = (file.dev().into(), file.ino().into(), file.size().into());
            let (written, changed) = ((file.mtime(), file.mtime_nsec()), (file.ctime(), file.ctime_nsec()));
            [device, inode, size, written.0.into(), written.1.into(), changed.0.into(), changed.1.into()]
        }))
    }

    /// Waits until the file at this path is in another state.
    pub(super) async fn changed(self, path: PathBuf) {
        while Self::of(path.clone()).await == self {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[actix::test]
    async fn a_file_that_comes_is_written_or_replaced_is_another_one() {
        tokio::time::pause();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("driver");
        let missing = FileState::of(path.clone()).await;
        assert_eq!(missing, FileState::default());
        let change = |change: &dyn Fn()| {
            let path = path.clone();
            change();
            async move { FileState::of(path).await }
        };
        let written = change(&|| std::fs::write(&path, "one").unwrap()).await;
        missing.changed(path.clone()).await;
        let longer = change(&|| std::fs::write(&path, "three").unwrap()).await;
        written.changed(path.clone()).await;
        let other = directory.path().join("other");
        std::fs::write(&other, "seven").unwrap();
        let replaced = change(&|| std::fs::rename(&other, &path).unwrap()).await;
        longer.changed(path.clone()).await;
        assert!(
            tokio::time::timeout(LOOK_EVERY * 3, replaced.changed(path)).await.is_err(),
            "nothing changed"
        );
    }
}
