//! Reads the lists `volumes` of allocations and tasks.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use callboard_actors::agent::AllocationVolume;
use callboard_actors::driver::client::TaskMount;
use callboard_actors::vocabulary::{PluginName, VolumeName, VolumeNamespace};
use callboard_actors::volume::VolumeKey;

use super::problem::Faults;
use super::read::absolute;
use super::table::{Found, Item, Table};
use super::volume_words::{NAMESPACE, split};
use super::{TaskVolume, suggest};

const ALLOCATION_KEYS: &[&str] = &["name", "variable", "read_only"];
const TASK_KEYS: &[&str] = &["name", "destination", "read_only"];
/// The most volumes of one allocation or task.
const ENTRIES_MAX: usize = 256;

/// The plugin of each volume as it is written, by namespace and name.
pub(super) type VolumePlugins = BTreeMap<String, String>;

/// Reads the volumes of an allocation that serves this plugin and has these variables: names, or tables with more about each.
pub(super) fn of_allocation(
    allocation: &Table<'_>,
    plugin: Option<&PluginName>,
    variables: &BTreeMap<String, String>,
    known: &VolumePlugins,
    faults: &mut Faults,
) -> Vec<AllocationVolume> {
    let taken = variables.keys().cloned().chain(["CSI_ENDPOINT".to_owned()]);
    let mut used = Used { variables: taken.collect(), ..Used::default() };
    let mut volumes = Vec::new();
    for item in several(allocation, faults) {
        let (name, variable, read_only) = match item {
            Item::Text(name) => (Some(name), None, false),
            Item::Table(entries, span) => {
                let table =
                    Table::open(entries, &span, "the volume of the allocation", ALLOCATION_KEYS, faults);
                let name = table.required_text("name", faults);
                (name, table.text("variable", faults), table.boolean("read_only", faults).unwrap_or(false))
            }
        };
        let Some(name) = name else { continue };
        let Some(volume) = used.volume(&name, known, faults) else { continue };
        if plugin.is_some_and(|own| known.get(&volume.to_string()).is_some_and(|of| of == own.as_str())) {
            let message = format!(
                "the volume {volume} belongs to the plugin of this allocation, which could not start before it; remove it"
            );
            faults.add(name.at, message);
            continue;
        }
        let variable = variable.unwrap_or_else(|| Found { value: variable_of(&volume), at: name.at });
        if let Some(variable) = used.variable(variable, faults) {
            volumes.push(AllocationVolume { volume, variable, read_only });
        }
    }
    volumes
}

/// Reads the volumes of a task with these mounts: tables.
pub(super) fn of_task(
    task: &Table<'_>,
    mounts: &[TaskMount],
    known: &VolumePlugins,
    faults: &mut Faults,
) -> Vec<TaskVolume> {
    let taken = mounts.iter().map(|mount| mount.task_path.clone());
    let mut used = Used { destinations: taken.collect(), ..Used::default() };
    let mut volumes = Vec::new();
    for item in several(task, faults) {
        let (entries, span) = match item {
            Item::Table(entries, span) => (entries, span),
            Item::Text(name) => {
                let advice = "give it a `destination`, as in { name = \"data\", destination = \"/data\" }";
                faults.add(name.at, format!("the volume {:?} of the task has none; {advice}", name.value));
                continue;
            }
        };
        let table = Table::open(entries, &span, "the volume of the task", TASK_KEYS, faults);
        let name = table.required_text("name", faults);
        let destination = table.required_text("destination", faults);
        let read_only = table.boolean("read_only", faults).unwrap_or(false);
        let volume = name.and_then(|name| used.volume(&name, known, faults));
        let destination = destination.and_then(|found| used.destination(found, faults));
        if let (Some(volume), Some(destination)) = (volume, destination) {
            volumes.push(TaskVolume { volume, destination, read_only });
        }
    }
    volumes
}

fn several<'t>(table: &Table<'t>, faults: &mut Faults) -> Vec<Item<'t>> {
    let mut items = table.items("volumes", faults);
    if items.len() > ENTRIES_MAX {
        let message = format!("there are {} volumes; at most {ENTRIES_MAX} are taken", items.len());
        faults.add(table.at_key("volumes"), message);
        items.truncate(ENTRIES_MAX);
    }
    items
}

/// `CALLBOARD_VOLUME_` and the name in capitals, with an underscore for every character except letters and digits.
fn variable_of(volume: &VolumeKey) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    format!("CALLBOARD_VOLUME_{}", volume.name.as_str().chars().map(plain).collect::<String>())
}

/// The values that other entries use: nothing is used twice.
#[derive(Default)]
struct Used {
    volumes: BTreeSet<String>,
    variables: BTreeSet<String>,
    destinations: BTreeSet<PathBuf>,
}

impl Used {
    /// Reads the name of a known volume, with or without its namespace.
    fn volume(
        &mut self,
        name: &Found<String>,
        known: &VolumePlugins,
        faults: &mut Faults,
    ) -> Option<VolumeKey> {
        let (namespace, plain) = split(&name.value);
        let whole = format!("{namespace}/{plain}");
        if !known.contains_key(&whole) {
            let shown = |known: &String| {
                known
                    .strip_prefix(NAMESPACE)
                    .and_then(|rest| rest.strip_prefix('/'))
                    .unwrap_or(known)
                    .to_owned()
            };
            let names: Vec<_> = known.keys().map(shown).collect();
            let names: Vec<_> = names.iter().map(String::as_str).collect();
            let advice = match suggest::nearest(&name.value, &names) {
                Some(word) => format!("did you mean `{word}`?"),
                None => "add it".to_owned(),
            };
            faults.add(name.at, format!("there is no [[volume]] named {:?}; {advice}", name.value));
            return None;
        }
        if !self.volumes.insert(whole) {
            faults.add(name.at, format!("the volume {:?} is named twice; remove one of both", name.value));
            return None;
        }
        // A malformed name of a volume was already reported at the volume.
        Some(VolumeKey {
            namespace: VolumeNamespace::new(namespace).ok()?,
            name: VolumeName::new(plain).ok()?,
        })
    }

    fn variable(&mut self, found: Found<String>, faults: &mut Faults) -> Option<String> {
        let name = found.value;
        let is_name = !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !is_name {
            let message = format!(
                "`variable` {name:?} cannot be a variable of the environment; use letters, digits and '_'"
            );
            faults.add(found.at, message);
            return None;
        }
        if !self.variables.insert(name.clone()) {
            let message =
                format!("the variable {name} is set already; give this volume a `variable` of its own");
            faults.add(found.at, message);
            return None;
        }
        Some(name)
    }

    fn destination(&mut self, found: Found<String>, faults: &mut Faults) -> Option<PathBuf> {
        let at = found.at;
        let path = absolute("destination", found, faults)?;
        if !self.destinations.insert(path.clone()) {
            faults.add(
                at,
                format!(
                    "the task has a volume or mount at {} already; each needs its own `destination`",
                    path.display()
                ),
            );
            return None;
        }
        Some(path)
    }
}
