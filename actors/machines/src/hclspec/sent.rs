//! A schema as a plugin sends it.

use std::collections::BTreeMap;

/// One node of a schema as a plugin sends it, not checked yet. [`Schema::from_sent`](super::Schema::from_sent) checks it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SentSpec {
    /// A node without content.
    Empty,
    /// Nodes by key.
    Object(BTreeMap<String, SentSpec>),
    /// Nodes in order.
    Array(Vec<SentSpec>),
    /// An attribute.
    Attribute {
        /// Its name; empty for that of its key.
        name: String,
        /// Its type expression.
        kind: String,
        /// Whether it is required.
        is_required: bool,
    },
    /// One block.
    Block {
        /// Its name; empty for that of its key.
        name: String,
        /// Whether it is required.
        is_required: bool,
        /// Its content.
        nested: Option<Box<SentSpec>>,
    },
    /// The attributes of one block.
    BlockAttributes {
        /// Its name; empty for that of its key.
        name: String,
        /// The type expression of each attribute.
        kind: String,
        /// Whether the block is required.
        is_required: bool,
    },
    /// A list of blocks.
    BlockList {
        /// Their name; empty for that of their key.
        name: String,
        /// The lower limit of their number.
        least: u64,
        /// The upper limit of their number; zero for none.
        most: u64,
        /// The content of each.
        nested: Option<Box<SentSpec>>,
    },
    /// A set of blocks.
    BlockSet {
        /// Their name; empty for that of their key.
        name: String,
        /// The lower limit of their number.
        least: u64,
        /// The upper limit of their number; zero for none.
        most: u64,
        /// The content of each.
        nested: Option<Box<SentSpec>>,
    },
    /// Blocks by their labels.
    BlockMap {
        /// Their name; empty for that of their key.
        name: String,
        /// The names of the labels.
        labels: Vec<String>,
        /// The content of each.
        nested: Option<Box<SentSpec>>,
    },
    /// A value with a default.
    Default {
        /// The preferred value.
        primary: Option<Box<SentSpec>>,
        /// The default value.
        fallback: Option<Box<SentSpec>>,
    },
    /// A constant, as an expression.
    Literal(String),
}
