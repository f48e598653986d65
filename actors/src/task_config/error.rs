//! Why a task is refused for a driver.

use std::path::PathBuf;

use crate::driver::NetworkMode;
use crate::topology::CpuList;
use crate::vocabulary::{AllocationId, TaskName};

/// Why a task is refused before its driver is called. None of these is transient: the task must be changed, or the machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TaskConfigError {
    /// The id does not have the three parts that drivers split it into (T070, T128).
    #[error(
        "the task id {id:?} is not \"{allocation}/{task}/\" and a part of its own for each run; give it that form"
    )]
    TaskId {
        /// The id.
        id: String,
        /// The allocation.
        allocation: AllocationId,
        /// The task.
        task: TaskName,
    },
    /// The directory name differs from the allocation id, from which drivers compute cgroups (T041, T109).
    #[error(
        "the allocation directory {} is not an absolute path that ends in the allocation's id {allocation}; give it that name",
        path.display()
    )]
    AllocationDirectory {
        /// The directory.
        path: PathBuf,
        /// The allocation.
        allocation: AllocationId,
    },
    /// It requests more than the machine has.
    #[error(
        "it asks for {asked} {unit} of {what}, and this machine has {available} {unit}{hint}; ask for less"
    )]
    TooMuch {
        /// The resource: cpu, memory or memory_max.
        what: &'static str,
        /// The unit.
        unit: &'static str,
        /// The requested amount.
        asked: u64,
        /// The available amount.
        available: u64,
        /// An additional hint; may be empty.
        hint: &'static str,
    },
    /// It requests cores that tasks cannot have.
    #[error("it asks for the cores {asked}, and tasks may use {usable} on this machine; name some of these")]
    Cores {
        /// The requested cores, as far as they can be parsed.
        asked: String,
        /// The available cores.
        usable: CpuList,
    },
    /// Its memory limit is below its guaranteed memory.
    #[error(
        "it reserves {memory} MiB of memory but may use only {max} MiB; let `memory_max` be at least `memory`"
    )]
    MemoryMax {
        /// The guaranteed memory, in MiB.
        memory: i64,
        /// The limit, in MiB.
        max: i64,
    },
    /// A field of its resources has a value that no driver accepts.
    #[error("its resources have {value} as {field}; give {expected}")]
    Resource {
        /// The field.
        field: &'static str,
        /// The value.
        value: String,
        /// The accepted values.
        expected: &'static str,
    },
    /// Its driver does not support mounts.
    #[error(
        "it has {0} mounts, and its driver mounts nothing (one that shares the file system of the host has to say that it mounts); remove them, or take another driver"
    )]
    Mounts(usize),
    /// A mount or a device is invalid.
    #[error("its {what} of {} is invalid: {problem}", path.display())]
    Path {
        /// The kind: mount or device.
        what: &'static str,
        /// The path on the host.
        path: PathBuf,
        /// The problem.
        problem: &'static str,
    },
    /// Its driver does not support this network mode.
    #[error("it wants a network of the kind {}, and its driver has only: {}; take one of these", word(*mode), words(offered))]
    Network {
        /// The requested mode.
        mode: NetworkMode,
        /// The supported modes.
        offered: Vec<NetworkMode>,
    },
    /// A network that was created by others requires a path.
    #[error(
        "it wants the network of its group, and the path of that is not given; give the path of a network namespace"
    )]
    NetworkPath,
    /// Its driver shows tasks their directories below a directory for mounts, which is not configured (T048).
    #[error(
        "its driver shows tasks their directories below an absolute directory for mounts, and the node has none; name one"
    )]
    MountsRoot,
    /// Its driver requires a user.
    #[error("its driver runs each task only as its own user, and this task has none; name its `user`")]
    User,
    /// Its driver requires pipes for its output.
    #[error("its output has no absolute paths to go to, and its driver needs them; give both")]
    Output,
}

pub(super) const fn word(mode: NetworkMode) -> &'static str {
    match mode {
        NetworkMode::Host => "host",
        NetworkMode::Group => "group",
        NetworkMode::Task => "task",
        NetworkMode::None => "none",
    }
}

fn words(modes: &[NetworkMode]) -> String {
    let mut words: Vec<_> = modes.iter().copied().map(word).collect();
    if !words.contains(&"host") {
        words.insert(0, "host");
    }
    words.join(", ")
}
