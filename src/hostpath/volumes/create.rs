//! Creates and deletes volumes.

use callboard_proto::csi::v1 as wire;
use tonic::Status;
use wire::volume_content_source::Type;

use super::records::{Map, OnNode, Snapshot, Source, Volume};
use super::{MEDIUM, Work, check, data, id_of_volume, listing};

/// The size of a volume without a requested size.
const SIZE_DEFAULT: i64 = 1 << 30;

/// The origin of a volume's content.
struct Origin {
    source: Source,
    size: i64,
}

pub(in crate::hostpath) fn create(
    work: &Work<'_>,
    request: &wire::CreateVolumeRequest,
) -> Result<wire::CreateVolumeResponse, Status> {
    let wished = wished(work, request)?;
    let volume = match work.store.read::<Volume>(&wished.id)? {
        Some(existing) => {
            is_as_wished(&existing, &wished, check::range(request.capacity_range.as_ref())?)?;
            existing
        }
        None => {
            listing::has_room(work, wished.capacity_bytes)?;
            work.store.write(&wished.id, &wished)?;
            work.changed();
            wished
        }
    };
    let volume = if volume.is_ready { volume } else { filled(work, volume)? };
    let mut told = volume.told(work.settings.topology.as_ref());
    if work.lies() {
        told.capacity_bytes = check::range(request.capacity_range.as_ref())?.0 / 2;
    }
    Ok(wire::CreateVolumeResponse { volume: Some(told) })
}

/// The volume that the request describes.
fn wished(work: &Work<'_>, request: &wire::CreateVolumeRequest) -> Result<Volume, Status> {
    let name = check::given(&request.name, "name")?;
    let is_block = check::access_type(&request.volume_capabilities)?;
    let (least, limit) = check::range(request.capacity_range.as_ref())?;
    let origin = origin(work, request.volume_content_source.as_ref(), is_block)?;
    is_here(work, request.accessibility_requirements.as_ref())?;
    let parameters = check::map(&request.parameters);
    let is_in_memory = is_in_memory(&parameters, is_block)?;
    let usual = if least > 0 { least } else { limit.map_or(SIZE_DEFAULT, |limit| limit.min(SIZE_DEFAULT)) };
    let capacity_bytes = usual.max(origin.as_ref().map_or(0, |origin| origin.size));
    if limit.is_some_and(|limit| limit < capacity_bytes) {
        let problem = format!("its source has {capacity_bytes} bytes, more than it may have");
        return Err(Status::out_of_range(problem));
    }
    Ok(Volume {
        id: id_of_volume(name),
        name: name.to_owned(),
        capacity_bytes,
        is_block,
        is_in_memory,
        source: origin.map(|origin| origin.source),
        parameters,
        mutable_parameters: check::mutable(&request.mutable_parameters)?,
        is_ready: false,
        attached: [].into(),
    })
}

fn is_in_memory(parameters: &Map, is_block: bool) -> Result<bool, Status> {
    match parameters.get(MEDIUM).map(String::as_str) {
        None | Some("disk") => Ok(false),
        Some("memory") if is_block => Err(Status::invalid_argument("a block volume cannot be in memory")),
        Some("memory") => Ok(true),
        Some(other) => Err(Status::invalid_argument(format!(
            "the parameter {MEDIUM} is {other:?}: neither disk nor memory"
        ))),
    }
}

fn origin(
    work: &Work<'_>,
    source: Option<&wire::VolumeContentSource>,
    is_block: bool,
) -> Result<Option<Origin>, Status> {
    let Some(source) = source else { return Ok(None) };
    let (origin, was_block) = match &source.r#type {
        Some(Type::Snapshot(from)) => {
            let id = check::given(&from.snapshot_id, "id of the snapshot that it is made from")?;
            let found = work.store.read::<Snapshot>(id)?.filter(|snapshot| snapshot.is_ready);
            let found = found.ok_or_else(|| Status::not_found(format!("there is no snapshot {id}")))?;
            let source = Source::Snapshot(id.to_owned());
            (Origin { source, size: found.size_bytes }, found.is_block)
        }
        Some(Type::Volume(from)) => {
            let id = check::given(&from.volume_id, "id of the volume that it is made from")?;
            let found = listing::volume(work, id)?;
            let source = Source::Volume(id.to_owned());
            (Origin { source, size: found.capacity_bytes }, found.is_block)
        }
        None => {
            return Err(Status::invalid_argument("the content source is neither a snapshot nor a volume"));
        }
    };
    if was_block != is_block {
        let problem = "a block volume cannot be made from a mount volume, nor the other way round";
        return Err(Status::invalid_argument(problem));
    }
    Ok(Some(origin))
}

/// Whether a volume may be on this node.
fn is_here(work: &Work<'_>, wished: Option<&wire::TopologyRequirement>) -> Result<(), Status> {
    let (Some(ours), Some(wished)) = (&work.settings.topology, wished) else { return Ok(()) };
    let mut places = wished.requisite.iter().chain(&wished.preferred).peekable();
    if places.peek().is_none() || places.any(|place| check::map(&place.segments) == *ours) {
        return Ok(());
    }
    Err(Status::resource_exhausted("this node is in none of the requested topologies"))
}

fn is_as_wished(
    existing: &Volume,
    wished: &Volume,
    (least, limit): (i64, Option<i64>),
) -> Result<(), Status> {
    let fits = existing.capacity_bytes >= least && limit.is_none_or(|limit| existing.capacity_bytes <= limit);
    let is_same = fits
        && existing.is_block == wished.is_block
        && existing.source == wished.source
        && existing.parameters == wished.parameters;
    if is_same {
        return Ok(());
    }
    let problem = format!("{} already exists as {}, with other properties", existing.name, existing.id);
    Err(Status::already_exists(problem))
}

/// Gives a new volume its content.
fn filled(work: &Work<'_>, volume: Volume) -> Result<Volume, Status> {
    let place = work.content(&volume.id);
    match &volume.source {
        Some(Source::Snapshot(id) | Source::Volume(id)) => data::copy(&work.content(id), &place)?,
        None => {}
    }
    data::make(&place, volume.is_block, volume.capacity_bytes)?;
    let volume = Volume { is_ready: true, ..volume };
    work.store.write(&volume.id, &volume)?;
    Ok(volume)
}

pub(in crate::hostpath) fn delete(
    work: &Work<'_>,
    request: &wire::DeleteVolumeRequest,
) -> Result<wire::DeleteVolumeResponse, Status> {
    let id = check::given(&request.volume_id, "volume id")?;
    let Some(volume) = work.store.read::<Volume>(id)? else { return Ok(wire::DeleteVolumeResponse {}) };
    if let Some(node) = volume.attached.keys().next() {
        return Err(Status::failed_precondition(format!(
            "{id} is attached to node {node}; unpublish it first"
        )));
    }
    if work.store.read::<OnNode>(id)?.is_some() {
        let problem = format!("{id} is staged or published on a node; undo that first");
        return Err(Status::failed_precondition(problem));
    }
    // From now on it can only be created again or deleted.
    work.store.write(id, &Volume { is_ready: false, ..volume })?;
    work.changed();
    data::remove(&work.content(id))?;
    work.store.remove::<Volume>(id)?;
    Ok(wire::DeleteVolumeResponse {})
}
