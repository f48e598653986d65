//! The CPU topology of this machine, as drivers receive it.
//!
//! ```text
//!  files below a root ── read ──► Findings ── decide ──► Topology ── driver ──► SetConfig (T010 to T022)
//!    /sys/devices/system/{cpu,node}   the content of each,    well formed: nothing that a
//!    /proc/cpuinfo, /proc/self/status   or that it is missing   driver divides by is zero
//! ```
//!
//! - A [`Topology`] value is well formed (TH010): at least one node and one core, unique ids that fit the 8 and 16 bits of
//!   the driver side, distances square or empty, each core with a speed.
//! - No core has speed zero (TH011): base speed, else maximal speed, else that of `/proc/cpuinfo`, else the assumption
//!   [`GUESS_MHZ`], which [`Topology::is_guessed`] reports.
//! - Cores that this process may not use are disabled (TH012). No program is executed for detection.
//!
//! [`Topology::read`] takes the root, so any machine can be a fixture.

mod cpu_list;
mod cpuinfo;
mod decide;
mod findings;
mod look;
mod memory;
mod value;

#[cfg(test)]
mod tests;

pub use cpu_list::{CPU_NUMBER_MAX, CpuList, MalformedCpuList};
pub use decide::GUESS_MHZ;
pub use memory::machine_memory_mib;
pub use value::{Core, CoreGrade, MalformedTopology, Topology, TopologyParts};
