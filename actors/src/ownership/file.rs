//! Reads and writes the mark file.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::error::OwnershipError;
use super::kept::{Kept, Mistake, VERSION};

/// The size limit of the file: the longest path fits, with every byte escaped.
const BYTES_MAX: u64 = 4 * 4_096 + 1_024;
/// Readable by its owner only.
const MODE: u32 = 0o600;

/// Reads the file; `None` if there is none.
pub(super) fn read(path: &Path) -> Result<Option<Kept>, OwnershipError> {
    let text = match text_of(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) if source.kind() == io::ErrorKind::InvalidData => {
            return Err(OwnershipError::Malformed { path: path.to_owned(), problem: source.to_string() });
        }
        Err(source) => return Err(OwnershipError::system("read", path)(source)),
    };
    match Kept::parse(&text) {
        Ok(kept) => Ok(Some(kept)),
        Err(Mistake::Newer(theirs)) => {
            Err(OwnershipError::Newer { path: path.to_owned(), theirs, ours: VERSION })
        }
        Err(Mistake::Malformed(problem)) => Err(OwnershipError::Malformed { path: path.to_owned(), problem }),
    }
}

fn text_of(path: &Path) -> io::Result<String> {
    // A FIFO in its place must not block the start.
    let flags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).bits().cast_signed();
    let unusable = |problem| io::Error::new(io::ErrorKind::InvalidData, problem);
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(path);
    let file = opened.map_err(|error| match Errno::from_io_error(&error) {
        Some(Errno::LOOP) => unusable("it is a symbolic link, which is not followed"),
        _ => error,
    })?;
    let found = file.metadata()?;
    if !found.is_file() || found.len() > BYTES_MAX {
        return Err(unusable("it is not a short file"));
    }
    let mut text = String::new();
    file.take(BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}

/// Writes the file atomically, and syncs it.
pub(super) fn write(path: &Path, kept: &Kept) -> Result<(), OwnershipError> {
    written(path, kept).map_err(OwnershipError::system("write", path))
}

fn written(path: &Path, kept: &Kept) -> io::Result<()> {
    let draft = path.with_extension("identity.new");
    // A leftover of a killed start may be any file, also a symlink.
    match std::fs::remove_file(&draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(MODE).open(&draft)?;
    file.write_all(kept.text().as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&draft, path)?;
    let directory = path.parent().unwrap_or(Path::new("/"));
    File::open(directory)?.sync_all()
}
