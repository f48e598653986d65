//! The log file of a process: it receives the output, and never exceeds its size limit.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use callboard_actors::datadir;
use rustix::fs::OFlags;

/// The destination of a process's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSpec {
    /// The file. When it is full it is renamed with the suffix `.1`, and replaces the previous file of that name.
    pub path: PathBuf,
    /// The size limit of a file; at most twice as much is kept.
    pub bytes_max: u64,
}

impl LogSpec {
    /// A log at this path with the default limit, 8 MiB.
    #[must_use]
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), bytes_max: 8 * 1_024 * 1_024 }
    }
}

/// Creates the directory of a log and opens the file, so that errors occur before the launch.
pub(super) fn open(spec: &LogSpec) -> io::Result<LogFile> {
    if let Some(directory) = spec.path.parent() {
        datadir::enter_or_make(directory, 0o700)?;
    }
    LogFile::open(spec.clone())
}

#[derive(Debug)]
pub(super) struct LogFile {
    spec: LogSpec,
    file: File,
    length: u64,
    /// Whether the last write failed: logged once, not for every line.
    is_failing: bool,
}

impl LogFile {
    fn open(spec: LogSpec) -> io::Result<Self> {
        let (file, length) = open_end(&spec.path)?;
        Ok(Self { spec, file, length, is_failing: false })
    }

    pub(super) fn path(&self) -> &Path {
        &self.spec.path
    }

    /// A log that is already open.
    #[cfg(test)]
    pub(super) fn over(file: File) -> Self {
        Self { spec: LogSpec::at("/open"), file, length: 0, is_failing: false }
    }

    /// Appends to the log. A full disk loses lines, but does not affect the process or the host.
    pub(super) fn append(&mut self, bytes: &[u8]) {
        match self.try_append(bytes) {
            Ok(()) => self.is_failing = false,
            Err(error) if !self.is_failing => {
                self.is_failing = true;
                tracing::warn!(path = %self.spec.path.display(), error = %error, "cannot write the log of a process");
            }
            Err(_) => {}
        }
    }

    fn try_append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let added = bytes.len() as u64;
        if self.length > 0 && self.length + added > self.spec.bytes_max {
            datadir::rename(&self.spec.path, &rotated(&self.spec.path))?;
            (self.file, self.length) = open_end(&self.spec.path)?;
        }
        self.file.write_all(bytes)?;
        self.length += added;
        Ok(())
    }
}

/// The name of the previous log file.
fn rotated(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    PathBuf::from(name)
}

fn open_end(path: &Path) -> io::Result<(File, u64)> {
    // Opening or writing something other than a regular file could block the thread.
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = datadir::open_file(path, flags, 0o600)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is no file; look what it is and remove it",
        ));
    }
    Ok((file, found.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Holds C176.
    #[test]
    fn a_log_never_grows_beyond_twice_its_bound() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("logs/a.log");
        let mut log = open(&LogSpec { path: path.clone(), bytes_max: 1_000 }).expect("it opens");
        for number in 0..1_000 {
            log.append(format!("line {number}\n").as_bytes());
        }
        let now = std::fs::read_to_string(&path).expect("the log");
        let before = std::fs::read_to_string(rotated(&path)).expect("the log before");
        assert!(now.len() <= 1_000 && before.len() <= 1_000, "{} and {}", now.len(), before.len());
        assert!(now.ends_with("line 999\n"));
        assert!((before + &now).lines().count() > 100, "what is kept is the end, without a gap");
    }

    #[test]
    fn a_log_that_is_a_link_to_elsewhere_is_refused() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("a.log");
        std::os::unix::fs::symlink(directory.path().join("elsewhere"), &path).expect("a link");
        assert!(open(&LogSpec::at(&path)).is_err());
        assert!(!directory.path().join("elsewhere").exists());
    }

    #[test]
    fn what_is_no_file_in_the_place_of_a_log_is_refused_at_once() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("a.log");
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR)
            .expect("a pipe");
        assert!(open(&LogSpec::at(&path)).is_err(), "it has no reader");
        let _reader = std::fs::OpenOptions::new().read(true).write(true).open(&path).expect("it opens");
        assert!(open(&LogSpec::at(&path)).is_err_and(|error| error.to_string().contains("it is no file")));
    }
}
