//! How a process ended.

use std::fmt;
use std::time::Duration;

use super::name::{ProcessName, ProcessTag};
use crate::goplugin::{LineLevel, LineReader, Origin, is_meant_as_handshake};

/// The number of its last lines that explain the end of a process.
const LAST_LINES: usize = 3;

/// The exit status of a process.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Exit {
    /// It exited with this code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
    /// Unknown: it was not a child of this host, or its exit status was lost. Never a success (EVT-05).
    Unknown {
        /// Why it is unknown.
        reason: String,
    },
}

impl Exit {
    /// Whether it is known to have ended with code 0.
    #[must_use]
    pub const fn is_success(&self) -> bool {
        matches!(self, Self::Code(0))
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => ProcessExit::Code(*code).fmt(f),
            Self::Signal(number) => ProcessExit::Signal(*number).fmt(f),
            Self::Unknown { reason } => write!(f, "exit unknown ({reason})"),
        }
    }
}

/// The exit status of a process, as observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProcessExit {
    /// It exited with this code.
    Code(i32),
    /// It was killed by this signal.
    Signal(i32),
}

impl ProcessExit {
    /// Whether another process probably ended it: then nothing that it wrote is the cause.
    #[must_use]
    pub const fn is_from_outside(self) -> bool {
        matches!(self, Self::Signal(number) if is_from_outside(number))
    }
}

impl fmt::Display for ProcessExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(number) => match signal_name(*number) {
                Some(name) => write!(f, "signal {number} ({name})"),
                None => write!(f, "signal {number}"),
            },
        }
    }
}

/// The name of a signal that commonly ends processes. The numbers are those of Linux on all architectures that Rust's
/// standard library supports except MIPS and SPARC.
#[must_use]
pub const fn signal_name(number: i32) -> Option<&'static str> {
    match number {
        1 => Some("SIGHUP"),
        2 => Some("SIGINT"),
        3 => Some("SIGQUIT"),
        4 => Some("SIGILL"),
        6 => Some("SIGABRT"),
        7 => Some("SIGBUS"),
        8 => Some("SIGFPE"),
        9 => Some("SIGKILL"),
        11 => Some("SIGSEGV"),
        13 => Some("SIGPIPE"),
        15 => Some("SIGTERM"),
        _ => None,
    }
}

/// Whether a signal usually comes from outside: then nothing that the process wrote is the cause. The process causes other signals itself.
#[must_use]
pub const fn is_from_outside(number: i32) -> bool {
    // SIGHUP, SIGINT, SIGQUIT, SIGKILL and SIGTERM.
    matches!(number, 1 | 2 | 3 | 9 | 15)
}

/// The cause of a process's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EndedBy {
    /// The process itself, or an unknown sender of a signal.
    Itself,
    /// A stop request; it ended within the grace.
    Request,
    /// A SIGKILL; it did not end within the grace.
    Force,
}

/// How a process ended. It is reaped, and its leftovers that had to end with it are gone.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ProcessEnding {
    /// Its name.
    pub name: ProcessName,
    /// The tag of its launch.
    pub tag: ProcessTag,
    /// Its PID, if it had one.
    pub pid: Option<u32>,
    /// Its exit status.
    pub exit: Exit,
    /// The cause of its end.
    pub by: EndedBy,
    /// How long it ran.
    pub uptime: Duration,
    /// The last lines of its standard output, oldest first (LOG-01).
    pub last_output: Vec<String>,
    /// The last lines of its standard error, oldest first (LOG-01).
    pub last_errors: Vec<String>,
    /// The panic trace on its standard error, if any.
    pub panic: Option<String>,
}

impl ProcessEnding {
    /// The last lines that may explain its end, stderr before stdout. Log lines below warning level are skipped, and nothing that it
    /// wrote explains a signal from outside.
    #[must_use]
    pub fn last_words(&self) -> Option<String> {
        self.last_lines().filter(|_| !self.was_signalled_from_outside())
    }

    fn was_signalled_from_outside(&self) -> bool {
        matches!(self.exit, Exit::Signal(number) if is_from_outside(number))
    }

    /// The end of a launch, with the last lines also after a signal from outside: a process that is killed while it starts has often
    /// used too much memory, and its output reports that.
    #[must_use]
    pub fn of_launch(&self) -> String {
        match self.last_lines().filter(|_| self.by == EndedBy::Itself && self.was_signalled_from_outside()) {
            Some(lines) if self.panic.is_none() => format!("{self}, last output: {lines}"),
            Some(_) | None => self.to_string(),
        }
    }

    fn last_lines(&self) -> Option<String> {
        let of = |lines: &[String]| last_words(lines.iter().rev().filter_map(|line| telling(line)));
        // The handshake line does not explain the end.
        let output: Vec<_> =
            self.last_output.iter().filter(|line| !is_meant_as_handshake(line)).cloned().collect();
        of(&self.last_errors).or_else(|| of(&output))
    }
}

/// The last lines of an output, joined, from its informative lines, the newest first. Many programs print a usage hint as the last line,
/// after the error.
pub fn last_words(newest_first: impl Iterator<Item = String>) -> Option<String> {
    let mut last: Vec<_> = newest_first.take(LAST_LINES).collect();
    last.reverse();
    (!last.is_empty()).then(|| last.join(" | "))
}

/// The message of a panic. The whole trace is logged once. Rust prints the message on a separate line after the location.
fn first_words(panic: &str) -> String {
    let mut lines = panic.lines();
    let first = lines.next().unwrap_or_default();
    match lines.next().filter(|_| first.starts_with("thread '")) {
        Some(second) => format!("{first} {second}"),
        None => first.to_owned(),
    }
}

/// The text of a line, unless it is empty or its log level is below warning.
fn telling(line: &str) -> Option<String> {
    let mut reader = LineReader::new();
    let mut read = reader.push(line.as_bytes());
    read.extend(reader.finish());
    let read = read.into_iter().next()?;
    let is_trouble = match read.origin {
        Origin::Json | Origin::Tagged => read.level >= LineLevel::Warn,
        Origin::LastWords | Origin::Plain => true,
    };
    let error = read.fields.iter().find(|(name, _)| name == "error").map(|(_, error)| error);
    let words = match error.map(|error| error.as_str().map_or_else(|| error.to_string(), str::to_owned)) {
        Some(error) => format!("{}: {error}", read.message),
        None => read.message,
    };
    (is_trouble && !words.trim().is_empty()).then(|| words.trim().to_owned())
}

impl fmt::Display for ProcessEnding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { exit, uptime, .. } = self;
        match self.by {
            EndedBy::Force => write!(f, "killed after its grace: {exit}, having run for {uptime:.1?}"),
            EndedBy::Request => write!(f, "{exit} when asked to end, having run for {uptime:.1?}"),
            EndedBy::Itself => {
                write!(f, "{exit} after {uptime:.1?}")?;
                match self.panic.as_deref().map(first_words).or_else(|| self.last_words()) {
                    Some(words) => write!(f, ", last output: {words}"),
                    None => Ok(()),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ending(exit: Exit, by: EndedBy) -> ProcessEnding {
        ProcessEnding {
            name: ProcessName::new("zfs").expect("a good name"),
            tag: ProcessTag::new([0; 16]),
            pid: Some(7),
            exit,
            by,
            uptime: Duration::from_millis(1_500),
            last_output: vec!["starting".to_owned()],
            last_errors: vec!["no pool".to_owned(), "  ".to_owned()],
            panic: None,
        }
    }

    #[test]
    fn an_ending_names_its_exit_its_uptime_and_its_last_words_log_01() {
        let told = |exit, by| ending(exit, by).to_string();
        assert_eq!(told(Exit::Code(3), EndedBy::Itself), "exit code 3 after 1.5s, last output: no pool");
        assert_eq!(
            told(Exit::Signal(9), EndedBy::Force),
            "killed after its grace: signal 9 (SIGKILL), having run for 1.5s"
        );
        assert_eq!(
            told(Exit::Signal(64), EndedBy::Request),
            "signal 64 when asked to end, having run for 1.5s"
        );
    }

    #[test]
    fn a_signal_is_told_with_the_name_that_people_know_log_01() {
        let known = [
            (1, "SIGHUP"),
            (2, "SIGINT"),
            (3, "SIGQUIT"),
            (4, "SIGILL"),
            (6, "SIGABRT"),
            (7, "SIGBUS"),
            (8, "SIGFPE"),
            (9, "SIGKILL"),
            (11, "SIGSEGV"),
            (13, "SIGPIPE"),
            (15, "SIGTERM"),
        ];
        for (number, name) in known {
            let told = ending(Exit::Signal(number), EndedBy::Request).to_string();
            assert!(told.starts_with(&format!("signal {number} ({name})")), "{told}");
        }
    }

    #[test]
    fn what_was_logged_of_its_work_is_not_told_as_the_cause_of_its_end_log_01() {
        let mut ending = ending(Exit::Signal(6), EndedBy::Itself);
        ending.last_output.clear();
        let logged = |level: &str| {
            format!(
                r#"{{"@level":"{level}","@message":"cannot serve","error":"no pool","@timestamp":"2026-11-21T14:18:28.449204Z"}}"#
            )
        };
        ending.last_errors = vec![logged("info")];
        assert_eq!(ending.to_string(), "signal 6 (SIGABRT) after 1.5s");
        ending.last_errors = vec![logged("error"), logged("info")];
        assert_eq!(ending.to_string(), "signal 6 (SIGABRT) after 1.5s, last output: cannot serve: no pool");
        ending.exit = Exit::Signal(9);
        assert_eq!(ending.to_string(), "signal 9 (SIGKILL) after 1.5s", "it was killed");
        assert_eq!(ending.of_launch(), "signal 9 (SIGKILL) after 1.5s, last output: cannot serve: no pool");
    }

    #[test]
    fn the_last_lines_are_told_and_not_only_the_last_which_may_be_a_hint_log_01() {
        let mut ending = ending(Exit::Code(2), EndedBy::Itself);
        let lines = [
            "started",
            "unknown flag: --pol",
            "",
            "Usage: zfs [OPTIONS]",
            "For more information, try '--help'.",
        ];
        ending.last_errors = lines.map(str::to_owned).to_vec();
        assert_eq!(
            ending.to_string(),
            "exit code 2 after 1.5s, last output: unknown flag: --pol | Usage: zfs [OPTIONS] | For more information, try '--help'."
        );
    }

    #[test]
    fn the_handshake_is_no_last_words_and_of_a_panic_only_what_it_says_is_d20_log_01() {
        let mut ending = ending(Exit::Code(1), EndedBy::Itself);
        ending.last_errors.clear();
        ending.last_output.push("1|2|unix|/run/s/driver.sock|grpc|".to_owned());
        assert_eq!(ending.last_words().as_deref(), Some("starting"));
        ending.panic = Some("panic: no pool\n\ngoroutine 1 [running]:\nmain.main()".to_owned());
        assert_eq!(ending.to_string(), "exit code 1 after 1.5s, last output: panic: no pool");
        ending.panic = Some("thread 'main' panicked at src/main.rs:1:2:\nno pool\nnote: run".to_owned());
        let told = ending.to_string();
        assert!(told.ends_with("last output: thread 'main' panicked at src/main.rs:1:2: no pool"), "{told}");
    }

    #[test]
    fn only_a_known_zero_is_a_success_evt_05() {
        assert!(Exit::Code(0).is_success());
        for exit in [Exit::Code(1), Exit::Signal(9), Exit::Unknown { reason: "it was no child".to_owned() }] {
            assert!(!exit.is_success(), "{exit}");
        }
    }
}
