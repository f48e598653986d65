//! Checks the schema of a plugin.

use std::collections::BTreeMap;

use super::expression::{parse_literal, parse_type};
use super::kind::Type;
use super::path::Path;
use super::schema::{
    ItemLimits, MalformedSchema, SCHEMA_DEPTH_MAX, SCHEMA_NODES_MAX, Schema, SchemaProblem, Spec,
};
use super::sent::SentSpec;

const SHOWN_CHARACTERS_MAX: usize = 120;

impl Schema {
    /// Checks a plugin's schema (D113).
    ///
    /// # Errors
    /// When it is malformed, too deep or too large, with the path.
    pub fn from_sent(sent: &SentSpec) -> Result<Self, MalformedSchema> {
        let mut reading = Reading { nodes: 0 };
        let root = reading.spec(sent, "", &Path::root("schema"), 0)?;
        Ok(Self { root })
    }

    /// The schema of a plugin that takes no configuration.
    #[must_use]
    pub fn nothing() -> Self {
        Self { root: Spec::Object(BTreeMap::new()) }
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
    /// Checks one node. Within an object, its key is the default for a missing name.
    fn spec(&mut self, sent: &SentSpec, key: &str, path: &Path<'_>, depth: usize) -> Read<Spec> {
        self.nodes += 1;
        if self.nodes > SCHEMA_NODES_MAX {
            return malformed(path, SchemaProblem::TooLarge);
        }
        if depth > SCHEMA_DEPTH_MAX {
            return malformed(path, SchemaProblem::TooDeep);
        }
        let read = match sent {
            SentSpec::Empty => return malformed(path, SchemaProblem::Empty),
            SentSpec::Object(sent) => self.object(sent, path, depth)?,
            SentSpec::Array(sent) => self.array(sent, path, depth)?,
            SentSpec::Attribute { name, kind, is_required } => Spec::Attribute {
                name: named("attr", name, key, path)?,
                kind: read_kind(kind, path)?,
                is_required: *is_required,
            },
            SentSpec::BlockAttributes { name, kind, is_required } => Spec::BlockAttributes {
                name: named("block_attrs", name, key, path)?,
                element: read_kind(kind, path)?,
                is_required: *is_required,
            },
            SentSpec::Block { name, is_required, nested } => {
                let name = named("block", name, key, path)?;
                let nested = self.nested("block", nested.as_deref(), &name, path, depth)?;
                Spec::Block { name, is_required: *is_required, nested }
            }
            SentSpec::BlockList { name, least, most, nested } => {
                let name = named("block_list", name, key, path)?;
                let items = items(*least, *most, path)?;
                let nested = self.nested("block_list", nested.as_deref(), &name, path, depth)?;
                Spec::BlockList { name, items, nested }
            }
            SentSpec::BlockSet { name, least, most, nested } => {
                let name = named("block_set", name, key, path)?;
                let items = items(*least, *most, path)?;
                let nested = self.nested("block_set", nested.as_deref(), &name, path, depth)?;
                Spec::BlockSet { name, items, nested }
            }
            SentSpec::BlockMap { name, labels, nested } => {
                let name = named("block_map", name, key, path)?;
                self.block_map(name, labels, nested.as_deref(), path, depth)?
            }
            SentSpec::Default { primary, fallback } => {
                self.default(primary.as_deref(), fallback.as_deref(), path, depth)?
            }
            SentSpec::Literal(text) => Spec::Literal(
                parse_literal(text).or_else(|why| malformed(path, SchemaProblem::BadLiteral(shown(&why))))?,
            ),
        };
        match ambiguous(&read) {
            Some(name) => malformed(path, SchemaProblem::Ambiguous(name)),
            None => Ok(read),
        }
    }

    fn object(&mut self, sent: &BTreeMap<String, SentSpec>, path: &Path<'_>, depth: usize) -> Read<Spec> {
        let specs = sent.iter().map(|(key, sent)| {
            self.spec(sent, key, &path.key(key), depth + 1).map(|spec| (key.clone(), spec))
        });
        specs.collect::<Result<_, _>>().map(Spec::Object)
    }

    fn array(&mut self, sent: &[SentSpec], path: &Path<'_>, depth: usize) -> Read<Spec> {
        let specs = sent.iter().enumerate();
        let specs = specs.map(|(place, sent)| self.spec(sent, "", &path.place(place), depth + 1));
        specs.collect::<Result<_, _>>().map(Spec::Array)
    }

    fn nested(
        &mut self,
        what: &'static str,
        nested: Option<&SentSpec>,
        name: &str,
        path: &Path<'_>,
        depth: usize,
    ) -> Read<Box<Spec>> {
        let Some(nested) = nested else { return malformed(path, SchemaProblem::NothingNested(what)) };
        self.spec(nested, "", &path.key(name), depth + 1).map(Box::new)
    }

    fn block_map(
        &mut self,
        name: String,
        labels: &[String],
        nested: Option<&SentSpec>,
        path: &Path<'_>,
        depth: usize,
    ) -> Read<Spec> {
        let nested = self.nested("block_map", nested, &name, path, depth)?;
        if labels.is_empty() {
            return malformed(path, SchemaProblem::NoLabels);
        }
        if labels.len() > SCHEMA_DEPTH_MAX {
            return malformed(path, SchemaProblem::TooDeep);
        }
        if nested.holds_any() {
            return malformed(path, SchemaProblem::AnyInMap);
        }
        Ok(Spec::BlockMap { name, labels: labels.to_vec(), nested })
    }

    fn default(
        &mut self,
        primary: Option<&SentSpec>,
        fallback: Option<&SentSpec>,
        path: &Path<'_>,
        depth: usize,
    ) -> Read<Spec> {
        let (Some(primary), Some(fallback)) = (primary, fallback) else {
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

fn named(what: &'static str, name: &str, key: &str, path: &Path<'_>) -> Read<String> {
    match if name.is_empty() { key } else { name } {
        "" => malformed(path, SchemaProblem::Unnamed(what)),
        name => Ok(name.to_owned()),
    }
}

fn read_kind(text: &str, path: &Path<'_>) -> Read<Type> {
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
