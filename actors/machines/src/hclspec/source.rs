//! A configuration as written in TOML or HCL, before it is decoded by a schema.

use std::collections::BTreeMap;

use super::error::{ConfigErrors, ConfigProblem};
use super::expression;
use super::path::Path;
use super::value::{Number, Value};

/// The nesting limit of a configuration.
pub const CONFIG_DEPTH_MAX: usize = 64;
/// The limit of values in a configuration.
pub const CONFIG_VALUES_MAX: usize = 100_000;
/// The limit of text in a configuration, in bytes.
pub const CONFIG_BYTES_MAX: usize = 1 << 20;

const ROOT: &str = "config";

/// A configuration as written: only literals and collections of literals.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    pub(super) body: BTreeMap<String, Raw>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Raw {
    Null,
    Bool(bool),
    Number(Number),
    String(String),
    List(Vec<Raw>),
    Map(BTreeMap<String, Raw>),
    /// One or more HCL blocks of one name; each is a [`Raw::Map`].
    Blocks(Vec<Raw>),
}

impl Default for Config {
    /// An empty configuration: all defaults of the schema apply.
    fn default() -> Self {
        Self { body: BTreeMap::new() }
    }
}

impl Config {
    /// Converts a TOML table. A date becomes a string.
    ///
    /// # Errors
    /// When it is too deep or too large, or contains a number that is not finite.
    pub fn from_toml(table: &toml::Table) -> Result<Self, ConfigErrors> {
        let mut reading = Reading::default();
        let body = reading.toml_table(table, &Path::root(ROOT), 0);
        reading.errors.unless_any(Self { body })
    }

    /// Parses HCL's native syntax.
    ///
    /// # Errors
    /// When it is malformed, too deep or too large, or contains an expression that is not a literal.
    pub fn from_hcl(text: &str) -> Result<Self, ConfigErrors> {
        let root = Path::root(ROOT);
        if text.len() > CONFIG_BYTES_MAX {
            return Err(ConfigErrors::one(root, ConfigProblem::TooLarge));
        }
        let body = expression::parse_body(text).map_err(|problem| ConfigErrors::one(root, problem))?;
        let mut reading = Reading::default();
        let body = reading.hcl_body(&body, &root, 0);
        reading.errors.unless_any(Self { body })
    }
}

/// The state of one conversion: its errors and the amount read so far.
#[derive(Debug, Default)]
pub(super) struct Reading {
    pub(super) errors: ConfigErrors,
    values: usize,
    bytes: usize,
    is_full: bool,
}

impl Reading {
    /// Counts one more value with the length of its text. False means that it is skipped.
    pub(super) fn admit(&mut self, text: usize, depth: usize, path: &Path<'_>) -> bool {
        if self.is_full {
            return false;
        }
        if depth > CONFIG_DEPTH_MAX {
            self.errors.add(path, ConfigProblem::TooDeep);
            return false;
        }
        self.values += 1;
        self.bytes = self.bytes.saturating_add(text);
        if self.values > CONFIG_VALUES_MAX || self.bytes > CONFIG_BYTES_MAX {
            self.is_full = true;
            self.errors.add(path, ConfigProblem::TooLarge);
            return false;
        }
        true
    }

    fn toml_table(&mut self, table: &toml::Table, path: &Path<'_>, depth: usize) -> BTreeMap<String, Raw> {
        let mut body = BTreeMap::new();
        for (key, value) in table {
            let path = path.key(key);
            if self.admit(key.len(), depth, &path) {
                body.insert(key.clone(), self.toml_value(value, &path, depth));
            }
        }
        body
    }

    fn toml_value(&mut self, value: &toml::Value, path: &Path<'_>, depth: usize) -> Raw {
        match value {
            toml::Value::Boolean(bool) => Raw::Bool(*bool),
            toml::Value::Integer(integer) => Raw::Number(Number::Integer(*integer)),
            toml::Value::Float(float) => self.float(*float, path),
            toml::Value::String(text) => self.text(text.clone(), path, depth),
            toml::Value::Datetime(time) => self.text(time.to_string(), path, depth),
            toml::Value::Array(values) => Raw::List(
                (values.iter().enumerate())
                    .map(|(place, value)| {
                        let path = path.place(place);
                        let is_in = self.admit(0, depth + 1, &path);
                        if is_in { self.toml_value(value, &path, depth + 1) } else { Raw::Null }
                    })
                    .collect(),
            ),
            toml::Value::Table(table) => Raw::Map(self.toml_table(table, path, depth + 1)),
        }
    }

    pub(super) fn float(&mut self, float: f64, path: &Path<'_>) -> Raw {
        match Number::from_float(float) {
            Some(number) => Raw::Number(number),
            None => {
                self.errors.add(path, ConfigProblem::NumberOutOfRange);
                Raw::Null
            }
        }
    }

    pub(super) fn text(&mut self, text: String, path: &Path<'_>, depth: usize) -> Raw {
        if self.admit(text.len(), depth, path) { Raw::String(text) } else { Raw::Null }
    }
}

impl Raw {
    /// Its description for an error. Strings are not quoted.
    pub(super) fn described(&self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Bool(bool) => format!("the bool {bool}"),
            Self::Number(number) => format!("the number {number}"),
            Self::String(text) if text.is_empty() => "an empty string".to_owned(),
            Self::String(_) => "a string".to_owned(),
            Self::List(values) => format!("a list of {}", values.len()),
            Self::Map(_) => "a table".to_owned(),
            Self::Blocks(blocks) if blocks.len() == 1 => "a block".to_owned(),
            Self::Blocks(blocks) => format!("{} blocks", blocks.len()),
        }
    }

    /// The value without a schema.
    pub(super) fn plain(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(bool) => Value::Bool(*bool),
            Self::Number(number) => Value::Number(*number),
            Self::String(text) => Value::String(text.clone()),
            Self::List(values) | Self::Blocks(values) => {
                Value::List(values.iter().map(Self::plain).collect())
            }
            Self::Map(entries) => {
                Value::Map(entries.iter().map(|(key, value)| (key.clone(), value.plain())).collect())
            }
        }
    }
}
