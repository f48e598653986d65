//! Decoded values, and their encoding on the wire.

use std::collections::BTreeMap;
use std::fmt;

use rmp::encode;

/// The first number above the range of signed 64-bit integers; exact as a float.
const INTEGERS_END: f64 = 9_223_372_036_854_775_808.0;

/// A number as in HCL: an integer if possible.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// An integer.
    Integer(i64),
    /// A fraction, or a number out of range for [`Number::Integer`]; always finite.
    Float(f64),
}

impl Number {
    /// Converts a float, to an integer if possible. `None` if it is not finite.
    #[must_use]
    pub fn from_float(float: f64) -> Option<Self> {
        if !float.is_finite() {
            return None;
        }
        let is_integer = float.fract() == 0.0 && (-INTEGERS_END..INTEGERS_END).contains(&float);
        #[allow(clippy::cast_possible_truncation, reason = "it is whole and in range")]
        Some(if is_integer { Self::Integer(float as i64) } else { Self::Float(float) })
    }

    /// Parses a number as HCL converts a string: decimal, with sign, fraction and exponent. `None` for anything else.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        if let Ok(integer) = text.parse() {
            return Some(Self::Integer(integer));
        }
        // Integers out of range are not rounded. Rust also parses infinity and NaN, which are refused.
        let is_whole = text.trim_start_matches(['+', '-']).chars().all(|c| c.is_ascii_digit());
        let float = text.parse().ok().filter(|_| !is_whole)?;
        Self::from_float(float)
    }
}

impl fmt::Display for Number {
    /// Without exponent, as HCL converts a number to a string.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(integer) => write!(f, "{integer}"),
            Self::Float(float) => write!(f, "{float}"),
        }
    }
}

/// A configuration that matches its schema, with all defaults filled in.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Value {
    /// Null: no value was given. Go plugins keep the zero value of such a field.
    #[default]
    Null,
    /// A bool.
    Bool(bool),
    /// A number.
    Number(Number),
    /// A string.
    String(String),
    /// A list, a tuple, or a sorted set.
    List(Vec<Value>),
    /// A map, an object, or a block.
    Map(BTreeMap<String, Value>),
}

impl Value {
    /// Encodes the value as msgpack, byte for byte as Nomad does: null is nil, numbers in shortest form, keys in order.
    #[must_use]
    pub fn to_msgpack(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.write(&mut bytes);
        bytes
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        let written = match self {
            Self::Null => encode::write_nil(bytes).map_err(drop),
            Self::Bool(bool) => encode::write_bool(bytes, *bool).map_err(drop),
            Self::Number(Number::Integer(integer)) => {
                encode::write_sint(bytes, *integer).map(drop).map_err(drop)
            }
            Self::Number(Number::Float(float)) => encode::write_f64(bytes, *float).map_err(drop),
            Self::String(text) => encode::write_str(bytes, text).map_err(drop),
            Self::List(values) => {
                encode::write_array_len(bytes, length(values.len())).map(drop).map_err(drop)
            }
            Self::Map(entries) => encode::write_map_len(bytes, length(entries.len())).map(drop).map_err(drop),
        };
        written.expect("a vector takes everything that is written to it");
        match self {
            Self::List(values) => values.iter().for_each(|value| value.write(bytes)),
            Self::Map(entries) => {
                for (key, value) in entries {
                    encode::write_str(bytes, key).expect("a vector takes everything that is written to it");
                    value.write(bytes);
                }
            }
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::String(_) => {}
        }
    }
}

fn length(length: usize) -> u32 {
    u32::try_from(length).expect("configurations and schemas are limited far below this")
}
