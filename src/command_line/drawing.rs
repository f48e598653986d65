//! Draws pictures on request of a command.

use std::io;
use std::path::PathBuf;

use crate::output::write_whole;
use crate::picture::{Picture, mermaid, svg};

/// The file of a picture, and the language in which it is drawn.
#[derive(Debug, Clone)]
pub(super) struct Drawing {
    path: PathBuf,
    language: fn(&Picture) -> String,
}

impl Drawing {
    /// Writes a picture, replacing the contents of the file.
    pub(super) fn draw(&self, picture: &Picture) -> io::Result<()> {
        write_whole(&self.path, &(self.language)(picture))
    }

    /// The file.
    pub(super) fn path(&self) -> PathBuf {
        self.path.clone()
    }
}

/// Reads the name of a file; its extension selects the language.
pub(super) fn drawing(text: &str) -> Result<Drawing, String> {
    let path = PathBuf::from(text);
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("svg") => Ok(Drawing { path, language: svg }),
        Some("mmd") => Ok(Drawing { path, language: mermaid }),
        Some(_) | None => Err("its name ends neither in .svg nor in .mmd".to_owned()),
    }
}
