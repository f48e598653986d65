//! A schema that is well formed.

use std::collections::{BTreeMap, BTreeSet};

use super::kind::Type;
use super::value::Value;

/// The nesting limit of a schema.
pub const SCHEMA_DEPTH_MAX: usize = 32;
/// The limit of nodes in a schema.
pub const SCHEMA_NODES_MAX: usize = 4_096;

/// A plugin's configuration schema. It is created with [`Schema::from_sent`], and is well formed.
#[derive(Debug, Clone, PartialEq)]
pub struct Schema {
    pub(super) root: Spec,
}

impl Schema {
    /// The root node.
    #[must_use]
    pub const fn root(&self) -> &Spec {
        &self.root
    }
}

/// One node of a schema: how one value is decoded from a body, that is from the attributes and blocks between two braces.
#[derive(Debug, Clone, PartialEq)]
pub enum Spec {
    /// A map of values decoded from the same body, by key.
    Object(BTreeMap<String, Spec>),
    /// A list of values decoded from the same body.
    Array(Vec<Spec>),
    /// The value of an attribute, or null.
    Attribute {
        /// Its name.
        name: String,
        /// Its type.
        kind: Type,
        /// Whether it is required.
        is_required: bool,
    },
    /// The content of the only block with a name, or null.
    Block {
        /// Its name.
        name: String,
        /// Whether it is required.
        is_required: bool,
        /// How it is decoded.
        nested: Box<Spec>,
    },
    /// The attributes of the only block with a name as a map, or null.
    BlockAttributes {
        /// Its name.
        name: String,
        /// The type of each attribute.
        element: Type,
        /// Whether the block is required.
        is_required: bool,
    },
    /// A list of the contents of all blocks with a name.
    BlockList {
        /// Their name.
        name: String,
        /// The limits of their number.
        items: ItemLimits,
        /// How each is decoded.
        nested: Box<Spec>,
    },
    /// The contents of all blocks with a name, without duplicates.
    BlockSet {
        /// Their name.
        name: String,
        /// The limits of their number.
        items: ItemLimits,
        /// How each is decoded.
        nested: Box<Spec>,
    },
    /// The contents of all blocks with a name, as nested maps by their labels.
    BlockMap {
        /// Their name.
        name: String,
        /// The names of the labels; at least one.
        labels: Vec<String>,
        /// How each is decoded.
        nested: Box<Spec>,
    },
    /// The first of two values that is not null.
    Default {
        /// The preferred value.
        primary: Box<Spec>,
        /// The default value.
        fallback: Box<Spec>,
    },
    /// A constant of the plugin.
    Literal(Value),
}

/// The limits of the number of blocks with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ItemLimits {
    /// The lower limit.
    pub least: u64,
    /// The upper limit; `None` if the plugin sets none.
    pub most: Option<u64>,
}

/// A malformed schema. It is a fault of the plugin that cannot be repaired on this side.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the plugin's schema is malformed at {path}: {problem}; fix the plugin")]
pub struct MalformedSchema {
    /// The path in the schema, by the names of its attributes and blocks.
    pub path: String,
    /// The problem.
    pub problem: SchemaProblem,
}

/// The problem of a schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaProblem {
    /// A node without content.
    #[error("it is empty where one of attr, block, literal and so on is needed")]
    Empty,
    /// A block without nested content.
    #[error("the {0} does not say what it holds")]
    NothingNested(&'static str),
    /// An attribute or block without a name.
    #[error("the {0} has no name")]
    Unnamed(&'static str),
    /// A malformed type expression.
    #[error(
        "{0:?} is not a type; a type is string, number, bool, any, list(..), set(..), map(..), object({{..}}) or tuple([..])"
    )]
    UnknownType(String),
    /// A malformed literal.
    #[error("the literal is no plain value: {0}")]
    BadLiteral(String),
    /// A block map without labels.
    #[error("a block_map needs at least one label")]
    NoLabels,
    /// A block map with values of possibly different types.
    #[error("a block_map may not hold attributes of type any")]
    AnyInMap,
    /// A default with a block as primary value.
    #[error("the default of a default may not be made of blocks")]
    BlockAsDefault,
    /// The lower limit of blocks is above the upper one.
    #[error("at least {least} blocks are needed and at most {most} allowed")]
    ImpossibleItems {
        /// The lower limit.
        least: u64,
        /// The upper limit.
        most: u64,
    },
    /// One name for both an attribute and a block.
    #[error("{0:?} names both an attribute and a block")]
    Ambiguous(String),
    /// The nesting limit is exceeded.
    #[error("its nesting exceeds {SCHEMA_DEPTH_MAX} levels")]
    TooDeep,
    /// The limit of nodes is exceeded.
    #[error("it has more than {SCHEMA_NODES_MAX} nodes")]
    TooLarge,
}

#[derive(Debug, Default)]
pub(super) struct Names<'a> {
    /// Each attribute, with its type and whether it is required.
    pub(super) attributes: BTreeMap<&'a str, (&'a Type, bool)>,
    pub(super) blocks: BTreeSet<&'a str>,
}

impl Spec {
    /// The names that this node and its siblings in the same body use.
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

    /// Whether its type is not known in advance: it contains an attribute of type `any`.
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
