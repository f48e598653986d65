//! What is wrong with a configuration.

use std::fmt;

use super::source::{CONFIG_BYTES_MAX, CONFIG_DEPTH_MAX, CONFIG_VALUES_MAX};

/// How many mistakes are told; further ones are counted.
pub const ERRORS_MAX: usize = 50;

/// One mistake in a configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct ConfigError {
    /// Where, for instance `config.volumes[2].name`.
    pub path: String,
    /// What is wrong there.
    pub problem: ConfigProblem,
}

/// What is wrong at one place. What was written is not quoted unless it is a number or a bool: a string may be a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigProblem {
    /// The text cannot be read at all.
    #[error("line {line}, column {column}: {message}")]
    Unreadable {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What was expected there.
        message: String,
    },
    /// Something that only a running HCL evaluator could give a value.
    #[error("{0} cannot be used here; write the value itself")]
    NotLiteral(&'static str),
    /// A number that cannot be kept exactly, or is none.
    #[error("the number does not fit; whole numbers go from -2^63 to 2^63-1, and none may be infinite")]
    NumberOutOfRange,
    /// Nested too deep.
    #[error("it nests deeper than {CONFIG_DEPTH_MAX} levels")]
    TooDeep,
    /// Too much of it.
    #[error(
        "the configuration is larger than {CONFIG_VALUES_MAX} values or {CONFIG_BYTES_MAX} bytes of text"
    )]
    TooLarge,
    /// What is required is not there.
    #[error("{expected} is required here and missing")]
    Missing {
        /// What was expected: an attribute with its type, or a block.
        expected: String,
    },
    /// The plugin knows nothing of that name.
    #[error("the plugin knows no such key; {}", known_names(known, closest.as_deref()))]
    Unknown {
        /// What it knows at this place.
        known: Vec<String>,
        /// Which of these is spelt most like it.
        closest: Option<String>,
    },
    /// A value of another type than the plugin wants.
    #[error("expected {expected}, found {found}")]
    WrongType {
        /// What was expected.
        expected: String,
        /// What was found.
        found: String,
    },
    /// Fewer blocks than needed.
    #[error("expected at least {least} blocks, found {found}")]
    TooFew {
        /// How many are needed.
        least: u64,
        /// How many there are.
        found: usize,
    },
    /// More blocks than allowed.
    #[error("expected at most {most} blocks, found {found}")]
    TooMany {
        /// How many are allowed.
        most: u64,
        /// How many there are.
        found: usize,
    },
    /// A name that may be given once is given again.
    #[error("it is given more than once")]
    Duplicate,
    /// A block without its label.
    #[error("expected a block with the label {label:?}, found {found}")]
    MissingLabel {
        /// What the label is called.
        label: String,
        /// What was found.
        found: String,
    },
    /// A list of any whose values cannot be brought to one type.
    #[error("expected values of one type, found {first} beside {other}")]
    NoCommonType {
        /// The first one.
        first: String,
        /// One that does not go with it.
        other: String,
    },
}

/// Every mistake in a configuration, in the order of its keys. There is at least one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConfigErrors {
    errors: Vec<ConfigError>,
    untold: usize,
}

impl ConfigErrors {
    /// The mistakes, at most [`ERRORS_MAX`].
    #[must_use]
    pub fn errors(&self) -> &[ConfigError] {
        &self.errors
    }

    /// How many more there are.
    #[must_use]
    pub const fn untold(&self) -> usize {
        self.untold
    }

    /// Whether trying again can help: never, the configuration must be mended.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        false
    }

    pub(super) fn add(&mut self, path: impl fmt::Display, problem: ConfigProblem) {
        if self.errors.len() < ERRORS_MAX {
            self.errors.push(ConfigError { path: path.to_string(), problem });
        } else {
            self.untold = self.untold.saturating_add(1);
        }
    }

    pub(super) fn one(path: impl fmt::Display, problem: ConfigProblem) -> Self {
        let mut errors = Self::default();
        errors.add(path, problem);
        errors
    }

    /// The result, unless there were mistakes.
    pub(super) fn unless_any<T>(self, result: T) -> Result<T, Self> {
        if self.errors.is_empty() { Ok(result) } else { Err(self) }
    }
}

impl std::error::Error for ConfigErrors {}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, error) in self.errors.iter().enumerate() {
            let between = if place == 0 { "" } else { "; " };
            write!(f, "{between}{error}")?;
        }
        match self.untold {
            0 => Ok(()),
            untold => write!(f, "; and {untold} more"),
        }
    }
}

fn known_names(names: &[String], closest: Option<&str>) -> String {
    match (closest, names) {
        (Some(closest), _) => format!("did you mean {closest:?}?"),
        (None, []) => "nothing may be given here".to_owned(),
        (None, names) => format!("it knows {}", names.join(", ")),
    }
}

/// The name most like this one, if one is so much like it that it may have been meant.
pub(super) fn closest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    let name: Vec<char> = name.chars().take(64).collect();
    let distances = known.map(|known| (distance(&name, known), known));
    let (distance, known) = distances.min()?;
    (distance <= 1 + name.len() / 4).then(|| known.to_owned())
}

/// How many characters must be put in, taken out or changed to make one name of the other.
fn distance(from: &[char], to: &str) -> usize {
    let mut row: Vec<usize> = (0..=from.len()).collect();
    for (line, theirs) in to.chars().take(64).enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (place, ours) in from.iter().enumerate() {
            let change = diagonal + usize::from(*ours != theirs);
            diagonal = row[place + 1];
            row[place + 1] = change.min(diagonal + 1).min(row[place] + 1);
        }
    }
    row[from.len()]
}
