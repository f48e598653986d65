//! Why a process was not launched.

use std::path::PathBuf;
use std::time::Duration;

use super::ending::ProcessEnding;
use super::name::ProcessName;
use crate::goplugin::{Diagnosis, HandshakeError, TermsError};

/// Why a file is not run (SEC-05, SEC-07).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExecutableError {
    /// Within a directory of allowed programs, a program is named and not described by a path.
    #[error("{path:?} is no plain file name; name a file that lies directly in {root}")]
    NotAName {
        /// What was given.
        path: PathBuf,
        /// The directory of allowed programs.
        root: PathBuf,
    },
    /// Without a root the path has to be absolute.
    #[error("{path:?} is not absolute; give the whole path of the program")]
    NotAbsolute {
        /// What was given.
        path: PathBuf,
    },
    /// It is a link, or leads out of its directory in another way.
    #[error("{path} is a link or leads out of its directory; put the program itself there")]
    Escapes {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// It is a directory, a pipe, a device.
    #[error("{path} is no regular file")]
    NotAFile {
        /// Where it lies.
        path: PathBuf,
    },
    /// Nobody may execute it.
    #[error("{path} is not executable (mode {mode:04o}); set its executable bits")]
    NotExecutable {
        /// Where it lies.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// It begins neither as an ELF program nor as a script.
    #[error("{path} is no program: it begins neither as ELF nor with #!; put an undamaged program there")]
    NotAProgram {
        /// Where it lies.
        path: PathBuf,
    },
    /// Its contents are not those that were pinned.
    #[error("{path} has SHA-256 {found} where {pinned} is pinned; nothing was run")]
    Digest {
        /// Where it lies.
        path: PathBuf,
        /// What was found, in hexadecimal digits.
        found: String,
        /// What was pinned, in hexadecimal digits.
        pinned: String,
    },
    /// It was written to between the check and the start.
    #[error("{path} was changed while it was checked and started; what had started was ended")]
    Changed {
        /// Where it lies.
        path: PathBuf,
    },
    /// The system did not let us open or read it.
    #[error("cannot {attempted} {path}: {message}")]
    System {
        /// What was tried.
        attempted: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        message: String,
    },
}

impl ExecutableError {
    /// Whether the same file may well be run later without anybody having mended it.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            // Somebody is installing it.
            Self::Changed { .. } => true,
            Self::NotAName { .. }
            | Self::NotAbsolute { .. }
            | Self::Escapes { .. }
            | Self::NotAFile { .. }
            | Self::NotExecutable { .. }
            | Self::NotAProgram { .. }
            | Self::Digest { .. }
            | Self::System { .. } => false,
        }
    }
}

/// Why a process was not launched. Nothing of it is left: what had started is ended and reaped (PRC-02).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LaunchError {
    /// A process of this name is there already, starting, running or ending.
    #[error("process {name} is there already{}; stop it or recall it", pid.map_or_else(String::new, |pid| format!(" (pid {pid})")))]
    Occupied {
        /// Which name.
        name: ProcessName,
        /// Its process id, if it has one.
        pid: Option<u32>,
    },
    /// Its file is not run.
    #[error("process {name} is not started: {source}")]
    Executable {
        /// Which process.
        name: ProcessName,
        /// What is wrong with the file.
        source: ExecutableError,
    },
    /// It is to be bound to its host, and the host was given no program that binds (PRC-04).
    #[error(
        "process {name} is to end with its host, and this host has no `callboard` program to bind it with; name \
         one, or let the process survive"
    )]
    NotBindable {
        /// Which process.
        name: ProcessName,
    },
    /// The system gave no process, or nothing to watch it with, or nowhere to write its output.
    #[error("cannot {attempted} for process {name}: {message}")]
    System {
        /// Which process.
        name: ProcessName,
        /// What was tried.
        attempted: String,
        /// What the system said.
        message: String,
    },
    /// It ended before it was ready (D33).
    #[error("process {name} ended before it was ready: {ending}{}", notes(diagnosis))]
    Ended {
        /// Which process.
        name: ProcessName,
        /// How it ended, with its last lines (PRC-06, LOG-01).
        ending: Box<ProcessEnding>,
        /// What can be seen of its file (D34).
        diagnosis: Vec<String>,
    },
    /// It said no handshake in time (D33). It was ended.
    #[error("process {name} said no handshake within {waited:?}; it was ended: {ending}{}", notes(diagnosis))]
    TimedOut {
        /// Which process.
        name: ProcessName,
        /// How long was waited.
        waited: Duration,
        /// How it was ended, with its last lines.
        ending: Box<ProcessEnding>,
        /// What can be seen of its file (D34).
        diagnosis: Vec<String>,
    },
    /// It was stopped before it was ready.
    #[error("process {name} was stopped before it was ready")]
    Stopped {
        /// Which process.
        name: ProcessName,
    },
    /// What it said is no handshake that can be accepted (D20 to D28). It was ended.
    #[error("process {name} was started and ended again: {source}; {ending}{}", notes(diagnosis))]
    Handshake {
        /// Which process.
        name: ProcessName,
        /// What is wrong with what it said.
        source: HandshakeError,
        /// How it was ended, with its last lines.
        ending: Box<ProcessEnding>,
        /// What can be seen of its file (D34).
        diagnosis: Vec<String>,
    },
    /// The terms of its handshake are none that a plugin could understand.
    #[error("process {name} is not started: {source}")]
    Terms {
        /// Which process.
        name: ProcessName,
        /// What is wrong with them.
        source: TermsError,
    },
    /// Its actor failed; the process was ended.
    #[error("process {name} is not started: {reason}")]
    Failed {
        /// Which process.
        name: ProcessName,
        /// What happened.
        reason: String,
    },
    /// The host is stopping; nothing new starts (I6).
    #[error("process {name} is not started: the host is stopping")]
    Stopping {
        /// Which process.
        name: ProcessName,
    },
    /// As many processes as there may be are there.
    #[error(
        "process {name} is not started: {processes} processes are there already, and no more are allowed"
    )]
    TooMany {
        /// Which process.
        name: ProcessName,
        /// How many there are.
        processes: usize,
    },
}

impl LaunchError {
    /// Adds what is wrong with its file to what the system said of it (D34).
    #[must_use]
    pub(super) fn explained(self, diagnosis: &Diagnosis) -> Self {
        match self {
            Self::System { name, attempted, message } if !diagnosis.findings.is_empty() => {
                Self::System { name, attempted, message: format!("{message}; {diagnosis}") }
            }
            other => other,
        }
    }

    /// Whether the same launch may well succeed later without anybody having mended anything.
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
    fn only_a_file_that_somebody_is_installing_may_mend_itself() {
        let path = || "/bin/zfs".into();
        let because =
            |source: ExecutableError| LaunchError::Executable { name: name(), source }.is_transient();
        assert!(because(ExecutableError::Changed { path: path() }));
        assert!(!because(ExecutableError::NotAbsolute { path: path() }));
        assert!(!LaunchError::NotBindable { name: name() }.is_transient());
        assert!(LaunchError::Stopping { name: name() }.is_transient());
    }
}
