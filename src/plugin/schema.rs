//! Schemas: how a plugin describes its configuration (D113).
//!
//! ```
//! use callboard::plugin::schema;
//!
//! let spec = schema::object([
//!     ("command", schema::required("command", "string")),
//!     ("args", schema::optional("args", "list(string)")),
//!     ("pull", schema::with_default(schema::optional("pull", "bool"), "true")),
//! ]);
//! # assert!(spec.block.is_some());
//! ```

use callboard_proto::hclspec::spec::Block as Part;
use callboard_proto::hclspec::{
    Array, Attr, Block, BlockAttrs, BlockList, BlockMap, BlockSet, Default as DefaultSpec, Literal, Object,
    Spec,
};

const fn spec(part: Part) -> Spec {
    Spec { block: Some(part) }
}

fn boxed(nested: Spec) -> Option<Box<Spec>> {
    Some(Box::new(nested))
}

/// An object with these fields, each decoded by its own schema.
#[must_use]
pub fn object<'n>(fields: impl IntoIterator<Item = (&'n str, Spec)>) -> Spec {
    let attributes = fields.into_iter().map(|(name, field)| (name.to_owned(), field)).collect();
    spec(Part::Object(Object { attributes }))
}

/// A tuple of values, each decoded by its own schema.
#[must_use]
pub fn array(values: impl IntoIterator<Item = Spec>) -> Spec {
    spec(Part::Array(Array { values: values.into_iter().collect() }))
}

/// A required attribute. The type is an expression such as `string`, `number`, `bool` or `list(string)`.
#[must_use]
pub fn required(name: &str, value_type: &str) -> Spec {
    attribute(name, value_type, true)
}

/// An optional attribute; the type is as for [`required`].
#[must_use]
pub fn optional(name: &str, value_type: &str) -> Spec {
    attribute(name, value_type, false)
}

fn attribute(name: &str, value_type: &str, required: bool) -> Spec {
    spec(Part::Attr(Attr { name: name.to_owned(), r#type: value_type.to_owned(), required }))
}

/// One nested block of this name.
#[must_use]
pub fn block(name: &str, required: bool, nested: Spec) -> Spec {
    spec(Part::BlockValue(Box::new(Block { name: name.to_owned(), required, nested: boxed(nested) })))
}

/// One nested block of this name, all of whose attributes have one type.
#[must_use]
pub fn block_attributes(name: &str, value_type: &str, required: bool) -> Spec {
    spec(Part::BlockAttrs(BlockAttrs { name: name.to_owned(), r#type: value_type.to_owned(), required }))
}

/// Nested blocks of this name, in order, between `min_items` and `max_items` of them; 0 means no limit.
#[must_use]
pub fn block_list(name: &str, min_items: u64, max_items: u64, nested: Spec) -> Spec {
    let list = BlockList { name: name.to_owned(), min_items, max_items, nested: boxed(nested) };
    spec(Part::BlockList(Box::new(list)))
}

/// Nested blocks of this name, unordered; 0 means no limit.
#[must_use]
pub fn block_set(name: &str, min_items: u64, max_items: u64, nested: Spec) -> Spec {
    let set = BlockSet { name: name.to_owned(), min_items, max_items, nested: boxed(nested) };
    spec(Part::BlockSet(Box::new(set)))
}

/// Nested blocks of this name, keyed by their labels.
#[must_use]
pub fn block_map<'n>(name: &str, labels: impl IntoIterator<Item = &'n str>, nested: Spec) -> Spec {
    let labels = labels.into_iter().map(str::to_owned).collect();
    spec(Part::BlockMap(Box::new(BlockMap { name: name.to_owned(), labels, nested: boxed(nested) })))
}

/// The value of `primary`, else that of this expression, such as `"a text"` with its quotes, `5` or `true`.
#[must_use]
pub fn with_default(primary: Spec, expression: &str) -> Spec {
    let default = boxed(literal(expression));
    spec(Part::Default(Box::new(DefaultSpec { primary: boxed(primary), default })))
}

/// The value of this expression; the configuration has no influence.
#[must_use]
pub fn literal(expression: &str) -> Spec {
    spec(Part::Literal(Literal { value: expression.to_owned() }))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use callboard_actors::hclspec::{ItemLimits, Spec as Read, Type, Value, schema_from_wire};

    use super::*;

    #[test]
    fn a_host_reads_each_kind_of_schema_as_it_was_meant_d113() {
        let text = || optional("a", "string");
        let spec = object([
            ("array", array([required("b", "number"), literal("\"none\"")])),
            ("block", block("c", true, text())),
            ("attributes", block_attributes("d", "bool", true)),
            ("list", block_list("e", 1, 2, text())),
            ("set", block_set("f", 3, 0, text())),
            ("map", block_map("g", ["x", "y"], text())),
            ("default", with_default(optional("h", "list(string)"), "null")),
        ]);
        let nested =
            || Box::new(Read::Attribute { name: "a".to_owned(), kind: Type::String, is_required: false });
        let attribute =
            |name: &str, kind, is_required| Read::Attribute { name: name.to_owned(), kind, is_required };
        let list = Type::List(Box::new(Type::String));
        let none = Read::Literal(Value::String("none".to_owned()));
        let expected = [
            ("array", Read::Array(vec![attribute("b", Type::Number, true), none])),
            ("block", Read::Block { name: "c".to_owned(), is_required: true, nested: nested() }),
            (
                "attributes",
                Read::BlockAttributes { name: "d".to_owned(), element: Type::Bool, is_required: true },
            ),
            (
                "list",
                Read::BlockList {
                    name: "e".to_owned(),
                    items: ItemLimits { least: 1, most: Some(2) },
                    nested: nested(),
                },
            ),
            (
                "set",
                Read::BlockSet {
                    name: "f".to_owned(),
                    items: ItemLimits { least: 3, most: None },
                    nested: nested(),
                },
            ),
            (
                "map",
                Read::BlockMap {
                    name: "g".to_owned(),
                    labels: vec!["x".to_owned(), "y".to_owned()],
                    nested: nested(),
                },
            ),
            (
                "default",
                Read::Default {
                    primary: Box::new(attribute("h", list, false)),
                    fallback: Box::new(Read::Literal(Value::Null)),
                },
            ),
        ];
        let expected: BTreeMap<_, _> =
            expected.into_iter().map(|(name, read)| (name.to_owned(), read)).collect();
        assert_eq!(schema_from_wire(&spec).unwrap().root(), &Read::Object(expected));
    }
}
