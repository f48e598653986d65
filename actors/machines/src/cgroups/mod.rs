//! The cgroups of tasks: the version in use, the paths of a task's cgroups, and its resource limits.
//!
//! ```text
//!  v2   ROOT/nomad.slice/share.slice/ALLOCID.NAME.scope        tasks without reserved cores
//!       ROOT/nomad.slice/reserve.slice/ALLOCID.NAME.scope      tasks with reserved cores
//!  v1   ROOT/{freezer,memory,cpu}/nomad/ALLOCID.NAME
//!       ROOT/cpuset/nomad/share                                tasks without reserved cores, all in one
//!       ROOT/cpuset/nomad/reserve/ALLOCID.NAME                 tasks with reserved cores
//! ```
//!
//! The names are fixed: external drivers compute them from the allocation's id and the task's name, and kill, count and
//! limit there (T103, T105, T108, T109). [`mode`] decides by the mount table which hierarchy is used, by the same rule that
//! each driver process applies (T100).

pub mod mode;

mod limits;
mod place;

pub use limits::{Limits, Write};
pub use mode::CgroupMode;
pub use place::{Cores, GroupName, Places, SLICE, V1_PARENT};
