//! Looks at one path: its kind, the mount there, and whether that answers.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Statx, StatxAttributes, StatxFlags};
use rustix::io::Errno;

use super::reading::Reading;
use super::threads::Ticket;
use super::{
    BlockDevice, DeviceNumber, FileId, LookError, MountId, MountTable, MountsAt, PathKind, PathLook,
    UniqueMountId,
};
use crate::datadir;

const TABLE: &str = "/proc/self/mountinfo";
/// The size limit of a mount table, in bytes. The kernel allows 100,000 mounts of a namespace, of some 200 bytes each.
const TABLE_BYTES_MAX: u64 = 256 * 1_024 * 1_024;
/// The number of times that a look begins again because mounts change meanwhile.
const RACES_MAX: usize = 5;
/// `STATX_MNT_ID_UNIQUE` (Linux 6.8), which rustix does not name. Older kernels leave it out of the answer.
const MNT_ID_UNIQUE: StatxFlags = StatxFlags::from_bits_retain(0x4000);
/// `AT_STATX_FORCE_SYNC`: the file system asks its server, despite its cache.
const FORCE_SYNC: AtFlags = AtFlags::STATX_FORCE_SYNC;
/// Opened only for its place.
const FOR_ITS_PLACE: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// The mount table of this process. Touches no file system, so it does not hang on a dead one.
///
/// # Errors
/// When it cannot be read, or is not a mount table.
pub fn mounts_of_this_process() -> io::Result<MountTable> {
    let mut content = Vec::new();
    File::open(TABLE)?.take(TABLE_BYTES_MAX).read_to_end(&mut content)?;
    MountTable::parse(&content).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// The mount table, with the error type of a look.
pub(super) fn table() -> Result<MountTable, LookError> {
    mounts_of_this_process().map_err(|error| refused(Path::new(TABLE), &error))
}

/// The mount table for looks that run side by side.
pub(super) type SharedTable = Reading<Result<MountTable, LookError>>;

/// Checks that the data directory in which a path lies is in its place: mounts move with the directory that they lie in.
pub(super) fn in_place(path: &Path) -> Result<(), LookError> {
    datadir::check(path).map_err(|lost| refused(path, &lost))
}

/// Looks at a path: by the unique id of its mount where that is enough, and otherwise by the mount table. This may hang, so it runs on a
/// thread of its own.
pub(super) fn look(path: &Path, tables: &SharedTable, ticket: &Ticket) -> Result<PathLook, LookError> {
    if !path.is_absolute() {
        return Err(refused(path, &"it is not absolute"));
    }
    // The table gives the file system of a path before that is touched: a file system that hangs takes no more threads then.
    if !ticket.does_any_hang()
        && let Some(look) = by_unique_id(path, ticket)?
    {
        return Ok(look);
    }
    by_table(path, tables, ticket)
}

/// Looks at a path without the mount table, which costs most where there are many mounts. `None` if this kernel lacks `openat2` (since
/// Linux 5.6, unless a seccomp filter forbids it) or the unique id (since Linux 6.8).
fn by_unique_id(path: &Path, ticket: &Ticket) -> Result<Option<PathLook>, LookError> {
    let found = match resolve(path, OFlags::NOFOLLOW) {
        Ok(found) => found,
        Err(Errno::NOSYS | Errno::PERM) => return Ok(None),
        Err(Errno::NOENT) => {
            let (path, mounts) = (path.to_owned(), MountsAt::Unique(None));
            return Ok(Some(PathLook { path, kind: PathKind::Absent, mode: 0, file: None, mounts }));
        }
        Err(error) => return Err(failed(path, error)),
    };
    let facts = facts_of_mount(found.as_fd(), MNT_ID_UNIQUE).map_err(|error| failed(path, error))?;
    let says_root = facts.stx_attributes_mask.contains(StatxAttributes::MOUNT_ROOT);
    if !says_root || facts.stx_mask & MNT_ID_UNIQUE.bits() == 0 {
        return Ok(None);
    }
    // Without links on the way, the root of a mount is reached at its mount point alone.
    let is_mount_point = facts.stx_attributes.contains(StatxAttributes::MOUNT_ROOT);
    ticket.touches(DeviceNumber { major: facts.stx_dev_major, minor: facts.stx_dev_minor }, |_| None)?;
    let mounts = MountsAt::Unique(is_mount_point.then_some(UniqueMountId(facts.stx_mnt_id)));
    let mut look = PathLook { path: path.to_owned(), kind: PathKind::Absent, mode: 0, file: None, mounts };
    touch(&mut look, &found)?;
    Ok(Some(look))
}

/// Looks at a path with the mount table.
pub(super) fn by_table(path: &Path, tables: &SharedTable, ticket: &Ticket) -> Result<PathLook, LookError> {
    if !path.is_absolute() {
        return Err(refused(path, &"it is not absolute"));
    }
    for _ in 0..RACES_MAX {
        if let Some(look) = once(path, tables, ticket)? {
            return Ok(look);
        }
    }
    Err(refused(path, &"the mounts on it change while it is looked at; look again later"))
}

/// One try. `None` if the path leads to another mount than in the table: the table was read before a change.
fn once(path: &Path, tables: &SharedTable, ticket: &Ticket) -> Result<Option<PathLook>, LookError> {
    let table = tables.get(table);
    let table = table.as_ref().as_ref().map_err(Clone::clone)?;
    let expected = table.visible_at(path).map(|mount| (mount.id, mount.device));
    if let Some((_, device)) = expected {
        ticket.touches(device, |other| table.visible_at(other).map(|mount| mount.device))?;
    }
    let found = match open(path) {
        Ok(found) => found,
        Err(Errno::NOENT) => return Ok(Some(PathLook::of(path, table))),
        Err(error) => return Err(failed(path, error)),
    };
    let ids = ids(found.as_fd()).map_err(|error| failed(path, error))?;
    let mut look = PathLook::of(path, table);
    if let (Some((id, unique_id)), Some((expected, _))) = (ids, expected) {
        if id != expected {
            return Ok(None);
        }
        look.set_unique_id(unique_id);
    }
    touch(&mut look, &found)?;
    Ok(Some(look))
}

/// Completes a look with the kind of the path, after its file system has answered.
fn touch(look: &mut PathLook, found: &OwnedFd) -> Result<(), LookError> {
    let path = &look.path;
    let facts = rustix::fs::statx(found, "", AtFlags::EMPTY_PATH | FORCE_SYNC, StatxFlags::BASIC_STATS)
        .map_err(|error| failed(path, error))?;
    let mut kind = kind(&facts);
    match &mut kind {
        // The file system itself has to answer, not only its cache.
        PathKind::Directory if look.mounted().is_some() => {
            rustix::fs::fstatfs(found).map_err(|error| failed(path, error))?;
        }
        PathKind::BlockDevice(device) => device.sequence = disk(path, device.number)?,
        _ => {}
    }
    (look.kind, look.mode) = (kind, u32::from(facts.stx_mode) & 0o7777);
    let device = DeviceNumber { major: facts.stx_dev_major, minor: facts.stx_dev_minor };
    look.file = Some(FileId { device, inode: facts.stx_ino });
    Ok(())
}

/// Opens a path without links in it, for looking only. The last name may be a link, which is not followed.
fn open(path: &Path) -> Result<OwnedFd, Errno> {
    match resolve(path, OFlags::NOFOLLOW) {
        // Without openat2 a link on the way leads to a mount that the table does not have at this path, or to none.
        Err(Errno::NOSYS | Errno::PERM) => {
            rustix::fs::openat(CWD, path, FOR_ITS_PLACE | OFlags::NOFOLLOW, Mode::empty())
        }
        result => result,
    }
}

/// Opens a path that has no link in it, only for its place: to mount it, or on it. A path that others can write may have become a link to
/// anything.
///
/// # Errors
/// The reason that it cannot be opened; a link is named, with what to do.
pub fn open_without_links(path: &Path) -> io::Result<OwnedFd> {
    resolve(path, OFlags::empty()).map_err(|error| match error {
        Errno::LOOP => io::Error::other(format!(
            "{} is a symbolic link, which no mount follows; remove the link, or write the path to which it leads (`realpath` shows it)",
            first_link(path).display()
        )),
        Errno::NOSYS | Errno::PERM => io::Error::other(
            "the system refuses openat2, without which a link is not told from a directory; use Linux 5.6 or newer, and a seccomp \
             filter that permits it",
        ),
        error => error.into(),
    })
}

fn resolve(path: &Path, also: OFlags) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    rustix::fs::openat2(CWD, path, FOR_ITS_PLACE | also, Mode::empty(), resolve)
}

/// The first part of a path that is a link, to be shown: the path itself if there is no link now.
fn first_link(path: &Path) -> &Path {
    let parts = path.ancestors().filter(|part| part.is_symlink());
    parts.last().unwrap_or(path)
}

/// The ids of the mount on which an open file lies, if the kernel reports them. Touches no file system.
pub(super) fn ids(file: BorrowedFd<'_>) -> Result<Option<(MountId, Option<UniqueMountId>)>, Errno> {
    let plain = facts_of_mount(file, StatxFlags::MNT_ID)?;
    if plain.stx_mask & StatxFlags::MNT_ID.bits() == 0 {
        return Ok(None);
    }
    let unique = facts_of_mount(file, MNT_ID_UNIQUE)?;
    let has_unique = unique.stx_mask & MNT_ID_UNIQUE.bits() != 0;
    Ok(Some((MountId(plain.stx_mnt_id), has_unique.then_some(UniqueMountId(unique.stx_mnt_id)))))
}

/// The kernel's own facts about an open file, without its file system.
fn facts_of_mount(file: BorrowedFd<'_>, wanted: StatxFlags) -> Result<Statx, Errno> {
    rustix::fs::statx(file, "", AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC, wanted)
}

pub(super) fn kind(facts: &Statx) -> PathKind {
    match FileType::from_raw_mode(u32::from(facts.stx_mode)) {
        FileType::Directory => PathKind::Directory,
        FileType::RegularFile => PathKind::File,
        FileType::Symlink => PathKind::Link,
        FileType::BlockDevice => {
            let number = DeviceNumber { major: facts.stx_rdev_major, minor: facts.stx_rdev_minor };
            PathKind::BlockDevice(BlockDevice { number, sequence: None })
        }
        _ => PathKind::Other,
    }
}

/// The sequence number of the disk behind a block device, whose file remains when the disk goes, or gives way to another one. `None` if
/// the kernel does not report it. Nothing is read from the device: a failed read says nothing of whose disk it is, would undo the claim
/// under its user, and a read that hangs would keep the device busy.
fn disk(path: &Path, number: DeviceNumber) -> Result<Option<u64>, LookError> {
    let devices = Path::new("/sys/dev/block");
    if !devices.is_dir() {
        return Ok(None);
    }
    let device = devices.join(number.to_string());
    let read = |name: &str| fs::read_to_string(device.join(name));
    let reason = match read("size") {
        Ok(sectors) if sectors.trim() == "0" => format!("no disk is behind block device {number} any more"),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            format!("the machine has no block device {number} any more")
        }
        // The directory of a partition is in that of its disk.
        Ok(_) | Err(_) => {
            let sequences = ["diskseq", "../diskseq"].into_iter().filter_map(|name| read(name).ok());
            return Ok(sequences.filter_map(|sequence| sequence.trim().parse().ok()).next());
        }
    };
    Err(LookError::Dead { path: path.to_owned(), reason })
}

fn failed(path: &Path, error: Errno) -> LookError {
    match error {
        Errno::NOTCONN
        | Errno::CONNABORTED
        | Errno::STALE
        | Errno::IO
        | Errno::NODEV
        | Errno::NXIO
        | Errno::HOSTDOWN
        | Errno::TIMEDOUT
        | Errno::SHUTDOWN
        | Errno::REMOTEIO
        | Errno::NOLINK
        | Errno::UCLEAN => {
            LookError::Dead { path: path.to_owned(), reason: io::Error::from(error).to_string() }
        }
        Errno::LOOP => refused(path, &"a part of it is a symbolic link; name the path to which it leads"),
        error => refused(path, &io::Error::from(error)),
    }
}

fn refused(path: &Path, reason: &dyn std::fmt::Display) -> LookError {
    LookError::Refused { path: path.to_owned(), reason: reason.to_string() }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn a_reading_whose_thread_panics_is_done_by_the_next_look_v7() {
        let reading = Reading::default();
        let failed = catch_unwind(AssertUnwindSafe(|| reading.get(|| panic!("the table is malformed"))));
        assert!(failed.is_err());
        assert_eq!(*reading.get(|| 2), 2);
    }
}
