//! Derives the CPU topology of a machine, as drivers receive it, and checks that it is well formed.
//!
//! - A [`Topology`] value is well formed (TH010): at least one node and one core, unique ids that fit the 8 and 16 bits of
//!   the driver side, distances square or empty, each core with a speed.
//! - No core has speed zero (TH011): base speed, else maximal speed, else that of `/proc/cpuinfo`, else the assumption
//!   [`GUESS_MHZ`], which [`Topology::is_guessed`] reports.
//! - Cores that this process may not use are disabled (TH012).

mod cpu_list;
mod cpuinfo;
mod decide;
mod findings;
mod value;

pub use cpu_list::{CPU_NUMBER_MAX, CpuList, MalformedCpuList};
pub use cpuinfo::cpuinfo;
pub use decide::{GUESS_MHZ, decide};
pub use findings::{CpuFinding, Findings, NodeFinding};
pub use value::{Core, CoreGrade, MalformedTopology, Topology, TopologyParts};
