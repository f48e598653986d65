//! The facts of the node that tasks are prepared for.

use std::sync::Arc;

use callboard_actors::cgroups::{CgroupMode, TaskCgroups};
use callboard_actors::driver::NodeFacts;
use callboard_actors::task_config::TaskNode;
use callboard_actors::topology::{self, Topology, machine_memory_mib};

use super::TaskIdentities;
use crate::config::{Config, HostConfig};

/// The machine's topology with the limits of the configuration. Limits that do not fit this machine are ignored with a
/// warning: the host runs what it can (T206).
#[must_use]
pub fn topology(host: &HostConfig) -> Arc<Topology> {
    let machine = topology::of_this_machine();
    let mut parts = machine.parts();
    for core in &mut parts.cores {
        core.is_disabled |= host.reserved_cores.contains(core.id.into());
    }
    parts.total_mhz = host.cpu_total_compute.into();
    parts.withheld_mhz = host.cpu_reserved.into();
    match Topology::try_from(parts) {
        Ok(topology) => Arc::new(topology),
        Err(error) => {
            tracing::warn!(
                %error,
                "`reserved_cores`, `cpu_total_compute` and `cpu_reserved` of the configuration do not fit this machine and are ignored"
            );
            machine
        }
    }
}

/// The facts of the node that drivers receive.
#[must_use]
pub fn node_facts(host: &HostConfig, topology: &Arc<Topology>) -> NodeFacts {
    let (min_port, max_port) = host.client_ports;
    let topology = Some(Arc::clone(topology));
    NodeFacts { min_port: min_port.into(), max_port: max_port.into(), topology }
}

/// The facts of the node that tasks are prepared from.
#[must_use]
pub fn task_node(config: &Config, topology: Arc<Topology>, identities: &TaskIdentities) -> TaskNode {
    let machine_name = || rustix::system::uname().nodename().to_string_lossy().into_owned();
    let groups = TaskCgroups::of_this_machine();
    let cgroups = match config.host.control_groups {
        true => groups.mode().clone(),
        false => CgroupMode::None { reason: "`control_groups` is false".to_owned() },
    };
    TaskNode {
        topology,
        memory_mib: machine_memory_mib("/".as_ref()),
        cgroups,
        cgroup_root: groups.root().to_owned(),
        mounts_root: config.data_dir.join("mounts"),
        name: config.host.node_name.clone().unwrap_or_else(machine_name),
        id: identities.node(),
        region: config.host.region.clone(),
        datacenter: config.host.datacenter.clone(),
    }
}

#[cfg(test)]
mod tests {
    use callboard_actors::topology::CpuList;

    use super::*;

    #[test]
    fn what_a_configuration_withholds_is_told_to_drivers_and_nonsense_is_left_out_t015_t206() {
        let host = HostConfig { cpu_total_compute: 90_000, cpu_reserved: 1_000, ..HostConfig::default() };
        let told = topology(&host);
        assert_eq!((told.total_mhz(), told.usable_mhz()), (90_000, 89_000));
        let facts = node_facts(&HostConfig { client_ports: (20_000, 20_010), ..host }, &told);
        assert_eq!((facts.min_port, facts.max_port), (20_000, 20_010));
        let everything = CpuList::parse("0-65535").unwrap();
        let none_left = HostConfig { reserved_cores: everything, ..HostConfig::default() };
        assert_eq!(topology(&none_left), topology::of_this_machine());
    }
}
