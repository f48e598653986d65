//! Attaches volumes to nodes and detaches them, and validates, expands and modifies volumes.

use callboard_proto::csi::v1 as wire;
use tonic::Status;
use wire::validate_volume_capabilities_response::Confirmed;

use super::records::{Attached, OnNode, Volume};
use super::{ATTACHED, Work, check, data, failed_at, listing};

pub(in crate::hostpath) fn attach(
    work: &Work<'_>,
    request: &wire::ControllerPublishVolumeRequest,
) -> Result<wire::ControllerPublishVolumeResponse, Status> {
    let id = check::given(&request.volume_id, "volume id")?;
    let node = check::given(&request.node_id, "node id")?;
    let capability = check::capability(request.volume_capability.as_ref())?;
    let mut volume = listing::volume(work, id)?;
    if !work.settings.nodes.iter().any(|known| known == node) {
        return Err(Status::not_found(format!("there is no node {node}")));
    }
    of_its_type(&volume, capability.is_block)?;
    let wished = Attached { is_readonly: request.readonly, capability };
    match volume.attached.get(node) {
        Some(attached) if *attached == wished => {}
        Some(_) => {
            let problem = format!("{id} is attached to node {node} already, for another use");
            return Err(Status::already_exists(problem));
        }
        None => {
            may_be_attached(work, &volume, node, &wished)?;
            volume.attached.insert(node.to_owned(), wished);
            work.store.write(id, &volume)?;
            work.changed();
        }
    }
    let value = if work.lies() { "x".repeat(5_000) } else { node.to_owned() };
    Ok(wire::ControllerPublishVolumeResponse { publish_context: [(ATTACHED.to_owned(), value)].into() })
}

fn may_be_attached(work: &Work<'_>, volume: &Volume, node: &str, wished: &Attached) -> Result<(), Status> {
    let is_for_several = |attached: &Attached| check::is_for_several_nodes(&attached.capability);
    if let Some((other, attached)) = volume.attached.iter().next()
        && !(is_for_several(attached) && is_for_several(wished))
    {
        let problem = format!("{} is attached to node {other}, and is not for several nodes", volume.id);
        return Err(Status::failed_precondition(problem));
    }
    let limit = work.settings.attached_max;
    if limit > 0 {
        let all = work.store.all::<Volume>()?;
        let attached = all.iter().filter(|volume| volume.attached.contains_key(node)).count();
        if i64::try_from(attached).unwrap_or(i64::MAX) >= limit {
            let problem = format!("{limit} volumes are attached to node {node}, which is its limit");
            return Err(Status::resource_exhausted(problem));
        }
    }
    Ok(())
}

pub(in crate::hostpath) fn detach(
    work: &Work<'_>,
    request: &wire::ControllerUnpublishVolumeRequest,
) -> Result<wire::ControllerUnpublishVolumeResponse, Status> {
    let id = check::given(&request.volume_id, "volume id")?;
    let Some(mut volume) = work.store.read::<Volume>(id)? else {
        return Ok(wire::ControllerUnpublishVolumeResponse {});
    };
    let node = &request.node_id;
    let is_ours = node.is_empty() || node == work.node();
    if is_ours && work.store.read::<OnNode>(id)?.is_some() {
        let problem = format!("{id} is staged or published on the node; undo that first");
        return Err(Status::failed_precondition(problem));
    }
    let before = volume.attached.len();
    // A request without a node refers to all nodes (C080).
    volume.attached.retain(|attached, _| !node.is_empty() && attached != node);
    if volume.attached.len() < before {
        work.store.write(id, &volume)?;
        work.changed();
    }
    Ok(wire::ControllerUnpublishVolumeResponse {})
}

fn of_its_type(volume: &Volume, is_block: bool) -> Result<(), Status> {
    if volume.is_block == is_block {
        return Ok(());
    }
    let (is, wished) = if volume.is_block { ("block", "mount") } else { ("mount", "block") };
    Err(Status::invalid_argument(format!("{} is a {is} volume, and no {wished} volume", volume.id)))
}

pub(in crate::hostpath) fn validate(
    work: &Work<'_>,
    request: &wire::ValidateVolumeCapabilitiesRequest,
) -> Result<wire::ValidateVolumeCapabilitiesResponse, Status> {
    let id = check::given(&request.volume_id, "volume id")?;
    let is_block = check::access_type(&request.volume_capabilities)?;
    let volume = listing::volume(work, id)?;
    let ours = volume.told(None).volume_context;
    let message = if volume.is_block != is_block {
        of_its_type(&volume, is_block).err().map(|refused| refused.message().to_owned())
    } else if !request.volume_context.is_empty() && request.volume_context != ours {
        Some("the volume context is not that of the volume".to_owned())
    } else if !request.parameters.is_empty() && check::map(&request.parameters) != volume.parameters {
        Some("the parameters are not those of the volume".to_owned())
    } else {
        None
    };
    let all = || Confirmed {
        volume_context: request.volume_context.clone(),
        volume_capabilities: request.volume_capabilities.clone(),
        parameters: request.parameters.clone(),
        mutable_parameters: request.mutable_parameters.clone(),
    };
    // A lie omits the requested capabilities, which must count as not confirmed (C090).
    let confirmed = message.is_none().then(|| if work.lies() { Confirmed::default() } else { all() });
    Ok(wire::ValidateVolumeCapabilitiesResponse { confirmed, message: message.unwrap_or_default() })
}

pub(in crate::hostpath) fn expand(
    work: &Work<'_>,
    request: &wire::ControllerExpandVolumeRequest,
) -> Result<wire::ControllerExpandVolumeResponse, Status> {
    let id = check::given(&request.volume_id, "volume id")?;
    if request.capacity_range.is_none() {
        return Err(Status::invalid_argument("the request has no capacity range"));
    }
    let (least, limit) = check::range(request.capacity_range.as_ref())?;
    let mut volume = listing::volume(work, id)?;
    let is_in_use = !volume.attached.is_empty() || work.store.read::<OnNode>(id)?.is_some();
    if work.settings.claims.expands_offline && is_in_use {
        // C109, C113
        let problem = format!("{id} is in use, and can grow only while it is not; undo its use first");
        return Err(Status::failed_precondition(problem));
    }
    if limit.is_some_and(|limit| limit < volume.capacity_bytes) {
        let problem = format!("{id} has {} bytes, and cannot shrink", volume.capacity_bytes);
        return Err(Status::out_of_range(problem));
    }
    if least > volume.capacity_bytes {
        listing::has_room(work, least - volume.capacity_bytes)?;
        let place = work.content(id);
        if volume.is_block {
            data::resize(&place, least).map_err(|error| failed_at("resize", &place, &error))?;
        }
        work.changed();
        volume.capacity_bytes = least;
        work.store.write(id, &volume)?;
    }
    Ok(wire::ControllerExpandVolumeResponse {
        capacity_bytes: if work.lies() { least / 2 } else { volume.capacity_bytes },
        node_expansion_required: work.settings.claims.expands_on_node,
    })
}

pub(in crate::hostpath) fn modify(
    work: &Work<'_>,
    request: &wire::ControllerModifyVolumeRequest,
) -> Result<wire::ControllerModifyVolumeResponse, Status> {
    let id = check::given(&request.volume_id, "volume id")?;
    let mut volume = listing::volume(work, id)?;
    volume.mutable_parameters.extend(check::mutable(&request.mutable_parameters)?);
    work.store.write(id, &volume)?;
    work.changed();
    Ok(wire::ControllerModifyVolumeResponse {})
}
