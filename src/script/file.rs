//! Reads scripts from their files and writes them back, and reports why a file is not a script.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use super::error::ScriptError;
use super::lines::SHAPE;

/// The maximum length of a script, in bytes.
pub(super) const SCRIPT_BYTES_MAX: usize = 1 << 20;
/// The maximum number of lines of a script.
const SCRIPT_LINES_MAX: usize = 10_000;

/// Reads a script from its file, up to the maximum length. A last line without a line break counts as a complete line.
pub(super) fn read(path: &Path) -> Result<String, ScriptError> {
    let unread = |source| ScriptError::File { path: path.to_owned(), source };
    let file = File::open(path).map_err(unread)?;
    if file.metadata().map_err(unread)?.is_dir() {
        let what = format!("this is a directory; give the scripts in it, as in {}/*", path.display());
        return Err(unread(io::Error::new(io::ErrorKind::IsADirectory, what)));
    }
    let mut bytes = Vec::new();
    file.take(SCRIPT_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(unread)?;
    check_length(path, bytes.len())?;
    if bytes.last().is_some_and(|last| *last != b'\n') {
        bytes.push(b'\n');
    }
    String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        let line = u32::try_from(line).unwrap_or(u32::MAX);
        let reason = format!("this is no text in UTF-8; {SHAPE}");
        ScriptError::Mistake { path: path.to_owned(), line, reason }
    })
}

fn check_length(path: &Path, bytes: usize) -> Result<(), ScriptError> {
    if bytes > SCRIPT_BYTES_MAX {
        return Err(ScriptError::TooLong { path: path.to_owned(), limit: SCRIPT_BYTES_MAX });
    }
    Ok(())
}

/// Refuses a text that exceeds the limits of a script.
pub(super) fn check(path: &Path, text: &str) -> Result<(), ScriptError> {
    check_length(path, text.len())?;
    if let Some((number, _)) = text.lines().enumerate().nth(SCRIPT_LINES_MAX) {
        let line = u32::try_from(number + 1).unwrap_or(u32::MAX);
        let reason = format!("a script has at most {SCRIPT_LINES_MAX} lines; split it into several");
        return Err(ScriptError::Mistake { path: path.to_owned(), line, reason });
    }
    Ok(())
}

/// Writes a script into its file atomically: a file that cannot be written is unchanged.
pub(super) fn write(path: &Path, text: &str) -> Result<(), ScriptError> {
    let unwritten = |source| ScriptError::Unwritten { path: path.to_owned(), source };
    if fs::metadata(path).map_err(unwritten)?.permissions().readonly() {
        let what = "its permissions forbid it; make it writable, or leave out --update";
        return Err(unwritten(io::Error::new(io::ErrorKind::PermissionDenied, what)));
    }
    crate::output::write_whole(path, text).map_err(unwritten)
}
