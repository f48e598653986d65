//! What is the same in every conversation with a plugin, whatever it speaks.
//!
//! A module, not an actor, and without a word about what is said: that is for `csi` and `goplugin`.

mod quote;

pub use quote::{TEXT_BYTES_MAX, escaped, quoted};
