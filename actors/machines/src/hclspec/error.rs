//! The mistakes in a configuration.

use std::fmt;

use super::source::{CONFIG_BYTES_MAX, CONFIG_DEPTH_MAX, CONFIG_VALUES_MAX};

/// The limit of reported mistakes; further ones are counted.
pub const ERRORS_MAX: usize = 50;

/// One mistake in a configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct ConfigError {
    /// Its path, for instance `config.volumes[2].name`.
    pub path: String,
    /// The problem.
    pub problem: ConfigProblem,
}

/// The problem at one path. Values are not quoted unless they are numbers or bools: a string may be a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigProblem {
    /// The text cannot be parsed.
    #[error("line {line}, column {column}: {message}")]
    Unreadable {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// The message of the parser.
        message: String,
    },
    /// An expression that only an HCL evaluator could evaluate.
    #[error("{0} cannot be used here; write the value itself")]
    NotLiteral(&'static str),
    /// A number that cannot be represented exactly, or is not finite.
    #[error("the number does not fit; whole numbers go from -2^63 to 2^63-1, and none may be infinite")]
    NumberOutOfRange,
    /// The nesting limit is exceeded.
    #[error("its nesting exceeds {CONFIG_DEPTH_MAX} levels")]
    TooDeep,
    /// The size limit is exceeded.
    #[error(
        "the configuration is larger than {CONFIG_VALUES_MAX} values or {CONFIG_BYTES_MAX} bytes of text"
    )]
    TooLarge,
    /// A required attribute or block is missing.
    #[error("{expected} is required here and missing")]
    Missing {
        /// The missing item: an attribute with its type, or a block.
        expected: String,
    },
    /// The schema has no such name.
    #[error("the plugin knows no such key; {}", known_names(known, closest.as_deref()))]
    Unknown {
        /// The known names in this body.
        known: Vec<String>,
        /// The most similar one of these.
        closest: Option<String>,
    },
    /// A value of the wrong type.
    #[error("expected {expected}, found {found}")]
    WrongType {
        /// The expected type.
        expected: String,
        /// The actual type.
        found: String,
    },
    /// Fewer blocks than required.
    #[error("expected at least {least} blocks, found {found}")]
    TooFew {
        /// The required number.
        least: u64,
        /// The actual number.
        found: usize,
    },
    /// More blocks than permitted.
    #[error("expected at most {most} blocks, found {found}")]
    TooMany {
        /// The permitted number.
        most: u64,
        /// The actual number.
        found: usize,
    },
    /// A unique name is repeated.
    #[error("it is given more than once")]
    Duplicate,
    /// A block without its label.
    #[error("expected a block with the label {label:?}, found {found}")]
    MissingLabel {
        /// The name of the label.
        label: String,
        /// The actual value.
        found: String,
    },
    /// The values in a list of `any` cannot be unified.
    #[error("expected values of one type, found {first} beside {other}")]
    NoCommonType {
        /// The first value.
        first: String,
        /// The value that does not match it.
        other: String,
    },
}

/// All mistakes in a configuration, in the order of its keys. There is at least one.
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

    /// The number of further mistakes.
    #[must_use]
    pub const fn untold(&self) -> usize {
        self.untold
    }

    /// Whether a retry can succeed: never, the configuration must be corrected.
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

/// The most similar name, if it is similar enough to be a typo.
pub(super) fn closest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    let name: Vec<char> = name.chars().take(64).collect();
    let distances = known.map(|known| (distance(&name, known), known));
    let (distance, known) = distances.min()?;
    (distance <= 1 + name.len() / 4).then(|| known.to_owned())
}

/// The edit distance between two names: insertions, deletions and substitutions of characters.
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
