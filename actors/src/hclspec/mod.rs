//! A plugin's own schema for its configuration: what a configuration must look like, and what the plugin gets of it.
//!
//! Plugins tell their schema as a `hashicorp.nomad.plugins.shared.hclspec.Spec` (D113). A host writes the configuration in
//! TOML or HCL. Here the two meet, purely and without any plugin running:
//!
//! ```text
//!  wire Spec ──► Schema ──────────────┐
//!              (bounded, checked)     ▼
//!  TOML, HCL ──► Config ──────────► decode ──► Value ──► msgpack, as Go plugins read it
//!              (literals only)        │
//!                                     └──► every mistake at once, each with its path: `config.volumes[2].name`
//! ```
//!
//! What holds:
//!
//! - A [`Schema`] that exists is well formed and bounded in depth and size; a plugin that tells another one is refused with
//!   the place where it goes wrong.
//! - A [`Config`] holds literals and collections of literals. References, function calls, operators and templates are a
//!   clear error with their place, since nothing here could give them a value.
//! - Attributes and blocks are two spellings of one thing, as in HCL's JSON form: a table is a block, a list of tables is
//!   several blocks, and the labels of a block are the keys of nested tables. One table is also one element of an attribute
//!   that is a list or a set of maps or objects: `labels = { a = "b" }` is what `labels { a = "b" }` is in HCL.
//! - Values are converted as HCL does it: numbers and bools to strings, strings that spell a number or a bool to those.
//! - What was written is not quoted in errors unless it is a number or a bool, since strings may be secrets (SEC-06).
//!
//! Where it differs from HCL's own decoder, which Nomad uses:
//!
//! - A key that an `object({..})` type does not have is an error here and is dropped in silence there.
//! - A fraction is msgpack's float here; there it becomes a string if it has no exact binary form, such as `0.1`, which a Go
//!   plugin cannot read into a `float64`.
//! - Integers end at 64 bits with sign; beyond, a number is refused instead of rounded.
//! - Blocks of one type need not agree on the types of their `any` attributes.

mod path;

mod kind;

mod value;

mod schema;
mod wire;

mod expression;
mod source;

mod error;

mod convert;
mod decode;

#[cfg(test)]
mod tests;

#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;

pub use error::{ConfigError, ConfigErrors, ConfigProblem, ERRORS_MAX};
pub use kind::Type;
pub use path::path_below;
pub use schema::{
    ItemLimits, MalformedSchema, SCHEMA_DEPTH_MAX, SCHEMA_NODES_MAX, Schema, SchemaProblem, Spec,
};
pub use source::{CONFIG_BYTES_MAX, CONFIG_DEPTH_MAX, CONFIG_VALUES_MAX, Config};
pub use value::{Number, Value};
