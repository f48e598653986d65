//! The mount table of the kernel. A module, not an actor.

mod table;

pub use table::{Mount, MountTable};
