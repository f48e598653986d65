//! Converts values to the type of an attribute.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::error::{ConfigErrors, ConfigProblem, closest};
use super::kind::Type;
use super::path::Path;
use super::source::Raw;
use super::value::{Number, Value};

/// Converts a value to a type as HCL does. A mismatch is reported, and the result is null.
pub(super) fn convert(raw: &Raw, kind: &Type, path: &Path<'_>, errors: &mut ConfigErrors) -> Value {
    match (kind, raw) {
        (_, Raw::Null) => Value::Null,
        (Type::Any, raw) => raw.plain(),
        (Type::String | Type::Number | Type::Bool, raw) => match primitive(raw, kind) {
            Some(value) => value,
            None => refuse(raw, kind, path, errors),
        },
        (Type::List(element), Raw::List(raws) | Raw::Blocks(raws)) => {
            Value::List(elements(raws, element, path, errors))
        }
        (Type::Set(element), Raw::List(raws) | Raw::Blocks(raws)) => {
            Value::List(as_set(elements(raws, element, path, errors)))
        }
        (Type::Tuple(kinds), Raw::List(raws) | Raw::Blocks(raws)) if raws.len() == kinds.len() => {
            let pairs = raws.iter().zip(kinds).enumerate();
            Value::List(
                pairs.map(|(place, (raw, kind))| convert(raw, kind, &path.place(place), errors)).collect(),
            )
        }
        // One table in place of a list of tables is one block, as for block types.
        (Type::List(element) | Type::Set(element), raw @ Raw::Map(_)) if is_table(element) => {
            Value::List(vec![convert(raw, element, path, errors)])
        }
        (Type::Map(_) | Type::Object(_), raw) => match sole_table(raw) {
            Some(entries) => keyed(entries, kind, path, errors),
            None => refuse(raw, kind, path, errors),
        },
        (Type::List(_) | Type::Set(_) | Type::Tuple(_), raw) => refuse(raw, kind, path, errors),
    }
}

/// Converts elements to one type; unifies them if the type is `any`.
fn elements(raws: &[Raw], element: &Type, path: &Path<'_>, errors: &mut ConfigErrors) -> Vec<Value> {
    let converted = raws.iter().enumerate();
    let mut values: Vec<Value> =
        converted.map(|(place, raw)| convert(raw, element, &path.place(place), errors)).collect();
    if *element == Type::Any {
        unify(values.iter_mut().zip(raws), path, errors);
    }
    values
}

/// Whether values of this type are always tables, so that a table is unambiguous.
const fn is_table(kind: &Type) -> bool {
    matches!(kind, Type::Map(_) | Type::Object(_))
}

/// A table, also if it was written as a single block.
fn sole_table(raw: &Raw) -> Option<&BTreeMap<String, Raw>> {
    match raw {
        Raw::Map(entries) => Some(entries),
        Raw::Blocks(blocks) => match &blocks[..] {
            [Raw::Map(entries)] => Some(entries),
            _ => None,
        },
        Raw::Null | Raw::Bool(_) | Raw::Number(_) | Raw::String(_) | Raw::List(_) => None,
    }
}

fn keyed(entries: &BTreeMap<String, Raw>, kind: &Type, path: &Path<'_>, errors: &mut ConfigErrors) -> Value {
    match kind {
        Type::Object(kinds) => object(entries, kinds, path, errors),
        Type::Map(element) => Value::Map(map(entries, element, path, errors)),
        Type::Any
        | Type::String
        | Type::Number
        | Type::Bool
        | Type::List(_)
        | Type::Set(_)
        | Type::Tuple(_) => Value::Null,
    }
}

/// A map with values converted to one type, or unified if the type is `any`.
pub(super) fn map(
    entries: &BTreeMap<String, Raw>,
    element: &Type,
    path: &Path<'_>,
    errors: &mut ConfigErrors,
) -> BTreeMap<String, Value> {
    let converted = entries.iter();
    let mut values: BTreeMap<String, Value> =
        converted.map(|(key, raw)| (key.clone(), convert(raw, element, &path.key(key), errors))).collect();
    if *element == Type::Any {
        unify(values.values_mut().zip(entries.values()), path, errors);
    }
    values
}

fn object(
    entries: &BTreeMap<String, Raw>,
    kinds: &BTreeMap<String, Type>,
    path: &Path<'_>,
    errors: &mut ConfigErrors,
) -> Value {
    for key in entries.keys().filter(|key| !kinds.contains_key(*key)) {
        let closest = closest(key, kinds.keys().map(String::as_str));
        let known = kinds.keys().cloned().collect();
        errors.add(path.key(key), ConfigProblem::Unknown { known, closest });
    }
    let converted = kinds.iter().map(|(key, kind)| {
        let path = path.key(key);
        let value = match entries.get(key) {
            Some(raw) => convert(raw, kind, &path, errors),
            None => {
                errors.add(path, ConfigProblem::Missing { expected: format!("a {kind}") });
                Value::Null
            }
        };
        (key.clone(), value)
    });
    Value::Map(converted.collect())
}

/// The conversions between strings, numbers and bools.
fn primitive(raw: &Raw, kind: &Type) -> Option<Value> {
    match (kind, raw) {
        (Type::String, Raw::String(text)) => Some(Value::String(text.clone())),
        (Type::String, Raw::Number(number)) => Some(Value::String(number.to_string())),
        (Type::String, Raw::Bool(bool)) => Some(Value::String(bool.to_string())),
        (Type::Number, Raw::Number(number)) => Some(Value::Number(*number)),
        (Type::Number, Raw::String(text)) => Number::from_text(text).map(Value::Number),
        (Type::Bool, Raw::Bool(bool)) => Some(Value::Bool(*bool)),
        (Type::Bool, Raw::String(text)) => match text.as_str() {
            "true" | "1" => Some(Value::Bool(true)),
            "false" | "0" => Some(Value::Bool(false)),
            _ => None,
        },
        _ => None,
    }
}

fn refuse(raw: &Raw, kind: &Type, path: &Path<'_>, errors: &mut ConfigErrors) -> Value {
    let hint = match (kind, raw) {
        (Type::Bool, Raw::String(_)) => " that is neither \"true\" nor \"false\"",
        (Type::Number, Raw::String(_)) => " that spells no number in 64 bits",
        _ => "",
    };
    let expected = match kind {
        Type::Tuple(kinds) => format!("{kind}, that is a list of {}", kinds.len()),
        kind => kind.to_string(),
    };
    let found = format!("{}{hint}", raw.described());
    errors.add(path, ConfigProblem::WrongType { expected, found });
    Value::Null
}

/// Unifies values of type `any`: numbers and bools become strings if there is a string; other types do not mix.
fn unify<'a>(
    values: impl Iterator<Item = (&'a mut Value, &'a Raw)>,
    path: &Path<'_>,
    errors: &mut ConfigErrors,
) {
    let all: Vec<_> = values.filter(|(_, raw)| **raw != Raw::Null).collect();
    let Some(first) = all.first().map(|(_, raw)| *raw) else { return };
    let is_text = all.iter().any(|(_, raw)| matches!(raw, Raw::String(_)));
    for (value, raw) in all {
        let text = if is_text { primitive(raw, &Type::String) } else { None };
        match text {
            Some(text) => *value = text,
            None if !is_text && std::mem::discriminant(raw) == std::mem::discriminant(first) => {}
            None => {
                let (first, other) = (first.described(), raw.described());
                errors.add(path, ConfigProblem::NoCommonType { first, other });
                return;
            }
        }
    }
}

/// Removes duplicates. Strings, numbers and bools are sorted, as in HCL sets; other values keep their order.
pub(super) fn as_set(mut values: Vec<Value>) -> Vec<Value> {
    values.sort_by(order);
    let mut once: Vec<Value> = Vec::with_capacity(values.len());
    for value in values {
        let is_new = match &value {
            // Equal values are adjacent.
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => once.last() != Some(&value),
            Value::List(_) | Value::Map(_) => !once.contains(&value),
        };
        if is_new {
            once.push(value);
        }
    }
    once
}

fn order(one: &Value, other: &Value) -> Ordering {
    let is_nothing = |value: &Value| matches!(value, Value::Null);
    match (one, other) {
        (Value::Bool(one), Value::Bool(other)) => one.cmp(other),
        (Value::String(one), Value::String(other)) => one.cmp(other),
        (Value::Number(one), Value::Number(other)) => number_order(*one, *other),
        // Values of one set have one type, and nulls come last; the sort is stable.
        _ => is_nothing(one).cmp(&is_nothing(other)),
    }
}

#[allow(clippy::cast_precision_loss, reason = "a fraction lies below 2^53, where whole numbers are exact")]
fn number_order(one: Number, other: Number) -> Ordering {
    match (one, other) {
        (Number::Integer(one), Number::Integer(other)) => one.cmp(&other),
        (Number::Float(one), Number::Float(other)) => one.total_cmp(&other),
        (Number::Integer(one), Number::Float(other)) => (one as f64).total_cmp(&other),
        (Number::Float(one), Number::Integer(other)) => one.total_cmp(&(other as f64)),
    }
}
