//! Turns what a host says into messages of the wire.

use std::collections::BTreeMap;
use std::path::Path;

use callboard_proto::drivers as wire;

use super::task::{
    DnsConfig, LinuxResources, NetworkIsolation, PortMapping, Resources, TaskConfig, TaskDevice, TaskMount,
};
use crate::driver::report::NetworkMode;

/// The wire has paths as text; what is no text of UTF-8 is written with marks in its place, as it is shown to people.
fn path(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn map(map: &BTreeMap<String, String>) -> std::collections::HashMap<String, String> {
    map.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
}

pub(super) fn task_config(config: &TaskConfig) -> wire::TaskConfig {
    let origin = config.origin.clone();
    wire::TaskConfig {
        id: config.id.to_string(),
        name: config.name.to_string(),
        msgpack_driver_config: config.driver_config.clone(),
        env: map(&config.environment),
        device_env: map(&config.device_environment),
        resources: config.resources.as_ref().map(resources),
        mounts: config.mounts.iter().map(mount).collect(),
        devices: config.devices.iter().map(device).collect(),
        user: config.user.clone(),
        alloc_dir: path(&config.allocation_dir),
        stdout_path: path(&config.stdout_path),
        stderr_path: path(&config.stderr_path),
        task_group_name: origin.task_group_name,
        job_name: origin.job_name,
        alloc_id: config.allocation.to_string(),
        network_isolation_spec: config.network.as_ref().map(network),
        dns: config.dns.as_ref().map(dns),
        job_id: origin.job_id,
        namespace: origin.namespace,
        node_name: origin.node_name,
        node_id: origin.node_id,
        parent_job_id: origin.parent_job_id,
    }
}

fn resources(resources: &Resources) -> wire::Resources {
    let memory = wire::AllocatedMemoryResources {
        memory_mb: resources.memory_mib,
        memory_max_mb: resources.memory_max_mib,
    };
    wire::Resources {
        allocated_resources: Some(wire::AllocatedTaskResources {
            cpu: Some(wire::AllocatedCpuResources { cpu_shares: resources.cpu_shares }),
            memory: Some(memory),
            networks: Vec::new(),
        }),
        linux_resources: resources.linux.as_ref().map(linux),
        ports: resources.ports.iter().map(port).collect(),
    }
}

fn linux(linux: &LinuxResources) -> wire::LinuxResources {
    wire::LinuxResources {
        cpu_period: linux.cpu_period_us,
        cpu_quota: linux.cpu_quota_us,
        cpu_shares: linux.cpu_shares,
        memory_limit_bytes: linux.memory_limit_bytes,
        oom_score_adj: linux.oom_score_adj,
        cpuset_cpus: linux.cpuset_cpus.clone(),
        percent_ticks: linux.percent_ticks,
        cpuset_cgroup: linux.cpuset_cgroup.clone(),
    }
}

fn port(port: &PortMapping) -> wire::PortMapping {
    wire::PortMapping {
        label: port.label.clone(),
        value: port.host_port.into(),
        to: port.to.into(),
        host_ip: port.host_ip.clone(),
    }
}

fn mount(mount: &TaskMount) -> wire::Mount {
    wire::Mount {
        task_path: path(&mount.task_path),
        host_path: path(&mount.host_path),
        readonly: mount.read_only,
        propagation_mode: mount.propagation_mode.clone(),
        selinux_label: mount.selinux_label.clone(),
        request_name: String::new(),
    }
}

fn device(device: &TaskDevice) -> wire::Device {
    wire::Device {
        task_path: path(&device.task_path),
        host_path: path(&device.host_path),
        cgroup_permissions: device.cgroup_permissions.clone(),
    }
}

fn dns(dns: &DnsConfig) -> wire::DnsConfig {
    wire::DnsConfig {
        servers: dns.servers.clone(),
        searches: dns.searches.clone(),
        options: dns.options.clone(),
    }
}

pub(super) fn network(network: &NetworkIsolation) -> wire::NetworkIsolationSpec {
    use wire::network_isolation_spec::NetworkIsolationMode as Mode;
    let mode = match network.mode {
        NetworkMode::Host => Mode::Host,
        NetworkMode::Group => Mode::Group,
        NetworkMode::Task => Mode::Task,
        NetworkMode::None => Mode::None,
    };
    let entry = network.hosts_entry.clone();
    wire::NetworkIsolationSpec {
        mode: mode.into(),
        path: network.path.clone(),
        labels: map(&network.labels),
        hosts_config: entry.map(|(hostname, address)| wire::HostsConfig { hostname, address }),
    }
}

/// A span of time. One that the wire has no room for is as long as the wire can say.
pub(super) fn span(span: std::time::Duration) -> prost_types::Duration {
    let seconds = i64::try_from(span.as_secs()).unwrap_or(i64::MAX);
    prost_types::Duration { seconds, nanos: i32::try_from(span.subsec_nanos()).unwrap_or(0) }
}
