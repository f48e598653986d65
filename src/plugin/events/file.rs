//! A journal in a file: one line that names the stream, then one line per event.
//!
//! A line is not fsynced before its event is sent, and need not be while the machine runs: the writes of a process that dies
//! stay with the kernel. A power failure may lose lines whose numbers hosts already have. So a stream ends with the boot in
//! which it began, and none of its numbers is reused (EVT-02).

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use callboard_actors::machine::Locked;
use callboard_actors::process::boot_id;
use callboard_proto::drivers::DriverTaskEvent;
use prost_types::Timestamp;
use serde::{Deserialize, Serialize};

use super::journal::Journal;

/// The longest file that is read, in bytes; files written by this module stay far below it.
const FILE_BYTES_MAX: u64 = 256 * 1_024 * 1_024;
/// The timeout for the lock. A plugin that was killed while it started a child leaves the lock to that child until its exec.
const LOCK_TIMEOUT: Duration = Duration::from_millis(500);

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    stream: String,
    /// The boot of the machine in which the stream began; missing in files of earlier versions.
    #[serde(default)]
    boot_id: String,
}

/// Every other line.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    sequence: u64,
    task_id: String,
    alloc_id: String,
    task_name: String,
    seconds: i64,
    nanos: i32,
    message: String,
    annotations: std::collections::BTreeMap<String, String>,
}

/// The file of a journal, open only in this process.
#[derive(Debug)]
pub(super) struct JournalFile {
    path: PathBuf,
    file: File,
    boot_id: String,
    /// Holds the lock while the journal is open. A file of its own, since the journal's is replaced when it is too long.
    _lock: Locked,
    lines: usize,
}

impl JournalFile {
    /// Opens the file and continues its stream, or begins a new stream if that is impossible. A last line that a crash has
    /// truncated is dropped: its event was never sent.
    pub(super) fn open(path: &Path, kept_max: usize) -> io::Result<(Self, Journal)> {
        let lock = open(&path.with_extension("lock"))?;
        let lock = Locked::within(lock, LOCK_TIMEOUT)?.ok_or_else(|| {
            let taken = format!("another process keeps its events in {}", path.display());
            io::Error::new(io::ErrorKind::WouldBlock, taken)
        })?;
        let boot_id = boot_id()?;
        let journal = match read(path, &boot_id, kept_max)? {
            Some(journal) => journal,
            None => Journal::new(crate::plugin::random::hex::<16>()?, kept_max),
        };
        let file = write_whole(path, &boot_id, &journal)?;
        let lines = journal.kept().len();
        Ok((Self { path: path.to_owned(), file, boot_id, _lock: lock, lines }, journal))
    }

    /// Writes the next event, which is not in `journal` yet.
    pub(super) fn append(&mut self, journal: &Journal, event: &DriverTaskEvent) -> io::Result<()> {
        if self.lines >= 2 * journal.kept_max() {
            self.file = write_whole(&self.path, &self.boot_id, journal)?;
            self.lines = journal.kept().len();
        }
        self.file.write_all(&line(journal.last() + 1, event)?)?;
        self.lines += 1;
        Ok(())
    }

    pub(super) fn give_up(self) {
        if let Err(error) = std::fs::remove_file(&self.path) {
            tracing::warn!(path = %self.path.display(), error = %error, "cannot remove a file of events");
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    let no_follow = i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).expect("the flag has a small value");
    OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(no_follow).open(path)
}

/// Reads the journal of a file, if its stream can continue. It cannot continue after a reboot, nor after a line that cannot be parsed,
/// since the last number is unknown then. The new stream signals to hosts that they may have missed events.
fn read(path: &Path, boot_id: &str, kept_max: usize) -> io::Result<Option<Journal>> {
    let mut text = Vec::new();
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
        Ok(file) => file.take(FILE_BYTES_MAX).read_to_end(&mut text)?,
    };
    let mut lines = text.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"));
    let begun = |why: &str| tracing::warn!(path = %path.display(), "starting a new stream of events: {why}");
    let Some(head) = lines.next() else { return Ok(None) };
    let Ok(head) = serde_json::from_slice::<Head>(head) else {
        begun("the file of the old one does not name it");
        return Ok(None);
    };
    if head.boot_id != boot_id {
        begun("the machine was rebooted");
        return Ok(None);
    }
    let mut journal = Journal::new(head.stream, kept_max);
    for line in lines {
        let Ok(line) = serde_json::from_slice::<Line>(line) else {
            begun("a line of the old one cannot be read");
            return Ok(None);
        };
        journal.restore(line.sequence, event(line));
    }
    Ok(Some(journal))
}

/// Writes a new file, which replaces the old file.
fn write_whole(path: &Path, boot_id: &str, journal: &Journal) -> io::Result<File> {
    let next = path.with_extension("next");
    match std::fs::remove_file(&next) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut file = open(&next)?;
    let head = Head { stream: journal.stream().to_owned(), boot_id: boot_id.to_owned() };
    let mut text = serde_json::to_vec(&head)?;
    text.push(b'\n');
    for (event, sequence) in journal.kept().zip(journal.forgotten() + 1..) {
        text.extend(line(sequence, event)?);
    }
    file.write_all(&text)?;
    file.sync_data()?;
    std::fs::rename(&next, path)?;
    Ok(file)
}

fn line(sequence: u64, event: &DriverTaskEvent) -> io::Result<Vec<u8>> {
    let at = event.timestamp.unwrap_or_default();
    let line = Line {
        sequence,
        task_id: event.task_id.clone(),
        alloc_id: event.alloc_id.clone(),
        task_name: event.task_name.clone(),
        seconds: at.seconds,
        nanos: at.nanos,
        message: event.message.clone(),
        annotations: event.annotations.clone().into_iter().collect(),
    };
    let mut text = serde_json::to_vec(&line)?;
    text.push(b'\n');
    Ok(text)
}

fn event(line: Line) -> DriverTaskEvent {
    DriverTaskEvent {
        task_id: line.task_id,
        alloc_id: line.alloc_id,
        task_name: line.task_name,
        timestamp: Some(Timestamp { seconds: line.seconds, nanos: line.nanos }),
        message: line.message,
        annotations: line.annotations.into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_that_has_not_called_exec_yet_does_not_keep_a_closed_file_locked_evt_02() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("events");
        let (first, _) = JournalFile::open(&path, 3).expect("a new file");
        // The state of a child between fork and exec: it has a copy of the descriptor.
        let copy = first._lock.file().try_clone().expect("a descriptor");
        drop(first);
        JournalFile::open(&path, 3).expect("its stream goes on");
        drop(copy);
    }
}
