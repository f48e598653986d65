//! Converts the requests of a host to messages of the wire.

use std::collections::BTreeMap;
use std::path::Path;

use callboard_proto::drivers as wire;

use super::{
    DnsConfig, LinuxResources, NetworkIsolation, PortMapping, Resources, TaskConfig, TaskDevice, TaskMount,
};
use crate::driver::NetworkMode;

/// The wire has paths as text; bytes that are not UTF-8 are replaced by a mark, as when the path is shown to people.
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

/// A duration. If it is too long for the wire, the longest that the wire can hold.
pub(super) fn span(span: std::time::Duration) -> prost_types::Duration {
    let seconds = i64::try_from(span.as_secs()).unwrap_or(i64::MAX);
    prost_types::Duration { seconds, nanos: i32::try_from(span.subsec_nanos()).unwrap_or(0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::client::{TaskId, TaskOrigin};
    use crate::vocabulary::{AllocationId, TaskName};

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    fn resources_said() -> Resources {
        Resources {
            cpu_shares: 1,
            memory_mib: 2,
            memory_max_mib: 3,
            linux: Some(LinuxResources {
                cpu_period_us: 4,
                cpu_quota_us: 5,
                cpu_shares: 6,
                memory_limit_bytes: 7,
                oom_score_adj: 8,
                cpuset_cpus: "0-3".to_owned(),
                cpuset_cgroup: "/web".to_owned(),
                percent_ticks: 0.5,
            }),
            ports: vec![PortMapping {
                label: "http".to_owned(),
                host_port: 8080,
                to: 80,
                host_ip: "10.0.0.1".to_owned(),
            }],
        }
    }

    fn resources_told() -> wire::Resources {
        wire::Resources {
            allocated_resources: Some(wire::AllocatedTaskResources {
                cpu: Some(wire::AllocatedCpuResources { cpu_shares: 1 }),
                memory: Some(wire::AllocatedMemoryResources { memory_mb: 2, memory_max_mb: 3 }),
                networks: Vec::new(),
            }),
            linux_resources: Some(wire::LinuxResources {
                cpu_period: 4,
                cpu_quota: 5,
                cpu_shares: 6,
                memory_limit_bytes: 7,
                oom_score_adj: 8,
                cpuset_cpus: "0-3".to_owned(),
                percent_ticks: 0.5,
                cpuset_cgroup: "/web".to_owned(),
            }),
            ports: vec![wire::PortMapping {
                label: "http".to_owned(),
                value: 8080,
                to: 80,
                host_ip: "10.0.0.1".to_owned(),
            }],
        }
    }

    #[test]
    fn a_driver_is_told_all_that_was_said_of_a_task() {
        let (id, name) = (TaskId::new("0b1c/web").unwrap(), TaskName::new("web").unwrap());
        let mut config = TaskConfig::new(id, AllocationId::new("0b1c").unwrap(), name, vec![0x80]);
        config.environment = [("A".to_owned(), "a".to_owned())].into();
        config.device_environment = [("D".to_owned(), "d".to_owned())].into();
        config.resources = Some(resources_said());
        config.mounts = vec![TaskMount {
            task_path: "/data".into(),
            host_path: "/srv".into(),
            read_only: true,
            propagation_mode: "private".to_owned(),
            selinux_label: "z".to_owned(),
        }];
        config.devices = vec![TaskDevice {
            task_path: "/dev/a".into(),
            host_path: "/dev/b".into(),
            cgroup_permissions: "rw".to_owned(),
        }];
        config.user = "nobody".to_owned();
        config.allocation_dir = "/alloc".into();
        (config.stdout_path, config.stderr_path) = ("/out".into(), "/err".into());
        config.dns = Some(DnsConfig {
            servers: words(&["10.0.0.53"]),
            searches: words(&["example.com"]),
            options: words(&["ndots:2"]),
        });
        config.origin = TaskOrigin {
            job_id: "1".to_owned(),
            job_name: "2".to_owned(),
            parent_job_id: "3".to_owned(),
            task_group_name: "4".to_owned(),
            namespace: "5".to_owned(),
            node_name: "6".to_owned(),
            node_id: "7".to_owned(),
        };
        let told = wire::TaskConfig {
            id: "0b1c/web".to_owned(),
            name: "web".to_owned(),
            msgpack_driver_config: vec![0x80],
            env: [("A".to_owned(), "a".to_owned())].into(),
            device_env: [("D".to_owned(), "d".to_owned())].into(),
            resources: Some(resources_told()),
            mounts: vec![wire::Mount {
                task_path: "/data".to_owned(),
                host_path: "/srv".to_owned(),
                readonly: true,
                propagation_mode: "private".to_owned(),
                selinux_label: "z".to_owned(),
                request_name: String::new(),
            }],
            devices: vec![wire::Device {
                task_path: "/dev/a".to_owned(),
                host_path: "/dev/b".to_owned(),
                cgroup_permissions: "rw".to_owned(),
            }],
            user: "nobody".to_owned(),
            alloc_dir: "/alloc".to_owned(),
            stdout_path: "/out".to_owned(),
            stderr_path: "/err".to_owned(),
            task_group_name: "4".to_owned(),
            job_name: "2".to_owned(),
            alloc_id: "0b1c".to_owned(),
            network_isolation_spec: None,
            dns: Some(wire::DnsConfig {
                servers: words(&["10.0.0.53"]),
                searches: words(&["example.com"]),
                options: words(&["ndots:2"]),
            }),
            job_id: "1".to_owned(),
            namespace: "5".to_owned(),
            node_name: "6".to_owned(),
            node_id: "7".to_owned(),
            parent_job_id: "3".to_owned(),
        };
        assert_eq!(task_config(&config), told);
    }

    #[test]
    fn a_network_is_told_as_it_is() {
        let modes =
            [(NetworkMode::Host, 0), (NetworkMode::Group, 1), (NetworkMode::Task, 2), (NetworkMode::None, 3)];
        for (mode, number) in modes {
            let said = NetworkIsolation {
                mode,
                path: "/run/netns/a".to_owned(),
                labels: [("id".to_owned(), "a".to_owned())].into(),
                hosts_entry: Some(("web".to_owned(), "10.0.0.2".to_owned())),
            };
            let hosts = wire::HostsConfig { hostname: "web".to_owned(), address: "10.0.0.2".to_owned() };
            let told = wire::NetworkIsolationSpec {
                mode: number,
                path: "/run/netns/a".to_owned(),
                labels: [("id".to_owned(), "a".to_owned())].into(),
                hosts_config: Some(hosts),
            };
            assert_eq!(network(&said), told);
        }
    }

    #[test]
    fn a_span_of_time_is_told_to_the_nanosecond() {
        let told = |seconds, nanos| prost_types::Duration { seconds, nanos };
        assert_eq!(span(std::time::Duration::new(7, 8)), told(7, 8));
        assert_eq!(span(std::time::Duration::MAX), told(i64::MAX, 999_999_999));
    }
}
