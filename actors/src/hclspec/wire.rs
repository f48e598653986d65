//! Converts the schema of a plugin from its wire format, and validates it.

use callboard_proto::hclspec as wire;
use wire::spec::Block;

use super::expression::{parse_literal, parse_type};
use super::kind::Type;
use super::path::Path;
use super::schema::{
    ItemLimits, MalformedSchema, SCHEMA_DEPTH_MAX, SCHEMA_NODES_MAX, Schema, SchemaProblem, Spec,
};

const SHOWN_CHARACTERS_MAX: usize = 120;

impl Schema {
    /// Converts a plugin's schema (D113).
    ///
    /// # Errors
    /// When it is malformed, too deep or too large, with the path.
    pub fn from_wire(spec: &wire::Spec) -> Result<Self, MalformedSchema> {
        let mut reading = Reading { nodes: 0 };
        let root = reading.spec(spec, "", &Path::root("schema"), 0)?;
        Ok(Self { root })
    }

    /// The schema of a plugin that takes no configuration.
    #[must_use]
    pub fn nothing() -> Self {
        Self { root: Spec::Object(Default::default()) }
    }
}

struct Reading {
    nodes: usize,
}

type Read<T> = Result<T, MalformedSchema>;

fn malformed<T>(path: &Path<'_>, problem: SchemaProblem) -> Read<T> {
    Err(MalformedSchema { path: path.to_string(), problem })
}

impl Reading {
    /// Converts one node. Within an object, its key is the default for a missing name.
    fn spec(&mut self, spec: &wire::Spec, key: &str, path: &Path<'_>, depth: usize) -> Read<Spec> {
        self.nodes += 1;
        if self.nodes > SCHEMA_NODES_MAX {
            return malformed(path, SchemaProblem::TooLarge);
        }
        if depth > SCHEMA_DEPTH_MAX {
            return malformed(path, SchemaProblem::TooDeep);
        }
        let Some(block) = &spec.block else { return malformed(path, SchemaProblem::Empty) };
        let read = match block {
            Block::Object(object) => self.object(object, path, depth)?,
            Block::Array(array) => self.array(array, path, depth)?,
            Block::Attr(attr) => Spec::Attribute {
                name: name("attr", &attr.name, key, path)?,
                kind: kind(&attr.r#type, path)?,
                is_required: attr.required,
            },
            Block::BlockAttrs(block) => Spec::BlockAttributes {
                name: name("block_attrs", &block.name, key, path)?,
                element: kind(&block.r#type, path)?,
                is_required: block.required,
            },
            Block::BlockValue(block) => {
                let name = name("block", &block.name, key, path)?;
                let nested = self.nested("block", block.nested.as_deref(), &name, path, depth)?;
                Spec::Block { name, is_required: block.required, nested }
            }
            Block::BlockList(block) => {
                let name = name("block_list", &block.name, key, path)?;
                let items = items(block.min_items, block.max_items, path)?;
                let nested = self.nested("block_list", block.nested.as_deref(), &name, path, depth)?;
                Spec::BlockList { name, items, nested }
            }
            Block::BlockSet(block) => {
                let name = name("block_set", &block.name, key, path)?;
                let items = items(block.min_items, block.max_items, path)?;
                let nested = self.nested("block_set", block.nested.as_deref(), &name, path, depth)?;
                Spec::BlockSet { name, items, nested }
            }
            Block::BlockMap(block) => self.block_map(block, key, path, depth)?,
            Block::Default(default) => self.default(default, path, depth)?,
            Block::Literal(literal) => Spec::Literal(
                parse_literal(&literal.value)
                    .or_else(|why| malformed(path, SchemaProblem::BadLiteral(shown(&why))))?,
            ),
        };
        match ambiguous(&read) {
            Some(name) => malformed(path, SchemaProblem::Ambiguous(name)),
            None => Ok(read),
        }
    }

    fn object(&mut self, object: &wire::Object, path: &Path<'_>, depth: usize) -> Read<Spec> {
        let mut attributes: Vec<_> = object.attributes.iter().collect();
        attributes.sort_by_key(|(key, _)| *key);
        let specs = attributes.into_iter().map(|(key, spec)| {
            self.spec(spec, key, &path.key(key), depth + 1).map(|spec| (key.clone(), spec))
        });
        specs.collect::<Result<_, _>>().map(Spec::Object)
    }

    fn array(&mut self, array: &wire::Array, path: &Path<'_>, depth: usize) -> Read<Spec> {
        let specs = array.values.iter().enumerate();
        let specs = specs.map(|(place, spec)| self.spec(spec, "", &path.place(place), depth + 1));
        specs.collect::<Result<_, _>>().map(Spec::Array)
    }

    fn nested(
        &mut self,
        what: &'static str,
        nested: Option<&wire::Spec>,
        name: &str,
        path: &Path<'_>,
        depth: usize,
    ) -> Read<Box<Spec>> {
        let Some(nested) = nested else { return malformed(path, SchemaProblem::NothingNested(what)) };
        self.spec(nested, "", &path.key(name), depth + 1).map(Box::new)
    }

    fn block_map(&mut self, block: &wire::BlockMap, key: &str, path: &Path<'_>, depth: usize) -> Read<Spec> {
        let name = name("block_map", &block.name, key, path)?;
        let nested = self.nested("block_map", block.nested.as_deref(), &name, path, depth)?;
        if block.labels.is_empty() {
            return malformed(path, SchemaProblem::NoLabels);
        }
        if block.labels.len() > SCHEMA_DEPTH_MAX {
            return malformed(path, SchemaProblem::TooDeep);
        }
        if nested.holds_any() {
            return malformed(path, SchemaProblem::AnyInMap);
        }
        Ok(Spec::BlockMap { name, labels: block.labels.clone(), nested })
    }

    fn default(&mut self, default: &wire::Default, path: &Path<'_>, depth: usize) -> Read<Spec> {
        let (Some(primary), Some(fallback)) = (&default.primary, &default.default) else {
            return malformed(path, SchemaProblem::NothingNested("default"));
        };
        let primary = self.spec(primary, "", &path.key("primary"), depth + 1)?;
        let fallback = self.spec(fallback, "", &path.key("default"), depth + 1)?;
        if !fallback.names().blocks.is_empty() {
            return malformed(path, SchemaProblem::BlockAsDefault);
        }
        Ok(Spec::Default { primary: Box::new(primary), fallback: Box::new(fallback) })
    }
}

fn name(what: &'static str, name: &str, key: &str, path: &Path<'_>) -> Read<String> {
    match if name.is_empty() { key } else { name } {
        "" => malformed(path, SchemaProblem::Unnamed(what)),
        name => Ok(name.to_owned()),
    }
}

fn kind(text: &str, path: &Path<'_>) -> Read<Type> {
    parse_type(text).map_or_else(|| malformed(path, SchemaProblem::UnknownType(shown(text))), Ok)
}

/// Zero means no limit.
fn items(least: u64, most: u64, path: &Path<'_>) -> Read<ItemLimits> {
    match most {
        0 => Ok(ItemLimits { least, most: None }),
        most if most < least => malformed(path, SchemaProblem::ImpossibleItems { least, most }),
        most => Ok(ItemLimits { least, most: Some(most) }),
    }
}

/// A name that one body would use both for an attribute and for a block.
fn ambiguous(spec: &Spec) -> Option<String> {
    let names = spec.names();
    names.blocks.iter().find(|name| names.attributes.contains_key(*name)).map(|name| (*name).to_owned())
}

fn shown(text: &str) -> String {
    text.chars().take(SHOWN_CHARACTERS_MAX).collect()
}
