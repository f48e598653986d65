//! Sizes and forms of the fields of a request.

use super::Asked;
use super::look::Look;
use crate::csi::Call;
use crate::examiner::request::{Map, Request, TopologyWish};
use crate::examiner::rule::Rule;

/// The most bytes of a string field (C004).
const STRING_MAX: usize = 128;
/// The most bytes of a map (C005), and of all mount flags together (C007).
const MAP_MAX: usize = 4096;
/// The most bytes of a node id (C006).
const NODE_ID_MAX: usize = 256;
/// The most characters of each part of a key of a topology, and of a value (C055).
const TOPOLOGY_PART_MAX: usize = 63;

pub(super) fn judge(asked: Asked<'_>, look: &mut Look<'_>) {
    let request = asked.request;
    required(asked, look);
    for (field, text) in request.short_texts() {
        if !text.is_empty() {
            look.check(Rule::C004, text.len() <= STRING_MAX, || too_long(field, text.len(), STRING_MAX));
        }
    }
    for (field, map) in request.maps().into_iter().filter(|(_, map)| !map.is_empty()) {
        look.check(Rule::C005, bytes(map) <= MAP_MAX, || too_long(field, bytes(map), MAP_MAX));
    }
    let secrets = &request.secrets;
    if !secrets.keys.is_empty() {
        let size = secrets.values.bytes;
        look.check(Rule::C005, size <= MAP_MAX, || too_long("secrets", size, MAP_MAX));
        let wrong = secrets.keys.iter().position(|key| !is_secret_key(key));
        look.check(Rule::C023, wrong.is_none(), || {
            format!(
                "key {} of the secrets, in the order of keys, is malformed",
                wrong.unwrap_or_default() + 1
            )
        });
    }
    if !request.node_id.is_empty() {
        let size = request.node_id.len();
        look.check(Rule::C006, size <= NODE_ID_MAX, || too_long("node_id", size, NODE_ID_MAX));
    }
    capabilities(request, look);
    capacity(asked, look);
    topology(request, look);
    if matches!(asked.call, Call::ListVolumes | Call::ListSnapshots) {
        look.check(Rule::C091, request.max_entries >= 0, || {
            format!("max_entries is {}", request.max_entries)
        });
    }
    if asked.call == Call::CreateVolume {
        let is_clean = !request.name.chars().any(is_forbidden);
        look.check(Rule::C050, is_clean, || "the name has control characters".to_owned());
    }
}

fn too_long(field: &str, size: usize, max: usize) -> String {
    format!("{field} has {size} bytes, at most {max} are allowed")
}

fn bytes(map: &Map) -> usize {
    map.iter().map(|(key, value)| key.len() + value.len()).sum()
}

fn is_secret_key(key: &str) -> bool {
    !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

/// Control characters other than tab, line feed and carriage return.
fn is_forbidden(character: char) -> bool {
    character.is_control() && !matches!(character, '\t' | '\n' | '\r')
}

fn required(asked: Asked<'_>, look: &mut Look<'_>) {
    let it = asked.request;
    let volume = ("volume_id", !it.volume_id.is_empty());
    let capability = ("volume_capability", it.volume_capability.is_some());
    let capabilities = ("volume_capabilities", !it.volume_capabilities.is_empty());
    let name = ("name", !it.name.is_empty());
    let staging = ("staging_target_path", !it.staging_target_path.is_empty());
    let target = ("target_path", !it.target_path.is_empty());
    let path = ("volume_path", !it.volume_path.is_empty());
    let snapshot = ("snapshot_id", !it.snapshot_id.is_empty());
    let group = ("group_snapshot_id", !it.group_snapshot_id.is_empty());
    let fields = match asked.call {
        Call::CreateVolume => vec![name],
        Call::DeleteVolume | Call::ControllerGetVolume | Call::ControllerUnpublishVolume => vec![volume],
        Call::ControllerPublishVolume => vec![volume, ("node_id", !it.node_id.is_empty()), capability],
        Call::ValidateVolumeCapabilities => vec![volume, capabilities],
        Call::CreateSnapshot => vec![("source_volume_id", !it.source_volume_id.is_empty()), name],
        Call::DeleteSnapshot | Call::GetSnapshot => vec![snapshot],
        Call::ControllerExpandVolume => vec![volume, ("capacity_range", it.capacity_range.is_some())],
        Call::ControllerModifyVolume => {
            vec![volume, ("mutable_parameters", !it.mutable_parameters.is_empty())]
        }
        Call::CreateVolumeGroupSnapshot => {
            vec![name, ("source_volume_ids", !it.source_volume_ids.is_empty())]
        }
        Call::DeleteVolumeGroupSnapshot | Call::GetVolumeGroupSnapshot => vec![group],
        Call::NodeStageVolume => vec![volume, staging, capability],
        Call::NodeUnstageVolume => vec![volume, staging],
        Call::NodePublishVolume => vec![volume, target, capability],
        Call::NodeUnpublishVolume => vec![volume, target],
        Call::NodeGetVolumeStats | Call::NodeExpandVolume => vec![volume, path],
        _ => return,
    };
    let missing: Vec<_> = fields.iter().filter(|(_, is_there)| !is_there).map(|(field, _)| *field).collect();
    look.check(Rule::C009, missing.is_empty(), || format!("{} is missing", missing.join(", ")));
    if asked.call == Call::CreateVolume {
        look.check(Rule::C051, capabilities.1, || "it has no volume capability".to_owned());
    }
}

fn capabilities(request: &Request, look: &mut Look<'_>) {
    for capability in request.capabilities() {
        let size = capability.mount_flags.bytes;
        if capability.mount_flags.count > 0 {
            look.check(Rule::C007, size <= MAP_MAX, || too_long("mount_flags", size, MAP_MAX));
        }
        let is_whole = capability.is_block.is_some() && (1..=7).contains(&capability.mode);
        look.check(Rule::C058, is_whole, || {
            let access = if capability.is_block.is_none() { "no access type" } else { "an access type" };
            format!("a capability has {access} and access mode {}", capability.mode)
        });
    }
}

fn capacity(asked: Asked<'_>, look: &mut Look<'_>) {
    let Some(range) = asked.request.capacity_range else { return };
    let (least, most) = (range.required_bytes, range.limit_bytes);
    let is_well_formed = least >= 0 && most >= 0 && (least > 0 || most > 0) && (most == 0 || least <= most);
    look.check(Rule::C052, is_well_formed, || format!("at least {least} and at most {most} bytes"));
}

fn topology(request: &Request, look: &mut Look<'_>) {
    if let Some(TopologyWish { requisite, preferred }) = &request.accessibility_requirements {
        let is_there = !requisite.is_empty() || !preferred.is_empty();
        let is_part = requisite.is_empty() || preferred.iter().all(|topology| requisite.contains(topology));
        look.check(Rule::C054, is_there && is_part, || {
            let problem = if is_there { "preferred has what requisite does not have" } else { "it is empty" };
            problem.to_owned()
        });
    }
    for topology in request.topologies() {
        let wrong = topology.iter().find(|(key, value)| !is_topology_key(key) || !is_topology_part(value));
        let mut keys: Vec<_> = topology.keys().map(|key| key.to_ascii_lowercase()).collect();
        keys.sort_unstable();
        keys.dedup();
        let is_unique = keys.len() == topology.len();
        look.check(Rule::C055, wrong.is_none() && is_unique && !topology.is_empty(), || match wrong {
            Some((key, _)) => format!("{key:?} or its value is malformed"),
            None => "it is empty, or two keys differ in upper and lower case only".to_owned(),
        });
    }
}

/// A name with an optional prefix that is a domain name.
fn is_topology_key(key: &str) -> bool {
    let (prefix, name) = key.split_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    let is_prefix =
        |prefix: &str| prefix.len() <= TOPOLOGY_PART_MAX && prefix.split('.').all(is_topology_part);
    is_topology_part(name) && prefix.is_none_or(is_prefix)
}

/// Letters, digits, hyphens, underscores and dots, with a letter or digit at both ends.
fn is_topology_part(part: &str) -> bool {
    let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    part.len() <= TOPOLOGY_PART_MAX
        && ends(part.chars().next())
        && ends(part.chars().next_back())
        && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}
