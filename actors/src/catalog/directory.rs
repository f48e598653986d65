//! Reads the plugin directory: names and file types; follows and opens nothing (SEC-05).

use std::fs::{DirEntry, read_dir};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::{DirectoryEntry, DirectoryError, EntryKind};

/// Reads a directory on a blocking thread, since a network file system may be slow.
pub(super) async fn read(
    directory: PathBuf,
    files_max: usize,
) -> Result<Vec<DirectoryEntry>, DirectoryError> {
    let place = directory.clone();
    let reading = tokio::task::spawn_blocking(move || entries(&directory, files_max));
    let failed = |message: String| DirectoryError::System { directory: place.clone(), message };
    match reading.await {
        Ok(Ok(Some(entries))) => Ok(entries),
        Ok(Ok(None)) => Err(DirectoryError::TooMany { directory: place, most: files_max }),
        Ok(Err(error)) => Err(failed(error.to_string())),
        Err(crashed) => Err(failed(crashed.to_string())),
    }
}

/// All entries of a directory; `None` if they exceed the limit.
fn entries(directory: &Path, files_max: usize) -> io::Result<Option<Vec<DirectoryEntry>>> {
    let mut entries = Vec::new();
    for entry in read_dir(directory)? {
        let entry = entry?;
        if entries.len() >= files_max {
            return Ok(None);
        }
        let name = entry.file_name().to_string_lossy().into_owned();
        match kind(&entry) {
            Ok(kind) => entries.push(DirectoryEntry { name, kind }),
            // It was removed meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Some(entries))
}

fn kind(entry: &DirEntry) -> io::Result<EntryKind> {
    // This does not follow a symlink.
    let metadata = entry.metadata()?;
    Ok(if metadata.is_symlink() {
        EntryKind::Link
    } else if !metadata.is_file() {
        EntryKind::Other
    } else if metadata.permissions().mode() & 0o111 == 0 {
        EntryKind::Inert
    } else {
        EntryKind::Program
    })
}
