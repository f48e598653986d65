//! Reads a `[[volume]]` table.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use callboard_actors::csi::{
    AccessMode, AccessType, Fault, MountFlags, MountVolume, VolumeCapability, rules,
};
use callboard_actors::vocabulary::{PluginName, Topology, VolumeName, VolumeNamespace};
use callboard_actors::volume::{Usage, VolumeKey};
use toml::de::{DeTable, DeValue};

use super::problem::Faults;
use super::read::Entries;
use super::table::{Table, Whole};
use super::volume_use::VolumePlugins;
use super::volume_words::{NAMESPACE, SIZE_ADVICE, possible_size, size_with_unit};
use super::{VolumeConfig, secrets, suggest, volume_origin, volume_words};

const KEYS: &[&str] = &[
    "name",
    "namespace",
    "plugin",
    "id",
    "create",
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

/// The volumes read before: their identities, and the plugin and id of each.
#[derive(Default)]
pub(super) struct Seen {
    keys: BTreeSet<VolumeKey>,
    pub(super) ids: BTreeMap<(PluginName, String), VolumeKey>,
}

/// The plugins that allocations serve, as they are written.
pub(super) struct Served {
    nodes: BTreeSet<String>,
    controllers: BTreeSet<String>,
}

impl Served {
    pub(super) fn by(allocations: &[Entries<'_>]) -> Self {
        let but_for = |role: &str| {
            let others = allocations.iter().filter(|(entries, _)| written(entries, "type") != Some(role));
            others.filter_map(|(entries, _)| Some(written(entries, "plugin")?.to_owned())).collect()
        };
        Self { nodes: but_for("controller"), controllers: but_for("node") }
    }

    /// Whether an allocation serves this plugin as controller.
    pub(super) fn has_controller(&self, plugin: &PluginName) -> bool {
        self.controllers.contains(plugin.as_str())
    }
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

pub(super) fn written<'t>(entries: &'t DeTable<'_>, key: &str) -> Option<&'t str> {
    match entries.get(key)?.get_ref() {
        DeValue::String(text) => Some(text),
        _ => None,
    }
}

/// Reads one volume. `served` holds the plugins that allocations serve, `seen` the volumes read before.
pub(super) fn read(
    entries: &DeTable<'_>,
    span: &Range<usize>,
    served: &Served,
    seen: &mut Seen,
    faults: &mut Faults,
) -> Option<VolumeConfig> {
    let table = Table::open(entries, span, "the volume", KEYS, faults);
    let key = key(&table, seen, faults);
    let plugin = plugin(&table, &served.nodes, faults);
    let usage = usage(&table, faults);
    let secrets = secrets::read(&table, faults);
    let named = key.as_ref().zip(plugin.as_ref());
    let origin = volume_origin::read(&table, named, usage.as_ref(), served, seen, faults);
    Some(VolumeConfig { key: key?, plugin: plugin?, origin: origin?, usage: usage?, secrets })
}

/// Records a violation of the specification at the position of its key.
pub(super) fn check(key: &str, at: usize, checked: Result<(), Fault>, faults: &mut Faults) -> bool {
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

/// Reads a size: a whole number of bytes, or a text with a unit.
pub(super) fn size(table: &Table<'_>, key: &'static str, faults: &mut Faults) -> Option<u64> {
    let found = table.whole_or_text(key, faults)?;
    let bytes = match &found.value {
        Whole::Number(number) => u64::try_from(*number).ok(),
        Whole::Text(text) => size_with_unit(text),
    };
    let bytes = bytes.and_then(possible_size);
    if bytes.is_none() {
        faults.add(found.at, format!("`{key}` {} is no size of a volume; {SIZE_ADVICE}", found.value));
    }
    bytes
}

/// Reads a list of places.
pub(super) fn topologies(table: &Table<'_>, key: &str, faults: &mut Faults) -> Vec<Topology> {
    let mut topologies = Vec::new();
    for (entries, span) in table.tables(key, faults) {
        let texts = table.texts_in(entries, faults).into_iter();
        let topology: Topology = texts.map(|(key, found)| (key, found.value)).collect();
        let checked =
            rules::some("C055", "segments", topology.len()).and_then(|()| rules::topology(&topology));
        check(key, span.start, checked, faults);
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
    let mode = volume_words::access_mode(&found.value);
    let none = |advice| faults.add(found.at, format!("`access_mode` {:?} is unknown; {advice}", found.value));
    mode.map_err(none).ok()
}

/// The access type; a volume has exactly one (C058).
fn access_type(table: &Table<'_>, faults: &mut Faults) -> Option<AccessType> {
    let is_block = table.boolean("block", faults).unwrap_or(false);
    let mount = table.table("mount", faults);
    match (is_block, mount) {
        (true, Some(_)) => {
            let at = table.at_key("mount").max(table.at_key("block"));
            faults.add(at, "the volume has both `mount` and `block`; give one of them");
            None
        }
        (true, None) => Some(AccessType::Block),
        (false, None) => Some(AccessType::Mount(MountVolume::default())),
        (false, Some((entries, span))) => Some(AccessType::Mount(mounted(entries, &span, faults))),
    }
}

/// Reads how a volume is mounted. Each part is checked alone, so that its fault has its own position.
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
