//! The parts of the host that a task may access: mounts, devices, network and DNS.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use callboard_actors::driver::NetworkMode;
use callboard_actors::driver::client::{DnsConfig, NetworkIsolation, TaskDevice, TaskMount};
use callboard_actors::vocabulary::text::is_harmless;

use super::problem::Faults;
use super::read::absolute;
use super::suggest;
use super::table::Table;

/// The most entries of each kind in one task.
const ENTRIES_MAX: usize = 256;
const MOUNT_KEYS: &[&str] = &["host_path", "task_path", "read_only", "propagation"];
const PROPAGATIONS: &[&str] = &["private", "host-to-task", "bidirectional"];
const DEVICE_KEYS: &[&str] = &["host_path", "task_path", "permissions"];
const DNS_KEYS: &[&str] = &["servers", "searches", "options"];
const NETWORK_KEYS: &[&str] = &["mode", "path"];
const NETWORK_MODES: &[&str] = &["host", "none", "group"];

/// Reads the tables `mounts` of a task.
pub(super) fn mounts(task: &Table<'_>, faults: &mut Faults) -> Vec<TaskMount> {
    let mut mounts = Vec::new();
    for (entries, span) in several(task, "mounts", faults) {
        let table = Table::open(entries, &span, "the mount", MOUNT_KEYS, faults);
        let (host_path, task_path) = (path(&table, "host_path", faults), path(&table, "task_path", faults));
        let read_only = table.boolean("read_only", faults).unwrap_or(false);
        let propagation_mode = word(&table, "propagation", PROPAGATIONS, faults).unwrap_or_default();
        if let (Some(host_path), Some(task_path)) = (host_path, task_path) {
            let selinux_label = String::new();
            mounts.push(TaskMount { task_path, host_path, read_only, propagation_mode, selinux_label });
        }
    }
    mounts
}

/// Reads the tables `devices` of a task.
pub(super) fn devices(task: &Table<'_>, faults: &mut Faults) -> Vec<TaskDevice> {
    let mut devices = Vec::new();
    for (entries, span) in several(task, "devices", faults) {
        let table = Table::open(entries, &span, "the device", DEVICE_KEYS, faults);
        let host_path = path(&table, "host_path", faults);
        let task_path =
            if table.has("task_path") { path(&table, "task_path", faults) } else { host_path.clone() };
        let permissions = table.text("permissions", faults);
        if let Some(found) = permissions.as_ref().filter(|found| !is_permission(&found.value)) {
            let message =
                format!("`permissions` {:?} are invalid; give letters of \"rwm\", each once", found.value);
            faults.add(found.at, message);
        }
        let cgroup_permissions = permissions.map_or_else(|| "rwm".to_owned(), |found| found.value);
        if let (Some(host_path), Some(task_path)) = (host_path, task_path) {
            devices.push(TaskDevice { task_path, host_path, cgroup_permissions });
        }
    }
    devices
}

fn is_permission(text: &str) -> bool {
    let is_once = |letter: char| text.matches(letter).count() == 1;
    !text.is_empty() && text.chars().all(|letter| "rwm".contains(letter) && is_once(letter))
}

/// Reads the table `dns` of a task.
pub(super) fn dns(task: &Table<'_>, faults: &mut Faults) -> Option<DnsConfig> {
    let (entries, span) = task.table("dns", faults)?;
    let table = Table::open(entries, &span, "`dns`", DNS_KEYS, faults);
    let mut texts = |key: &str, is_fit: &dyn Fn(&str) -> bool, what: &str| {
        let mut read = Vec::new();
        for found in table.texts(key, faults).into_iter().take(ENTRIES_MAX) {
            match is_fit(&found.value) {
                true => read.push(found.value),
                false => faults.add(found.at, format!("{:?} in `{key}` is no {what}", found.value)),
            }
        }
        read
    };
    // Each becomes part of a line in `resolv.conf`.
    let is_word =
        |text: &str| !text.is_empty() && !text.chars().any(|c| c.is_whitespace() || !is_harmless(c));
    Some(DnsConfig {
        servers: texts(
            "servers",
            &|text| text.parse::<IpAddr>().is_ok(),
            "address; give one such as 10.0.0.53",
        ),
        searches: texts("searches", &is_word, "domain; give one such as example.com"),
        options: texts("options", &is_word, "option of a resolver; give one such as ndots:2"),
    })
}

/// Reads the table `network` of a task; `None` for the host's network.
pub(super) fn network(task: &Table<'_>, faults: &mut Faults) -> Option<NetworkIsolation> {
    let (entries, span) = task.table("network", faults)?;
    let table = Table::open(entries, &span, "`network`", NETWORK_KEYS, faults);
    table.require("mode", faults);
    let mode = match word(&table, "mode", NETWORK_MODES, faults)?.as_str() {
        "group" => NetworkMode::Group,
        "none" => NetworkMode::None,
        _ => NetworkMode::Host,
    };
    let path = if table.has("path") { path(&table, "path", faults) } else { None };
    match (mode, &path) {
        (NetworkMode::Group, None) => {
            faults.add(table.at, "`network` of the mode \"group\" needs the `path` of a network namespace");
        }
        (NetworkMode::Host | NetworkMode::None, Some(_)) => {
            faults.add(table.at, "only a `network` of the mode \"group\" has a `path`");
        }
        (NetworkMode::Group, Some(_)) | (NetworkMode::Host | NetworkMode::None | NetworkMode::Task, _) => {}
    }
    let path = path.map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
    let network = NetworkIsolation { mode, path, labels: BTreeMap::new(), hosts_entry: None };
    (mode != NetworkMode::Host).then_some(network)
}

fn several<'t>(task: &Table<'t>, key: &str, faults: &mut Faults) -> Vec<super::read::Entries<'t>> {
    let mut tables = task.tables(key, faults);
    if tables.len() > ENTRIES_MAX {
        let message = format!("there are {} {key}; at most {ENTRIES_MAX} are taken", tables.len());
        faults.add(tables[ENTRIES_MAX].1.start, message);
        tables.truncate(ENTRIES_MAX);
    }
    tables
}

fn path(table: &Table<'_>, key: &str, faults: &mut Faults) -> Option<PathBuf> {
    let found = table.required_text(key, faults)?;
    absolute(key, found, faults)
}

/// Reads one of these words.
fn word(table: &Table<'_>, key: &str, words: &[&str], faults: &mut Faults) -> Option<String> {
    let found = table.text(key, faults)?;
    if words.contains(&found.value.as_str()) {
        return Some(found.value);
    }
    let advice = suggest::advice(&found.value, words);
    faults.add(found.at, format!("`{key}` {:?} is unknown; {advice}", found.value));
    None
}
