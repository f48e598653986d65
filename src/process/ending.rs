//! The end of a process.

use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use callboard_actors::process::{EndedBy, ProcessExit};

/// Converts a status from `wait`.
pub(super) fn exit_of(status: ExitStatus) -> ProcessExit {
    match (status.code(), status.signal()) {
        (Some(code), _) => ProcessExit::Code(code),
        (None, Some(signal)) => ProcessExit::Signal(signal),
        // Any other status means a stopped process, which this `wait` does not report.
        (None, None) => ProcessExit::Code(status.into_raw()),
    }
}

/// The end of a process. It is reaped, and its process group is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessEnding {
    /// Its exit status.
    pub exit: ProcessExit,
    /// What ended it.
    pub by: EndedBy,
    /// The last lines of its output in one, if there are any.
    pub last_words: Option<String>,
}

impl fmt::Display for ProcessEnding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.by {
            EndedBy::Force => write!(f, "killed after its grace: {}", self.exit),
            EndedBy::Request => write!(f, "{} when asked to end", self.exit),
            EndedBy::Itself => match self.last_words.as_ref().filter(|_| !self.exit.is_from_outside()) {
                Some(words) => write!(f, "{}, last output: {words}", self.exit),
                None => write!(f, "{}", self.exit),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ending_names_its_signal_and_its_last_words_log_05() {
        let ending = |exit, by| ProcessEnding { exit, by, last_words: Some("no space".to_owned()) };
        let told = |exit, by| ending(exit, by).to_string();
        assert_eq!(told(ProcessExit::Code(3), EndedBy::Itself), "exit code 3, last output: no space");
        let killed = told(ProcessExit::Signal(9), EndedBy::Itself);
        assert_eq!(killed, "signal 9 (SIGKILL)", "what it wrote before is not the cause");
        assert_eq!(
            told(ProcessExit::Signal(9), EndedBy::Force),
            "killed after its grace: signal 9 (SIGKILL)"
        );
        assert_eq!(told(ProcessExit::Signal(64), EndedBy::Request), "signal 64 when asked to end");
    }
}
