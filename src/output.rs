//! Writing to people and pipes: the words, and how they are to strike the eye.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use callboard_actors::vocabulary::text::{bounded, escaped};

/// The permissions of a new file, less what the user's mask takes away.
const FILE_MODE: u32 = 0o666;

/// Writes a text to standard output. A reader who has left is no error, and has it said so.
///
/// # Errors
/// When standard output cannot be written for any other reason, a full disk for instance.
pub(crate) fn print(text: &str) -> io::Result<Reader> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(Reader::Listens),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Reader::HasLeft),
        Err(error) => Err(error),
    }
}

/// Whether anybody reads what is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    /// As far as one can tell.
    Listens,
    /// Nothing more needs to be printed.
    HasLeft,
}

/// Sees to it that there is a directory for a file that is to be written later.
///
/// # Errors
/// When there is none.
pub(crate) fn see_to_directory(file: &Path) -> io::Result<()> {
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

/// Writes a file whole or not at all: whoever reads it meanwhile, or finds it after a kill, has the old one or the new one. Its
/// permissions stay, and a link leads on to the same file. What is no plain file, as `/dev/stdout`, is written to as it is.
///
/// # Errors
/// When it cannot be written; then it is as it was.
pub(crate) fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let known = fs::metadata(path).ok();
    if known.as_ref().is_some_and(|known| !known.is_file()) {
        return fs::write(path, text);
    }
    let path = if known.is_some() { fs::canonicalize(path)? } else { path.to_owned() };
    let parent = directory_of(&path);
    // Nobody knows the name of a file that is there for a moment only, so nothing is said of that one.
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

/// Writes a line to standard error. Should that fail, there is nobody left to tell.
pub(crate) fn complain(line: &str) {
    let _ = writeln!(io::stderr(), "{}", escaped(line));
}

/// How something is to strike the eye, where there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Faint,
    Strong,
    Good,
    Doubtful,
    Bad,
}

/// Whether standard output shows colours.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Palette {
    is_coloured: bool,
}

impl Palette {
    /// Colours for a terminal whose user has not forbidden them (`NO_COLOR`).
    pub(crate) fn of_stdout() -> Self {
        let is_forbidden = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self { is_coloured: !is_forbidden && io::stdout().is_terminal() }
    }

    /// No colours.
    #[cfg(test)]
    pub(crate) const fn plain() -> Self {
        Self { is_coloured: false }
    }

    /// Colours, whoever looks.
    #[cfg(test)]
    pub(crate) const fn coloured() -> Self {
        Self { is_coloured: true }
    }

    /// The text in its tone.
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

    /// The text in this colour, given as a terminal knows it: `36` for cyan.
    pub(crate) fn paint_as(self, code: &str, text: &str) -> String {
        if self.is_coloured { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

/// Longest text of others that is shown in one place, in bytes. `--json` shows them whole.
const SHOWN_BYTES_MAX: usize = 1_024;

/// What others say, on one line that no terminal obeys.
pub(crate) fn harmless(text: &str) -> String {
    bounded(text, SHOWN_BYTES_MAX)
}
