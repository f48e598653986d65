//! Converts the facts about the node, which drivers receive, to messages of the wire.

use callboard_proto::base as wire;

use crate::driver::NodeFacts;
use crate::topology::{Core, CoreGrade, Topology};

/// The part of `SetConfig` for drivers. It always has a topology, since drivers crash if it is absent (T020).
pub(in crate::driver) fn node_to_wire(facts: &NodeFacts, topology: &Topology) -> wire::NomadConfig {
    let driver = wire::NomadDriverConfig {
        client_max_port: facts.max_port,
        client_min_port: facts.min_port,
        topology: Some(topology_to_wire(topology)),
    };
    wire::NomadConfig { driver: Some(driver) }
}

fn topology_to_wire(topology: &Topology) -> wire::ClientTopology {
    let distances = || wire::ClientTopologySlit {
        dimension: u32::try_from(topology.nodes().len()).unwrap_or(0),
        values: topology.distances().iter().copied().map(u32::from).collect(),
    };
    wire::ClientTopology {
        node_ids: topology.nodes().iter().copied().map(u32::from).collect(),
        // A dimension without its values would make the plugin panic (T011).
        distances: (!topology.distances().is_empty()).then(distances),
        cores: topology.cores().iter().map(core).collect(),
        override_total_compute: topology.total_override_mhz(),
        override_withold_compute: topology.withheld_mhz(),
    }
}

fn core(core: &Core) -> wire::ClientTopologyCore {
    let grade = match core.grade {
        CoreGrade::Performance => wire::CoreGrade::Performance,
        CoreGrade::Efficiency => wire::CoreGrade::Efficiency,
    };
    wire::ClientTopologyCore {
        socket_id: core.socket.into(),
        node_id: core.node.into(),
        core_id: core.id.into(),
        core_grade: grade.into(),
        disable: core.is_disabled,
        base_speed: core.base_mhz,
        max_speed: core.max_mhz,
        guess_speed: core.guess_mhz,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::NodeFacts;
    use crate::topology::TopologyParts;

    fn topology(distances: Vec<u8>) -> Topology {
        let core = Core {
            id: 5,
            node: 3,
            socket: 1,
            grade: CoreGrade::Efficiency,
            is_disabled: false,
            base_mhz: 2_000,
            max_mhz: 3_000,
            guess_mhz: 1,
        };
        let other = Core { id: 7, grade: CoreGrade::Performance, is_disabled: true, ..core };
        let parts = TopologyParts {
            nodes: vec![0, 3],
            distances,
            cores: vec![core, other],
            total_mhz: 9_000,
            withheld_mhz: 500,
        };
        Topology::try_from(parts).unwrap()
    }

    #[test]
    fn a_driver_is_told_the_whole_topology_th010_t013_t015() {
        let facts = NodeFacts::default();
        let driver = node_to_wire(&facts, &topology(vec![10, 20, 20, 10])).driver.unwrap();
        assert_eq!((driver.client_min_port, driver.client_max_port), (14_000, 14_512));
        let core = wire::ClientTopologyCore {
            socket_id: 1,
            node_id: 3,
            core_id: 5,
            core_grade: 1,
            disable: false,
            base_speed: 2_000,
            max_speed: 3_000,
            guess_speed: 1,
        };
        let expected = wire::ClientTopology {
            node_ids: vec![0, 3],
            distances: Some(wire::ClientTopologySlit { dimension: 2, values: vec![10, 20, 20, 10] }),
            cores: vec![core, wire::ClientTopologyCore { core_id: 7, core_grade: 0, disable: true, ..core }],
            override_total_compute: 9_000,
            override_withold_compute: 500,
        };
        assert_eq!(driver.topology, Some(expected));
    }

    #[test]
    fn distances_that_are_not_known_are_absent_t011() {
        let driver = node_to_wire(&NodeFacts::default(), &topology(vec![])).driver.unwrap();
        assert_eq!(driver.topology.unwrap().distances, None);
    }
}
