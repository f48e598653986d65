//! The environment of a task (T080 to T083, TH061).

use std::collections::BTreeMap;

use super::node::TaskNode;
use crate::allocdir::{Layout, TaskNames};
use crate::driver::client::{Resources, TaskConfig};
use crate::driver::{FsIsolation, NetworkMode};

/// The variables of the host that tasks inherit by default.
pub const HOST_VARIABLES: [&str; 3] = ["PATH", "LANG", "TZ"];

/// Parts of the names of variables with secrets.
const SECRET_PARTS: [&str; 11] = [
    "TOKEN",
    "TOKENS",
    "SECRET",
    "SECRETS",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "CREDENTIALS",
    "LICENSE",
    "APIKEY",
];
/// Prefixes of variables about the host's own plugins, processes and location, which would mislead a task.
const OWN_PREFIXES: [&str; 3] = ["PLUGIN_", "CALLBOARD_", "NOMAD_"];

/// Whether a variable of the host is never inherited by a task, even if it is listed: tokens and other secrets, and
/// variables about the host itself (TH031, TH061). A task that needs such a value gets it explicitly.
#[must_use]
pub fn is_never_inherited(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let is_key = name == "KEY" || name.ends_with("_KEY") || name.contains("_KEY_");
    is_key
        || name.split('_').any(|part| SECRET_PARTS.contains(&part))
        || OWN_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// The inherited variables: those on this list, without those that are never inherited (TH061).
#[must_use]
pub fn inherited(
    list: &[String],
    variables: impl IntoIterator<Item = (String, String)>,
) -> BTreeMap<String, String> {
    let is_listed = |name: &String| list.contains(name) && !is_never_inherited(name);
    variables.into_iter().filter(|(name, _)| is_listed(name)).collect()
}

/// The sources of an environment, besides the task.
pub(super) struct Sources<'s> {
    pub(super) node: &'s TaskNode,
    pub(super) isolation: FsIsolation,
    pub(super) host: &'s BTreeMap<String, String>,
    pub(super) meta: &'s BTreeMap<String, String>,
}

/// The whole environment of a task: inherited variables, then variables about the task, then devices, then explicit ones.
/// Later ones take precedence (T083).
pub(super) fn fill(
    task: &TaskConfig,
    resources: &Resources,
    sources: &Sources<'_>,
) -> BTreeMap<String, String> {
    let mut environment = BTreeMap::new();
    // An image has its own environment.
    if sources.isolation != FsIsolation::Image {
        environment.extend(sources.host.clone());
    }
    environment.extend(directories(task, sources));
    environment.extend(names(task, sources.node));
    environment.extend(limits(resources));
    environment.extend(ports(task, resources));
    for (name, value) in sources.meta {
        environment.insert(format!("NOMAD_META_{}", variable(&name.to_uppercase())), value.clone());
        environment.insert(format!("NOMAD_META_{}", variable(name)), value.clone());
    }
    environment.extend(task.device_environment.clone());
    environment.extend(task.environment.clone());
    environment
}

fn directories(task: &TaskConfig, sources: &Sources<'_>) -> [(String, String); 3] {
    let names = TaskNames { allocation: task.allocation.clone(), task: task.name.clone() };
    // The allocation's directory is in the common root, under the allocation's id.
    let root = task.allocation_dir.parent().unwrap_or(&task.allocation_dir);
    let seen = Layout::of(root, &sources.node.mounts_root, &names).seen(sources.isolation);
    [("NOMAD_ALLOC_DIR", seen.alloc), ("NOMAD_TASK_DIR", seen.local), ("NOMAD_SECRETS_DIR", seen.secrets)]
        .map(|(name, path)| (name.to_owned(), path.to_string_lossy().into_owned()))
}

fn names(task: &TaskConfig, node: &TaskNode) -> Vec<(String, String)> {
    let origin = &task.origin;
    let allocation = task.allocation.as_str();
    let short: String = allocation.chars().take(8).collect();
    let allocation_name = format!("{}.{}[0]", origin.job_name, origin.task_group_name);
    let always = [
        ("NOMAD_ALLOC_ID", allocation),
        ("NOMAD_SHORT_ALLOC_ID", &short),
        ("NOMAD_ALLOC_NAME", &allocation_name),
        ("NOMAD_ALLOC_INDEX", "0"),
        ("NOMAD_GROUP_NAME", &origin.task_group_name),
        ("NOMAD_TASK_NAME", task.name.as_str()),
        ("NOMAD_JOB_ID", &origin.job_id),
        ("NOMAD_JOB_NAME", &origin.job_name),
        ("NOMAD_DC", &node.datacenter),
        ("NOMAD_REGION", &node.region),
        ("NOMAD_NAMESPACE", &origin.namespace),
    ];
    let parent = [("NOMAD_JOB_PARENT_ID", &*origin.parent_job_id)];
    let told = always.into_iter().chain(parent.into_iter().filter(|(_, value)| !value.is_empty()));
    told.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// Its limits; zero or empty ones are omitted.
fn limits(resources: &Resources) -> Vec<(String, String)> {
    let cores = resources.linux.as_ref().map_or("", |linux| &linux.cpuset_cpus);
    let numbers = [
        ("NOMAD_CPU_LIMIT", resources.cpu_shares),
        ("NOMAD_MEMORY_LIMIT", resources.memory_mib),
        ("NOMAD_MEMORY_MAX_LIMIT", resources.memory_max_mib),
    ];
    let numbers = numbers.into_iter().filter(|(_, number)| *number > 0);
    let mut told: Vec<_> = numbers.map(|(name, number)| (name.to_owned(), number.to_string())).collect();
    if !cores.is_empty() {
        told.push(("NOMAD_CPU_CORES".to_owned(), cores.to_owned()));
    }
    told
}

/// Its ports (T081): as others reach it, and in its own network the port to listen on.
fn ports(task: &TaskConfig, resources: &Resources) -> Vec<(String, String)> {
    let is_apart = task.network.as_ref().is_some_and(|network| network.mode != NetworkMode::Host);
    let mut told = Vec::new();
    for port in &resources.ports {
        let inside = if is_apart && port.to != 0 { port.to } else { port.host_port };
        let address = match port.host_ip.contains(':') {
            true => format!("[{}]:{}", port.host_ip, port.host_port),
            false => format!("{}:{}", port.host_ip, port.host_port),
        };
        let label = variable(&port.label);
        let values = [
            ("IP", port.host_ip.clone()),
            ("PORT", inside.to_string()),
            ("ADDR", address.clone()),
            ("HOST_IP", port.host_ip.clone()),
            ("HOST_PORT", port.host_port.to_string()),
            ("HOST_ADDR", address),
        ];
        told.extend(values.map(|(what, value)| (format!("NOMAD_{what}_{label}"), value)));
    }
    told
}

fn variable(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect()
}
