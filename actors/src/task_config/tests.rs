//! Tests: missing fields are filled in, existing ones are kept, contradictions are refused.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::*;
use crate::cgroups::CgroupMode;
use crate::driver::client::{
    LinuxResources, NetworkIsolation, PortMapping, Resources, TaskConfig, TaskDevice, TaskId, TaskMount,
};
use crate::driver::{DriverCapabilities, FsIsolation, MountSupport, NetworkMode};
use crate::topology::{Core, CoreGrade, CpuList, Topology, TopologyParts};
use crate::vocabulary::{AllocationId, TaskName};

const ALLOCATION: &str = "5e0c0ad9-6a4e-4f3a-9d27-7e0b1c6f1f10";
const MIB: i64 = 1 << 20;

/// Four cores of 2,000 MHz, of which the last one is disabled; 4,000 MiB.
fn node() -> TaskNode {
    let core = |id| Core {
        id,
        node: 0,
        socket: 0,
        grade: CoreGrade::Performance,
        is_disabled: id == 3,
        base_mhz: 2_000,
        max_mhz: 0,
        guess_mhz: 0,
    };
    let cores = (0..4).map(core).collect();
    let parts = TopologyParts { nodes: vec![0], cores, ..TopologyParts::default() };
    TaskNode {
        topology: Arc::new(Topology::try_from(parts).unwrap()),
        memory_mib: Some(4_000),
        cgroups: CgroupMode::V2,
        cgroup_root: "/sys/fs/cgroup".into(),
        mounts_root: "/d/mounts".into(),
        name: "n1".to_owned(),
        id: "node-id".to_owned(),
        region: "global".to_owned(),
        datacenter: "dc1".to_owned(),
    }
}

fn capabilities(fs_isolation: FsIsolation) -> DriverCapabilities {
    DriverCapabilities {
        send_signals: true,
        exec: true,
        fs_isolation,
        network_modes: vec![NetworkMode::Host, NetworkMode::Group],
        must_create_network: false,
        mounts: MountSupport::Any,
        disable_log_collection: false,
        dynamic_workload_users: false,
    }
}

fn task() -> TaskConfig {
    let (allocation, name) = (AllocationId::new(ALLOCATION).unwrap(), TaskName::new("web").unwrap());
    let id = TaskId::new(format!("{ALLOCATION}/web/0000002a")).unwrap();
    TaskConfig {
        allocation_dir: PathBuf::from("/d/alloc").join(ALLOCATION),
        stdout_path: "/d/out".into(),
        stderr_path: "/d/err".into(),
        ..TaskConfig::new(id, allocation, name, vec![0x80])
    }
}

fn build(task: TaskConfig) -> Result<TaskConfig, TaskConfigError> {
    TaskConfigBuilder::new(task, &node(), &capabilities(FsIsolation::None)).build()
}

fn asking(ask: ResourceAsk) -> Result<TaskConfig, TaskConfigError> {
    TaskConfigBuilder::new(task(), &node(), &capabilities(FsIsolation::None)).resources(ask).build()
}

fn resources(task: &TaskConfig) -> (Resources, LinuxResources) {
    let resources = task.resources.clone().expect("they are filled in");
    let linux = resources.linux.clone().expect("both halves are");
    (resources, linux)
}

#[test]
fn a_task_that_says_nothing_has_both_halves_of_its_resources_th001_t090_t091() {
    let (resources, linux) = resources(&build(task()).unwrap());
    assert_eq!((resources.cpu_shares, resources.memory_mib, resources.memory_max_mib), (100, 300, 0));
    let expected = LinuxResources {
        cpu_shares: 100,
        memory_limit_bytes: 300 * MIB,
        percent_ticks: 100.0 / 6_000.0,
        cpuset_cgroup: format!("/sys/fs/cgroup/nomad.slice/share.slice/{ALLOCATION}.web.scope"),
        ..LinuxResources::default()
    };
    assert_eq!(linux, expected);
}

#[test]
fn what_a_task_asks_for_is_in_both_halves_t091_t092_t094() {
    let ask = |memory_max| ResourceAsk { cpu: CpuAsk::Mhz(6_000), memory_mib: 512, memory_max };
    let (whole, linux) = resources(&asking(ask(MemoryMax::Mib(1_024))).unwrap());
    assert_eq!((whole.cpu_shares, whole.memory_mib, whole.memory_max_mib), (6_000, 512, 1_024));
    assert_eq!((linux.memory_limit_bytes, linux.percent_ticks), (1_024 * MIB, 1.0));
    let (whole, linux) = resources(&asking(ask(MemoryMax::Unlimited)).unwrap());
    assert_eq!((whole.memory_max_mib, linux.memory_limit_bytes), (-1, 512 * MIB));
}

#[test]
fn cores_of_its_own_count_with_their_speed_and_have_a_group_of_their_own_t105() {
    let cores = CpuList::parse("0-1").unwrap();
    let ask = ResourceAsk { cpu: CpuAsk::Cores(cores), ..ResourceAsk::default() };
    let built = asking(ask).unwrap();
    let (whole, linux) = resources(&built);
    assert_eq!((whole.cpu_shares, &*linux.cpuset_cpus), (4_000, "0-1"));
    assert!(linux.cpuset_cgroup.contains("/reserve.slice/"), "{}", linux.cpuset_cgroup);
    assert_eq!(built.environment["NOMAD_CPU_CORES"], "0-1");
}

#[test]
fn the_path_of_the_group_is_that_of_the_version_that_there_is_t103_t105_th051() {
    let path = |cgroups: CgroupMode, cores: &str| {
        let node = TaskNode { cgroups, ..node() };
        let cpu = match cores {
            "" => CpuAsk::Mhz(100),
            cores => CpuAsk::Cores(CpuList::parse(cores).unwrap()),
        };
        let ask = ResourceAsk { cpu, ..ResourceAsk::default() };
        let none = capabilities(FsIsolation::None);
        let built = TaskConfigBuilder::new(task(), &node, &none).resources(ask).build().unwrap();
        resources(&built).1.cpuset_cgroup
    };
    assert_eq!(path(CgroupMode::V1, ""), "/sys/fs/cgroup/cpuset/nomad/share");
    assert_eq!(path(CgroupMode::V1, "2"), format!("/sys/fs/cgroup/cpuset/nomad/reserve/{ALLOCATION}.web"));
    let none = path(CgroupMode::None { reason: "switched off".to_owned() }, "");
    assert_eq!(none, path(CgroupMode::V2, ""), "drivers rebuild the name whatever the host does");
}

#[test]
fn what_there_is_not_is_refused_with_both_numbers_t206() {
    let refused = |ask| asking(ask).unwrap_err().to_string();
    let cpu = refused(ResourceAsk { cpu: CpuAsk::Mhz(6_001), ..ResourceAsk::default() });
    assert!(cpu.contains("6001 MHz") && cpu.contains("6000 MHz"), "{cpu}");
    let memory = refused(ResourceAsk { memory_mib: 4_001, ..ResourceAsk::default() });
    assert!(memory.contains("4001 MiB of memory") && memory.contains("4000 MiB"), "{memory}");
    let max = refused(ResourceAsk { memory_max: MemoryMax::Mib(9_000), ..ResourceAsk::default() });
    assert!(max.contains("9000 MiB of memory_max"), "{max}");
    let cores = CpuAsk::Cores(CpuList::parse("2-3").unwrap());
    let cores = refused(ResourceAsk { cpu: cores, ..ResourceAsk::default() });
    assert!(cores.contains("cores 2-3") && cores.contains("0-2"), "{cores}");
    let backwards = ResourceAsk { memory_max: MemoryMax::Mib(299), ..ResourceAsk::default() };
    assert_eq!(asking(backwards), Err(TaskConfigError::MemoryMax { memory: 300, max: 299 }));
}

#[test]
fn a_host_that_fills_its_resources_is_not_overruled_th002() {
    let own = Resources {
        cpu_shares: 7,
        memory_mib: 8,
        memory_max_mib: 9,
        linux: Some(LinuxResources {
            cpu_period_us: 100_000,
            cpu_quota_us: 5_000,
            cpu_shares: 12,
            memory_limit_bytes: 13,
            oom_score_adj: 14,
            cpuset_cpus: "1".to_owned(),
            cpuset_cgroup: "/sys/fs/cgroup/mine".to_owned(),
            percent_ticks: 0.25,
        }),
        ports: vec![],
    };
    let built = build(TaskConfig { resources: Some(own.clone()), ..task() }).unwrap();
    assert_eq!(built.resources, Some(own));
    // One half is enough: the other one is derived from it.
    let half = Resources { cpu_shares: 600, memory_mib: 100, ..Resources::default() };
    let (whole, linux) = resources(&build(TaskConfig { resources: Some(half), ..task() }).unwrap());
    assert_eq!((whole.cpu_shares, linux.cpu_shares, linux.percent_ticks), (600, 600, 0.1));
    assert_eq!((whole.memory_max_mib, linux.memory_limit_bytes), (0, 100 * MIB));
}

#[test]
fn resources_that_contradict_themselves_are_refused_before_the_call_th002() {
    let linux = |change: &dyn Fn(&mut LinuxResources)| {
        let mut linux = LinuxResources::default();
        change(&mut linux);
        let resources = Some(Resources { linux: Some(linux), ..Resources::default() });
        build(TaskConfig { resources, ..task() }).unwrap_err().to_string()
    };
    for part in [-0.5, 1.5, f64::NAN] {
        assert!(linux(&|linux| linux.percent_ticks = part).contains("percent_ticks"));
    }
    assert!(linux(&|linux| linux.cpuset_cpus = "zero".to_owned()).contains("cores zero"));
    assert!(linux(&|linux| linux.memory_limit_bytes = -1).contains("memory_limit_bytes"));
    let negative = Some(Resources { cpu_shares: -1, ..Resources::default() });
    let refused = build(TaskConfig { resources: negative, ..task() }).unwrap_err().to_string();
    assert!(refused.contains("-1 as cpu_shares"), "{refused}");
}

#[test]
fn the_isolation_of_the_driver_decides_the_three_directories_th003_t080() {
    let seen = |isolation| {
        let (node, capabilities) = (node(), capabilities(isolation));
        let built = TaskConfigBuilder::new(task(), &node, &capabilities).build().unwrap();
        ["ALLOC", "TASK", "SECRETS"].map(|name| built.environment[&format!("NOMAD_{name}_DIR")].clone())
    };
    let host = format!("/d/alloc/{ALLOCATION}");
    let own = [format!("{host}/alloc"), format!("{host}/web/local"), format!("{host}/web/secrets")];
    assert_eq!(seen(FsIsolation::None), own);
    for isolation in [FsIsolation::Chroot, FsIsolation::Image] {
        assert_eq!(seen(isolation), ["/alloc", "/local", "/secrets"]);
    }
    let mounted = format!("/d/mounts/{ALLOCATION}-web");
    let own = ["alloc", "local", "secrets"].map(|name| format!("{mounted}/{name}"));
    assert_eq!(seen(FsIsolation::Unveil), own);
    let nowhere = TaskNode { mounts_root: PathBuf::new(), ..node() };
    let refused = TaskConfigBuilder::new(task(), &nowhere, &capabilities(FsIsolation::Unveil)).build();
    assert_eq!(refused, Err(TaskConfigError::MountsRoot));
}

#[test]
fn a_task_is_told_of_itself_in_its_environment_th001_t080() {
    let mut task = task();
    task.origin.parent_job_id = "parent".to_owned();
    let environment = build(task).unwrap().environment;
    let told: Vec<_> = environment.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let expected = [
        format!("NOMAD_ALLOC_DIR=/d/alloc/{ALLOCATION}/alloc"),
        format!("NOMAD_ALLOC_ID={ALLOCATION}"),
        "NOMAD_ALLOC_INDEX=0".to_owned(),
        "NOMAD_ALLOC_NAME=web.web[0]".to_owned(),
        "NOMAD_CPU_LIMIT=100".to_owned(),
        "NOMAD_DC=dc1".to_owned(),
        "NOMAD_GROUP_NAME=web".to_owned(),
        "NOMAD_JOB_ID=web".to_owned(),
        "NOMAD_JOB_NAME=web".to_owned(),
        "NOMAD_JOB_PARENT_ID=parent".to_owned(),
        "NOMAD_MEMORY_LIMIT=300".to_owned(),
        "NOMAD_NAMESPACE=default".to_owned(),
        "NOMAD_REGION=global".to_owned(),
        format!("NOMAD_SECRETS_DIR=/d/alloc/{ALLOCATION}/web/secrets"),
        "NOMAD_SHORT_ALLOC_ID=5e0c0ad9".to_owned(),
        format!("NOMAD_TASK_DIR=/d/alloc/{ALLOCATION}/web/local"),
        "NOMAD_TASK_NAME=web".to_owned(),
    ];
    assert_eq!(told, expected);
}

#[test]
fn what_was_given_by_name_wins_over_devices_over_us_over_the_host_t083_t075() {
    let variables = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    let given = TaskConfig {
        environment: variables(&[("NOMAD_DC", "mine"), ("GPU", "mine")]),
        device_environment: variables(&[("GPU", "0"), ("CARD", "1"), ("PATH", "/card")]),
        ..task()
    };
    let host = variables(&[("PATH", "/bin"), ("LANG", "C"), ("NOMAD_REGION", "host")]);
    let built = |isolation| {
        let (node, capabilities) = (node(), capabilities(isolation));
        let builder = TaskConfigBuilder::new(given.clone(), &node, &capabilities);
        builder.host_environment(host.clone()).meta(variables(&[("a-b", "m")])).build().unwrap().environment
    };
    let environment = built(FsIsolation::None);
    let value = |name: &str| environment.get(name).map(String::as_str);
    assert_eq!((value("NOMAD_DC"), value("GPU"), value("CARD")), (Some("mine"), Some("mine"), Some("1")));
    assert_eq!((value("PATH"), value("LANG")), (Some("/card"), Some("C")));
    assert_eq!(value("NOMAD_REGION"), Some("global"));
    assert_eq!((value("NOMAD_META_a_b"), value("NOMAD_META_A_B")), (Some("m"), Some("m")));
    assert_eq!(built(FsIsolation::Image).get("LANG"), None, "an image has its own");
}

#[test]
fn of_the_host_only_what_is_listed_comes_in_and_never_a_token_th061_t082() {
    let list =
        ["PATH", "TZ", "VAULT_TOKEN", "AWS_SECRET_ACCESS_KEY", "PLUGIN_UNIX_SOCKET_DIR", "NOMAD_TOKEN"];
    let list = list.map(str::to_owned);
    let variables = list.iter().map(String::as_str).chain(["HOME", "EDITOR"]);
    let variables = variables.map(|name| (name.to_owned(), "x".to_owned()));
    let names: Vec<_> = inherited(&list, variables).into_keys().collect();
    assert_eq!(names, ["PATH", "TZ"]);
    for name in ["github_token", "DB_PASSWORD", "AWS_ACCESS_KEY_ID", "NOMAD_LICENSE", "API_KEY"] {
        assert!(is_never_inherited(name), "{name}");
    }
    for name in HOST_VARIABLES.into_iter().chain(["KEYBOARD", "TOKENIZER_THREADS", "http_proxy"]) {
        assert!(!is_never_inherited(name), "{name}");
    }
}

#[test]
fn ports_are_told_as_they_are_reached_and_as_they_are_to_be_listened_on_t081() {
    let port =
        PortMapping { label: "http-1".to_owned(), host_port: 8_080, to: 80, host_ip: "10.0.0.1".to_owned() };
    let resources = Some(Resources { ports: vec![port], ..Resources::default() });
    let shared = TaskConfig { resources, ..task() };
    let apart = NetworkIsolation {
        mode: NetworkMode::Group,
        path: "/run/netns/a".to_owned(),
        labels: BTreeMap::new(),
        hosts_entry: None,
    };
    let own = TaskConfig { network: Some(apart), ..shared.clone() };
    let told = |task| {
        let environment = build(task).unwrap().environment;
        ["IP", "PORT", "ADDR", "HOST_PORT"].map(|name| environment[&format!("NOMAD_{name}_http_1")].clone())
    };
    assert_eq!(told(shared), ["10.0.0.1", "8080", "10.0.0.1:8080", "8080"]);
    assert_eq!(told(own), ["10.0.0.1", "80", "10.0.0.1:8080", "8080"]);
}

#[test]
fn what_a_driver_cannot_do_is_refused_before_the_call_th003_t077_t078() {
    let mount = TaskMount {
        task_path: "/data".into(),
        host_path: "/srv".into(),
        read_only: true,
        propagation_mode: String::new(),
        selinux_label: String::new(),
    };
    let mounting = TaskConfig { mounts: vec![mount.clone()], ..task() };
    assert_eq!(build(mounting.clone()).unwrap().mounts, std::slice::from_ref(&mount));
    let (node, without) =
        (node(), DriverCapabilities { mounts: MountSupport::None, ..capabilities(FsIsolation::None) });
    let refused = TaskConfigBuilder::new(mounting, &node, &without).build();
    assert_eq!(refused, Err(TaskConfigError::Mounts(1)));
    let odd = TaskMount { propagation_mode: "rshared".to_owned(), ..mount };
    let odd = build(TaskConfig { mounts: vec![odd], ..task() }).unwrap_err().to_string();
    assert!(odd.contains("host-to-task"), "{odd}");
    let device = TaskDevice {
        task_path: "/dev/a".into(),
        host_path: "/dev/b".into(),
        cgroup_permissions: "rwx".to_owned(),
    };
    let odd = build(TaskConfig { devices: vec![device], ..task() }).unwrap_err().to_string();
    assert!(odd.contains("/dev/b") && odd.contains("r, w and m"), "{odd}");
    let network = |mode, path: &str| {
        let (path, labels) = (path.to_owned(), BTreeMap::new());
        let network = Some(NetworkIsolation { mode, path, labels, hosts_entry: None });
        build(TaskConfig { network, ..task() })
    };
    assert!(network(NetworkMode::Group, "/run/netns/a").is_ok());
    assert_eq!(network(NetworkMode::Group, ""), Err(TaskConfigError::NetworkPath));
    let none = network(NetworkMode::None, "").unwrap_err().to_string();
    assert!(none.contains("kind none") && none.contains("host, group"), "{none}");
}

#[test]
fn a_driver_that_wants_a_user_is_given_one_or_not_called_th003_t116() {
    let (node, mut wants) = (node(), capabilities(FsIsolation::Unveil));
    wants.dynamic_workload_users = true;
    let refused = TaskConfigBuilder::new(task(), &node, &wants).build();
    assert_eq!(refused, Err(TaskConfigError::User));
    let task = TaskConfig { user: "nomad-80001".to_owned(), ..task() };
    assert!(TaskConfigBuilder::new(task, &node, &wants).build().is_ok());
}

#[test]
fn output_that_is_not_collected_goes_where_the_driver_bears_it_th003_t061_t065() {
    let silent = TaskConfig { stdout_path: PathBuf::new(), stderr_path: PathBuf::new(), ..task() };
    let paths = |isolation, is_wanted: bool, disables: bool| {
        let node = node();
        let capabilities = DriverCapabilities { disable_log_collection: disables, ..capabilities(isolation) };
        let builder = TaskConfigBuilder::new(silent.clone(), &node, &capabilities);
        let builder = if is_wanted { builder } else { builder.without_output() };
        builder.build().map(|task| (task.stdout_path, task.stderr_path))
    };
    let nowhere = Ok((PathBuf::from("/dev/null"), PathBuf::from("/dev/null")));
    assert_eq!(paths(FsIsolation::Image, true, true), nowhere);
    assert_eq!(paths(FsIsolation::None, false, false), nowhere);
    assert_eq!(paths(FsIsolation::None, true, false), Err(TaskConfigError::Output));
    assert_eq!(paths(FsIsolation::Unveil, false, false), Err(TaskConfigError::Output));
    assert_eq!(log_way(&capabilities(FsIsolation::Unveil), false), LogWay::ReadAndDiscarded);
    let given =
        TaskConfigBuilder::new(task(), &node(), &capabilities(FsIsolation::None)).without_output().build();
    assert_eq!(given.unwrap().stdout_path, PathBuf::from("/d/out"), "what the host gives is kept");
}

#[test]
fn names_that_drivers_make_paths_of_are_what_they_count_on_t041_t070_t109() {
    let ids =
        ["web", &format!("{ALLOCATION}/web"), &format!("{ALLOCATION}/web/"), &format!("{ALLOCATION}/job/1")];
    for id in ids {
        let refused = build(TaskConfig { id: TaskId::new(id).unwrap(), ..task() });
        assert!(matches!(refused, Err(TaskConfigError::TaskId { .. })), "{id}");
    }
    for path in ["/d/alloc/web", ALLOCATION, ""] {
        let refused = build(TaskConfig { allocation_dir: path.into(), ..task() });
        assert!(matches!(refused, Err(TaskConfigError::AllocationDirectory { .. })), "{path}");
    }
}
