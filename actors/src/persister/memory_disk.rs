//! An in-memory disk with fault injection, for scripts and tests of storage.
//!
//! Holds two images of the file: what a program sees, and what survives a power cut. A sync copies the first to the second,
//! page by page.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redb::StorageBackend;
use rustix::io::Errno;

use super::open::Options;
use super::source::MakeBackend;

const PAGE_BYTES: usize = 4_096;

/// The fault that lasts until it is cleared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DiskFault {
    /// Every write fails: no space left.
    Full,
    /// Every write fails: read-only file system.
    ReadOnly,
    /// Every write, read and sync is an I/O error.
    Broken,
    /// Every sync is an I/O error and drops the unsynced pages, as Linux does.
    Syncs,
    /// Every write, read and sync is an I/O error, and reopening the disk panics.
    Panics,
}

/// Which unsynced pages have reached the disk when the power is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reached {
    /// None of them.
    Nothing,
    /// All, except those that a failed sync has dropped. The same holds when only the process is killed.
    Everything,
    /// A pseudo-random choice with this seed.
    Chosen(u64),
}

/// An in-memory disk. Clones are the same disk.
#[derive(Debug, Clone, Default)]
pub struct MemoryDisk(Arc<Mutex<Images>>);

#[derive(Debug, Default)]
struct Images {
    seen: Vec<u8>,
    durable: Vec<u8>,
    unsynced: BTreeSet<usize>,
    syncs: u64,
    /// Writes, resizes and syncs that were attempted.
    changes: u64,
    fault: Option<DiskFault>,
    /// A scheduled fault: the number of changes before it.
    due: Option<(u64, DiskFault)>,
}

impl MemoryDisk {
    /// Sets the fault from now on; `None` clears it.
    pub fn set_fault(&self, fault: Option<DiskFault>) {
        let mut images = self.images();
        (images.fault, images.due) = (fault, None);
    }

    /// Schedules a fault after this many more writes, resizes and syncs.
    pub fn set_fault_after(&self, changes: u64, fault: DiskFault) {
        let mut images = self.images();
        (images.fault, images.due) = (None, Some((images.changes + changes, fault)));
    }

    /// The number of writes, resizes and syncs that were attempted.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.images().changes
    }

    /// Whether a power cut would lose nothing. It may restore bytes behind the end of a truncated file.
    #[must_use]
    pub fn is_synced(&self) -> bool {
        let images = self.images();
        images.durable.starts_with(&images.seen)
    }

    /// The number of successful syncs.
    #[must_use]
    pub fn syncs(&self) -> u64 {
        self.images().syncs
    }

    /// Whether these bytes occur anywhere on the disk, also in free space of a file.
    #[must_use]
    pub fn holds(&self, bytes: &[u8]) -> bool {
        !places(&self.images().seen, bytes).is_empty()
    }

    /// Flips a bit in every occurrence of these bytes. False means that there is none. An open program may have read them.
    pub fn damage(&self, bytes: &[u8]) -> bool {
        let mut images = self.images();
        let Images { seen, durable, .. } = &mut *images;
        let damaged = [seen, durable].map(|image| {
            let places = places(image, bytes);
            places.iter().for_each(|place| image[*place] ^= 1);
            !places.is_empty()
        });
        damaged.contains(&true)
    }

    /// Drops all unsynced data, as a power cut does. The program that has the file open must have ended before.
    pub fn cut_power(&self) {
        self.cut_power_when(Reached::Nothing);
    }

    /// Drops the unsynced data that has not `reached` the disk. The program that has the file open must have ended before.
    pub fn cut_power_when(&self, reached: Reached) {
        let mut images = self.images();
        let unsynced = std::mem::take(&mut images.unsynced);
        let Images { seen, durable, .. } = &mut *images;
        let mut place = 0;
        let mut has_reached = || {
            place += 1;
            match reached {
                Reached::Nothing => false,
                Reached::Everything => true,
                Reached::Chosen(number) => is_chosen(number, place),
            }
        };
        if has_reached() {
            durable.resize(seen.len(), 0);
        }
        for page in unsynced.into_iter().filter(|_| has_reached()) {
            copy_page(page, seen, durable);
        }
        *seen = durable.clone();
    }

    /// Options that put the database of a data directory on this disk. The directory then only holds the lock.
    #[must_use]
    pub fn hold(&self, data_dir: impl Into<PathBuf>) -> Options {
        Options { backend: Some(self.backend()), is_in_place: true, ..Options::new(data_dir) }
    }

    /// Makes a backend of this disk for each opening of the database.
    pub(super) fn backend(&self) -> MakeBackend {
        let disk = self.clone();
        Arc::new(move || {
            if disk.images().fault == Some(DiskFault::Panics) {
                // Not `panic!`, so that no message is printed.
                std::panic::resume_unwind(Box::new("this disk panics when it is opened"));
            }
            Ok(Box::new(disk.clone()))
        })
    }

    fn images(&self) -> MutexGuard<'_, Images> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
    Sync,
}

impl Images {
    /// Counts an attempted change, and returns the fault if one is due.
    fn change(&mut self, access: Access) -> io::Result<()> {
        self.changes += 1;
        if let Some((_, fault)) = self.due.take_if(|(due, _)| *due < self.changes) {
            self.fault = Some(fault);
        }
        self.check(access)
    }

    fn check(&self, access: Access) -> io::Result<()> {
        let error = match (self.fault, access) {
            (Some(DiskFault::Full), Access::Write) => Errno::NOSPC,
            (Some(DiskFault::ReadOnly), Access::Write) => Errno::ROFS,
            (Some(DiskFault::Broken | DiskFault::Panics), _) | (Some(DiskFault::Syncs), Access::Sync) => {
                Errno::IO
            }
            (Some(DiskFault::Full | DiskFault::ReadOnly), Access::Read | Access::Sync)
            | (Some(DiskFault::Syncs), Access::Read | Access::Write)
            | (None, _) => return Ok(()),
        };
        Err(error.into())
    }

    fn sync(&mut self) {
        let Self { seen, durable, unsynced, .. } = self;
        durable.resize(seen.len(), 0);
        std::mem::take(unsynced).into_iter().for_each(|page| copy_page(page, seen, durable));
        self.syncs += 1;
    }
}

/// Copies a page, or the part of it that exists, to the durable image.
fn copy_page(page: usize, seen: &[u8], durable: &mut Vec<u8>) {
    let start = page * PAGE_BYTES;
    let end = (start + PAGE_BYTES).min(seen.len());
    if start < end {
        durable.resize(durable.len().max(end), 0);
        durable[start..end].copy_from_slice(&seen[start..end]);
    }
}

/// Whether this seed picks the page at this place: a deterministic pseudo-random choice.
const fn is_chosen(number: u64, place: u64) -> bool {
    let mixed = (number ^ place.rotate_left(32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 63 == 1
}

/// The offsets of all occurrences of these bytes; none if they are empty.
fn places(image: &[u8], bytes: &[u8]) -> Vec<usize> {
    let windows = image.windows(bytes.len().max(1)).enumerate();
    windows.filter(|(_, window)| *window == bytes).map(|(place, _)| place).collect()
}

fn place(offset: u64, len: usize) -> io::Result<(usize, usize)> {
    let start = usize::try_from(offset).map_err(io::Error::other)?;
    let end = start.checked_add(len).ok_or(io::ErrorKind::FileTooLarge)?;
    Ok((start, end))
}

impl StorageBackend for MemoryDisk {
    fn len(&self) -> io::Result<u64> {
        let images = self.images();
        images.check(Access::Read)?;
        Ok(images.seen.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let images = self.images();
        images.check(Access::Read)?;
        let (start, end) = place(offset, out.len())?;
        out.copy_from_slice(images.seen.get(start..end).ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut images = self.images();
        images.change(Access::Write)?;
        let (before, len) = (images.seen.len(), place(len, 0)?.0);
        images.seen.resize(len, 0);
        images.unsynced.extend(before / PAGE_BYTES..len.div_ceil(PAGE_BYTES));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut images = self.images();
        if let Err(error) = images.change(Access::Sync) {
            images.unsynced.clear();
            return Err(error);
        }
        images.sync();
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut images = self.images();
        images.change(Access::Write)?;
        let (start, end) = place(offset, data.len())?;
        if images.seen.len() < end {
            images.seen.resize(end, 0);
        }
        images.seen[start..end].copy_from_slice(data);
        images.unsynced.extend(start / PAGE_BYTES..end.div_ceil(PAGE_BYTES));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_synced_is_gone_after_a_power_cut() {
        let disk = MemoryDisk::default();
        disk.write(0, b"synced").unwrap();
        disk.sync_data().unwrap();
        disk.write(0, b"lost!!").unwrap();
        disk.cut_power();
        let mut read = [0; 6];
        disk.read(0, &mut read).unwrap();
        assert_eq!(&read, b"synced");
    }

    #[test]
    fn what_is_damaged_stands_there_no_more() {
        let disk = MemoryDisk::default();
        disk.write(4_000, b"some words and again some words").unwrap();
        disk.sync_data().unwrap();
        assert!(disk.holds(b"some words") && disk.damage(b"some words") && !disk.holds(b"some words"));
        disk.cut_power();
        assert!(!disk.holds(b"some words") && disk.holds(b" and again ") && !disk.damage(b"some words"));
        assert!(!disk.holds(b"") && !disk.damage(b""));
    }

    #[test]
    fn each_fault_fails_what_it_is_named_after_and_is_mended() {
        let disk = MemoryDisk::default();
        for (fault, reads, writes, syncs) in [
            (DiskFault::Full, true, false, true),
            (DiskFault::ReadOnly, true, false, true),
            (DiskFault::Broken, false, false, false),
            (DiskFault::Syncs, true, true, false),
        ] {
            disk.set_fault(Some(fault));
            assert_eq!(disk.len().is_ok(), reads, "{fault:?}");
            assert_eq!(disk.write(0, b"x").is_ok(), writes, "{fault:?}");
            assert_eq!(disk.sync_data().is_ok(), syncs, "{fault:?}");
            disk.set_fault(None);
            assert!(disk.write(0, b"x").is_ok() && disk.sync_data().is_ok());
        }
    }

    #[test]
    fn of_what_was_not_synced_as_much_is_left_as_is_said() {
        let left = |reached| {
            let disk = MemoryDisk::default();
            disk.set_len(16 * PAGE_BYTES as u64).unwrap();
            disk.sync_data().unwrap();
            assert!(disk.is_synced());
            (0..16).for_each(|page| disk.write(page * PAGE_BYTES as u64, b"written").unwrap());
            assert!(!disk.is_synced());
            disk.cut_power_when(reached);
            let images = disk.images();
            (0..16).filter(|page| images.seen[page * PAGE_BYTES..].starts_with(b"written")).count()
        };
        assert_eq!((left(Reached::Nothing), left(Reached::Everything)), (0, 16));
        let some = left(Reached::Chosen(7));
        assert!((1..16).contains(&some) && some == left(Reached::Chosen(7)), "{some} pages are left");
    }

    #[test]
    fn a_fault_begins_after_so_many_changes_and_not_before() {
        let disk = MemoryDisk::default();
        disk.write(0, b"x").unwrap();
        disk.set_fault_after(2, DiskFault::Broken);
        assert!(disk.write(0, b"x").is_ok() && disk.len().is_ok() && disk.sync_data().is_ok());
        assert!(disk.write(0, b"x").is_err() && disk.len().is_err());
        assert_eq!(disk.changes(), 4);
        disk.set_fault(None);
        assert!(disk.write(0, b"x").is_ok());
    }
}
