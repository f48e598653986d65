//! Converts the schema of a plugin from its wire format.

use super::{MalformedSchema, Schema, SentSpec};
use callboard_proto::hclspec as wire;
use wire::spec::Block;

/// Converts a plugin's schema from the wire format, and checks it (D113).
///
/// # Errors
/// When it is malformed, too deep or too large, with the path.
pub fn schema_from_wire(spec: &wire::Spec) -> Result<Schema, MalformedSchema> {
    Schema::from_sent(&from_wire(spec))
}

/// Converts a plugin's schema without a check. Its depth is limited by the decoder of protobuf.
#[must_use]
pub fn from_wire(spec: &wire::Spec) -> SentSpec {
    let Some(block) = &spec.block else { return SentSpec::Empty };
    match block {
        Block::Object(object) => {
            let attributes = object.attributes.iter();
            SentSpec::Object(attributes.map(|(key, spec)| (key.clone(), from_wire(spec))).collect())
        }
        Block::Array(array) => SentSpec::Array(array.values.iter().map(from_wire).collect()),
        Block::Attr(attr) => SentSpec::Attribute {
            name: attr.name.clone(),
            kind: attr.r#type.clone(),
            is_required: attr.required,
        },
        Block::BlockValue(block) => SentSpec::Block {
            name: block.name.clone(),
            is_required: block.required,
            nested: nested(block.nested.as_deref()),
        },
        Block::BlockAttrs(block) => SentSpec::BlockAttributes {
            name: block.name.clone(),
            kind: block.r#type.clone(),
            is_required: block.required,
        },
        Block::BlockList(block) => SentSpec::BlockList {
            name: block.name.clone(),
            least: block.min_items,
            most: block.max_items,
            nested: nested(block.nested.as_deref()),
        },
        Block::BlockSet(block) => SentSpec::BlockSet {
            name: block.name.clone(),
            least: block.min_items,
            most: block.max_items,
            nested: nested(block.nested.as_deref()),
        },
        Block::BlockMap(block) => SentSpec::BlockMap {
            name: block.name.clone(),
            labels: block.labels.clone(),
            nested: nested(block.nested.as_deref()),
        },
        Block::Default(default) => SentSpec::Default {
            primary: nested(default.primary.as_deref()),
            fallback: nested(default.default.as_deref()),
        },
        Block::Literal(literal) => SentSpec::Literal(literal.value.clone()),
    }
}

fn nested(spec: Option<&wire::Spec>) -> Option<Box<SentSpec>> {
    spec.map(|spec| Box::new(from_wire(spec)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(block: Block) -> wire::Spec {
        wire::Spec { block: Some(block) }
    }

    fn literal(value: &str) -> Option<Box<wire::Spec>> {
        Some(Box::new(spec(Block::Literal(wire::Literal { value: value.into() }))))
    }

    #[test]
    fn every_kind_of_node_comes_over_with_all_its_fields_d113() {
        let name = || "n".to_owned();
        let read = || Some(Box::new(SentSpec::Literal("1".to_owned())));
        let sets = wire::BlockSet { name: name(), min_items: 3, max_items: 4, nested: literal("1") };
        let lists = wire::BlockList { name: name(), min_items: 1, max_items: 2, nested: literal("1") };
        let map = wire::BlockMap { name: name(), labels: vec!["l".into()], nested: literal("1") };
        let default = wire::Default { primary: literal("1"), default: None };
        for (block, expected) in [
            (
                Block::Attr(wire::Attr { name: name(), r#type: "bool".into(), required: true }),
                SentSpec::Attribute { name: name(), kind: "bool".to_owned(), is_required: true },
            ),
            (
                Block::BlockAttrs(wire::BlockAttrs { name: name(), r#type: "any".into(), required: true }),
                SentSpec::BlockAttributes { name: name(), kind: "any".to_owned(), is_required: true },
            ),
            (
                Block::BlockValue(Box::new(wire::Block {
                    name: name(),
                    required: true,
                    nested: literal("1"),
                })),
                SentSpec::Block { name: name(), is_required: true, nested: read() },
            ),
            (
                Block::BlockList(Box::new(lists)),
                SentSpec::BlockList { name: name(), least: 1, most: 2, nested: read() },
            ),
            (
                Block::BlockSet(Box::new(sets)),
                SentSpec::BlockSet { name: name(), least: 3, most: 4, nested: read() },
            ),
            (
                Block::BlockMap(Box::new(map)),
                SentSpec::BlockMap { name: name(), labels: vec!["l".to_owned()], nested: read() },
            ),
            (Block::Default(Box::new(default)), SentSpec::Default { primary: read(), fallback: None }),
            (
                Block::Array(wire::Array { values: vec![wire::Spec { block: None }] }),
                SentSpec::Array(vec![SentSpec::Empty]),
            ),
            (
                Block::Object(wire::Object { attributes: [(name(), *literal("1").unwrap())].into() }),
                SentSpec::Object([(name(), *read().unwrap())].into()),
            ),
        ] {
            assert_eq!(from_wire(&spec(block)), expected);
        }
        assert_eq!(from_wire(&wire::Spec { block: None }), SentSpec::Empty);
    }
}
