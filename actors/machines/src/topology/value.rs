//! A CPU topology, well formed by construction.

use std::collections::BTreeSet;

use super::cpu_list::CpuList;

/// The grade of a core. The numbers are those of the wire (T013).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CoreGrade {
    /// A performance core, or a core of a machine whose cores are all alike. 0 on the wire.
    Performance,
    /// An efficiency core of a hybrid machine. 1 on the wire.
    Efficiency,
}

/// One core: in the kernel's terms a logical CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Core {
    /// Its number.
    pub id: u16,
    /// Its memory node, which is a node of the topology.
    pub node: u8,
    /// Its socket.
    pub socket: u8,
    /// Its grade.
    pub grade: CoreGrade,
    /// Whether no task may use it.
    pub is_disabled: bool,
    /// Its base speed, in MHz; 0 if unknown.
    pub base_mhz: u64,
    /// Its maximal speed, in MHz; 0 if unknown.
    pub max_mhz: u64,
    /// Its assumed speed, in MHz; 0 if one of the others is known.
    pub guess_mhz: u64,
}

impl Core {
    /// Its effective speed, in MHz: base, else maximal, else assumed (T014).
    #[must_use]
    pub const fn mhz(&self) -> u64 {
        match (self.base_mhz, self.max_mhz) {
            (0, 0) => self.guess_mhz,
            (0, max) => max,
            (base, _) => base,
        }
    }
}

/// The parts of a topology, before validation.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct TopologyParts {
    /// The ids of the memory nodes.
    pub nodes: Vec<u8>,
    /// The distances between nodes, row by row; empty if unknown.
    pub distances: Vec<u8>,
    /// The cores.
    pub cores: Vec<Core>,
    /// The compute of the whole machine in MHz, as override of the sum of its cores; 0 for that sum (T015).
    pub total_mhz: u64,
    /// How much of it is withheld from tasks, in MHz (T015).
    pub withheld_mhz: u64,
}

/// The CPU topology of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Topology(TopologyParts);

/// Why a topology is invalid for a driver (TH010, TH011). Each message names the problem and the number.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MalformedTopology {
    /// There is no node.
    #[error("the topology has no node; give it at least one")]
    NoNode,
    /// A node id is repeated.
    #[error("the topology has node {0} twice; give each node an id of its own")]
    NodeTwice(u8),
    /// The distances are neither empty nor square: the driver would panic (T011).
    #[error(
        "the topology has {nodes} nodes and {distances} distances; give it {nodes} times {nodes}, or none"
    )]
    Distances {
        /// The number of nodes.
        nodes: usize,
        /// The number of distances.
        distances: usize,
    },
    /// There is no usable core: drivers divide by their number (T021).
    #[error("the topology has no core that may be used; give it at least one that is not disabled")]
    NoCore,
    /// A core id is repeated.
    #[error("the topology has core {0} twice; give each core an id of its own")]
    CoreTwice(u16),
    /// A core is on a missing node.
    #[error(
        "core {core} is on node {node}, which is not in the topology; add the node, or put the core elsewhere"
    )]
    UnknownNode {
        /// The core.
        core: u16,
        /// The node.
        node: u8,
    },
    /// A core has no speed (TH011).
    #[error("core {0} has no speed; give it a base, a highest or a guessed speed above 0 MHz")]
    NoSpeed(u16),
    /// A core has an impossible speed: sums would overflow.
    #[error("core {core} has a speed of {mhz} MHz; give it at most {MHZ_MAX}")]
    TooFast {
        /// The core.
        core: u16,
        /// Its speed.
        mhz: u64,
    },
    /// The total is less than 1 MHz per core: drivers divide by that (T021).
    #[error("a total of {total} MHz for {cores} cores is less than 1 MHz for each; give more")]
    TotalTooSmall {
        /// The total.
        total: u64,
        /// The number of cores.
        cores: usize,
    },
    /// Nothing is left for tasks.
    #[error("{withheld} MHz are withheld of {usable} MHz that may be used; withhold less")]
    NothingLeft {
        /// The withheld compute.
        withheld: u64,
        /// The usable compute before that.
        usable: u64,
    },
}

/// The limit of a core's speed, and of the total per core, in MHz.
pub(super) const MHZ_MAX: u64 = 1_000_000;

impl TryFrom<TopologyParts> for Topology {
    type Error = MalformedTopology;

    fn try_from(parts: TopologyParts) -> Result<Self, MalformedTopology> {
        check_nodes(&parts)?;
        check_cores(&parts)?;
        let topology = Self(parts);
        let cores = topology.0.cores.len();
        let total = topology.total_mhz();
        if total < cores as u64 {
            return Err(MalformedTopology::TotalTooSmall { total, cores });
        }
        let (usable, withheld) = (topology.enabled_mhz(), topology.0.withheld_mhz);
        if withheld >= usable {
            return Err(MalformedTopology::NothingLeft { withheld, usable });
        }
        Ok(topology)
    }
}

fn check_nodes(parts: &TopologyParts) -> Result<(), MalformedTopology> {
    let mut seen = BTreeSet::new();
    if let Some(twice) = parts.nodes.iter().find(|node| !seen.insert(**node)) {
        return Err(MalformedTopology::NodeTwice(*twice));
    }
    let (nodes, distances) = (parts.nodes.len(), parts.distances.len());
    match (nodes, distances) {
        (0, _) => Err(MalformedTopology::NoNode),
        (_, 0) => Ok(()),
        (nodes, distances) if distances == nodes * nodes => Ok(()),
        (nodes, distances) => Err(MalformedTopology::Distances { nodes, distances }),
    }
}

fn check_cores(parts: &TopologyParts) -> Result<(), MalformedTopology> {
    if parts.cores.iter().all(|core| core.is_disabled) {
        return Err(MalformedTopology::NoCore);
    }
    let mut seen = BTreeSet::new();
    for core in &parts.cores {
        let id = core.id;
        if !seen.insert(id) {
            return Err(MalformedTopology::CoreTwice(id));
        }
        if !parts.nodes.contains(&core.node) {
            return Err(MalformedTopology::UnknownNode { core: id, node: core.node });
        }
        if core.mhz() == 0 {
            return Err(MalformedTopology::NoSpeed(id));
        }
        let fastest = core.base_mhz.max(core.max_mhz).max(core.guess_mhz);
        if fastest > MHZ_MAX {
            return Err(MalformedTopology::TooFast { core: id, mhz: fastest });
        }
    }
    Ok(())
}

impl Topology {
    /// The ids of the memory nodes; at least one.
    #[must_use]
    pub fn nodes(&self) -> &[u8] {
        &self.0.nodes
    }

    /// The distances between nodes, row by row: as many as nodes times nodes, or none.
    #[must_use]
    pub fn distances(&self) -> &[u8] {
        &self.0.distances
    }

    /// The cores; at least one, and at least one that is usable.
    #[must_use]
    pub fn cores(&self) -> &[Core] {
        &self.0.cores
    }

    /// The override of the sum of all cores, in MHz; 0 for that sum.
    #[must_use]
    pub fn total_override_mhz(&self) -> u64 {
        self.0.total_mhz
    }

    /// The compute withheld from tasks, in MHz.
    #[must_use]
    pub fn withheld_mhz(&self) -> u64 {
        self.0.withheld_mhz
    }

    /// The compute of all cores, in MHz (T016): above 0, and at least 1 for each core.
    #[must_use]
    pub fn total_mhz(&self) -> u64 {
        match self.0.total_mhz {
            0 => self.0.cores.iter().map(Core::mhz).sum(),
            total => total,
        }
    }

    /// The compute usable by tasks, in MHz (T016): above 0.
    #[must_use]
    pub fn usable_mhz(&self) -> u64 {
        self.enabled_mhz() - self.0.withheld_mhz
    }

    fn enabled_mhz(&self) -> u64 {
        match self.0.total_mhz {
            0 => self.0.cores.iter().filter(|core| !core.is_disabled).map(Core::mhz).sum(),
            total => total,
        }
    }

    /// The cores that tasks may use; at least one.
    #[must_use]
    pub fn enabled_cores(&self) -> CpuList {
        let enabled = self.0.cores.iter().filter(|core| !core.is_disabled);
        enabled.map(|core| u32::from(core.id)).collect()
    }

    /// The speed of one core, in MHz.
    #[must_use]
    pub fn core_mhz(&self, id: u32) -> Option<u64> {
        self.0.cores.iter().find(|core| u32::from(core.id) == id).map(Core::mhz)
    }

    /// The memory node of a core.
    #[must_use]
    pub fn core_node(&self, id: u32) -> Option<u8> {
        self.0.cores.iter().find(|core| u32::from(core.id) == id).map(|core| core.node)
    }

    /// Whether the speed of a usable core is assumed, so that shares in MHz mean little on this machine (TH011).
    #[must_use]
    pub fn is_guessed(&self) -> bool {
        let is_guessed = |core: &Core| !core.is_disabled && (core.base_mhz, core.max_mhz) == (0, 0);
        self.0.total_mhz == 0 && self.0.cores.iter().any(is_guessed)
    }

    /// Its parts, for modification.
    #[must_use]
    pub fn parts(&self) -> TopologyParts {
        self.0.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn core(id: u16) -> Core {
        Core {
            id,
            node: 0,
            socket: 0,
            grade: CoreGrade::Performance,
            is_disabled: false,
            base_mhz: 2_000,
            max_mhz: 3_000,
            guess_mhz: 0,
        }
    }

    fn parts() -> TopologyParts {
        TopologyParts { nodes: vec![0], cores: vec![core(0), core(1)], ..TopologyParts::default() }
    }

    #[test]
    fn a_topology_tells_what_tasks_may_use_t014_t015_t016() {
        let topology = Topology::try_from(parts()).unwrap();
        assert_eq!((topology.total_mhz(), topology.usable_mhz()), (4_000, 4_000));
        assert!(!topology.is_guessed());
        let mut some = parts();
        some.cores[1] = Core { is_disabled: true, base_mhz: 0, ..core(1) };
        some.withheld_mhz = 500;
        let topology = Topology::try_from(some).unwrap();
        assert_eq!((topology.total_mhz(), topology.usable_mhz()), (5_000, 1_500));
        assert_eq!(topology.enabled_cores().to_string(), "0");
        let set = TopologyParts { total_mhz: 9_000, withheld_mhz: 1_000, ..parts() };
        let topology = Topology::try_from(set).unwrap();
        assert_eq!((topology.total_mhz(), topology.usable_mhz()), (9_000, 8_000));
    }

    #[test]
    fn a_guess_is_told_as_one_th011() {
        let guessed = Core { base_mhz: 0, max_mhz: 0, guess_mhz: 1_000, ..core(1) };
        let mut some = TopologyParts { cores: vec![core(0), guessed], ..parts() };
        assert!(Topology::try_from(some.clone()).unwrap().is_guessed());
        some.cores[1].is_disabled = true;
        assert!(!Topology::try_from(some.clone()).unwrap().is_guessed());
        some.cores[1].is_disabled = false;
        some.total_mhz = 7_000;
        assert!(!Topology::try_from(some).unwrap().is_guessed(), "a person has said how much there is");
    }

    #[test]
    fn parts_that_a_driver_would_fall_over_are_refused_th010_th011() {
        let refused = |change: &dyn Fn(&mut TopologyParts)| {
            let mut parts = parts();
            change(&mut parts);
            Topology::try_from(parts).unwrap_err()
        };
        assert_eq!(refused(&|parts| parts.nodes.clear()), MalformedTopology::NoNode);
        assert_eq!(refused(&|parts| parts.nodes = vec![0, 0]), MalformedTopology::NodeTwice(0));
        let distances = refused(&|parts| parts.distances = vec![10, 20]);
        assert_eq!(distances, MalformedTopology::Distances { nodes: 1, distances: 2 });
        assert_eq!(refused(&|parts| parts.cores.clear()), MalformedTopology::NoCore);
        let none = refused(&|parts| parts.cores.iter_mut().for_each(|core| core.is_disabled = true));
        assert_eq!(none, MalformedTopology::NoCore);
        assert_eq!(refused(&|parts| parts.cores[1].id = 0), MalformedTopology::CoreTwice(0));
        let elsewhere = refused(&|parts| parts.cores[1].node = 3);
        assert_eq!(elsewhere, MalformedTopology::UnknownNode { core: 1, node: 3 });
        let still = refused(&|parts| (parts.cores[0].base_mhz, parts.cores[0].max_mhz) = (0, 0));
        assert_eq!(still, MalformedTopology::NoSpeed(0));
        let fast = refused(&|parts| parts.cores[0].max_mhz = u64::MAX);
        assert_eq!(fast, MalformedTopology::TooFast { core: 0, mhz: u64::MAX });
        let small = refused(&|parts| parts.total_mhz = 1);
        assert_eq!(small, MalformedTopology::TotalTooSmall { total: 1, cores: 2 });
        let nothing = refused(&|parts| parts.withheld_mhz = 4_000);
        assert_eq!(nothing, MalformedTopology::NothingLeft { withheld: 4_000, usable: 4_000 });
    }
}
