//! Decodes a configuration by its schema.

use std::collections::BTreeMap;

use super::convert::{as_set, convert, map};
use super::error::{ConfigErrors, ConfigProblem, closest};
use super::path::Path;
use super::schema::{ItemLimits, Schema, Spec};
use super::source::{Config, Raw};
use super::value::Value;

/// The attributes and blocks between two braces.
type Body = BTreeMap<String, Raw>;

impl Schema {
    /// Validates a configuration and converts it for the plugin, with all defaults filled in.
    ///
    /// # Errors
    /// All mistakes at once: missing, unknown, of a wrong type, too few or too many, each with its path.
    pub fn decode(&self, config: &Config) -> Result<Value, ConfigErrors> {
        let mut errors = ConfigErrors::default();
        let value = body(&self.root, &config.body, &Path::root("config"), &mut errors);
        errors.unless_any(value)
    }
}

/// Checks the keys of a body, then decodes its value.
fn body(spec: &Spec, body: &Body, path: &Path<'_>, errors: &mut ConfigErrors) -> Value {
    let names = spec.names();
    for (name, (kind, is_required)) in &names.attributes {
        if *is_required && !body.contains_key(*name) {
            errors.add(path.key(name), ConfigProblem::Missing { expected: format!("a {kind}") });
        }
    }
    for key in body.keys() {
        let key = key.as_str();
        if !names.attributes.contains_key(key) && !names.blocks.contains(key) {
            let known = || names.attributes.keys().chain(&names.blocks).copied();
            let closest = closest(key, known());
            let known = known().map(str::to_owned).collect();
            errors.add(path.key(key), ConfigProblem::Unknown { known, closest });
        }
    }
    value(spec, body, path, errors)
}

fn value(spec: &Spec, within: &Body, path: &Path<'_>, errors: &mut ConfigErrors) -> Value {
    match spec {
        Spec::Object(specs) => {
            let values = specs.iter().map(|(key, spec)| (key.clone(), value(spec, within, path, errors)));
            Value::Map(values.collect())
        }
        Spec::Array(specs) => {
            Value::List(specs.iter().map(|spec| value(spec, within, path, errors)).collect())
        }
        Spec::Attribute { name, kind, .. } => match within.get(name) {
            Some(raw) => convert(raw, kind, &path.key(name), errors),
            None => Value::Null,
        },
        Spec::Block { name, is_required, nested } => {
            let path = path.key(name);
            let block = sole_block(within.get(name), *is_required, &path, errors);
            block.map_or(Value::Null, |block| body(nested, block, &path, errors))
        }
        Spec::BlockAttributes { name, element, is_required } => {
            let path = path.key(name);
            let block = sole_block(within.get(name), *is_required, &path, errors);
            block.map_or(Value::Null, |block| Value::Map(map(block, element, &path, errors)))
        }
        Spec::BlockList { name, items, nested } => {
            Value::List(list(within.get(name), *items, nested, &path.key(name), errors))
        }
        Spec::BlockSet { name, items, nested } => {
            Value::List(as_set(list(within.get(name), *items, nested, &path.key(name), errors)))
        }
        Spec::BlockMap { name, labels, nested } => match within.get(name) {
            Some(raw) => labelled(&[raw], labels, nested, &path.key(name), errors),
            None => Value::Map(BTreeMap::new()),
        },
        Spec::Default { primary, fallback } => match value(primary, within, path, errors) {
            Value::Null => value(fallback, within, path, errors),
            value @ (Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::List(_)
            | Value::Map(_)) => value,
        },
        Spec::Literal(value) => value.clone(),
    }
}

/// The blocks with a name, or the value that is not a block.
fn blocks(raw: Option<&Raw>) -> Result<&[Raw], &Raw> {
    match raw {
        None | Some(Raw::Null) => Ok(&[]),
        Some(raw @ Raw::Map(_)) => Ok(std::slice::from_ref(raw)),
        Some(Raw::List(blocks) | Raw::Blocks(blocks)) => Ok(blocks),
        Some(raw @ (Raw::Bool(_) | Raw::Number(_) | Raw::String(_))) => Err(raw),
    }
}

fn sole_block<'a>(
    raw: Option<&'a Raw>,
    is_required: bool,
    path: &Path<'_>,
    errors: &mut ConfigErrors,
) -> Option<&'a Body> {
    match blocks(raw) {
        Ok([]) => {
            if is_required {
                errors.add(path, ConfigProblem::Missing { expected: "a block".to_owned() });
            }
            None
        }
        Ok([block]) => table(block, path, errors),
        Ok([_, _, ..]) => {
            errors.add(path, ConfigProblem::Duplicate);
            None
        }
        Err(raw) => {
            refuse(raw, path, errors);
            None
        }
    }
}

fn table<'a>(raw: &'a Raw, path: &Path<'_>, errors: &mut ConfigErrors) -> Option<&'a Body> {
    match raw {
        Raw::Map(body) => Some(body),
        Raw::Null | Raw::Bool(_) | Raw::Number(_) | Raw::String(_) | Raw::List(_) | Raw::Blocks(_) => {
            refuse(raw, path, errors);
            None
        }
    }
}

fn refuse(raw: &Raw, path: &Path<'_>, errors: &mut ConfigErrors) {
    let (expected, found) = ("a block or a table".to_owned(), raw.described());
    errors.add(path, ConfigProblem::WrongType { expected, found });
}

fn list(
    raw: Option<&Raw>,
    items: ItemLimits,
    nested: &Spec,
    path: &Path<'_>,
    errors: &mut ConfigErrors,
) -> Vec<Value> {
    let blocks = match blocks(raw) {
        Ok(blocks) => blocks,
        Err(raw) => {
            refuse(raw, path, errors);
            return Vec::new();
        }
    };
    let found = blocks.len();
    if (found as u64) < items.least {
        errors.add(path, ConfigProblem::TooFew { least: items.least, found });
    }
    if let Some(most) = items.most.filter(|most| found as u64 > *most) {
        errors.add(path, ConfigProblem::TooMany { most, found });
    }
    let values = blocks.iter().enumerate().filter_map(|(place, block)| {
        let path = path.place(place);
        table(block, &path, errors).map(|block| body(nested, block, &path, errors))
    });
    values.collect()
}

/// Blocks by their labels, one level of maps for each label. Blocks with the same first labels are merged.
fn labelled(
    raws: &[&Raw],
    labels: &[String],
    nested: &Spec,
    path: &Path<'_>,
    errors: &mut ConfigErrors,
) -> Value {
    let found = raws.iter().flat_map(|raw| match blocks(Some(raw)) {
        Ok(blocks) => blocks,
        Err(raw) => std::slice::from_ref(raw),
    });
    let [label, inner @ ..] = labels else { return labelled_block(found, nested, path, errors) };
    let mut groups: BTreeMap<&str, Vec<&Raw>> = BTreeMap::new();
    for table in found {
        match table {
            Raw::Map(entries) if !entries.is_empty() => {
                entries.iter().for_each(|(key, raw)| groups.entry(key).or_default().push(raw));
            }
            raw => {
                let found = raw.described();
                errors.add(path, ConfigProblem::MissingLabel { label: label.clone(), found });
            }
        }
    }
    let values = groups
        .into_iter()
        .map(|(key, raws)| (key.to_owned(), labelled(&raws, inner, nested, &path.key(key), errors)));
    Value::Map(values.collect())
}

fn labelled_block<'a>(
    mut found: impl Iterator<Item = &'a Raw>,
    nested: &Spec,
    path: &Path<'_>,
    errors: &mut ConfigErrors,
) -> Value {
    let Some(block) = found.next() else {
        errors.add(path, ConfigProblem::Missing { expected: "a block".to_owned() });
        return Value::Null;
    };
    if found.next().is_some() {
        errors.add(path, ConfigProblem::Duplicate);
    }
    table(block, path, errors).map_or(Value::Null, |block| body(nested, block, path, errors))
}
