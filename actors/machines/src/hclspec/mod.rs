//! A plugin's configuration schema (hclspec): validates configurations and encodes them for the plugin.
//!
//! Plugins send their schema as a `hashicorp.nomad.plugins.shared.hclspec.Spec` (D113). A host writes the configuration in
//! TOML or HCL. This module combines the two, purely and without a running plugin:
//!
//! ```text
//!  SentSpec ───► Schema ──────────────┐
//!              (bounded, checked)     ▼
//!  TOML, HCL ──► Config ──────────► decode ──► Value ──► msgpack, as Go plugins read it
//!              (literals only)        │
//!                                     └──► all mistakes at once, each with its path: `config.volumes[2].name`
//! ```
//!
//! Invariants:
//!
//! - A [`Schema`] value is well formed and bounded in depth and size; a malformed one is refused with the path of the
//!   problem.
//! - A [`Config`] contains literals and collections of literals. References, function calls, operators and templates are
//!   errors with their path, since there is no evaluator.
//! - Attributes and blocks are two spellings of one thing, as in HCL's JSON syntax: a table is a block, a list of tables is
//!   several blocks, and the labels of a block are the keys of nested tables. One table is also one element of an attribute
//!   that is a list or a set of maps or objects: `labels = { a = "b" }` equals `labels { a = "b" }` in HCL.
//! - Values are converted as in HCL: numbers and bools to strings, strings that spell a number or a bool to those.
//! - Errors do not quote values unless they are numbers or bools, since strings may be secrets (SEC-06).
//!
//! Differences to HCL's own decoder, which Nomad uses:
//!
//! - A key that an `object({..})` type does not have is an error; HCL drops it silently.
//! - A fraction is a msgpack float; HCL makes it a string if it has no exact binary form, such as `0.1`, which a Go plugin
//!   cannot read into a `float64`.
//! - Integers are limited to signed 64 bits; a larger number is refused instead of rounded.
//! - Blocks of one type need not agree on the types of their `any` attributes.

mod path;

mod kind;

mod value;

mod sent;

mod schema;

mod check;

mod expression;
mod source;

mod error;

mod convert;
mod decode;

mod config_places;

#[cfg(test)]
mod tests;

pub use config_places::{ConfigPlaces, Place};
pub use error::{ConfigError, ConfigErrors, ConfigProblem, ERRORS_MAX};
pub use kind::Type;
pub use path::path_below;
pub use schema::{
    ItemLimits, MalformedSchema, SCHEMA_DEPTH_MAX, SCHEMA_NODES_MAX, Schema, SchemaProblem, Spec,
};
pub use sent::SentSpec;
pub use source::{CONFIG_BYTES_MAX, CONFIG_DEPTH_MAX, CONFIG_VALUES_MAX, Config};
pub use value::{Number, Value};
