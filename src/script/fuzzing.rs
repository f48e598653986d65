//! Feeds arbitrary bytes to the parser of message scripts. Scripts are read but not played: each play needs a whole host.

use std::collections::BTreeSet;
use std::error::Error;
use std::path::Path;

use goldenscript::{Command, Context, Runner};

use super::error::ScriptError;
use super::lines::mistake;
use super::verbs;
use super::words::{Mistake, Words};
use crate::config::suggest::advice;

/// Longest text of a mistake, without its quotation.
const MISTAKE_BYTES: usize = 8 * 1_024;

/// Reads the bytes as a script, each line with all readers of words. Recorded responses change nothing when the script is read again, and a
/// mistake has a line.
///
/// # Panics
/// When one of these does not hold.
pub(crate) fn scripts(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let known: BTreeSet<_> = verbs::all().into_keys().collect();
    let mut reader = Reader { known };
    match goldenscript::generate(&mut reader, text) {
        Ok(came) => {
            let again = goldenscript::generate(&mut reader, &came).expect("what was written can be read");
            assert_eq!(again, came, "a script changes when it is read again");
        }
        Err(error) => {
            let ScriptError::Mistake { line, reason, .. } =
                mistake(Path::new("script"), text, &error.to_string())
            else {
                panic!("a mistake is a mistake");
            };
            assert!(line >= 1 && line as usize <= text.lines().count() + 1, "line {line} of {text:?}");
            assert!(!reason.trim().is_empty(), "a mistake says nothing");
            assert!(reason.len() <= MISTAKE_BYTES + 16 * text.len(), "{} bytes", reason.len());
        }
    }
}

/// Reads the words of each line, and does nothing.
struct Reader {
    known: BTreeSet<String>,
}

impl Reader {
    fn read(&self, command: &Command) -> Result<String, Mistake> {
        if !self.known.contains(&command.name) {
            let known: Vec<_> = self.known.iter().map(String::as_str).collect();
            return Err(Mistake::new(advice(&command.name, &known)));
        }
        let mut told = Vec::new();
        let mut tell = |read: Result<String, Mistake>| {
            let read = read.unwrap_or_else(|mistake| mistake.to_string());
            assert!(!read.is_empty(), "neither a word nor a mistake");
            told.push(read.escape_debug().to_string());
        };
        tell(Words::of(command).allocation().map(|allocation| format!("{allocation:?}")));
        tell(Words::of(command).plugin_name().map(|name| format!("{name:?}")));
        tell(Words::of(command).plugins().map(|plugins| format!("{plugins:?}")));
        for (name, _) in Words::of(command).keys_below("") {
            tell(Words::of(command).duration(name).map(|span| format!("{span:?}")));
            tell(Words::of(command).number(name).map(|number| format!("{number:?}")));
            tell(Words::of(command).yes_or_no(name).map(|choice| format!("{choice:?}")));
        }
        let mut words = Words::of(command);
        words.keys_below("");
        while words.maybe_next().is_some() {}
        assert!(words.left_over().is_ok(), "a word that cannot be taken");
        Ok(told.join("\n"))
    }
}

impl Runner for Reader {
    type Command = Command;

    fn run(&mut self, command: &Command, _: &Context) -> Result<String, Box<dyn Error>> {
        self.read(command).map_err(Into::into)
    }
}
