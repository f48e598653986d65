//! What is mounted where, by the kernel's own table. A module, not an actor.

mod table;

pub use table::{Mount, MountTable};
