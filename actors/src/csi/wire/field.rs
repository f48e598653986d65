//! Converts values between our types and the types of the wire.

use std::collections::{BTreeMap, HashMap};

use crate::csi::Secrets;
use crate::csi::rules::fault;
use crate::rpc::{Fault, Problem};

/// The field that is read, and the rule that is broken if it cannot be read.
#[derive(Debug, Clone, Copy)]
pub(super) struct At {
    pub(super) rule: &'static str,
    pub(super) field: &'static str,
}

/// A type of ours that the type `W` of the wire carries, in both directions and without a loss (V10).
pub(super) trait Field<W>: Sized {
    /// The value as the wire has it.
    fn put(&self) -> W;

    /// The value as our type. A message knows the rules of its own fields; `at` is for all other types.
    fn take(value: W, at: At) -> Result<Self, Fault>;
}

/// Types that are the same on both sides.
macro_rules! same {
    ($($type:ty),*) => {$(
        impl Field<$type> for $type {
            fn put(&self) -> $type {
                self.clone()
            }

            fn take(value: $type, _: At) -> Result<Self, Fault> {
                Ok(value)
            }
        }
    )*};
}
same!(String, bool);

/// Numbers, which the wire has with a sign. Numbers above the limit of the wire become that limit.
macro_rules! number {
    ($($ours:ty = $wire:ty),*) => {$(
        impl Field<$wire> for $ours {
            fn put(&self) -> $wire {
                <$wire>::try_from(*self).unwrap_or(<$wire>::MAX)
            }

            fn take(value: $wire, At { rule, field }: At) -> Result<Self, Fault> {
                Self::try_from(value).map_err(|_| fault(rule, field, Problem::Negative { value: value.into() }))
            }
        }
    )*};
}
number!(u64 = i64, u32 = i32);

/// An optional text.
impl Field<String> for Option<String> {
    fn put(&self) -> String {
        self.clone().unwrap_or_default()
    }

    fn take(text: String, _: At) -> Result<Self, Fault> {
        Ok((!text.is_empty()).then_some(text))
    }
}

impl Field<HashMap<String, String>> for BTreeMap<String, String> {
    fn put(&self) -> HashMap<String, String> {
        self.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    fn take(entries: HashMap<String, String>, _: At) -> Result<Self, Fault> {
        Ok(entries.into_iter().collect())
    }
}

impl Field<HashMap<String, String>> for Secrets {
    fn put(&self) -> HashMap<String, String> {
        self.expose().put()
    }

    fn take(entries: HashMap<String, String>, at: At) -> Result<Self, Fault> {
        BTreeMap::take(entries, at).map(Self::new)
    }
}

impl<T: Field<W>, W> Field<Vec<W>> for Vec<T> {
    fn put(&self) -> Vec<W> {
        self.iter().map(T::put).collect()
    }

    fn take(values: Vec<W>, at: At) -> Result<Self, Fault> {
        values.into_iter().map(|value| T::take(value, at)).collect()
    }
}

impl<T: Field<W>, W> Field<Option<W>> for Option<T> {
    fn put(&self) -> Option<W> {
        self.as_ref().map(T::put)
    }

    fn take(value: Option<W>, at: At) -> Result<Self, Fault> {
        value.map(|value| T::take(value, at)).transpose()
    }
}

/// Takes a required part.
pub(super) fn required<T: Field<W>, W>(part: Option<W>, at: At) -> Result<T, Fault> {
    let At { rule, field } = at;
    T::take(part.ok_or(fault(rule, field, Problem::Empty))?, at)
}

/// The rule of a field. A field without a rule can only break the rules of its parts.
macro_rules! rule {
    () => {
        "C011"
    };
    ($rule:literal) => {
        $rule
    };
}
pub(super) use rule;

/// A message and its fields, which have the same names on both sides. A field that can break a rule has that rule beside it.
macro_rules! message {
    ($ours:ident = $wire:path { $($field:ident $(: $rule:literal)?),* $(,)? }) => {
        impl $crate::csi::wire::field::Field<$wire> for $ours {
            fn put(&self) -> $wire {
                $wire { $($field: $crate::csi::wire::field::Field::put(&self.$field)),* }
            }

            fn take(
                message: $wire,
                _: $crate::csi::wire::field::At,
            ) -> Result<Self, $crate::rpc::Fault> {
                Ok(Self { $($field: {
                    let rule = $crate::csi::wire::field::rule!($($rule)?);
                    let at = $crate::csi::wire::field::At { rule, field: stringify!($field) };
                    $crate::csi::wire::field::Field::take(message.$field, at)?
                }),* })
            }
        }
    };
}
pub(super) use message;

/// Messages that are required parts of other messages.
macro_rules! required_part {
    ($($ours:ty = $wire:ty),* $(,)?) => {$(
        impl $crate::csi::wire::field::Field<Option<$wire>> for $ours {
            fn put(&self) -> Option<$wire> {
                Some($crate::csi::wire::field::Field::put(self))
            }

            fn take(
                part: Option<$wire>,
                at: $crate::csi::wire::field::At,
            ) -> Result<Self, $crate::rpc::Fault> {
                $crate::csi::wire::field::required::<Self, $wire>(part, at)
            }
        }
    )*};
}
pub(super) use required_part;

/// Messages with one field, which is the whole answer.
macro_rules! single_field {
    ($($ours:ty = $wire:path { $field:ident: $rule:literal }),* $(,)?) => {$(
        impl $crate::csi::wire::field::Field<$wire> for $ours {
            fn put(&self) -> $wire {
                $wire { $field: $crate::csi::wire::field::Field::put(self) }
            }

            fn take(
                message: $wire,
                _: $crate::csi::wire::field::At,
            ) -> Result<Self, $crate::rpc::Fault> {
                let at = $crate::csi::wire::field::At { rule: $rule, field: stringify!($field) };
                $crate::csi::wire::field::Field::take(message.$field, at)
            }
        }
    )*};
}
pub(super) use single_field;

/// Answers without a field.
macro_rules! empty {
    ($($wire:path),* $(,)?) => {$(
        impl $crate::csi::wire::field::Field<$wire> for () {
            fn put(&self) -> $wire {
                $wire {}
            }

            fn take(_: $wire, _: $crate::csi::wire::field::At) -> Result<Self, $crate::rpc::Fault> {
                Ok(())
            }
        }
    )*};
}
pub(super) use empty;
