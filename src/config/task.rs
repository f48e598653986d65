//! Reads a `[[task]]` table.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Duration;

use callboard_actors::vocabulary::{AllocationId, DriverName, MalformedName, TaskName};
use toml::de::DeTable;

use super::problem::Faults;
use super::read::span_of_time;
use super::table::Table;
use super::volume_use::{self, VolumePlugins};
use super::words::{self, Names};
use super::{TaskConfig, TaskRestart, host, logs, places, resources, suggest};
use crate::exec::signal_named;

const KEYS: &[&str] = &[
    "name",
    "driver",
    "config",
    "env",
    "user",
    "restart",
    "start",
    "stop_grace",
    "kill_signal",
    "shutdown_delay",
    "look_again",
    "resources",
    "logs",
    "mounts",
    "devices",
    "volumes",
    "network",
    "dns",
    "job",
    "group",
    "namespace",
    "meta",
];
/// The shortest interval between checks of an unreachable task: each check asks its driver and looks at the processes of the machine.
const LOOK_LEAST: Duration = Duration::from_secs(1);
/// The longest name of a user, in bytes.
const USER_BYTES_MAX: usize = 256;

/// The context of a task: the whole text, the names of all drivers, and all volumes.
pub(super) struct Surroundings<'t> {
    pub(super) text: &'t str,
    pub(super) drivers: BTreeSet<String>,
    pub(super) volumes: &'t VolumePlugins,
}

/// Reads one task. `seen` holds the names of allocations and earlier tasks.
pub(super) fn read(
    entries: &DeTable<'_>,
    span: &Range<usize>,
    surroundings: &Surroundings<'_>,
    seen: &mut Names,
    faults: &mut Faults,
) -> Option<TaskConfig> {
    let table = Table::open(entries, span, "the task", KEYS, faults);
    let name = words::name(&table, "allocation or task", task_name, seen, faults);
    let driver = driver(&table, &surroundings.drivers, faults);
    let (config, config_at) = words::plugin_config(&table, faults);
    let environment = words::environment(&table, |_, _| Ok(()), faults);
    let user = user(&table, faults);
    let (mounts, devices) = (places::mounts(&table, faults), places::devices(&table, faults));
    let volumes = volume_use::of_task(&table, &mounts, surroundings.volumes, faults);
    let mut names = |key: &str| host::name(&table, key, faults).unwrap_or_default();
    let (job, group, namespace) = (names("job"), names("group"), names("namespace"));
    let read = TaskConfig {
        config,
        config_places: words::config_places(&table, surroundings.text, config_at),
        environment,
        user,
        restart: restart(&table, faults),
        start: table.boolean("start", faults).unwrap_or(true),
        stop_grace: span_of_time(&table, "stop_grace", Duration::ZERO, faults)
            .unwrap_or(TaskConfig::STOP_GRACE),
        kill_signal: kill_signal(&table, faults),
        shutdown_delay: span_of_time(&table, "shutdown_delay", Duration::ZERO, faults).unwrap_or_default(),
        look_again: span_of_time(&table, "look_again", LOOK_LEAST, faults).unwrap_or(TaskConfig::LOOK_AGAIN),
        resources: resources::read(&table, faults),
        logs: logs::read(table.table("logs", faults), faults),
        mounts,
        devices,
        volumes,
        network: places::network(&table, faults),
        dns: places::dns(&table, faults),
        job,
        group,
        namespace,
        meta: meta(&table, faults),
        ..TaskConfig::new(name?, driver?)
    };
    Some(read)
}

/// A task has an allocation of its own, with the same name.
fn task_name(text: &str) -> Result<AllocationId, MalformedName> {
    TaskName::new(text).and_then(|name| AllocationId::new(name.as_str()))
}

fn driver(table: &Table<'_>, drivers: &BTreeSet<String>, faults: &mut Faults) -> Option<DriverName> {
    let found = table.required_text("driver", faults)?;
    if !drivers.contains(&found.value) {
        let known: Vec<_> = drivers.iter().map(String::as_str).collect();
        let advice = match suggest::nearest(&found.value, &known) {
            Some(word) => format!("did you mean `{word}`?"),
            None => "add it".to_owned(),
        };
        faults.add(found.at, format!("there is no [[driver]] named {:?}; {advice}", found.value));
        return None;
    }
    // A malformed driver name was already reported as a problem.
    DriverName::new(&found.value).ok()
}

fn user(table: &Table<'_>, faults: &mut Faults) -> String {
    let Some(found) = table.text("user", faults) else { return String::new() };
    if found.value.len() > USER_BYTES_MAX || found.value.chars().any(char::is_control) {
        let message = format!(
            "`user` {:?} cannot be a user; give a name of at most {USER_BYTES_MAX} bytes",
            found.value.chars().take(24).collect::<String>()
        );
        faults.add(found.at, message);
        return String::new();
    }
    found.value
}

fn restart(table: &Table<'_>, faults: &mut Faults) -> TaskRestart {
    let Some(found) = table.text("restart", faults) else { return TaskRestart::OnFailure };
    let words = TaskRestart::ALL.map(TaskRestart::as_str);
    match TaskRestart::ALL.into_iter().find(|restart| restart.as_str() == found.value) {
        Some(restart) => restart,
        None => {
            let advice = suggest::advice(&found.value, &words);
            faults
                .add(found.at, format!("`restart` {:?} is no way to restart a task; {advice}", found.value));
            TaskRestart::OnFailure
        }
    }
}

/// Reads the name of a signal as drivers accept it: `int` becomes `SIGINT`.
fn kill_signal(table: &Table<'_>, faults: &mut Faults) -> String {
    let Some(found) = table.text("kill_signal", faults) else { return String::new() };
    if let Some(name) = signal_named(&found.value) {
        return name.to_owned();
    }
    faults.add(found.at, format!("`kill_signal` {:?} is no signal; give a name such as SIGINT", found.value));
    String::new()
}

/// Reads metadata, which become variables: names consist of letters, digits, '-', '_' and '.'.
fn meta(table: &Table<'_>, faults: &mut Faults) -> BTreeMap<String, String> {
    let mut meta = BTreeMap::new();
    for (name, found) in table.text_map("meta", faults) {
        let is_name =
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
        if !is_name || found.value.contains('\0') {
            faults.add(
                found.at,
                format!(
                    "`meta` holds {name:?}, which cannot be a variable; use letters, digits, '-', '_' and '.'"
                ),
            );
        }
        meta.insert(name, found.value);
    }
    meta
}
