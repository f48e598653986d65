//! The log of a host program, on standard error.
//!
//! ```text
//!   event ─► filter (--log-level, RUST_LOG, info) ─► text: one line, every value escaped
//!                                                 └► json: one object on one line
//! ```
//!
//! No value of an event can begin a line of its own or move a terminal, whoever wrote it and whatever the place in the code
//! that logged it forgot: here is where every line comes out. The texts of plugins are escaped where they come in, too, for
//! hosts with a log of their own.

mod json;
mod options;
mod text;

use std::io;

use tracing_subscriber::fmt;
use tracing_subscriber::util::SubscriberInitExt;

use options::LogFormat;
pub(crate) use options::{LogArgs, LogError};

/// Longest text of one value, in bytes. What is longer is cut, and says so.
const VALUE_BYTES_MAX: usize = 64 * 1_024;

/// The field of a plugin's line that holds what its logger gave with it, as a JSON object in a text: the names of fields are
/// known to the code alone, and these are the plugin's.
const PLUGIN_FIELDS: &str = "plugin_fields";

/// Logs to standard error from now on, as the command line and `RUST_LOG` say. A process that has a log already keeps it.
///
/// # Errors
/// When `RUST_LOG` is no filter.
pub(crate) fn log_to_stderr(args: LogArgs) -> Result<(), LogError> {
    let filter = args.filter()?;
    let plain = fmt().with_writer(io::stderr).with_env_filter(filter);
    // A log that is set already is the only reason for an error, and that one stays.
    let _ = match args.format() {
        LogFormat::Text => plain.fmt_fields(text::TextFields).finish().try_init(),
        LogFormat::Json => {
            plain.fmt_fields(json::JsonFields).event_format(json::JsonLines).finish().try_init()
        }
    };
    Ok(())
}
