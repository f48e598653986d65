//! Readers shared by allocations, drivers and tasks: names, arguments, environment, and plugin values.

use std::collections::{BTreeMap, BTreeSet};

use callboard_actors::vocabulary::{AllocationId, MalformedName};
use toml::de::{DeTable, DeValue};
use toml::{Spanned, Value};

use super::ConfigPlaces;
use super::NAME_BYTES_MAX;
use super::problem::Faults;
use super::table::{Found, Table};

/// The nesting limit of a table for a plugin.
const DEPTH_MAX: usize = 64;

/// The names of allocations and tasks read so far. They share one namespace, since `callboard start NAME` accepts both.
pub(super) type Names = BTreeSet<AllocationId>;

/// Reads the name of an allocation or a task: required, well formed, and unique.
pub(super) fn name(
    table: &Table<'_>,
    what: &str,
    read: impl FnOnce(&str) -> Result<AllocationId, MalformedName>,
    seen: &mut Names,
    faults: &mut Faults,
) -> Option<AllocationId> {
    let found = table.required_text("name", faults)?;
    let name = match read(&found.value) {
        Ok(name) if name.as_str().len() <= NAME_BYTES_MAX => name,
        Ok(name) => {
            let bytes = name.as_str().len();
            faults.add(
                found.at,
                format!(
                    "`name` has {bytes} bytes; at most {NAME_BYTES_MAX} fit into the name of its log file"
                ),
            );
            return None;
        }
        Err(error) => {
            faults.add(found.at, format!("`name`: {error}"));
            return None;
        }
    };
    if !seen.insert(name.clone()) {
        faults.add(found.at, format!("a second {what} is named {name:?}; each needs a name of its own"));
        return None;
    }
    Some(name)
}

pub(super) fn argument(found: Found<String>, faults: &mut Faults) -> Option<String> {
    if found.value.contains('\0') {
        faults.add(found.at, "an argument holds a zero byte, which no program can be given");
        return None;
    }
    Some(found.value)
}

/// Reads the variables of `env`; each has to pass `fit`.
pub(super) fn environment(
    table: &Table<'_>,
    fit: impl Fn(&str, &str) -> Result<(), String>,
    faults: &mut Faults,
) -> BTreeMap<String, String> {
    let mut environment = BTreeMap::new();
    for (name, found) in table.text_map("env", faults) {
        if name.is_empty() || name.contains(['=', '\0']) || found.value.contains('\0') {
            faults.add(
                found.at,
                format!("`env` holds {name:?}, which cannot be a variable of the environment"),
            );
            continue;
        }
        if let Err(message) = fit(&name, &found.value) {
            faults.add(found.at, message);
        }
        environment.insert(name, found.value);
    }
    environment
}

/// Reads the table `config` unchecked, since only the plugin's schema defines it. Returns its position, too.
pub(super) fn plugin_config(table: &Table<'_>, faults: &mut Faults) -> (toml::Table, usize) {
    match table.table("config", faults) {
        Some((entries, span)) => (values(entries, 0, faults), span.start),
        None => (toml::Table::new(), table.at),
    }
}

/// The positions of that table's values, if the table begins at `at`.
pub(super) fn config_places(table: &Table<'_>, text: &str, at: usize) -> ConfigPlaces {
    ConfigPlaces::of(text, at, table.table_if_it_is_one("config"))
}

fn values(entries: &DeTable<'_>, depth: usize, faults: &mut Faults) -> toml::Table {
    let entry = |(key, entry): (&Spanned<std::borrow::Cow<'_, str>>, &Spanned<DeValue<'_>>)| {
        Some((key.get_ref().to_string(), value(entry, depth, faults)?))
    };
    entries.iter().filter_map(entry).collect()
}

fn value(entry: &Spanned<DeValue<'_>>, depth: usize, faults: &mut Faults) -> Option<Value> {
    let at = entry.span().start;
    if depth > DEPTH_MAX {
        faults.add(at, format!("`config` nests deeper than {DEPTH_MAX}"));
        return None;
    }
    match entry.get_ref() {
        DeValue::String(text) => Some(Value::String(text.to_string())),
        DeValue::Integer(number) => {
            let read = i64::from_str_radix(number.as_str(), number.radix());
            read.map_err(|_| faults.add(at, format!("{number} is too large for a number")))
                .ok()
                .map(Value::Integer)
        }
        DeValue::Float(number) => {
            let read = number.as_str().parse();
            read.map_err(|_| faults.add(at, format!("{number} is no decimal number"))).ok().map(Value::Float)
        }
        DeValue::Boolean(boolean) => Some(Value::Boolean(*boolean)),
        DeValue::Datetime(time) => Some(Value::Datetime(*time)),
        DeValue::Array(list) => {
            Some(Value::Array(list.iter().filter_map(|entry| value(entry, depth + 1, faults)).collect()))
        }
        DeValue::Table(entries) => Some(Value::Table(values(entries, depth + 1, faults))),
    }
}
