//! The positions of plugin values in a configuration file, for errors that only the plugin's own schema finds later.

use std::collections::BTreeMap;
use std::fmt;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{ConfigErrors, path_below};
use crate::vocabulary::text::bounded;

/// The number of positions kept for one table. Errors beyond them get the position of the enclosing value.
const PLACES_MAX: usize = 4_096;
/// The longest text for the errors of one table, in bytes.
const TOLD_BYTES_MAX: usize = 4_096;
/// The prefix of paths in a configuration.
const ROOT: &str = "config";

/// A position in a file, as in editors: both numbers start at 1, columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

impl Place {
    /// The position of a byte in a text.
    #[must_use]
    pub fn of(text: &str, offset: usize) -> Self {
        let mut offset = offset.min(text.len());
        while !text.is_char_boundary(offset) {
            offset -= 1;
        }
        let before = &text[..offset];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self { line: before.matches('\n').count() + 1, column: before[line_start..].chars().count() + 1 }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// The positions of one table's values, by path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigPlaces {
    whole: Place,
    places: BTreeMap<String, Place>,
}

impl ConfigPlaces {
    /// A table of which only its own position is known.
    #[must_use]
    pub const fn at(whole: Place) -> Self {
        Self { whole, places: BTreeMap::new() }
    }

    /// The positions of all values in a table that begins at this byte of the text.
    #[must_use]
    pub fn of(text: &str, at: usize, entries: Option<&DeTable<'_>>) -> Self {
        let line_starts = std::iter::once(0).chain(text.match_indices('\n').map(|(newline, _)| newline + 1));
        let mut reading = Reading { text, line_starts: line_starts.collect(), places: BTreeMap::new() };
        if let Some(entries) = entries {
            reading.table(entries, ROOT);
        }
        Self { whole: reading.place(at), places: reading.places }
    }

    /// The position of a value; for a missing value, the position of the enclosing value.
    #[must_use]
    pub fn find(&self, path: &str) -> Place {
        let ends = path.char_indices().rev().filter(|(_, c)| matches!(c, '.' | '[')).map(|(end, _)| end);
        let mut paths = std::iter::once(path.len()).chain(ends).map(|end| &path[..end]);
        paths.find_map(|path| self.places.get(path)).copied().unwrap_or(self.whole)
    }

    /// Lists the errors in the table, each with its line and column.
    #[must_use]
    pub fn told(&self, errors: &ConfigErrors) -> String {
        let told = errors.errors().iter().map(|error| format!("line {}: {error}", self.find(&error.path)));
        let mut told: Vec<_> = told.collect();
        if errors.untold() > 0 {
            told.push(format!("and {} more", errors.untold()));
        }
        bounded(&told.join("; "), TOLD_BYTES_MAX)
    }
}

struct Reading<'t> {
    text: &'t str,
    line_starts: Vec<usize>,
    places: BTreeMap<String, Place>,
}

impl Reading<'_> {
    fn table(&mut self, entries: &DeTable<'_>, path: &str) {
        for (key, value) in entries {
            let place = self.place(key.span().start);
            self.value(value, path_below(path, key.get_ref()), place);
        }
    }

    fn value(&mut self, value: &Spanned<DeValue<'_>>, path: String, place: Place) {
        if self.places.len() == PLACES_MAX {
            return;
        }
        match value.get_ref() {
            DeValue::Table(entries) => self.table(entries, &path),
            DeValue::Array(values) => {
                for (number, value) in values.iter().enumerate() {
                    let place = self.place(value.span().start);
                    self.value(value, format!("{path}[{number}]"), place);
                }
            }
            DeValue::String(_)
            | DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_) => {}
        }
        self.places.insert(path, place);
    }

    /// Like [`Place::of`], without counting the lines again for each value.
    fn place(&self, offset: usize) -> Place {
        let line = self.line_starts.partition_point(|start| *start <= offset);
        let start = self.line_starts[line - 1];
        let before = self.text.get(start..offset).unwrap_or_default();
        Place { line, column: before.chars().count() + 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(text: &str) -> ConfigPlaces {
        let table = DeTable::parse(text).unwrap();
        let config = table.get_ref().get("config").unwrap();
        let DeValue::Table(entries) = config.get_ref() else { panic!("a table") };
        ConfigPlaces::of(text, config.span().start, Some(entries))
    }

    #[test]
    fn a_value_stands_where_its_key_stands_and_what_is_missing_where_it_is_missing() {
        let text = "a = 1\n[config]\n\"ä\" = 2\n  image = { name = \"x\", \"o d\" = 1 }\n[[config.volumes]]\nname = 1\n\
                    [[config.volumes]]\nsize.least = 3\nports = [\n  1,\n  { from = 2 },\n]\n";
        let places = places(text);
        for (path, line, column) in [
            ("config", 2, 1),
            ("config.gone", 2, 1),
            ("config[\"\u{e4}\"]", 3, 1),
            ("config.image", 4, 3),
            ("config.image.name", 4, 13),
            ("config.image[\"o d\"]", 4, 25),
            ("config.image.tag", 4, 3),
            ("config.volumes[0]", 5, 1),
            ("config.volumes[0].name", 6, 1),
            ("config.volumes[1].name", 7, 1),
            ("config.volumes[1].size.least", 8, 6),
            ("config.volumes[1].ports[0]", 10, 3),
            ("config.volumes[1].ports[1].from", 11, 5),
            ("config.volumes[7].name", 5, 10),
        ] {
            assert_eq!(places.find(path), Place { line, column }, "{path}");
        }
    }

    #[test]
    fn a_table_with_many_values_keeps_some_places_and_tells_the_rest_by_the_table() {
        let list = vec!["1"; 2 * PLACES_MAX].join(", ");
        let places = places(&format!("[config]\nx = [{list}]"));
        assert!(places.places.len() <= PLACES_MAX + 1);
        assert_eq!(places.find(&format!("config.x[{}]", 2 * PLACES_MAX - 1)), Place { line: 2, column: 1 });
    }
}
