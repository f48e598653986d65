//! The record on disk of each task with collected logs: where they are, and whether its pipes are held. One small file each,
//! so that the next run of the host, and readers of logs without a host, find them.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use super::protocol::OpenLogs;
use super::reader::LogPlace;
use super::{Collection, LogStream};
use crate::datadir;

const VERSION: u32 = 1;
const ENDING: &str = ".json";
/// The size limit of such a file, in bytes.
const RECORD_BYTES_MAX: u64 = 64 * 1_024;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    version: u32,
    pub(super) is_open: bool,
    pub(super) logs: OpenLogs,
}

impl Record {
    pub(super) const fn new(logs: OpenLogs, is_open: bool) -> Self {
        Self { version: VERSION, is_open, logs }
    }

    /// Replaces the record atomically. If that fails, the former one stays and nothing else is left.
    pub(super) fn write(&self, directory: &Path) -> io::Result<()> {
        datadir::enter_or_make(directory, 0o700)?;
        let path = path(directory, &self.logs.spec.key);
        let next = directory.join(format!("{}.new", self.logs.spec.key));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
        let mut file = datadir::open_file(&next, flags, 0o600)?;
        let written = file.write_all(&serde_json::to_vec(self)?).and_then(|()| datadir::rename(&next, &path));
        if written.is_err() {
            // The error of the write is more informative.
            let _ = datadir::remove_file(&next);
        }
        written
    }
}

fn path(directory: &Path, key: &str) -> PathBuf {
    directory.join(format!("{key}{ENDING}"))
}

/// The record of one task, if it exists and can be parsed.
pub(super) fn read(directory: &Path, key: &str) -> Option<Record> {
    let path = path(directory, key);
    let text = fs::metadata(&path)
        .ok()
        .filter(|seen| seen.len() <= RECORD_BYTES_MAX)
        .and_then(|_| fs::read(&path).ok())?;
    let record = serde_json::from_slice::<Record>(&text);
    let record = record.inspect_err(|error| {
        tracing::warn!(path = %path.display(), %error, "cannot read the record of a task's logs; skipping it");
    });
    record.ok().filter(|record| {
        record.version == VERSION && record.logs.spec.key == key && record.logs.spec.check().is_ok()
    })
}

/// Removes the record of one task. Idempotent.
pub(super) fn remove(directory: &Path, key: &str) -> io::Result<()> {
    match datadir::remove_file(&path(directory, key)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// All records that can be parsed, by key.
pub(super) fn read_all(directory: &Path) -> io::Result<Vec<Record>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut keys = Vec::new();
    for entry in entries {
        let name = entry?.file_name();
        keys.extend(name.to_str().and_then(|name| name.strip_suffix(ENDING)).map(str::to_owned));
    }
    keys.sort();
    Ok(keys.iter().filter_map(|key| read(directory, key)).collect())
}

/// The locations of the logs of all tasks in a directory, by key and stream, except dropped ones. Works without a host.
///
/// # Errors
/// When the directory cannot be read.
pub fn places(directory: &Path) -> io::Result<Vec<(String, LogStream, LogPlace)>> {
    let records = read_all(directory)?;
    if records.is_empty() {
        return Ok(Vec::new());
    }
    // Files of other users in the same directory are not logs: a task may have created them.
    let owner = fs::metadata(directory)?.uid();
    let place = |record: &Record, stream| {
        let spec = &record.logs.spec;
        let (root, directory, prefix) = (spec.root.clone(), spec.directory.clone(), spec.file_prefix(stream));
        (spec.key.clone(), stream, LogPlace::Numbered { root, directory, prefix, owner })
    };
    let kept = records.iter().filter(|record| record.logs.spec.collection != Collection::Discard);
    Ok(kept.flat_map(|record| LogStream::ALL.map(|stream| place(record, stream))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logmon::protocol::PipeId;
    use crate::logmon::{LogSpec, Retention};

    #[test]
    fn records_are_found_again_and_damaged_ones_cost_only_themselves() {
        let directory = tempfile::tempdir().unwrap();
        let ours = directory.path().join("logmon");
        assert_eq!(read_all(&ours).unwrap(), []);
        let record = |key: &str| {
            let spec = LogSpec {
                key: key.to_owned(),
                name: key.to_owned(),
                root: PathBuf::from("/allocs"),
                directory: PathBuf::from("a/alloc/logs"),
                collection: Collection::Keep(Retention::default()),
            };
            Record::new(OpenLogs { spec, pipes: [PipeId { device: 1, inode: 2 }; 2] }, true)
        };
        for key in ["b", "a", "c"] {
            record(key).write(&ours).unwrap();
        }
        fs::write(ours.join("c.json"), "{").unwrap();
        fs::write(ours.join("d.json"), fs::read(ours.join("a.json")).unwrap()).unwrap();
        assert_eq!(read_all(&ours).unwrap(), [record("a"), record("b")]);
        assert_eq!(places(&ours).unwrap().len(), 4);
    }
}
