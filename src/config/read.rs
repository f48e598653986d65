//! Reads the configuration.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use callboard_actors::vocabulary::SocketPath;
use callboard_actors::vocabulary::text::is_harmless;
use toml::de::DeTable;

use super::problem::Faults;
use super::table::{Found, Table, Whole};
use super::volume_use::VolumePlugins;
use super::words::Names;
use super::{
    ALLOCATIONS_MAX, AllocationConfig, Config, DRIVERS_MAX, DriverConfig, PluginPolicy, RestartPolicy,
    TASKS_MAX, TaskConfig, VOLUMES_MAX, VolumeConfig, allocation, driver, failover, host, task, volume,
    volume_sharing,
};
use crate::duration::parse_duration;

/// A table in a list, with its position.
pub(super) type Entries<'t> = (&'t DeTable<'t>, Range<usize>);

const ROOT_KEYS: &[&str] = &[
    "data_dir",
    "admin_socket",
    "runtime_dir",
    "plugin_dir",
    "allow_plugins",
    "block_plugins",
    "strict",
    "restart",
    "failover",
    "allocation",
    "driver",
    "task",
    "volume",
    "host",
];
const RESTART_KEYS: &[&str] = &["attempts", "window", "delay"];
/// The most restarts within one window.
const ATTEMPTS_MAX: u32 = 10_000;
/// The longest duration in a configuration.
const SPAN_LONGEST: Duration = Duration::from_secs(30 * 24 * 3_600);

/// The purpose of reading a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To start its host.
    Start,
    /// To send requests to its host, whose programs may be gone meanwhile.
    Ask,
}

pub(super) fn config(text: &str, purpose: Purpose) -> Result<Config, Faults> {
    let mut faults = Faults::default();
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let at = error.span().map_or(0, |span| span.start);
        faults.add(at, error.message().to_owned());
    }
    if !faults.is_empty() {
        // The parser's result for broken text would only cause misleading problems.
        return Err(faults);
    }
    let root = Table::open(document.get_ref(), &(0..0), "the configuration", ROOT_KEYS, &mut faults);
    let data_dir = data_dir(&root, &mut faults);
    let mut names = Names::new();
    let written = Written::find(&root, &mut faults);
    let allocations = allocations(&root, &written, &mut names, &mut faults);
    let volumes = volumes(&written, &mut faults);
    let plugins = plugins(&root, &mut faults);
    let (drivers, driver_names) = drivers(&root, text, &mut faults);
    let surroundings = task::Surroundings { text, drivers: driver_names, volumes: &written.volume_plugins };
    let tasks = tasks(&written, &surroundings, &mut names, &mut faults);
    volume_sharing::check(&volumes, &written.allocations, &written.tasks, &mut faults);
    let config = Config {
        admin_socket: admin_socket(&root, &mut faults),
        runtime_dir: root
            .text("runtime_dir", &mut faults)
            .and_then(|found| absolute("runtime_dir", found, &mut faults)),
        restart: restart(&root, &mut faults),
        failover: failover::read(&root, &allocations, &mut faults),
        plugins,
        allocations,
        drivers,
        tasks,
        volumes,
        host: host::read(&root, &mut faults),
        data_dir: data_dir.unwrap_or_default(),
        warnings: Vec::new(),
    };
    if purpose == Purpose::Start {
        faults.start();
    }
    if faults.is_empty() { Ok(Config { warnings: faults.warnings(text), ..config }) } else { Err(faults) }
}

fn data_dir(root: &Table<'_>, faults: &mut Faults) -> Option<PathBuf> {
    let found = root.required_text("data_dir", faults)?;
    let at = found.at;
    let path = absolute("data_dir", found, faults)?;
    if is_root(&path) {
        faults
            .add(at, "`data_dir` must not be /; give it a directory of its own, such as /var/lib/callboard");
    } else if path.exists() && !path.is_dir() {
        faults.add(at, format!("`data_dir` {} is a file; name a directory", path.display()));
    }
    Some(path)
}

/// Whether a path leads to the root, also through `..`.
fn is_root(path: &Path) -> bool {
    let depth = path.components().fold(0_usize, |depth, component| match component {
        Component::Normal(_) => depth + 1,
        Component::ParentDir => depth.saturating_sub(1),
        Component::Prefix(_) | Component::RootDir | Component::CurDir => depth,
    });
    depth == 0
}

fn admin_socket(root: &Table<'_>, faults: &mut Faults) -> Option<SocketPath> {
    let found = root.text("admin_socket", faults)?;
    SocketPath::new(&found.value)
        .map_err(|error| faults.add(found.at, format!("`admin_socket`: {error}")))
        .ok()
}

pub(super) fn absolute(key: &str, found: Found<String>, faults: &mut Faults) -> Option<PathBuf> {
    if !Path::new(&found.value).is_absolute() {
        let message = format!("`{key}` {:?} is a relative path; give an absolute one", found.value);
        faults.add(found.at, message);
        return None;
    }
    if let Some(character) = found.value.chars().find(|c| !is_harmless(*c)) {
        let message =
            format!("`{key}` {:?} holds {character:?}; control characters are not allowed", found.value);
        faults.add(found.at, message);
        return None;
    }
    Some(PathBuf::from(found.value))
}

fn restart(root: &Table<'_>, faults: &mut Faults) -> RestartPolicy {
    let usual = RestartPolicy::default();
    let Some((entries, span)) = root.table("restart", faults) else { return usual };
    let table = Table::open(entries, &span, "`restart`", RESTART_KEYS, faults);
    let window = span_of_time(&table, "window", Duration::from_millis(1), faults);
    let attempts = attempts(&table, faults);
    // A pause of zero never grows, and nothing else would limit the restarts.
    let least = if attempts == Some(None) { Duration::from_millis(1) } else { Duration::ZERO };
    let delay = span_of_time(&table, "delay", least, faults);
    let policy = RestartPolicy::new(
        attempts.flatten().unwrap_or(RestartPolicy::ATTEMPTS),
        window.unwrap_or(RestartPolicy::WINDOW),
        delay.unwrap_or(usual.backoff.first),
    );
    if attempts == Some(None) { RestartPolicy { budget: None, ..policy } } else { policy }
}

/// The most restarts within a window; `Some(None)` for any number of them.
fn attempts(table: &Table<'_>, faults: &mut Faults) -> Option<Option<u32>> {
    let found = table.whole_or_text("attempts", faults)?;
    match &found.value {
        Whole::Text(word) if word == "forever" => Some(None),
        Whole::Text(word) => {
            let message =
                format!("`attempts` {word:?} is no number of restarts; give a whole number, or \"forever\"");
            faults.add(found.at, message);
            None
        }
        Whole::Number(_) => table.number("attempts", ATTEMPTS_MAX, faults).map(Some),
    }
}

/// Reads a duration of at least `least`.
pub(super) fn span_of_time(
    table: &Table<'_>,
    key: &str,
    least: Duration,
    faults: &mut Faults,
) -> Option<Duration> {
    let found = table.text(key, faults)?;
    read_span(key, &found.value, least).map_err(|message| faults.add(found.at, message)).ok()
}

/// Reads the text of a duration of at least `least`.
pub(super) fn read_span(key: &str, text: &str, least: Duration) -> Result<Duration, String> {
    match parse_duration(text) {
        Ok(span) if span < least => Err(format!("`{key}` is {text:?}; give at least {least:?}")),
        Ok(span) if span > SPAN_LONGEST => Err(format!("`{key}` is {text:?}; give at most 720h")),
        Ok(span) => Ok(span),
        Err(error) => Err(format!("`{key}`: {error}")),
    }
}

fn plugins(root: &Table<'_>, faults: &mut Faults) -> PluginPolicy {
    let directory = root.text("plugin_dir", faults);
    let names = |found: Vec<Found<String>>| found.into_iter().map(|found| found.value).collect();
    let has_allow_list = root.has("allow_plugins");
    let allow = names(root.texts("allow_plugins", faults));
    PluginPolicy {
        directory: directory.and_then(|found| absolute("plugin_dir", found, faults)),
        allow: has_allow_list.then_some(allow),
        block: names(root.texts("block_plugins", faults)),
    }
}

/// The tables of a list. More than `most` are a problem; the caller reads only the first `most`.
fn several<'t>(root: &Table<'t>, key: &str, most: usize, faults: &mut Faults) -> Vec<Entries<'t>> {
    let tables = root.tables(key, faults);
    if tables.len() > most {
        let message = format!("there are {} {key}s; at most {most} are run", tables.len());
        faults.add(tables[most].1.start, message);
    }
    tables
}

/// The tables that refer to each other, with their text, valid or not.
struct Written<'t> {
    allocations: Vec<Entries<'t>>,
    volumes: Vec<Entries<'t>>,
    tasks: Vec<Entries<'t>>,
    volume_plugins: VolumePlugins,
}

impl<'t> Written<'t> {
    fn find(root: &Table<'t>, faults: &mut Faults) -> Self {
        let allocations = several(root, "allocation", ALLOCATIONS_MAX, faults);
        let volumes = several(root, "volume", VOLUMES_MAX, faults);
        let volume_plugins = volume::written_volumes(&volumes);
        let tasks = several(root, "task", TASKS_MAX, faults);
        Self { allocations, volumes, tasks, volume_plugins }
    }
}

fn allocations(
    root: &Table<'_>,
    written: &Written<'_>,
    names: &mut Names,
    faults: &mut Faults,
) -> Vec<AllocationConfig> {
    let strict = root.boolean("strict", faults);
    let volumes = &written.volume_plugins;
    let read =
        |(entries, span): &Entries<'_>| allocation::read(entries, span, strict, volumes, names, faults);
    written.allocations.iter().take(ALLOCATIONS_MAX).filter_map(read).collect()
}

fn volumes(written: &Written<'_>, faults: &mut Faults) -> Vec<VolumeConfig> {
    let served = volume::Served::by(&written.allocations);
    let mut seen = volume::Seen::default();
    let read = |(entries, span): &Entries<'_>| volume::read(entries, span, &served, &mut seen, faults);
    written.volumes.iter().take(VOLUMES_MAX).filter_map(read).collect()
}

/// Reads the drivers. Returns the valid drivers, and the names of all drivers, valid or not.
fn drivers(root: &Table<'_>, text: &str, faults: &mut Faults) -> (Vec<DriverConfig>, BTreeSet<String>) {
    let surroundings = driver::Surroundings { text, has_plugin_dir: root.has("plugin_dir") };
    let mut seen = BTreeSet::new();
    let tables = several(root, "driver", DRIVERS_MAX, faults);
    let names = tables.iter().filter_map(|(entries, _)| driver::written_name(entries)).collect();
    let tables = tables.into_iter().take(DRIVERS_MAX);
    let drivers = tables
        .filter_map(|(entries, span)| driver::read(entries, &span, &surroundings, &mut seen, faults))
        .collect();
    (drivers, names)
}

fn tasks(
    written: &Written<'_>,
    surroundings: &task::Surroundings<'_>,
    names: &mut Names,
    faults: &mut Faults,
) -> Vec<TaskConfig> {
    let tables = written.tasks.iter().take(TASKS_MAX);
    tables.filter_map(|(entries, span)| task::read(entries, span, surroundings, names, faults)).collect()
}
