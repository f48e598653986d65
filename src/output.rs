//! Output to terminals, pipes and files: texts, and their colours.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use callboard_actors::vocabulary::text::{bounded, escaped};

/// How long the last output of a program waits for a reader that does not accept it, such as a pipe that is not read.
const TAKEN_WITHIN: Duration = Duration::from_secs(2);

/// The permissions of a new file, before the user's umask.
const FILE_MODE: u32 = 0o666;

/// Writes a text to standard output. A closed pipe is not an error; the result reports it.
///
/// # Errors
/// If standard output cannot be written for another reason, such as a full disk.
pub(crate) fn print(text: &str) -> io::Result<Reader> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(Reader::Listens),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Reader::HasLeft),
        Err(error) => Err(error),
    }
}

/// Writes a text to standard output, as [`print()`] does, and continues without it if it is not accepted: a host also ends when its output
/// is not read.
///
/// # Errors
/// If standard output cannot be written, or did not accept the text within two seconds.
pub(crate) fn print_last(text: String) -> io::Result<Reader> {
    in_time(move || print(&text))
}

/// Waits for an output, at most two seconds.
fn in_time<T: Send + 'static>(output: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    let (sender, taken) = mpsc::channel();
    // After the timeout, the send fails.
    thread::Builder::new().name("output".to_owned()).spawn(move || drop(sender.send(output())))?;
    let late = |_| Err(io::Error::new(io::ErrorKind::TimedOut, "it was not taken within two seconds"));
    taken.recv_timeout(TAKEN_WITHIN).unwrap_or_else(late)
}

/// Whether standard output is still read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    /// As far as is known.
    Listens,
    /// The reader is gone; no more output is needed.
    HasLeft,
}

/// Checks that the directory exists for a file to be written later.
///
/// # Errors
/// If it does not exist, or the file is a directory itself.
pub(crate) fn check_directory(file: &Path) -> io::Result<()> {
    if file.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory; name a file in it"));
    }
    let directory = directory_of(file);
    if directory.is_dir() { Ok(()) } else { Err(no_directory(directory)) }
}

fn directory_of(file: &Path) -> &Path {
    file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn no_directory(directory: &Path) -> io::Error {
    let what = format!("there is no directory {}; make it before", directory.display());
    io::Error::new(io::ErrorKind::NotFound, what)
}

/// Writes a file atomically: concurrent readers, and readers after a kill, see the old content or the new one. Its permissions
/// stay, and a symbolic link is followed. A special file, such as `/dev/stdout`, is written directly.
///
/// # Errors
/// If it cannot be written; then it is unchanged.
pub(crate) fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let known = fs::metadata(path).ok();
    if known.as_ref().is_some_and(|known| !known.is_file()) {
        return fs::write(path, text);
    }
    let path = if known.is_some() { fs::canonicalize(path)? } else { path.to_owned() };
    let parent = directory_of(&path);
    // The error must not name the temporary file, which the user does not know.
    let is_missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound && !parent.exists();
    let usual = fs::Permissions::from_mode(FILE_MODE);
    let next = tempfile::Builder::new().permissions(usual).tempfile_in(parent);
    let mut next = next.map_err(|error| match is_missing(&error) {
        true => no_directory(parent),
        false => error.raw_os_error().map_or(error, io::Error::from_raw_os_error),
    })?;
    if let Some(known) = known {
        next.as_file().set_permissions(known.permissions())?;
    }
    next.write_all(text.as_bytes())?;
    next.persist(path).map(|_| ()).map_err(|error| error.error)
}

/// Writes a line to standard error. If this fails, or takes more than two seconds, no channel is left to report it on.
pub(crate) fn complain(line: &str) {
    let line = format!("{}\n", escaped(line));
    let _ = in_time(move || io::stderr().write_all(line.as_bytes()));
}

/// The emphasis of a text, where colours are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Faint,
    Strong,
    Good,
    Doubtful,
    Bad,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Palette {
    is_coloured: bool,
}

impl Palette {
    /// Colours for a terminal, unless the user has disabled them (`NO_COLOR`).
    pub(crate) fn of_stdout() -> Self {
        let is_forbidden = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self { is_coloured: !is_forbidden && io::stdout().is_terminal() }
    }

    #[cfg(test)]
    pub(crate) const fn plain() -> Self {
        Self { is_coloured: false }
    }

    /// Colours in any case.
    #[cfg(test)]
    pub(crate) const fn coloured() -> Self {
        Self { is_coloured: true }
    }

    /// The text in the colour of its tone.
    pub(crate) fn paint(self, tone: Tone, text: &str) -> String {
        let code = match tone {
            Tone::Plain => return text.to_owned(),
            Tone::Faint => "2",
            Tone::Strong => "1",
            Tone::Good => "32",
            Tone::Doubtful => "33",
            Tone::Bad => "31",
        };
        self.paint_as(code, text)
    }

    /// The text in a colour, given as terminal code: `36` for cyan.
    pub(crate) fn paint_as(self, code: &str, text: &str) -> String {
        if self.is_coloured { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

/// The longest foreign text in one place, in bytes. `--json` does not truncate.
const SHOWN_BYTES_MAX: usize = 1_024;

/// A foreign text on one line, without terminal control sequences.
pub(crate) fn harmless(text: &str) -> String {
    bounded(text, SHOWN_BYTES_MAX)
}
