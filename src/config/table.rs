//! Reads values from a TOML table: a value of a wrong type is recorded as a problem, and reading continues.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Range, RangeInclusive};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::problem::Faults;
use super::suggest;

/// A value and its position.
#[derive(Debug, Clone)]
pub(super) struct Found<T> {
    pub(super) value: T,
    pub(super) at: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Whole {
    Number(i64),
    Text(String),
}

impl fmt::Display for Whole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => write!(f, "{text:?}"),
        }
    }
}

/// An entry of a list that may contain texts and tables.
pub(super) enum Item<'t> {
    Text(Found<String>),
    Table(&'t DeTable<'t>, Range<usize>),
}

pub(super) struct Table<'t> {
    entries: &'t DeTable<'t>,
    /// Its beginning: the position for missing keys.
    pub(super) at: usize,
    /// Its name in messages.
    name: &'static str,
}

impl<'t> Table<'t> {
    /// Opens a table, and records each unknown key as a problem.
    pub(super) fn open(
        entries: &'t DeTable<'t>,
        span: &Range<usize>,
        name: &'static str,
        known: &[&str],
        faults: &mut Faults,
    ) -> Self {
        for key in entries.keys().filter(|key| !known.contains(&key.get_ref().as_ref())) {
            let word = key.get_ref();
            faults.add(
                key.span().start,
                format!("unknown key `{word}` in {name}; {}", suggest::advice(word, known)),
            );
        }
        Self { entries, at: span.start, name }
    }

    fn value(&self, key: &str) -> Option<&'t Spanned<DeValue<'t>>> {
        self.entries.get(key)
    }

    /// The position of a value; of the table if there is none.
    pub(super) fn at_key(&self, key: &str) -> usize {
        self.value(key).map_or(self.at, |value| value.span().start)
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.value(key).is_some()
    }

    /// Reads a text, if there is one.
    pub(super) fn text(&self, key: &str, faults: &mut Faults) -> Option<Found<String>> {
        let value = self.value(key)?;
        let DeValue::String(text) = value.get_ref() else {
            return self.mistyped(key, value, "a text", faults);
        };
        Some(Found { value: text.to_string(), at: value.span().start })
    }

    /// Reads a required text.
    pub(super) fn required_text(&self, key: &str, faults: &mut Faults) -> Option<Found<String>> {
        self.require(key, faults);
        self.text(key, faults)
    }

    /// Records a problem if a key is missing.
    pub(super) fn require(&self, key: &str, faults: &mut Faults) {
        if self.value(key).is_none() {
            faults.add(self.at, format!("{} has no `{key}`, which is required", self.name));
        }
    }

    /// Reads a boolean, if there is one.
    pub(super) fn boolean(&self, key: &str, faults: &mut Faults) -> Option<bool> {
        let value = self.value(key)?;
        let DeValue::Boolean(boolean) = value.get_ref() else {
            return self.mistyped(key, value, "true or false", faults);
        };
        Some(*boolean)
    }

    /// Reads a whole number from 0 to `most`, if there is one.
    pub(super) fn number(&self, key: &str, most: u32, faults: &mut Faults) -> Option<u32> {
        self.number_within(key, 0..=most, faults)
    }

    /// Reads a whole number within these bounds, if there is one.
    pub(super) fn number_within(
        &self,
        key: &str,
        bounds: RangeInclusive<u32>,
        faults: &mut Faults,
    ) -> Option<u32> {
        let value = self.value(key)?;
        let DeValue::Integer(number) = value.get_ref() else {
            return self.mistyped(key, value, "a whole number", faults);
        };
        let read =
            u32::from_str_radix(number.as_str(), number.radix()).ok().filter(|read| bounds.contains(read));
        if read.is_none() {
            let (least, most) = bounds.into_inner();
            let message = format!("`{key}` is {number}; give a number from {least} to {most}");
            faults.add(value.span().start, message);
        }
        read
    }

    /// Reads a whole number or a text, if there is one.
    pub(super) fn whole_or_text(&self, key: &str, faults: &mut Faults) -> Option<Found<Whole>> {
        let value = self.value(key)?;
        let at = value.span().start;
        match value.get_ref() {
            DeValue::String(text) => Some(Found { value: Whole::Text(text.to_string()), at }),
            DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
                Ok(number) => Some(Found { value: Whole::Number(number), at }),
                Err(_) => {
                    faults.add(at, format!("{number} is too large for a number"));
                    None
                }
            },
            _ => self.mistyped(key, value, "a whole number or a text", faults),
        }
    }

    /// Reads a list of texts, by default empty.
    pub(super) fn texts(&self, key: &str, faults: &mut Faults) -> Vec<Found<String>> {
        let Some(value) = self.value(key) else { return Vec::new() };
        let DeValue::Array(list) = value.get_ref() else {
            return self.mistyped(key, value, "a list of texts", faults).unwrap_or_default();
        };
        let entry = |entry: &'t Spanned<DeValue<'t>>| match entry.get_ref() {
            DeValue::String(text) => Some(Found { value: text.to_string(), at: entry.span().start }),
            _ => self.mistyped_entry(key, entry, "a text", faults),
        };
        list.iter().filter_map(entry).collect()
    }

    /// Reads a list of at least one text; a single text counts as a list.
    pub(super) fn text_or_texts(&self, key: &str, faults: &mut Faults) -> Vec<Found<String>> {
        let Some(value) = self.value(key) else { return Vec::new() };
        match value.get_ref() {
            DeValue::String(_) => self.text(key, faults).into_iter().collect(),
            DeValue::Array(list) if list.is_empty() => {
                faults.add(value.span().start, format!("`{key}` of {} is an empty list", self.name));
                Vec::new()
            }
            DeValue::Array(_) => self.texts(key, faults),
            _ => self.mistyped(key, value, "a text or a list of texts", faults).unwrap_or_default(),
        }
    }

    /// Reads a table of texts, by default empty.
    pub(super) fn text_map(&self, key: &str, faults: &mut Faults) -> BTreeMap<String, Found<String>> {
        let Some(value) = self.value(key) else { return BTreeMap::new() };
        let DeValue::Table(table) = value.get_ref() else {
            return self.mistyped(key, value, "a table of texts", faults).unwrap_or_default();
        };
        self.texts_in(table, faults)
    }

    /// Reads a table in which each value is a text.
    pub(super) fn texts_in(
        &self,
        table: &'t DeTable<'t>,
        faults: &mut Faults,
    ) -> BTreeMap<String, Found<String>> {
        let mut read = BTreeMap::new();
        for (name, entry) in table {
            match entry.get_ref() {
                DeValue::String(text) => {
                    let found = Found { value: text.to_string(), at: name.span().start };
                    read.insert(name.get_ref().to_string(), found);
                }
                _ => {
                    let _: Option<()> = self.mistyped(name.get_ref(), entry, "a text", faults);
                }
            }
        }
        read
    }

    /// Reads a nested table, with its position.
    pub(super) fn table(&self, key: &str, faults: &mut Faults) -> Option<(&'t DeTable<'t>, Range<usize>)> {
        let value = self.value(key)?;
        let DeValue::Table(table) = value.get_ref() else {
            return self.mistyped(key, value, "a table", faults);
        };
        Some((table, value.span()))
    }

    /// Reads a nested table; another type is not a problem.
    pub(super) fn table_if_it_is_one(&self, key: &str) -> Option<&'t DeTable<'t>> {
        match self.value(key)?.get_ref() {
            DeValue::Table(table) => Some(table),
            _ => None,
        }
    }

    /// Reads a list of nested tables, each with its position.
    pub(super) fn tables(&self, key: &str, faults: &mut Faults) -> Vec<(&'t DeTable<'t>, Range<usize>)> {
        let Some(value) = self.value(key) else { return Vec::new() };
        let DeValue::Array(list) = value.get_ref() else {
            let what = format!("a list of tables, each begun by [[{key}]],");
            return self.mistyped(key, value, &what, faults).unwrap_or_default();
        };
        let entry = |entry: &'t Spanned<DeValue<'t>>| match entry.get_ref() {
            DeValue::Table(table) => Some((table, entry.span())),
            _ => self.mistyped_entry(key, entry, "a table", faults),
        };
        list.iter().filter_map(entry).collect()
    }

    /// Reads a list whose entries are texts or tables.
    pub(super) fn items(&self, key: &str, faults: &mut Faults) -> Vec<Item<'t>> {
        let Some(value) = self.value(key) else { return Vec::new() };
        let DeValue::Array(list) = value.get_ref() else {
            return self.mistyped(key, value, "a list of texts or tables", faults).unwrap_or_default();
        };
        let entry = |entry: &'t Spanned<DeValue<'t>>| match entry.get_ref() {
            DeValue::String(text) => {
                Some(Item::Text(Found { value: text.to_string(), at: entry.span().start }))
            }
            DeValue::Table(table) => Some(Item::Table(table, entry.span())),
            _ => self.mistyped_entry(key, entry, "a text or a table", faults),
        };
        list.iter().filter_map(entry).collect()
    }

    fn mistyped<T>(
        &self,
        key: &str,
        value: &Spanned<DeValue<'_>>,
        wanted: &str,
        faults: &mut Faults,
    ) -> Option<T> {
        let given = given(value.get_ref());
        faults.add(value.span().start, format!("`{key}` of {} has to be {wanted} and is {given}", self.name));
        None
    }

    fn mistyped_entry<T>(
        &self,
        key: &str,
        entry: &Spanned<DeValue<'_>>,
        wanted: &str,
        faults: &mut Faults,
    ) -> Option<T> {
        let given = given(entry.get_ref());
        let message = format!("an entry of `{key}` of {} has to be {wanted} and is {given}", self.name);
        faults.add(entry.span().start, message);
        None
    }
}

/// The type of a value, in words.
fn given(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a decimal number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
