//! A plugin's [configuration schema](callboard_machines::hclspec), as it comes over the wire.

mod wire;

#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;

pub use callboard_machines::hclspec::*;

pub use wire::{from_wire, schema_from_wire};
