//! A schema that is well formed.

use std::collections::{BTreeMap, BTreeSet};

use super::kind::Type;
use super::value::Value;

/// How deep a schema may nest.
pub const SCHEMA_DEPTH_MAX: usize = 32;
/// How many nodes a schema may have.
pub const SCHEMA_NODES_MAX: usize = 4_096;

/// What a plugin's configuration must look like. It comes from the wire with [`Schema::from_wire`], and is well formed.
#[derive(Debug, Clone, PartialEq)]
pub struct Schema {
    pub(super) root: Spec,
}

impl Schema {
    /// What it says.
    #[must_use]
    pub const fn root(&self) -> &Spec {
        &self.root
    }
}

/// One node of a schema: how one value is made of a body, that is of the attributes and blocks between two braces.
#[derive(Debug, Clone, PartialEq)]
pub enum Spec {
    /// A map of values made of the same body, by key.
    Object(BTreeMap<String, Spec>),
    /// A list of values made of the same body.
    Array(Vec<Spec>),
    /// The value of an attribute, or nothing.
    Attribute {
        /// Its name.
        name: String,
        /// What it holds.
        kind: Type,
        /// Whether it must be there.
        is_required: bool,
    },
    /// What the one block of a name holds, or nothing.
    Block {
        /// Its name.
        name: String,
        /// Whether it must be there.
        is_required: bool,
        /// What is made of it.
        nested: Box<Spec>,
    },
    /// The attributes of the one block of a name as a map, or nothing.
    BlockAttributes {
        /// Its name.
        name: String,
        /// What each attribute holds.
        element: Type,
        /// Whether the block must be there.
        is_required: bool,
    },
    /// A list of what the blocks of a name hold.
    BlockList {
        /// Their name.
        name: String,
        /// How many there may be.
        items: ItemLimits,
        /// What is made of each.
        nested: Box<Spec>,
    },
    /// What the blocks of a name hold, each once.
    BlockSet {
        /// Their name.
        name: String,
        /// How many there may be.
        items: ItemLimits,
        /// What is made of each.
        nested: Box<Spec>,
    },
    /// What the blocks of a name hold, as maps of maps by their labels.
    BlockMap {
        /// Their name.
        name: String,
        /// What each label is called; at least one.
        labels: Vec<String>,
        /// What is made of each.
        nested: Box<Spec>,
    },
    /// The first of two that is not nothing.
    Default {
        /// What is taken if it is there.
        primary: Box<Spec>,
        /// What is taken otherwise.
        fallback: Box<Spec>,
    },
    /// A value of the plugin's own.
    Literal(Value),
}

/// How many blocks of a name there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ItemLimits {
    /// At least so many.
    pub least: u64,
    /// At most so many; `None` for no limit of the plugin's.
    pub most: Option<u64>,
}

/// A schema that no configuration could be checked against. The plugin is at fault and nothing on this side can mend it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the plugin's schema is malformed at {path}: {problem}; the plugin must be mended")]
pub struct MalformedSchema {
    /// Where in the schema, by the names of its attributes and blocks.
    pub path: String,
    /// What is wrong there.
    pub problem: SchemaProblem,
}

/// What is wrong with a schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaProblem {
    /// A node without content.
    #[error("it is empty where one of attr, block, literal and so on is needed")]
    Empty,
    /// A block that does not say what it holds.
    #[error("the {0} does not say what it holds")]
    NothingNested(&'static str),
    /// An attribute or block without a name.
    #[error("the {0} has no name")]
    Unnamed(&'static str),
    /// A type expression that cannot be understood.
    #[error(
        "the type {0:?} is none; a type is string, number, bool, any, list(..), set(..), map(..), object({{..}}) or tuple([..])"
    )]
    UnknownType(String),
    /// A literal that cannot be understood.
    #[error("the literal is no plain value: {0}")]
    BadLiteral(String),
    /// A map of blocks by no label.
    #[error("a block_map needs at least one label")]
    NoLabels,
    /// A map of blocks whose values could have different types.
    #[error("a block_map may not hold attributes of type any")]
    AnyInMap,
    /// A default that would itself be a block.
    #[error("the default of a default may not be made of blocks")]
    BlockAsDefault,
    /// More blocks are needed than allowed.
    #[error("at least {least} blocks are needed and at most {most} allowed")]
    ImpossibleItems {
        /// How many are needed.
        least: u64,
        /// How many are allowed.
        most: u64,
    },
    /// One name for two things.
    #[error("{0:?} names both an attribute and a block")]
    Ambiguous(String),
    /// It nests too deep.
    #[error("it nests deeper than {SCHEMA_DEPTH_MAX} levels")]
    TooDeep,
    /// It has too many nodes.
    #[error("it has more than {SCHEMA_NODES_MAX} nodes")]
    TooLarge,
}

/// The attributes and blocks that one body may have.
#[derive(Debug, Default)]
pub(super) struct Names<'a> {
    /// Each attribute, with its type, and whether it is required.
    pub(super) attributes: BTreeMap<&'a str, (&'a Type, bool)>,
    /// Each block.
    pub(super) blocks: BTreeSet<&'a str>,
}

impl Spec {
    /// The names that this node and those of the same body look for.
    pub(super) fn names(&self) -> Names<'_> {
        let mut names = Names::default();
        self.add_names(&mut names);
        names
    }

    fn add_names<'a>(&'a self, names: &mut Names<'a>) {
        match self {
            Self::Object(specs) => specs.values().for_each(|spec| spec.add_names(names)),
            Self::Array(specs) => specs.iter().for_each(|spec| spec.add_names(names)),
            Self::Attribute { name, kind, is_required } => {
                names.attributes.entry(name).or_insert((kind, false)).1 |= is_required;
            }
            Self::Block { name, .. }
            | Self::BlockAttributes { name, .. }
            | Self::BlockList { name, .. }
            | Self::BlockSet { name, .. }
            | Self::BlockMap { name, .. } => {
                names.blocks.insert(name);
            }
            Self::Default { primary, fallback } => {
                primary.add_names(names);
                fallback.add_names(names);
            }
            Self::Literal(_) => {}
        }
    }

    /// Whether its value may hold what is not known before: an attribute of type any.
    pub(super) fn holds_any(&self) -> bool {
        match self {
            Self::Object(specs) => specs.values().any(Self::holds_any),
            Self::Array(specs) => specs.iter().any(Self::holds_any),
            Self::Attribute { kind, .. } | Self::BlockAttributes { element: kind, .. } => kind.holds_any(),
            Self::Block { nested, .. }
            | Self::BlockList { nested, .. }
            | Self::BlockSet { nested, .. }
            | Self::BlockMap { nested, .. } => nested.holds_any(),
            Self::Default { primary, .. } => primary.holds_any(),
            Self::Literal(_) => false,
        }
    }
}
