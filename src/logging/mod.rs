//! The log of a host program, on standard error.
//!
//! ```text
//!   event ─► filter (--log-level, RUST_LOG, info) ─► text: one line, every value escaped
//!                                                 └► json: one object on one line
//! ```
//!
//! No value of an event can begin a line or send a terminal control sequence, even if the code that logged it forgot to escape
//! it: every line is escaped on output. Texts of plugins are escaped on input, too, for hosts with a log of their own.

mod json;
mod options;
mod queue;
mod stderr;
mod text;

use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic::PanicHookInfo;
use std::{io, panic, thread};

use callboard_actors::kernel::panic_message;
use tracing_subscriber::fmt;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::util::SubscriberInitExt;

use options::LogFormat;
pub(crate) use options::{LogArgs, LogError};
use stderr::LogWriter;

/// The longest text of one value, in bytes. A longer one is truncated, with a note.
const VALUE_BYTES_MAX: usize = 64 * 1_024;

/// The field with the structured fields of a plugin's log line, as a JSON object in a text: `tracing` needs field names at
/// compile time, and these are the plugin's.
const PLUGIN_FIELDS: &str = "plugin_fields";

/// The message about lines that standard error did not take.
const LINES_LOST: &str = "lines of this log were lost";

/// The present time, as at the beginning of each line.
fn timestamp() -> String {
    let mut timestamp = String::new();
    // A string accepts every write.
    let _ = SystemTime.format_time(&mut Writer::new(&mut timestamp));
    timestamp
}

/// Logs to standard error, as configured by the command line and `RUST_LOG`. A `tracing` subscriber that is already set stays.
///
/// # Errors
/// If `RUST_LOG` is not a valid filter, or the system starts no thread for the log.
pub(crate) fn log_to_stderr(args: LogArgs) -> Result<(), LogError> {
    let filter = args.filter()?;
    let notice = match args.format() {
        LogFormat::Text => text::lost_lines,
        LogFormat::Json => json::lost_lines,
    };
    let writer = LogWriter::start(io::stderr(), notice).map_err(LogError::NoThread)?;
    let plain = fmt().with_writer(writer).with_env_filter(filter);
    let set = match args.format() {
        LogFormat::Text => plain.fmt_fields(text::TextFields).finish().try_init(),
        LogFormat::Json => {
            plain.fmt_fields(json::JsonFields).event_format(json::JsonLines).finish().try_init()
        }
    };
    // The only possible error is that a subscriber is already set.
    if set.is_ok() {
        panic::set_hook(Box::new(log_panic));
    }
    Ok(())
}

/// Logs a panic as an event. Written directly to standard error, it would not have the log's format, and could block its thread.
fn log_panic(info: &PanicHookInfo<'_>) {
    let reason = panic_message(info.payload());
    let location = info.location().map(tracing::field::display);
    let backtrace = Backtrace::capture();
    let backtrace = (backtrace.status() == BacktraceStatus::Captured).then(|| backtrace.to_string());
    tracing::error!(thread = thread::current().name(), location, reason, backtrace, "a thread panicked");
}
