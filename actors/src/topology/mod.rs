//! Reads the [CPU topology](callboard_machines::topology) of this machine, as drivers receive it.
//!
//! ```text
//!  files below a root ── read ──► Findings ── decide ──► Topology ── driver ──► SetConfig (T010 to T022)
//!    /sys/devices/system/{cpu,node}   the content of each,    well formed: nothing that a
//!    /proc/cpuinfo, /proc/self/status   or that it is missing   driver divides by is zero
//! ```
//!
//! No program is executed for detection. [`read`] takes the root, so any machine can be a fixture.

mod look;
mod memory;

#[cfg(test)]
mod tests;

pub use callboard_machines::topology::*;

pub use look::{of_this_machine, read};
pub use memory::machine_memory_mib;
