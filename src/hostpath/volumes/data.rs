//! The content of volumes and snapshots: a directory, or an image for a block volume.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use tonic::Status;

use super::{failed, failed_at};

/// Makes empty content, if there is none.
pub(super) fn make(place: &Path, is_block: bool, size: i64) -> Result<(), Status> {
    let made = if is_block { resize(place, size) } else { make_directory(place) };
    made.map_err(|error| failed_at("make", place, &error))
}

fn make_directory(place: &Path) -> io::Result<()> {
    match fs::create_dir(place) {
        // Every user in a workload may write; the mounts decide which workload gets the volume.
        Ok(()) => fs::set_permissions(place, Permissions::from_mode(0o777)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Resizes an image; it occupies only the space of written data.
pub(super) fn resize(image: &Path, size: i64) -> io::Result<()> {
    let file = File::options().write(true).create(true).truncate(false).open(image)?;
    let size = u64::try_from(size).unwrap_or(0);
    if file.metadata()?.len() < size { file.set_len(size) } else { Ok(()) }
}

/// Copies content as a whole, and replaces what an interrupted copy left.
pub(super) fn copy(from: &Path, to: &Path) -> Result<(), Status> {
    remove(to)?;
    // Owners, modes, times, links, holes and extended attributes are copied too.
    let copied = Command::new("cp")
        .args(["--archive", "--sparse=always", "--reflink=auto", "--no-target-directory", "--"])
        .args([from, to])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| failed("run cp", &error))?;
    if copied.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&copied.stderr).trim().to_owned();
    Err(Status::internal(format!("cannot copy {} to {}: {said}", from.display(), to.display())))
}

/// Removes content, if there is any. A mount in it is not entered.
pub(super) fn remove(place: &Path) -> Result<(), Status> {
    let removed = match fs::symlink_metadata(place) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(found) if found.is_dir() => fs::remove_dir_all(place),
        Ok(_) => fs::remove_file(place),
    };
    removed.map_err(|error| failed_at("remove", place, &error))
}
