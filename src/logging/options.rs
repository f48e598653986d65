//! The options of the log on the command line, and their precedence.

use std::env::{self, VarError};
use std::io;

use callboard_actors::vocabulary::text::quoted;
use clap::{Args, ValueEnum};
use tracing_subscriber::EnvFilter;

/// The variable with a filter in the syntax of `tracing`.
const VARIABLE: &str = "RUST_LOG";

/// The options of the log.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct LogArgs {
    /// The form of the log on standard error
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    log_format: LogFormat,

    /// Log events of at least this level; overrides RUST_LOG [default: RUST_LOG, else info]
    #[arg(long, value_enum, value_name = "LEVEL")]
    log_level: Option<LogLevel>,
}

/// The form of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum LogFormat {
    /// One line per event, for people
    #[default]
    Text,
    /// One JSON object per event on one line, with documented, stable keys
    Json,
}

/// The least level of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LogLevel {
    Off,
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

impl LogLevel {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}

/// Why the log cannot be set up.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LogError {
    /// The variable is not a valid filter.
    #[error(
        "{VARIABLE} is \"{value}\", which is no filter of a log: {problem}; give a level, such as `info`, or levels by module, such as `info,callboard::plugin=debug`, or use --log-level"
    )]
    NoFilter {
        /// Its value, truncated and escaped.
        value: String,
        /// The parser's error.
        problem: String,
    },
    /// The system starts no thread.
    #[error("the thread that writes the log cannot be started: {0}; raise the limit of threads or processes")]
    NoThread(#[source] io::Error),
}

impl LogArgs {
    pub(super) const fn format(self) -> LogFormat {
        self.log_format
    }

    /// The filter: the command line overrides the variable, and the variable overrides the default.
    pub(super) fn filter(self) -> Result<EnvFilter, LogError> {
        let variable = match env::var(VARIABLE) {
            Ok(value) => Some(value),
            Err(VarError::NotPresent) => None,
            Err(VarError::NotUnicode(value)) => Some(value.to_string_lossy().into_owned()),
        };
        filter(self.log_level, variable.as_deref())
    }
}

fn filter(level: Option<LogLevel>, variable: Option<&str>) -> Result<EnvFilter, LogError> {
    let variable = variable.map(str::trim).filter(|value| !value.is_empty());
    match (level, variable) {
        (Some(level), _) => Ok(EnvFilter::new(level.as_str())),
        (None, None) => Ok(EnvFilter::new(LogLevel::Info.as_str())),
        (None, Some(value)) => EnvFilter::try_new(value).map_err(|error| LogError::NoFilter {
            value: quoted(value),
            problem: quoted(&error.to_string()),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_counts_before_the_variable_and_that_before_the_default() {
        let told = |level, variable| filter(level, variable).map(|filter| filter.to_string());
        assert_eq!(told(None, None).unwrap(), "info");
        assert_eq!(told(None, Some("  ")).unwrap(), "info");
        assert_eq!(told(None, Some("warn,callboard=debug")).unwrap(), "callboard=debug,warn");
        assert_eq!(told(Some(LogLevel::Error), Some("debug")).unwrap(), "error");
        assert_eq!(told(Some(LogLevel::Off), Some("callboard=loud")).unwrap(), "off");
    }

    #[test]
    fn a_variable_that_is_no_filter_is_told_with_what_to_write() {
        let error = filter(None, Some("callboard=loud\u{1b}")).unwrap_err().to_string();
        assert!(error.starts_with("RUST_LOG is \"callboard=loud\\u{1b}\", which is no filter"), "{error}");
        assert!(error.contains("`info,callboard::plugin=debug`"), "{error}");
    }
}
