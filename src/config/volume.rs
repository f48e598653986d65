//! Reads a `[[volume]]` table.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use callboard_actors::csi::{
    AccessMode, AccessType, Fault, MountFlags, MountVolume, VolumeCapability, rules,
};
use callboard_actors::vocabulary::{PluginName, Topology, VolumeName, VolumeNamespace};
use callboard_actors::volume::{Usage, VolumeKey, VolumeSpec};
use toml::de::{DeTable, DeValue};

use super::problem::Faults;
use super::read::Entries;
use super::table::{Found, Table, Whole};
use super::volume_use::VolumePlugins;
use super::{VolumeConfig, secrets, suggest};

const KEYS: &[&str] = &[
    "name",
    "namespace",
    "plugin",
    "id",
    "context",
    "capacity",
    "topology",
    "access_mode",
    "mount",
    "block",
    "read_only",
    "secrets",
];
const MOUNT_KEYS: &[&str] = &["fs_type", "flags", "group"];
/// The namespace of a volume that names none.
pub(super) const NAMESPACE: &str = "default";
/// The units of sizes, as powers of two.
const UNITS: [(&str, u32); 4] = [("KiB", 10), ("MiB", 20), ("GiB", 30), ("TiB", 40)];

/// The volumes read before: their identities, and the plugin and id of each.
#[derive(Default)]
pub(super) struct Seen {
    keys: BTreeSet<VolumeKey>,
    ids: BTreeMap<(PluginName, String), VolumeKey>,
}

/// The plugins that an allocation serves as node, as they are written.
pub(super) fn node_plugins(allocations: &[Entries<'_>]) -> BTreeSet<String> {
    let is_node = |entries: &&DeTable<'_>| written(entries, "type") != Some("controller");
    let tables = allocations.iter().map(|(entries, _)| *entries);
    tables.filter(is_node).filter_map(|entries| Some(written(entries, "plugin")?.to_owned())).collect()
}

/// The volumes as they are written, valid or not, with the plugin of each.
pub(super) fn written_volumes(volumes: &[Entries<'_>]) -> VolumePlugins {
    let of = |(entries, _): &Entries<'_>| {
        let namespace = written(entries, "namespace").unwrap_or(NAMESPACE);
        let plugin = written(entries, "plugin").unwrap_or_default();
        Some((format!("{namespace}/{}", written(entries, "name")?), plugin.to_owned()))
    };
    volumes.iter().filter_map(of).collect()
}

fn written<'t>(entries: &'t DeTable<'_>, key: &str) -> Option<&'t str> {
    match entries.get(key)?.get_ref() {
        DeValue::String(text) => Some(text),
        _ => None,
    }
}

/// Reads one volume. `plugins` holds those that an allocation serves as node, `seen` the volumes read before.
pub(super) fn read(
    entries: &DeTable<'_>,
    span: &Range<usize>,
    plugins: &BTreeSet<String>,
    seen: &mut Seen,
    faults: &mut Faults,
) -> Option<VolumeConfig> {
    let table = Table::open(entries, span, "the volume", KEYS, faults);
    let key = key(&table, seen, faults);
    let plugin = plugin(&table, plugins, faults);
    let volume_id = volume_id(&table, faults);
    let context = context(&table, faults);
    let capacity_bytes = capacity(&table, faults);
    let accessible_topology = topology(&table, faults);
    let usage = usage(&table, faults);
    let secrets = secrets::read(&table, faults);
    let (key, plugin, volume_id) = (key?, plugin?, volume_id?);
    if let Some(other) = seen.ids.insert((plugin.clone(), volume_id.value.clone()), key.clone()) {
        let message = format!(
            "the volume {other} has this id of the plugin {plugin:?}, too; a volume has one entry, which all of its users name"
        );
        faults.add(volume_id.at, message);
    }
    let spec = VolumeSpec { key, plugin, volume_id: volume_id.value, volume_context: context };
    Some(VolumeConfig { spec, usage: usage?, capacity_bytes, accessible_topology, secrets })
}

/// Records what the specification forbids, at the place of its key.
fn check(key: &str, at: usize, checked: Result<(), Fault>, faults: &mut Faults) -> bool {
    checked.map_err(|fault| faults.add(at, format!("`{key}`: {fault}"))).is_ok()
}

fn key(table: &Table<'_>, seen: &mut Seen, faults: &mut Faults) -> Option<VolumeKey> {
    let namespace = match table.text("namespace", faults) {
        Some(found) => VolumeNamespace::new(&found.value).map_err(|error| (found.at, error)),
        None => VolumeNamespace::new(NAMESPACE).map_err(|error| (table.at, error)),
    };
    let namespace = namespace.map_err(|(at, error)| faults.add(at, format!("`namespace`: {error}"))).ok();
    let found = table.required_text("name", faults)?;
    if !check("name", found.at, rules::given_name("name", &found.value), faults) {
        return None;
    }
    let name = VolumeName::new(&found.value);
    let name = name.map_err(|error| faults.add(found.at, format!("`name`: {error}"))).ok()?;
    let key = VolumeKey { namespace: namespace?, name };
    if !seen.keys.insert(key.clone()) {
        faults.add(found.at, format!("a second volume is named {key}; each needs a name of its own"));
        return None;
    }
    Some(key)
}

fn plugin(table: &Table<'_>, plugins: &BTreeSet<String>, faults: &mut Faults) -> Option<PluginName> {
    let found = table.required_text("plugin", faults)?;
    let plugin = PluginName::new(&found.value);
    let plugin = plugin.map_err(|error| faults.add(found.at, format!("`plugin`: {error}"))).ok()?;
    if !plugins.contains(&found.value) {
        let known: Vec<_> = plugins.iter().map(String::as_str).collect();
        let advice = match suggest::nearest(&found.value, &known) {
            Some(word) => format!("did you mean `{word}`?"),
            None => "add one".to_owned(),
        };
        let message = format!(
            "no [[allocation]] of the type \"node\" or \"monolith\" serves a plugin {plugin:?}; {advice}"
        );
        faults.add(found.at, message);
        return None;
    }
    Some(plugin)
}

fn volume_id(table: &Table<'_>, faults: &mut Faults) -> Option<Found<String>> {
    let found = table.required_text("id", faults)?;
    check("id", found.at, rules::id("volume_id", &found.value), faults).then_some(found)
}

fn context(table: &Table<'_>, faults: &mut Faults) -> BTreeMap<String, String> {
    let found = table.text_map("context", faults);
    let context = found.into_iter().map(|(key, found)| (key, found.value)).collect();
    check("context", table.at_key("context"), rules::map("volume_context", &context), faults);
    context
}

/// Reads a size: a whole number of bytes, or a text with a unit.
fn capacity(table: &Table<'_>, faults: &mut Faults) -> Option<u64> {
    let found = table.whole_or_text("capacity", faults)?;
    let bytes = match &found.value {
        Whole::Number(number) => u64::try_from(*number).ok(),
        Whole::Text(text) => UNITS.iter().find_map(|(unit, shift)| {
            let number = text.strip_suffix(unit)?.trim_end();
            let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| number.parse::<u64>().ok()?.checked_mul(1 << shift))?
        }),
    };
    let bytes = bytes.filter(|bytes| *bytes > 0 && rules::number("C052", "capacity", *bytes).is_ok());
    if bytes.is_none() {
        let message = format!(
            "`capacity` {} is no size of a volume; give a whole number of bytes from 1 on, or one with a unit, as in \"512MiB\" or \
             \"10GiB\"",
            found.value
        );
        faults.add(found.at, message);
    }
    bytes
}

fn topology(table: &Table<'_>, faults: &mut Faults) -> Vec<Topology> {
    let mut topologies = Vec::new();
    for (entries, span) in table.tables("topology", faults) {
        let texts = table.texts_in(entries, faults).into_iter();
        let topology: Topology = texts.map(|(key, found)| (key, found.value)).collect();
        let checked =
            rules::some("C055", "segments", topology.len()).and_then(|()| rules::topology(&topology));
        check("topology", span.start, checked, faults);
        topologies.push(topology);
    }
    topologies
}

fn usage(table: &Table<'_>, faults: &mut Faults) -> Option<Usage> {
    let access_mode = access_mode(table, faults);
    let access_type = access_type(table, faults);
    let read_only = table.boolean("read_only", faults).unwrap_or(false);
    let access_mode = access_mode?;
    let capability = VolumeCapability { access_type: access_type?, access_mode };
    Some(Usage { capability, read_only: read_only || access_mode.is_read_only() })
}

/// Reads the name of a mode of the specification, in lower case and with dashes: `single-node-writer`.
fn access_mode(table: &Table<'_>, faults: &mut Faults) -> Option<AccessMode> {
    let Some(found) = table.text("access_mode", faults) else {
        let is_absent = !table.has("access_mode");
        return is_absent.then_some(AccessMode::SingleNodeWriter);
    };
    let word = |mode: AccessMode| mode.as_str().to_ascii_lowercase().replace('_', "-");
    let mode = AccessMode::ALL.into_iter().find(|mode| word(*mode) == found.value);
    if mode.is_none() {
        let words = AccessMode::ALL.map(word);
        let advice = suggest::advice(&found.value, &words.each_ref().map(String::as_str));
        faults.add(found.at, format!("`access_mode` {:?} is none; {advice}", found.value));
    }
    mode
}

fn access_type(table: &Table<'_>, faults: &mut Faults) -> Option<AccessType> {
    let is_block = table.boolean("block", faults).unwrap_or(false);
    let mount = table.table("mount", faults);
    match (is_block, mount) {
        (true, Some(_)) => {
            let at = table.at_key("mount").max(table.at_key("block"));
            faults.add(at, "the volume has both `mount` and `block`; give one of them (C058)");
            None
        }
        (true, None) => Some(AccessType::Block),
        (false, None) => Some(AccessType::Mount(MountVolume::default())),
        (false, Some((entries, span))) => Some(AccessType::Mount(mounted(entries, &span, faults))),
    }
}

/// Reads how a volume is mounted. Each part is checked alone, so that its fault has its place.
fn mounted(entries: &DeTable<'_>, span: &Range<usize>, faults: &mut Faults) -> MountVolume {
    let table = Table::open(entries, span, "`mount`", MOUNT_KEYS, faults);
    let text =
        |key: &str, faults: &mut Faults| table.text(key, faults).map(|found| found.value).unwrap_or_default();
    let fs_type = text("fs_type", faults);
    let volume_mount_group = text("group", faults);
    let flags = table.texts("flags", faults).into_iter().map(|found| found.value).collect();
    let mount_flags = MountFlags::new(flags);
    let usual = MountVolume::default;
    let parts = [
        ("fs_type", MountVolume { fs_type: fs_type.clone(), ..usual() }),
        ("group", MountVolume { volume_mount_group: volume_mount_group.clone(), ..usual() }),
        ("flags", MountVolume { mount_flags: mount_flags.clone(), ..usual() }),
    ];
    for (key, part) in parts {
        let access_mode = AccessMode::SingleNodeWriter;
        let part = VolumeCapability { access_type: AccessType::Mount(part), access_mode };
        check(key, table.at_key(key), part.check(), faults);
    }
    MountVolume { fs_type, mount_flags, volume_mount_group }
}
