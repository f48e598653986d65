//! The place of a directory in the file system.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::kept::{Place, escaped, unescaped};

pub(super) fn of(directory: &Path) -> io::Result<Place> {
    let (path, found) = (directory.canonicalize()?, std::fs::metadata(directory)?);
    Ok(Place { path: escaped(path.as_os_str().as_bytes()), device: found.dev(), inode: found.ino() })
}

/// The path of a place. A malformed one was refused when it was parsed.
pub(super) fn path(text: &str) -> PathBuf {
    OsString::from_vec(unescaped(text).unwrap_or_default()).into()
}

pub(super) fn is_there(directory: &Path) -> io::Result<bool> {
    match std::fs::metadata(directory) {
        Ok(found) => Ok(found.is_dir()),
        Err(error) if [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory].contains(&error.kind()) => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}
