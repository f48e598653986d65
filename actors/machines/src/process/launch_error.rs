//! The reasons why a process was not launched.

use std::path::PathBuf;
use std::time::Duration;

use super::ending::ProcessEnding;
use super::name::ProcessName;
use crate::goplugin::{Diagnosis, HandshakeError, TermsError};

/// Why a file is refused (SEC-05, SEC-07).
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ExecutableError {
    /// Within a directory of allowed programs, a program must be a plain name, not a path.
    #[error("{path:?} is no plain file name; name a file that lies directly in {root}")]
    NotAName {
        /// The path as given.
        path: PathBuf,
        /// The directory of allowed programs.
        root: PathBuf,
    },
    /// Without a root the path must be absolute.
    #[error("{path:?} is not absolute; give the whole path of the program")]
    NotAbsolute {
        /// The path as given.
        path: PathBuf,
    },
    /// It is a symlink, or leads out of its directory in another way.
    #[error("{path} is a link or leads out of its directory; put the program itself there")]
    Escapes {
        /// The given path.
        path: PathBuf,
    },
    /// It is not a regular file: a directory, a pipe, a device.
    #[error("{path} is no regular file")]
    NotAFile {
        /// Its path.
        path: PathBuf,
    },
    /// It has no execute permission.
    #[error("{path} is not executable (mode {mode:04o}); set its executable bits")]
    NotExecutable {
        /// Its path.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// It is neither an ELF program nor a script.
    #[error("{path} is no program: it begins neither as ELF nor with #!; put an undamaged program there")]
    NotAProgram {
        /// Its path.
        path: PathBuf,
    },
    /// Its contents do not match the pinned digest.
    #[error("{path} has SHA-256 {found}, but {pinned} is pinned; it was not run")]
    Digest {
        /// Its path.
        path: PathBuf,
        /// The actual digest, in hexadecimal digits.
        found: String,
        /// The pinned digest, in hexadecimal digits.
        pinned: String,
    },
    /// It was modified between the check and the start.
    #[error("{path} was changed while it was checked and started; what had started was ended")]
    Changed {
        /// Its path.
        path: PathBuf,
    },
    /// It could not be opened or read.
    #[error("cannot {attempted} {path}: {message}")]
    System {
        /// The operation that failed.
        attempted: &'static str,
        /// The path.
        path: PathBuf,
        /// The error of the system.
        message: String,
        /// Whether it may succeed later without a change of the file, as after a lack of descriptors or memory.
        is_transient: bool,
    },
}

impl ExecutableError {
    /// Whether a retry with the same file may succeed without a repair.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            // It is being installed.
            Self::Changed { .. } => true,
            Self::NotAName { .. }
            | Self::NotAbsolute { .. }
            | Self::Escapes { .. }
            | Self::NotAFile { .. }
            | Self::NotExecutable { .. }
            | Self::NotAProgram { .. }
            | Self::Digest { .. } => false,
            Self::System { is_transient, .. } => *is_transient,
        }
    }
}

/// Why a process was not launched. Nothing of it remains: a started process was ended and reaped (PRC-02).
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum LaunchError {
    /// A process of this name exists already, starting, running or ending.
    #[error("process {name} already exists{}; stop it or recall it", pid.map_or_else(String::new, |pid| format!(" (pid {pid})")))]
    Occupied {
        /// The name.
        name: ProcessName,
        /// Its PID, if it has one.
        pid: Option<u32>,
    },
    /// Its file is refused.
    #[error("process {name} is not started: {source}")]
    Executable {
        /// The process.
        name: ProcessName,
        /// The problem of the file.
        source: ExecutableError,
    },
    /// It must be bound to its host, and the host has no program that binds (PRC-04).
    #[error(
        "process {name} is to end with its host, and this host has no `callboard` program to bind it with; name \
         one, or let the process survive"
    )]
    NotBindable {
        /// The process.
        name: ProcessName,
    },
    /// The system could not create the process, its file descriptor, or its output files.
    #[error("cannot {attempted} for process {name}: {message}")]
    System {
        /// The process.
        name: ProcessName,
        /// The operation that failed.
        attempted: String,
        /// The error of the system.
        message: String,
    },
    /// It ended before it was ready (D33).
    #[error("process {name} ended before it was ready: {}{}", ending.of_launch(), notes(diagnosis))]
    Ended {
        /// The process.
        name: ProcessName,
        /// How it ended, with its last lines (PRC-06, LOG-01).
        ending: Box<ProcessEnding>,
        /// Facts about its file (D34).
        diagnosis: Vec<String>,
    },
    /// It sent no handshake in time (D33). It was ended.
    #[error(
        "process {name} sent no handshake line within {waited:?}; it was ended: {ending}{}",
        notes(diagnosis)
    )]
    TimedOut {
        /// The process.
        name: ProcessName,
        /// The timeout.
        waited: Duration,
        /// How it was ended, with its last lines.
        ending: Box<ProcessEnding>,
        /// Facts about its file (D34).
        diagnosis: Vec<String>,
    },
    /// It was stopped before it was ready.
    #[error("process {name} was stopped before it was ready")]
    Stopped {
        /// The process.
        name: ProcessName,
    },
    /// Its handshake is invalid (D20 to D28). It was ended.
    #[error("process {name} was started and ended again: {source}; {ending}{}", notes(diagnosis))]
    Handshake {
        /// The process.
        name: ProcessName,
        /// The problem of the handshake.
        source: HandshakeError,
        /// How it was ended, with its last lines.
        ending: Box<ProcessEnding>,
        /// Facts about its file (D34).
        diagnosis: Vec<String>,
    },
    /// The terms of its handshake are invalid.
    #[error("process {name} is not started: {source}")]
    Terms {
        /// The process.
        name: ProcessName,
        /// The problem of the terms.
        source: TermsError,
    },
    /// Its actor failed; the process was ended.
    #[error("process {name} is not started: {reason}")]
    Failed {
        /// The process.
        name: ProcessName,
        /// The reason.
        reason: String,
    },
    /// The host is stopping; nothing new starts (I6).
    #[error("process {name} is not started: the host is stopping")]
    Stopping {
        /// The process.
        name: ProcessName,
    },
    /// The limit of processes is reached.
    #[error("process {name} is not started: limit of {processes} processes reached")]
    TooMany {
        /// The process.
        name: ProcessName,
        /// The number of processes.
        processes: usize,
    },
}

impl LaunchError {
    /// Adds the facts about its file to an error of the system (D34).
    #[must_use]
    pub fn explained(self, diagnosis: &Diagnosis) -> Self {
        match self {
            Self::System { name, attempted, message } if !diagnosis.findings.is_empty() => {
                Self::System { name, attempted, message: format!("{message}; {diagnosis}") }
            }
            other => other,
        }
    }

    /// Whether a retry of the same launch may succeed without a repair.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::Executable { source, .. } => source.is_transient(),
            Self::Handshake { source, .. } => source.is_transient(),
            Self::NotBindable { .. } | Self::Terms { .. } => false,
            Self::Occupied { .. }
            | Self::System { .. }
            | Self::Ended { .. }
            | Self::TimedOut { .. }
            | Self::Stopped { .. }
            | Self::Failed { .. }
            | Self::Stopping { .. }
            | Self::TooMany { .. } => true,
        }
    }

    /// How the process ended, if it had started.
    #[must_use]
    pub fn ending(&self) -> Option<&ProcessEnding> {
        match self {
            Self::Ended { ending, .. } | Self::TimedOut { ending, .. } | Self::Handshake { ending, .. } => {
                Some(ending)
            }
            Self::Occupied { .. }
            | Self::Executable { .. }
            | Self::NotBindable { .. }
            | Self::System { .. }
            | Self::Stopped { .. }
            | Self::Terms { .. }
            | Self::Failed { .. }
            | Self::Stopping { .. }
            | Self::TooMany { .. } => None,
        }
    }
}

fn notes(diagnosis: &[String]) -> String {
    if diagnosis.is_empty() { String::new() } else { format!(" ({})", diagnosis.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goplugin::Finding;
    use crate::process::{EndedBy, Exit, ProcessTag};

    fn name() -> ProcessName {
        ProcessName::new("zfs").unwrap()
    }

    fn ending() -> Box<ProcessEnding> {
        Box::new(ProcessEnding {
            name: name(),
            tag: ProcessTag::new([0; 16]),
            pid: Some(7),
            exit: Exit::Code(3),
            by: EndedBy::Itself,
            uptime: Duration::from_secs(1),
            last_output: Vec::new(),
            last_errors: Vec::new(),
            panic: None,
        })
    }

    #[test]
    fn what_can_be_seen_of_the_file_is_told_with_the_error_d34() {
        let ended = |diagnosis: &[&str]| {
            let diagnosis = diagnosis.iter().map(ToString::to_string).collect();
            LaunchError::Ended { name: name(), ending: ending(), diagnosis }.to_string()
        };
        let told = ended(&[]);
        assert!(told.ends_with("exit code 3 after 1.0s"), "{told}");
        let told = ended(&["its loader is missing", "it is a script"]);
        assert!(told.ends_with("exit code 3 after 1.0s (its loader is missing; it is a script)"), "{told}");
    }

    #[test]
    fn what_the_system_said_is_explained_by_what_is_wrong_with_the_file_d34() {
        let refused = || LaunchError::System {
            name: name(),
            attempted: "start /bin/zfs".to_owned(),
            message: "no such file".to_owned(),
        };
        let nothing = Diagnosis { path: "/bin/zfs".into(), findings: Vec::new() };
        assert_eq!(refused().explained(&nothing), refused());
        let something =
            Diagnosis { path: "/bin/zfs".into(), findings: vec![Finding::NoFile { what: "a directory" }] };
        let told = refused().explained(&something).to_string();
        assert_eq!(told, format!("cannot start /bin/zfs for process zfs: no such file; {something}"));
        assert_eq!(
            LaunchError::Stopped { name: name() }.explained(&something),
            LaunchError::Stopped { name: name() }
        );
    }

    #[test]
    fn only_a_file_that_is_being_installed_may_mend_itself() {
        let path = || "/bin/zfs".into();
        let because =
            |source: ExecutableError| LaunchError::Executable { name: name(), source }.is_transient();
        assert!(because(ExecutableError::Changed { path: path() }));
        assert!(!because(ExecutableError::NotAbsolute { path: path() }));
        assert!(!LaunchError::NotBindable { name: name() }.is_transient());
        assert!(LaunchError::Stopping { name: name() }.is_transient());
    }
}
