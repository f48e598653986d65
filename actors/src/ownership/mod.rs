//! The owner of a data directory: the mark that distinguishes the processes, directories, cgroups and users of one host from
//! those of all others. A module, not an actor.
//!
//! ```text
//!   no file, no earlier run   ──► a random mark is written
//!   no file, an earlier run   ──► the mark that earlier versions computed is written, so that nothing changes
//!   a file, written here      ──► its mark
//!   a file, written elsewhere ──► look there: nothing with this mark  ──► moved: its mark, and the new place is written
//!                                             this very directory    ──► another path to it: the same
//!                                             another with this mark ──► one is a copy: refused, with the remedy
//! ```
//!
//! The path, the device and the inode of a directory are not a stable identity: a directory is moved, a backup restored, and a
//! device has another number after a reboot. So the mark is written once and kept (TH053).
//!
//! If the original was itself moved, its copy does not find it. So a mark is also locked on the machine while its host runs. The path of
//! the directory is locked too, against a second host that finds an empty path because the directory was removed or replaced.
//!
//! The database is opened before, since its lock excludes a second host.

mod deciding;
mod error;
mod file;
mod held;
mod kept;
mod place;

use std::path::Path;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use deciding::{Former, Verdict, decide};
pub use error::OwnershipError;
pub use held::{HeldMark, check_path, default_marks_dir};
use kept::{Kept, Place};

use crate::process::random_bytes;
use crate::vocabulary::hex;

/// The file in a data directory that contains its mark.
pub const IDENTITY_FILE: &str = "callboard.identity";

/// The mark of a data directory, 16 hexadecimal digits: the stored one, or a new one that is written now. `is_new` says that
/// no host has run on it before. Only the host that has locked the directory may call this.
///
/// # Errors
/// [`OwnershipError`] when the file cannot be read, parsed or written, or when another directory on this machine has the
/// same mark.
pub fn settle(data_dir: &Path, is_new: bool) -> Result<Arc<str>, OwnershipError> {
    settled(data_dir, is_new, |_| Ok(())).map(|(mark, ())| mark)
}

/// As [`settle`], and locks the mark, so that no other host runs with it during the lifetime of the result: this also
/// detects a copy whose original was moved. Hosts see each other if they use the same directory of marks
/// ([`default_marks_dir`]); nothing is locked if that cannot be used. Waits up to 5 s for a host that is just ending, and
/// blocks.
///
/// # Errors
/// As [`settle`], and when a running host has the mark, or another existing data directory had it last.
pub fn settle_and_hold(
    data_dir: &Path,
    is_new: bool,
    marks: &Path,
) -> Result<(Arc<str>, Option<HeldMark>), OwnershipError> {
    settled(data_dir, is_new, |kept| held::hold(marks, data_dir, kept, held::TIMEOUT))
}

/// Determines the mark, and writes its changes once `hold` accepts the mark and its present place.
fn settled<T>(
    data_dir: &Path,
    is_new: bool,
    hold: impl FnOnce(&Kept) -> Result<T, OwnershipError>,
) -> Result<(Arc<str>, T), OwnershipError> {
    let present = place::of(data_dir).map_err(OwnershipError::system("look at", data_dir))?;
    let file = data_dir.join(IDENTITY_FILE);
    let Some(kept) = file::read(&file)? else {
        let mark = if is_new { random_mark(&file)? } else { former_mark(data_dir, &present)? };
        let kept = Kept { mark, place: present };
        let held = hold(&kept)?;
        file::write(&file, &kept)?;
        return Ok((kept.mark.into(), held));
    };
    let verdict = decide(&kept.place, &present, || look_at_former(data_dir, &kept, &present))?;
    let from = place::path(&kept.place.path);
    let kept = Kept { mark: kept.mark, place: present };
    let change = match verdict {
        Verdict::Unchanged => None,
        Verdict::Changed(change) => Some(change),
        Verdict::Copied => {
            let data_dir = data_dir.to_owned();
            return Err(OwnershipError::Copied { data_dir, other: from, mark: kept.mark });
        }
    };
    let held = hold(&kept)?;
    if let Some(change) = change {
        let (from, to) = (from.display(), data_dir.display());
        tracing::warn!(%from, %to, mark = kept.mark, "{change}");
        file::write(&file, &kept)?;
    }
    Ok((kept.mark.into(), held))
}

/// Inspects the path where the mark was written.
fn look_at_former(data_dir: &Path, kept: &Kept, present: &Place) -> Result<Former, OwnershipError> {
    let other = place::path(&kept.place.path);
    look_at(&other, &kept.mark, present).map_err(|reason| {
        let (data_dir, here) = (data_dir.to_owned(), present.path.clone());
        OwnershipError::Unclear { data_dir, other, here, reason }
    })
}

/// Inspects a path, as seen from a directory with this mark at this place; or returns why that is impossible.
fn look_at(path: &Path, mark: &str, present: &Place) -> Result<Former, String> {
    if !place::is_there(path).map_err(|error| error.to_string())? {
        return Ok(Former::Gone);
    }
    let found = place::of(path).map_err(|error| error.to_string())?;
    if (found.device, found.inode) == (present.device, present.inode) {
        return Ok(Former::Same);
    }
    let there = file::read(&path.join(IDENTITY_FILE)).map_err(|error| error.to_string())?;
    Ok(if there.is_some_and(|there| there.mark == mark) { Former::Other } else { Former::Gone })
}

fn random_mark(file: &Path) -> Result<String, OwnershipError> {
    let random = random_bytes::<8>().map_err(OwnershipError::system("draw a random mark for", file))?;
    Ok(hex(&random))
}

/// The mark as computed by versions that did not store it.
fn former_mark(data_dir: &Path, present: &Place) -> Result<String, OwnershipError> {
    let path = data_dir.canonicalize().map_err(OwnershipError::system("look at", data_dir))?;
    let mut hasher = Sha256::new();
    hasher.update(path.as_os_str().as_encoded_bytes());
    hasher.update(present.device.to_le_bytes());
    hasher.update(present.inode.to_le_bytes());
    let digest: [u8; 32] = hasher.finalize().into();
    Ok(hex(&digest[..8]))
}

#[cfg(test)]
mod tests;
