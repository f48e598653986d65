//! Problems of a configuration, with their positions.

use std::io;
use std::path::PathBuf;

use super::{CONFIG_BYTES_MAX, Place};

/// One problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Its position.
    pub place: Place,
    /// What is wrong, and what to do.
    pub message: String,
}

/// Why a configuration is unusable. Nothing was started.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read configuration {path}: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file is too long to be a configuration.
    #[error("configuration {path} is too long; at most {CONFIG_BYTES_MAX} bytes are read")]
    TooLong {
        /// The file.
        path: PathBuf,
    },
    /// All its problems, in the order of the file.
    #[error("{}", listed(path, problems))]
    Problems {
        /// The file.
        path: PathBuf,
        /// The problems.
        problems: Vec<Problem>,
    },
}

fn listed(path: &std::path::Path, problems: &[Problem]) -> String {
    let line = |problem: &Problem| format!("{}:{}: {}", path.display(), problem.place, problem.message);
    problems.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Collects problems and warnings by their byte offset.
#[derive(Debug, Default)]
pub(super) struct Faults {
    problems: Vec<(usize, String)>,
    warnings: Vec<(usize, String)>,
    /// Problems only for a host that is to be started.
    of_start: Vec<(usize, String)>,
}

impl Faults {
    pub(super) fn add(&mut self, offset: usize, message: impl Into<String>) {
        self.problems.push((offset, message.into()));
    }

    /// A problem only for a host that is to be started.
    pub(super) fn keep_from_starting(&mut self, offset: usize, message: impl Into<String>) {
        self.of_start.push((offset, message.into()));
    }

    /// A host is to be started.
    pub(super) fn start(&mut self) {
        self.problems.append(&mut self.of_start);
    }

    /// Records a probable mistake, which does not prevent a start.
    pub(super) fn warn(&mut self, offset: usize, message: impl Into<String>) {
        self.warnings.push((offset, message.into()));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.problems.is_empty()
    }

    /// All problems, in the order of the text.
    pub(super) fn placed(self, text: &str) -> Vec<Problem> {
        placed(self.problems, text)
    }

    /// All warnings, in the order of the text.
    pub(super) fn warnings(self, text: &str) -> Vec<Problem> {
        placed(self.warnings, text)
    }
}

fn placed(mut told: Vec<(usize, String)>, text: &str) -> Vec<Problem> {
    told.sort_by_key(|(offset, _)| *offset);
    let placed = |(offset, message)| Problem { place: Place::of(text, offset), message };
    told.into_iter().map(placed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_counts_characters_and_not_bytes() {
        let text = "a = 1\nü = 'ö' x";
        let offset = text.find('x').expect("it is there");
        assert_eq!(Place::of(text, offset), Place { line: 2, column: 9 });
        assert_eq!(Place::of(text, 0), Place { line: 1, column: 1 });
        assert_eq!(Place::of(text, 999), Place { line: 2, column: 10 });
        let within = text.find('ö').expect("it is there") + 1;
        assert_eq!(Place::of(text, within), Place { line: 2, column: 6 }, "no character has a middle");
    }
}
