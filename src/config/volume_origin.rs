//! Reads the origin of a volume: its id with its plugin, or how it is created.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use callboard_actors::csi::{
    AccessMode, AccessType, CapacityRange, Context, MountVolume, Request, Secrets, TopologyRequirement,
    VolumeCapability, VolumeContentSource, rules,
};
use callboard_actors::vocabulary::{PluginName, Topology};
use callboard_actors::volume::{NewVolume, Usage, VolumeKey, VolumeSpec};
use callboard_actors::volumes::KnownVolume;
use toml::de::DeTable;

use super::VolumeOrigin;
use super::problem::Faults;
use super::table::Table;
use super::volume::{Seen, Served, check, size, topologies};

const CREATE_KEYS: &[&str] =
    &["parameters", "mutable_parameters", "limit", "preferred", "from_snapshot", "from_volume"];
/// A name for the check of a request; the volume generates its own.
const SOME_NAME: &str = "new";

/// Reads the origin of a volume with this usage. `named` is its key and its plugin, if both are valid.
pub(super) fn read(
    volume: &Table<'_>,
    named: Option<(&VolumeKey, &PluginName)>,
    usage: Option<&Usage>,
    served: &Served,
    seen: &mut Seen,
    faults: &mut Faults,
) -> Option<VolumeOrigin> {
    let capacity = size(volume, "capacity", faults);
    let places = topologies(volume, "topology", faults);
    match (volume.has("id"), volume.table("create", faults)) {
        (true, Some((_, span))) => {
            let message = "the volume has both `id` and `create`; give `id` if it exists at its plugin, or `create` if it is to be \
                           made";
            faults.add(span.start, message);
            None
        }
        (true, None) => registered(volume, named, seen, (capacity, places), faults),
        (false, Some(create)) => created(volume, create, (named, served), usage, (capacity, places), faults),
        (false, None) => {
            if !volume.has("create") {
                let message = "the volume has neither `id` nor `create`; give its `id` with its plugin, or `create = {}` to have it \
                               made";
                faults.add(volume.at, message);
            }
            None
        }
    }
}

/// Reads a volume that exists.
fn registered(
    volume: &Table<'_>,
    named: Option<(&VolumeKey, &PluginName)>,
    seen: &mut Seen,
    (capacity_bytes, accessible_topology): (Option<u64>, Vec<Topology>),
    faults: &mut Faults,
) -> Option<VolumeOrigin> {
    let volume_context = map(volume, "context", "volume_context", faults);
    let found = volume.text("id", faults)?;
    if !check("id", found.at, rules::plugin_id("volume_id", &found.value), faults) {
        return None;
    }
    let (key, plugin) = named?;
    if let Some(other) = seen.ids.insert((plugin.clone(), found.value.clone()), key.clone()) {
        let message = format!(
            "the volume {other} has this id of the plugin {plugin:?}, too; a volume has one entry, which all of its users name"
        );
        faults.add(found.at, message);
    }
    let (key, plugin) = (key.clone(), plugin.clone());
    let spec = Arc::new(VolumeSpec { key, plugin, volume_id: found.value, volume_context });
    Some(VolumeOrigin::Registered(KnownVolume { spec, capacity_bytes, accessible_topology }))
}

/// Reads a volume that its plugin is to create. Each part is checked alone, so that its fault has its own position.
fn created(
    volume: &Table<'_>,
    (entries, span): (&DeTable<'_>, Range<usize>),
    (named, served): (Option<(&VolumeKey, &PluginName)>, &Served),
    usage: Option<&Usage>,
    (capacity, requisite): (Option<u64>, Vec<Topology>),
    faults: &mut Faults,
) -> Option<VolumeOrigin> {
    if volume.has("context") {
        let message = "`context` is what the plugin answers when it creates the volume; remove it";
        faults.add(volume.at_key("context"), message);
    }
    if let Some((_, plugin)) = named
        && !served.has_controller(plugin)
    {
        let message = format!(
            "no [[allocation]] of the type \"controller\" or \"monolith\" serves the plugin {plugin:?}, which is to create the \
             volume; add one"
        );
        faults.add(span.start, message);
    }
    let table = Table::open(entries, &span, "`create`", CREATE_KEYS, faults);
    let parameters = map(&table, "parameters", "parameters", faults);
    let mutable_parameters = map(&table, "mutable_parameters", "mutable_parameters", faults);
    let limit = size(&table, "limit", faults);
    let preferred = topologies(&table, "preferred", faults);
    let content_source = content(&table, faults);
    let capability = usage?.capability.clone();
    let range = CapacityRange {
        required_bytes: capacity.unwrap_or_default(),
        limit_bytes: limit.unwrap_or_default(),
    };
    let capacity_range = (capacity.is_some() || limit.is_some()).then_some(range);
    let has_places = !requisite.is_empty() || !preferred.is_empty();
    let accessibility = has_places.then_some(TopologyRequirement { requisite, preferred });
    check_part("limit", &table, NewVolume { capacity_range, ..NewVolume::default() }, faults);
    // Faults in one of the places have been reported there.
    let mut places = accessibility.iter().flat_map(|places| places.requisite.iter().chain(&places.preferred));
    if places.all(|place| !place.is_empty() && rules::topology(place).is_ok()) {
        let part = NewVolume { accessibility: accessibility.clone(), ..NewVolume::default() };
        check_part("preferred", &table, part, faults);
    }
    let new = NewVolume {
        capacity_range,
        capabilities: vec![capability],
        parameters,
        mutable_parameters,
        content_source,
        accessibility,
    };
    Some(VolumeOrigin::Created(Box::new(new)))
}

/// Checks a new volume in which only one part is set.
fn check_part(key: &str, create: &Table<'_>, part: NewVolume, faults: &mut Faults) {
    // Faults in its own capability have been reported with their key.
    let capability = VolumeCapability {
        access_type: AccessType::Mount(MountVolume::default()),
        access_mode: AccessMode::SingleNodeWriter,
    };
    let whole = NewVolume { capabilities: vec![capability], ..part };
    check(key, create.at_key(key), whole.request(SOME_NAME, Secrets::none()).check(), faults);
}

/// Reads the content source of a volume.
fn content(create: &Table<'_>, faults: &mut Faults) -> Option<VolumeContentSource> {
    let snapshot = create.text("from_snapshot", faults);
    let volume = create.text("from_volume", faults);
    match (snapshot, volume) {
        (Some(_), Some(volume)) => {
            let message = "`create` has both `from_snapshot` and `from_volume`; give one of them";
            faults.add(volume.at, message);
            None
        }
        (Some(found), None) => {
            check("from_snapshot", found.at, rules::plugin_id("snapshot_id", &found.value), faults)
                .then_some(VolumeContentSource::Snapshot(found.value))
        }
        (None, Some(found)) => {
            check("from_volume", found.at, rules::plugin_id("volume_id", &found.value), faults)
                .then_some(VolumeContentSource::Volume(found.value))
        }
        (None, None) => None,
    }
}

/// Reads a map of texts that a plugin gets, of limited size.
fn map(table: &Table<'_>, key: &str, field: &'static str, faults: &mut Faults) -> Context {
    let found = table.text_map(key, faults);
    let texts: BTreeMap<_, _> = found.into_iter().map(|(key, found)| (key, found.value)).collect();
    check(key, table.at_key(key), rules::map(field, &texts), faults);
    texts
}
