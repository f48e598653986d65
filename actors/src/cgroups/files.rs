//! The kernel's files: read, written, never created.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use super::error::CgroupError;

/// The mode of a new cgroup (T103).
const MODE: u32 = 0o755;

pub(super) fn write(file: &Path, text: &str) -> Result<(), CgroupError> {
    // Opened without create: outside of cgroupfs a plain file would be created.
    let written =
        fs::OpenOptions::new().write(true).open(file).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(CgroupError::refused(format!("write {text:?} to"), file))
}

pub(super) fn read(file: &Path) -> Result<String, CgroupError> {
    fs::read_to_string(file).map_err(CgroupError::refused("read", file))
}

/// Creates a cgroup. Idempotent.
pub(super) fn make(path: &Path) -> Result<(), CgroupError> {
    match fs::DirBuilder::new().mode(MODE).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(CgroupError::refused("make the control group", path)(error))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// The direct children of a cgroup; none if it does not exist.
pub(super) fn children(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let is_group = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    entries.filter(is_group).map(|entry| entry.path()).collect()
}

/// A cgroup and its descendants, the innermost first, down to `depth` levels.
pub(super) fn with_descendants(path: &Path, depth: usize) -> Vec<PathBuf> {
    let mut all = Vec::new();
    if depth > 0 {
        for child in children(path) {
            all.extend(with_descendants(&child, depth - 1));
        }
    }
    all.push(path.to_owned());
    all
}
