//! The numbered log files of one stream, in a directory where its task may write.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, fchmod, fstat, openat, statat, unlinkat};
use rustix::io::Errno;
use rustix::process::geteuid;

/// The mode of every file (T066).
const FILE_MODE: Mode = Mode::from_raw_mode(0o644);
/// The highest valid number: a task may create files of any name.
const NUMBER_MAX: u64 = 999_999_999_999;
/// The limit of directory entries that are read: a task may create any number of them.
const ENTRIES_MAX: usize = 100_000;
/// How many taken numbers are skipped when a file is created.
const TAKEN_MAX: u64 = 1_000;

/// The numbers of a stream's files that belong to `owner`, in order. Symlinks, directories and files of others are ignored.
pub(super) fn numbers(directory: impl AsFd, prefix: &str, owner: u32) -> io::Result<BTreeSet<u64>> {
    let mut numbers = BTreeSet::new();
    for entry in Dir::read_from(&directory)?.take(ENTRIES_MAX) {
        let entry = entry?;
        let Some(number) = entry.file_name().to_str().ok().and_then(|name| number(name, prefix)) else {
            continue;
        };
        if let Ok(seen) = statat(&directory, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)
            && FileType::from_raw_mode(seen.st_mode) == FileType::RegularFile
            && seen.st_uid == owner
        {
            numbers.insert(number);
        }
    }
    Ok(numbers)
}

fn number(name: &str, prefix: &str) -> Option<u64> {
    let digits = name.strip_prefix(prefix)?;
    let is_plain =
        digits.bytes().all(|digit| digit.is_ascii_digit()) && (digits == "0" || !digits.starts_with('0'));
    digits.parse().ok().filter(|number| is_plain && *number <= NUMBER_MAX)
}

#[derive(Debug)]
pub(super) struct Written {
    pub(super) file: File,
    pub(super) number: u64,
}

/// Opens the latest file for appending, or creates the first one.
pub(super) fn latest(directory: impl AsFd, prefix: &str, numbers: &mut BTreeSet<u64>) -> io::Result<Written> {
    let Some(number) = numbers.last().copied() else { return begin(directory, prefix, 0, numbers) };
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = openat(&directory, format!("{prefix}{number}"), flags, Mode::empty()).and_then(|file| {
        let seen = fstat(&file)?;
        // A hard link may point to a file that is not ours.
        let is_ours = FileType::from_raw_mode(seen.st_mode) == FileType::RegularFile
            && seen.st_uid == geteuid().as_raw()
            && seen.st_nlink == 1;
        if is_ours { Ok(file) } else { Err(Errno::NOENT) }
    });
    match opened {
        Ok(file) => Ok(Written { file: File::from(file), number }),
        // It was removed or replaced meanwhile.
        Err(Errno::NOENT | Errno::LOOP | Errno::NXIO | Errno::ACCESS) => {
            begin(directory, prefix, number + 1, numbers)
        }
        Err(error) => Err(error.into()),
    }
}

/// Creates the file with this number, or with the next free one.
pub(super) fn begin(
    directory: impl AsFd,
    prefix: &str,
    number: u64,
    numbers: &mut BTreeSet<u64>,
) -> io::Result<Written> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    for number in number..=number.saturating_add(TAKEN_MAX) {
        match openat(&directory, format!("{prefix}{number}"), flags, FILE_MODE) {
            Ok(file) => {
                // Independent of the umask. A log that others cannot read is still a log.
                let _ = fchmod(&file, FILE_MODE);
                numbers.insert(number);
                return Ok(Written { file: File::from(file), number });
            }
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(io::Error::other(format!(
        "the files {prefix}{number} and the next {TAKEN_MAX} exist already and are not of this log; remove them"
    )))
}

/// Removes the oldest files over the retention limit.
pub(super) fn prune(directory: impl AsFd, prefix: &str, files_max: u64, numbers: &mut BTreeSet<u64>) {
    while numbers.len() as u64 > files_max {
        let Some(oldest) = numbers.pop_first() else { return };
        // If it cannot be removed now, it is found again at the next open.
        let _ = unlinkat(&directory, format!("{prefix}{oldest}"), AtFlags::empty());
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn me() -> u32 {
        geteuid().as_raw()
    }

    #[test]
    fn only_plain_files_of_ours_with_plain_numbers_count_th024() {
        let directory = tempfile::tempdir().unwrap();
        let held = File::open(directory.path()).unwrap();
        for name in
            ["w.stdout.0", "w.stdout.2", "w.stdout.03", "w.stdout.x", "w.stderr.7", "w.stdout.99999999999999"]
        {
            std::fs::write(directory.path().join(name), "").unwrap();
        }
        symlink("/etc/passwd", directory.path().join("w.stdout.9")).unwrap();
        std::fs::create_dir(directory.path().join("w.stdout.8")).unwrap();
        let numbers = numbers(&held, "w.stdout.", me()).unwrap();
        assert_eq!(numbers.into_iter().collect::<Vec<_>>(), [0, 2]);
    }

    #[test]
    fn a_name_that_a_task_has_taken_is_passed_over_and_no_link_is_followed_th024() {
        let directory = tempfile::tempdir().unwrap();
        let held = File::open(directory.path()).unwrap();
        let elsewhere = directory.path().join("elsewhere");
        symlink(&elsewhere, directory.path().join("w.0")).unwrap();
        let mut known = numbers(&held, "w.", me()).unwrap();
        assert_eq!(latest(&held, "w.", &mut known).unwrap().number, 1);
        assert!(!elsewhere.exists());
        // A hard link is not ours to append to.
        std::fs::hard_link(directory.path().join("w.1"), directory.path().join("other")).unwrap();
        assert_eq!(latest(&held, "w.", &mut known).unwrap().number, 2);
    }

    #[test]
    fn the_oldest_files_go_and_the_numbers_go_on_t066() {
        let directory = tempfile::tempdir().unwrap();
        let held = File::open(directory.path()).unwrap();
        let mut known = BTreeSet::new();
        for number in 0..7 {
            begin(&held, "w.", number, &mut known).unwrap();
            prune(&held, "w.", 3, &mut known);
        }
        assert_eq!(numbers(&held, "w.", me()).unwrap(), known);
        assert_eq!(known.into_iter().collect::<Vec<_>>(), [4, 5, 6]);
    }
}
