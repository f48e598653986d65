//! The specification of collected logs, and their retention.

use std::fmt;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The length limit of a task key and of a file name prefix, in bytes: with their suffixes they fit into one path component.
const NAME_BYTES_MAX: usize = 200;
/// The lower limit for the file size, in bytes.
const FILE_BYTES_MIN: u64 = 1_024;
/// The upper limit for the number of files.
const FILES_MAX: u64 = 500;

/// One of the two streams of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogStream {
    /// Its standard output.
    Stdout,
    /// Its standard error.
    Stderr,
}

impl LogStream {
    /// Both streams.
    pub const ALL: [Self; 2] = [Self::Stdout, Self::Stderr];

    /// Its name, which is part of the names of its pipe and of its files.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

impl fmt::Display for LogStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How much of each stream is kept on disk (T066).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retention {
    /// The number of files kept; at rotation the oldest is removed. From 1 to 500.
    pub files_max: u64,
    /// The size limit of a file, in bytes. At least 1 KiB.
    pub file_bytes_max: u64,
}

impl Default for Retention {
    /// Ten files of 10 MiB.
    fn default() -> Self {
        Self { files_max: 10, file_bytes_max: 10 * 1_024 * 1_024 }
    }
}

/// How the output of a task is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Collection {
    /// It is written to files, with this retention.
    Keep(Retention),
    /// It is read and dropped, for drivers that require pipes although logs are not collected (T065).
    Discard,
}

/// The logs of one task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogSpec {
    /// The key: unique among the tasks of one data directory. At most 200 bytes, no `/`, no leading dot.
    pub key: String,
    /// The prefix of pipe and file names: the name of the task. The same rules.
    pub name: String,
    /// A trusted absolute path, such as the directory of all allocations; symlinks in it are followed.
    pub root: PathBuf,
    /// The directory for pipes and files, as a path below the root, without `.` and `..`. It must exist. Symlinks in it are
    /// not followed, since tasks may write there.
    pub directory: PathBuf,
    /// How the output is handled.
    pub collection: Collection,
}

/// The paths for the driver: `stdout_path` and `stderr_path` (T061).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPaths {
    /// The pipe for standard output.
    pub stdout: PathBuf,
    /// The pipe for standard error.
    pub stderr: PathBuf,
}

/// Why a [`LogSpec`] is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("logs of {key:?}: {what}")]
pub struct MalformedLogSpec {
    /// The key of the spec.
    pub key: String,
    /// The invalid part, and why.
    pub what: String,
}

impl LogSpec {
    /// Validates every part.
    ///
    /// # Errors
    /// Names the first invalid part.
    pub fn check(&self) -> Result<(), MalformedLogSpec> {
        let refused = |what: String| Err(MalformedLogSpec { key: self.key.clone(), what });
        for (what, text) in [("key", &self.key), ("name", &self.name)] {
            let is_good = !text.is_empty() && text.len() <= NAME_BYTES_MAX && !text.starts_with('.');
            if !is_good || text.chars().any(|c| c == '/' || c.is_control()) {
                return refused(format!("its {what} {text:?} cannot begin the name of a file"));
            }
        }
        if !self.root.is_absolute() || self.root.to_str().is_none() {
            return refused(format!("the root {:?} is not an absolute path in UTF-8", self.root));
        }
        let is_plain = |path: &Path| path.components().all(|part| matches!(part, Component::Normal(_)));
        if !is_plain(&self.directory) || self.directory.to_str().is_none() {
            return refused(format!("the directory {:?} is not a plain path below the root", self.directory));
        }
        if let Collection::Keep(Retention { files_max, file_bytes_max }) = self.collection {
            if !(1..=FILES_MAX).contains(&files_max) {
                return refused(format!("{files_max} files cannot be kept; from 1 to {FILES_MAX} can"));
            }
            if file_bytes_max < FILE_BYTES_MIN {
                return refused(format!(
                    "a file of {file_bytes_max} bytes is too small; at least {FILE_BYTES_MIN} are needed"
                ));
            }
        }
        Ok(())
    }

    /// The name of a stream's pipe, in the directory (T060).
    #[must_use]
    pub fn pipe_name(&self, stream: LogStream) -> String {
        format!(".{}.{stream}.fifo", self.name)
    }

    /// The prefix of a stream's file names: a number follows (T066).
    #[must_use]
    pub fn file_prefix(&self, stream: LogStream) -> String {
        format!("{}.{stream}.", self.name)
    }

    /// The name of the second pipe of a stream, in the directory of the log writer.
    #[must_use]
    pub fn stage_name(&self, stream: LogStream) -> String {
        format!("{}.{stream}.stage", self.key)
    }

    /// The paths of both pipes.
    #[must_use]
    pub fn paths(&self) -> LogPaths {
        let path = |stream| self.root.join(&self.directory).join(self.pipe_name(stream));
        LogPaths { stdout: path(LogStream::Stdout), stderr: path(LogStream::Stderr) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> LogSpec {
        LogSpec {
            key: "web".to_owned(),
            name: "web".to_owned(),
            root: PathBuf::from("/var/lib/a"),
            directory: PathBuf::from("b/alloc/logs"),
            collection: Collection::Keep(Retention::default()),
        }
    }

    #[test]
    fn pipes_and_files_have_the_names_that_readers_of_logs_know_t060_t066() {
        assert_eq!(spec().check(), Ok(()));
        let paths = spec().paths();
        assert_eq!(paths.stdout, Path::new("/var/lib/a/b/alloc/logs/.web.stdout.fifo"));
        assert_eq!(paths.stderr, Path::new("/var/lib/a/b/alloc/logs/.web.stderr.fifo"));
        assert_eq!(spec().file_prefix(LogStream::Stderr) + "3", "web.stderr.3");
    }

    #[test]
    fn a_spec_that_leads_elsewhere_or_keeps_nothing_is_refused_th023() {
        let keep = |files_max, file_bytes_max| Collection::Keep(Retention { files_max, file_bytes_max });
        for (what, spec) in [
            ("key", LogSpec { key: "../web".to_owned(), ..spec() }),
            ("key", LogSpec { key: String::new(), ..spec() }),
            ("name", LogSpec { name: ".web".to_owned(), ..spec() }),
            ("name", LogSpec { name: "n".repeat(201), ..spec() }),
            ("root", LogSpec { root: PathBuf::from("a"), ..spec() }),
            ("directory", LogSpec { directory: PathBuf::from("b/../../etc"), ..spec() }),
            ("directory", LogSpec { directory: PathBuf::from("/etc"), ..spec() }),
            ("files", LogSpec { collection: keep(0, 1 << 20), ..spec() }),
            ("too small", LogSpec { collection: keep(1, 10), ..spec() }),
        ] {
            let refused = spec.check().unwrap_err().to_string();
            assert!(refused.contains(what), "{what}: {refused}");
        }
    }
}
