//! The type expressions of a schema.

use std::collections::BTreeMap;
use std::fmt;

/// The type of an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Type {
    /// Any value, unchanged.
    Any,
    /// A string.
    String,
    /// A number.
    Number,
    /// A bool.
    Bool,
    /// An ordered list of values of one type.
    List(Box<Type>),
    /// A set of values of one type.
    Set(Box<Type>),
    /// A map with values of one type.
    Map(Box<Type>),
    /// An object with these keys, each with its type; all are required.
    Object(BTreeMap<String, Type>),
    /// One value per type, in order.
    Tuple(Vec<Type>),
}

impl Type {
    /// Whether it contains `any`.
    #[must_use]
    pub fn holds_any(&self) -> bool {
        match self {
            Self::Any => true,
            Self::String | Self::Number | Self::Bool => false,
            Self::List(element) | Self::Set(element) | Self::Map(element) => element.holds_any(),
            Self::Object(types) => types.values().any(Self::holds_any),
            Self::Tuple(types) => types.iter().any(Self::holds_any),
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("any"),
            Self::String => f.write_str("string"),
            Self::Number => f.write_str("number"),
            Self::Bool => f.write_str("bool"),
            Self::List(element) => write!(f, "list({element})"),
            Self::Set(element) => write!(f, "set({element})"),
            Self::Map(element) => write!(f, "map({element})"),
            Self::Object(types) => {
                let types: Vec<String> = types.iter().map(|(key, kind)| format!("{key} = {kind}")).collect();
                write!(f, "object({{{}}})", types.join(", "))
            }
            Self::Tuple(types) => {
                let types: Vec<String> = types.iter().map(ToString::to_string).collect();
                write!(f, "tuple([{}])", types.join(", "))
            }
        }
    }
}
