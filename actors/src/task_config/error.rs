//! Why a task is not for a driver.

use std::path::PathBuf;

use crate::driver::NetworkMode;
use crate::topology::CpuList;
use crate::vocabulary::{AllocationId, TaskName};

/// Why a task is refused before its driver hears of it. None of these passes by itself: the task has to be changed, or the machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TaskConfigError {
    /// The id has not the three parts that drivers cut it into (T070, T128).
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
    /// The directory has another name than its allocation, by which drivers compute control groups (T041, T109).
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
    /// It asks for more than the machine has.
    #[error(
        "it asks for {asked} {unit} of {what}, and this machine has {available} {unit}{hint}; ask for less"
    )]
    TooMuch {
        /// Of what: cpu, memory or memory_max.
        what: &'static str,
        /// In which unit.
        unit: &'static str,
        /// How much it asks for.
        asked: u64,
        /// How much there is.
        available: u64,
        /// What else is to be known of that; may be empty.
        hint: &'static str,
    },
    /// It asks for cores that tasks cannot have.
    #[error("it asks for the cores {asked}, and tasks may use {usable} on this machine; name some of these")]
    Cores {
        /// Which ones it asks for, as far as that can be read.
        asked: String,
        /// Which ones there are.
        usable: CpuList,
    },
    /// It may use less memory than it is promised.
    #[error(
        "it is promised {memory} MiB of memory and may use {max} MiB; let `memory_max` be at least `memory`"
    )]
    MemoryMax {
        /// What it is promised, in MiB.
        memory: i64,
        /// What it may use, in MiB.
        max: i64,
    },
    /// A field of its resources holds what no driver takes.
    #[error("its resources have {value} as {field}; give {expected}")]
    Resource {
        /// Which field.
        field: &'static str,
        /// What stands there.
        value: String,
        /// What may stand there.
        expected: &'static str,
    },
    /// Its driver mounts nothing.
    #[error("it has {0} mounts, and its driver mounts nothing; remove them, or take another driver")]
    Mounts(usize),
    /// A mount or a device cannot be one.
    #[error("its {what} of {} cannot be: {problem}", path.display())]
    Path {
        /// Which kind: mount or device.
        what: &'static str,
        /// What of the host.
        path: PathBuf,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// Its driver has no such network.
    #[error("it wants a network of the kind {}, and its driver has only: {}; take one of these", word(*mode), words(offered))]
    Network {
        /// Which one it wants.
        mode: NetworkMode,
        /// Which ones there are.
        offered: Vec<NetworkMode>,
    },
    /// A network that others made has a path.
    #[error(
        "it wants the network of its group, and the path of that is not given; give the path of a network namespace"
    )]
    NetworkPath,
    /// Its driver shows tasks their directories below a directory for mounts, and there is none (T048).
    #[error(
        "its driver shows tasks their directories below an absolute directory for mounts, and the node has none; name one"
    )]
    MountsRoot,
    /// Its driver runs tasks only as users.
    #[error("its driver runs tasks only as a user of their own, and it has none; name its `user`")]
    User,
    /// Its driver needs pipes for its output.
    #[error("its output has no absolute paths to go to, and its driver needs them; give both")]
    Output,
}

/// The word for a network.
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
