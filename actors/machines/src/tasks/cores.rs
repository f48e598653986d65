//! Exclusive cores of tasks: no core belongs to two tasks.

use std::collections::BTreeMap;

use crate::topology::{CpuList, Topology};
use crate::vocabulary::AllocationId;

/// The exclusive cores of each task. A task has one run at a time, so a later choice replaces an earlier one.
#[derive(Debug, Clone, Default)]
pub struct Cores(BTreeMap<AllocationId, CpuList>);

/// Why a task does not get its exclusive cores.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoCores {
    /// The machine has fewer cores.
    #[error(
        "it asks for {asked} exclusive cores, but tasks may use only {usable} on this machine; ask for less"
    )]
    TooMany {
        /// The number requested.
        asked: usize,
        /// The number that tasks may use.
        usable: usize,
    },
    /// Other tasks hold the cores.
    #[error(
        "it asks for {asked} exclusive cores, but only {free} of {usable} are free; it waits until other tasks have ended"
    )]
    Taken {
        /// The number requested.
        asked: usize,
        /// The number that is free.
        free: usize,
        /// The number that tasks may use.
        usable: usize,
    },
}

impl NoCores {
    /// Whether a retry may succeed: another task may release its cores.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Taken { .. })
    }
}

impl Cores {
    /// Records the cores that a running task has.
    pub fn hold(&mut self, task: &AllocationId, cores: CpuList) {
        if !cores.is_empty() {
            self.0.insert(task.clone(), cores);
        }
    }

    /// Allocates this many free and usable cores to a task, all on one NUMA node if one has enough.
    ///
    /// # Errors
    /// If too few are free, or usable at all.
    pub fn take(
        &mut self,
        task: &AllocationId,
        asked: usize,
        topology: &Topology,
    ) -> Result<CpuList, NoCores> {
        let held = &mut self.0;
        held.remove(task);
        let usable = topology.enabled_cores();
        if asked > usable.len() {
            return Err(NoCores::TooMany { asked, usable: usable.len() });
        }
        let is_free = |core: &u32| !held.values().any(|cores| cores.contains(*core));
        let free: Vec<u32> = usable.iter().filter(is_free).collect();
        let on_node = |node: &u8| -> Vec<u32> {
            let is_there = |core: &u32| topology.core_node(*core) == Some(*node);
            free.iter().copied().filter(is_there).collect()
        };
        let node = topology.nodes().iter().map(on_node).find(|cores| cores.len() >= asked);
        let chosen = node.as_ref().unwrap_or(&free);
        if chosen.len() < asked {
            return Err(NoCores::Taken { asked, free: free.len(), usable: usable.len() });
        }
        let cores: CpuList = chosen.iter().copied().take(asked).collect();
        held.insert(task.clone(), cores.clone());
        Ok(cores)
    }

    /// Releases the cores of a task that no longer runs.
    pub fn release(&mut self, task: &AllocationId) {
        self.0.remove(task);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{Core, CoreGrade, TopologyParts};

    /// Two nodes of two cores; the first core of all is disabled.
    fn topology() -> Topology {
        let core = |id: u16| Core {
            id,
            node: u8::from(id > 1),
            socket: 0,
            grade: CoreGrade::Performance,
            is_disabled: id == 0,
            base_mhz: 1_000,
            max_mhz: 0,
            guess_mhz: 0,
        };
        let cores = (0..4).map(core).collect();
        Topology::try_from(TopologyParts { nodes: vec![0, 1], cores, ..TopologyParts::default() }).unwrap()
    }

    fn name(name: &str) -> AllocationId {
        AllocationId::new(name).unwrap()
    }

    #[test]
    fn no_core_belongs_to_two_tasks_and_a_disabled_one_to_none() {
        let (mut cores, topology) = (Cores::default(), topology());
        let taken = |cores: &mut Cores, task: &str, asked| {
            cores.take(&name(task), asked, &topology).map(|list| list.to_string())
        };
        assert_eq!(taken(&mut cores, "a", 2).unwrap(), "2-3", "both of one node");
        assert_eq!(taken(&mut cores, "b", 1).unwrap(), "1");
        assert_eq!(taken(&mut cores, "c", 1), Err(NoCores::Taken { asked: 1, free: 0, usable: 3 }));
        assert_eq!(taken(&mut cores, "c", 4), Err(NoCores::TooMany { asked: 4, usable: 3 }));
        assert_eq!(taken(&mut cores, "a", 2).unwrap(), "2-3", "its next run has them again");
        cores.release(&name("a"));
        assert_eq!(taken(&mut cores, "c", 1).unwrap(), "2");
        assert_eq!(taken(&mut cores, "d", 2), Err(NoCores::Taken { asked: 2, free: 1, usable: 3 }));
    }

    #[test]
    fn the_cores_of_a_task_that_outlived_its_host_are_not_given_to_another() {
        let (mut cores, topology) = (Cores::default(), topology());
        cores.hold(&name("old"), CpuList::parse("2-3").unwrap());
        assert_eq!(cores.take(&name("new"), 1, &topology).unwrap().to_string(), "1");
        assert!(cores.take(&name("other"), 1, &topology).unwrap_err().is_transient());
        assert!(!cores.take(&name("other"), 9, &topology).unwrap_err().is_transient());
    }
}
