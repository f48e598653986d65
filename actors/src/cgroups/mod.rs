//! The cgroups of tasks: created before each start, removed after each end, at the paths that task drivers expect.
//!
//! A module, not an actor: its operations block for as long as the kernel needs (up to the timeout of a removal), so it must
//! be used on a blocking thread. All paths are below a given root, usually `/sys/fs/cgroup`.
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
//!
//! ```no_run
//! # use callboard_actors::cgroups::{Cores, GroupName, TaskCgroups};
//! # fn example(name: &GroupName) -> Result<(), Box<dyn std::error::Error>> {
//! let groups = TaskCgroups::of_this_machine();
//! groups.prepare()?; // once for each run of the host
//! let group = groups.create(name, Cores::Shared)?; // before each start
//! // ... the driver starts the task and it ends ...
//! groups.destroy(name)?; // kills what is left and removes the group
//! # drop(group);
//! # Ok(())
//! # }
//! ```

mod error;
mod files;
mod group;
mod killing;
mod location;
mod parents;
mod sweep;

pub use callboard_machines::cgroups::{CgroupMode, Cores, GroupName, Limits, Places, Write, mode};
pub use error::CgroupError;
pub use group::{Created, TaskCgroups};
pub use location::{Location, where_is};
