//! Reads the logs of a task, or any other rotated log: from the beginning or near the end, and follows it as it grows.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;

use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat, seek};

use super::files;
use super::pipes::HeldDirectory;

/// The chunk size when lines are counted from the end.
const PIECE_BYTES: u64 = 64 * 1_024;

/// The location of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogPlace {
    /// Files that are numbered from 0 and never renamed. Symlinks below the root are not followed, tasks may create them.
    Numbered {
        /// A trusted path.
        root: PathBuf,
        /// The directory, below the root.
        directory: PathBuf,
        /// The prefix of the file names; a number follows.
        prefix: String,
        /// The owner of the files; those of other users are ignored.
        owner: u32,
    },
    /// One file, which is renamed when it is full, and then created again.
    Renamed {
        /// The file.
        path: PathBuf,
        /// Its name after the rename.
        before: PathBuf,
    },
}

#[derive(Debug)]
struct Opened {
    file: File,
    number: u64,
    /// Device and inode of its directory if files are numbered, otherwise its own.
    id: (u64, u64),
}

/// Reads one log. Each byte is returned once, in any race with rotation; files that were removed unread are counted.
#[derive(Debug)]
pub struct LogReader {
    place: LogPlace,
    opened: Option<Opened>,
    /// Files to read next, oldest first.
    next: VecDeque<Opened>,
    skipped: u64,
}

impl LogReader {
    /// Begins before the oldest line.
    ///
    /// # Errors
    /// When the directory or a file cannot be read. A missing file is not an error.
    pub fn from_start(place: LogPlace) -> io::Result<Self> {
        let next = place.files(None)?;
        Ok(Self { place, opened: None, next, skipped: 0 })
    }

    /// Begins before the last `lines` lines.
    ///
    /// # Errors
    /// As [`from_start`](Self::from_start).
    pub fn from_tail(place: LogPlace, lines: u64) -> io::Result<Self> {
        let mut reader = Self::from_start(place)?;
        let mut wanted = lines;
        let mut kept = VecDeque::new();
        // The line ending of the last line ends no line before it.
        let mut is_last = true;
        while let Some(mut opened) = reader.next.pop_back() {
            let found = line_start(&opened.file, &mut wanted, &mut is_last)?;
            opened.file.seek(SeekFrom::Start(found.unwrap_or_default()))?;
            if found.is_none() {
                seek_data(&opened.file)?;
            }
            kept.push_front(opened);
            if found.is_some() {
                break;
            }
        }
        reader.next = kept;
        Ok(reader)
    }

    /// Whether any file of this log exists.
    #[must_use]
    pub fn is_there(&self) -> bool {
        self.opened.is_some() || !self.next.is_empty()
    }

    /// How many times files were removed that may not have been read.
    #[must_use]
    pub const fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Reads the next bytes. 0 means that there are no more at present.
    ///
    /// # Errors
    /// When the directory or a file cannot be read.
    pub fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            let Some(opened) = &mut self.opened else {
                match self.next.pop_front() {
                    Some(next) => self.opened = Some(next),
                    None if self.find_more(None)? => {}
                    None => return Ok(0),
                }
                continue;
            };
            let count = opened.file.read(bytes)?;
            if count > 0 {
                return Ok(count);
            }
            if self.next.is_empty() {
                let (number, id) = (opened.number, opened.id);
                if !self.find_more(Some((number, id)))? {
                    self.restart_if_cut()?;
                    return Ok(0);
                }
            }
            // There is a later file, so nothing more is written to this one: the rest of it is read now.
            if let Some(opened) = &mut self.opened {
                let count = opened.file.read(bytes)?;
                if count > 0 {
                    return Ok(count);
                }
            }
            self.opened = self.next.pop_front();
        }
    }

    /// Searches for files after the present one. Returns whether there are any.
    fn find_more(&mut self, after: Option<(u64, (u64, u64))>) -> io::Result<bool> {
        let mut files = self.place.files(after)?;
        let Some((number, id)) = after else {
            self.next = files;
            return Ok(!self.next.is_empty());
        };
        match &self.place {
            LogPlace::Numbered { .. } => {
                if let Some(first) = files.front().filter(|first| first.id == id) {
                    self.skipped += first.number - number - 1;
                }
            }
            LogPlace::Renamed { .. } => match files.iter().position(|file| file.id == id) {
                Some(place) => drop(files.drain(..=place)),
                None => self.skipped += u64::from(!files.is_empty()),
            },
        }
        self.next = files;
        Ok(!self.next.is_empty())
    }

    fn restart_if_cut(&mut self) -> io::Result<()> {
        if let Some(Opened { file, .. }) = &mut self.opened {
            let position = file.stream_position()?;
            if file.metadata()?.len() < position {
                file.rewind()?;
            }
        }
        Ok(())
    }
}

impl LogPlace {
    /// All files, oldest first, opened at their beginning. If files are numbered, only those after this one, unless they are
    /// in another directory of the same name, where the numbers begin again.
    fn files(&self, after: Option<(u64, (u64, u64))>) -> io::Result<VecDeque<Opened>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mut opened = VecDeque::new();
        match self {
            Self::Numbered { root, directory, prefix, owner } => {
                let held = match HeldDirectory::open(root, directory) {
                    Ok(held) => held,
                    Err(error) => return none_if_missing(error),
                };
                let seen = fstat(&held.descriptor)?;
                let id = (seen.st_dev, seen.st_ino);
                let mut numbers = files::numbers(&held.descriptor, prefix, *owner)?;
                numbers.retain(|number| after.is_none_or(|(last, of)| of != id || *number > last));
                for number in numbers {
                    let file = openat(&held.descriptor, format!("{prefix}{number}"), flags, Mode::empty());
                    // A file that is removed meanwhile is counted at the next one.
                    let Ok(file) = file else { continue };
                    if FileType::from_raw_mode(fstat(&file)?.st_mode) == FileType::RegularFile {
                        opened.push_back(Opened { file: File::from(file), number, id });
                    }
                }
            }
            Self::Renamed { path, before } => {
                for (number, path) in [before, path].into_iter().enumerate() {
                    let Ok(file) = openat(CWD, path, flags, Mode::empty()).map(File::from) else { continue };
                    let seen = file.metadata()?;
                    let id = (seen.dev(), seen.ino());
                    // It was renamed between the two opens, and opened twice.
                    if seen.is_file() && opened.back().is_none_or(|before: &Opened| before.id != id) {
                        opened.push_back(Opened { file, number: number as u64, id });
                    }
                }
            }
        }
        opened.iter().try_for_each(|opened| seek_data(&opened.file))?;
        Ok(opened)
    }
}

/// A missing directory has no files yet.
fn none_if_missing(error: super::pipes::PipeError) -> io::Result<VecDeque<Opened>> {
    use super::pipes::PipeError;
    let text = error.to_string();
    match error {
        PipeError::Directory { source, .. } if source.kind() == io::ErrorKind::NotFound => {
            Ok(VecDeque::new())
        }
        PipeError::Directory { source, .. } | PipeError::System { source, .. } => {
            Err(io::Error::new(source.kind(), text))
        }
        PipeError::Foreign { .. } => Err(io::Error::other(text)),
    }
}

/// Seeks to the first data: the front of a file may have been freed by a hole.
fn seek_data(file: &File) -> io::Result<()> {
    match seek(file, rustix::fs::SeekFrom::Data(0)) {
        Ok(_) => Ok(()),
        // There is no data at all, or the file system does not support holes.
        Err(rustix::io::Errno::NXIO | rustix::io::Errno::INVAL) => {
            seek(file, rustix::fs::SeekFrom::Start(0)).map(drop).map_err(io::Error::from)
        }
        Err(error) => Err(error.into()),
    }
}

/// Searches for the beginning of the last `wanted` lines in a file. `wanted` is decremented for each line found.
fn line_start(file: &File, wanted: &mut u64, is_last: &mut bool) -> io::Result<Option<u64>> {
    let mut end = file.metadata()?.len();
    if *wanted == 0 {
        return Ok(Some(end));
    }
    let mut piece = vec![0; usize::try_from(PIECE_BYTES).unwrap_or_default()];
    while end > 0 {
        let start = end.saturating_sub(PIECE_BYTES);
        let bytes = &mut piece[..usize::try_from(end - start).unwrap_or_default()];
        file.read_exact_at(bytes, start)?;
        for (place, byte) in bytes.iter().enumerate().rev() {
            let is_end_of_all = std::mem::take(is_last);
            if *byte == b'\n' && !is_end_of_all {
                *wanted -= 1;
                if *wanted == 0 {
                    return Ok(Some(start + place as u64 + 1));
                }
            }
        }
        end = start;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use rustix::process::geteuid;

    use super::*;

    fn numbered(root: &Path) -> LogPlace {
        let (root, directory, prefix) = (root.to_owned(), PathBuf::from("logs"), "w.stdout.".to_owned());
        LogPlace::Numbered { root, directory, prefix, owner: geteuid().as_raw() }
    }

    fn stage() -> tempfile::TempDir {
        let stage = tempfile::tempdir().unwrap();
        std::fs::create_dir(stage.path().join("logs")).unwrap();
        stage
    }

    fn append(path: &Path, text: &str) {
        use std::io::Write;
        let mut file = std::fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    fn rest(reader: &mut LogReader) -> String {
        let (mut text, mut bytes) = (String::new(), [0; 5]);
        while let count @ 1.. = reader.read(&mut bytes).unwrap() {
            text += std::str::from_utf8(&bytes[..count]).unwrap();
        }
        text
    }

    #[test]
    fn a_reader_follows_numbered_files_and_gives_each_byte_once_th024() {
        let stage = stage();
        let file = |number: u64| stage.path().join(format!("logs/w.stdout.{number}"));
        let mut reader = LogReader::from_start(numbered(stage.path())).unwrap();
        assert!(!reader.is_there() && rest(&mut reader).is_empty());
        append(&file(0), "one\ntw");
        assert_eq!(rest(&mut reader), "one\ntw");
        append(&file(0), "o\n");
        append(&file(1), "three\n");
        append(&file(2), "four\n");
        assert_eq!(rest(&mut reader), "o\nthree\nfour\n");
        // A file that is removed before it was opened is counted; an open one is read although it is removed.
        append(&file(2), "five\n");
        append(&file(3), "six\n");
        append(&file(4), "seven\n");
        for number in [0, 1, 2, 3] {
            std::fs::remove_file(file(number)).unwrap();
        }
        assert_eq!(rest(&mut reader), "five\nseven\n");
        assert_eq!(reader.skipped(), 1);
    }

    #[test]
    fn the_last_lines_are_found_across_files() {
        let stage = stage();
        for (number, text) in [(0, "a\nb\n"), (1, "c\n"), (2, "d\ne")] {
            append(&stage.path().join(format!("logs/w.stdout.{number}")), text);
        }
        for (lines, expected) in [(0, ""), (1, "e"), (2, "d\ne"), (4, "b\nc\nd\ne"), (9, "a\nb\nc\nd\ne")] {
            let mut reader = LogReader::from_tail(numbered(stage.path()), lines).unwrap();
            assert_eq!(rest(&mut reader), expected, "{lines} lines");
        }
        append(&stage.path().join("logs/w.stdout.2"), "\n");
        let mut reader = LogReader::from_tail(numbered(stage.path()), 3).unwrap();
        assert_eq!(rest(&mut reader), "c\nd\ne\n");
    }

    #[test]
    fn links_that_a_task_makes_are_no_logs_and_lead_nowhere_th023() {
        let stage = stage();
        append(&stage.path().join("secret"), "secret\n");
        symlink(stage.path().join("secret"), stage.path().join("logs/w.stdout.0")).unwrap();
        let mut reader = LogReader::from_start(numbered(stage.path())).unwrap();
        assert_eq!(rest(&mut reader), "");
        std::fs::rename(stage.path().join("logs"), stage.path().join("real")).unwrap();
        symlink(stage.path().join("real"), stage.path().join("logs")).unwrap();
        assert!(LogReader::from_start(numbered(stage.path())).is_err());
    }

    #[test]
    fn a_reader_follows_a_file_that_is_renamed_when_it_is_full() {
        let stage = stage();
        let (path, before) = (stage.path().join("a.log"), stage.path().join("a.log.1"));
        append(&before, "one\n");
        append(&path, "two\n");
        let place = LogPlace::Renamed { path: path.clone(), before: before.clone() };
        let mut reader = LogReader::from_start(place).unwrap();
        assert_eq!(rest(&mut reader), "one\ntwo\n");
        append(&path, "three\n");
        std::fs::rename(&path, &before).unwrap();
        append(&path, "four\n");
        assert_eq!(rest(&mut reader), "three\nfour\n");
        // Two rotations at once are one too many.
        for text in ["five\n", "six\n"] {
            std::fs::rename(&path, &before).unwrap();
            append(&path, text);
        }
        assert_eq!(rest(&mut reader), "five\nsix\n");
        assert_eq!(reader.skipped(), 1);
    }

    #[test]
    fn in_a_directory_that_was_made_anew_everything_begins_anew() {
        let stage = stage();
        append(&stage.path().join("logs/w.stdout.7"), "old\n");
        let mut reader = LogReader::from_start(numbered(stage.path())).unwrap();
        assert_eq!(rest(&mut reader), "old\n");
        std::fs::rename(stage.path().join("logs"), stage.path().join("gone")).unwrap();
        std::fs::create_dir(stage.path().join("logs")).unwrap();
        append(&stage.path().join("logs/w.stdout.0"), "new\n");
        assert_eq!(rest(&mut reader), "new\n");
    }
}
