//! Takes snapshots of one volume, and of several as a group. A snapshot is a copy, and is made while the volume is in use: it has no single
//! point in time, since nothing freezes the file system.

use std::time::{SystemTime, UNIX_EPOCH};

use callboard_proto::csi::v1 as wire;
use tonic::Status;

use super::records::{Group, Snapshot};
use super::{Work, check, data, id_of_group, id_of_snapshot, listing};

pub(in crate::hostpath) fn create(
    work: &Work<'_>,
    request: &wire::CreateSnapshotRequest,
) -> Result<wire::CreateSnapshotResponse, Status> {
    let source = check::given(&request.source_volume_id, "id of its source volume")?;
    let name = check::given(&request.name, "name")?;
    let snapshot = taken(work, name, source, None)?;
    let mut told = snapshot.told();
    if work.lies() {
        "another".clone_into(&mut told.source_volume_id);
    }
    Ok(wire::CreateSnapshotResponse { snapshot: Some(told) })
}

/// The snapshot of this name, taken now unless it exists.
fn taken(work: &Work<'_>, name: &str, source: &str, group: Option<&str>) -> Result<Snapshot, Status> {
    let begun = begun(work, name, source, group)?;
    if begun.is_ready {
        return Ok(begun);
    }
    if work.store.read::<Snapshot>(&begun.id)?.is_none() {
        work.store.write(&begun.id, &begun)?;
        work.changed();
    }
    data::copy(&work.content(source), &work.content(&begun.id))?;
    let snapshot = Snapshot { is_ready: true, ..begun };
    work.store.write(&snapshot.id, &snapshot)?;
    Ok(snapshot)
}

/// The snapshot of this name as it is, or as it would be begun now. Refuses a snapshot that cannot be taken, and changes nothing.
fn begun(work: &Work<'_>, name: &str, source: &str, group: Option<&str>) -> Result<Snapshot, Status> {
    let id = id_of_snapshot(name);
    if let Some(existing) = work.store.read::<Snapshot>(&id)? {
        if existing.volume == source && existing.group.as_deref() == group {
            return Ok(existing);
        }
        let problem = format!("{name} exists already, as a snapshot of {}", existing.volume);
        return Err(Status::already_exists(problem));
    }
    let volume = listing::volume(work, source)?;
    if volume.is_in_memory {
        let problem = format!("{source} is in memory, of which no snapshot can be taken");
        return Err(Status::invalid_argument(problem));
    }
    Ok(Snapshot {
        id,
        name: name.to_owned(),
        volume: source.to_owned(),
        size_bytes: volume.capacity_bytes,
        created: now(),
        is_block: volume.is_block,
        group: group.map(str::to_owned),
        is_ready: false,
    })
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

pub(in crate::hostpath) fn delete(
    work: &Work<'_>,
    request: &wire::DeleteSnapshotRequest,
) -> Result<wire::DeleteSnapshotResponse, Status> {
    let id = check::given(&request.snapshot_id, "snapshot id")?;
    if let Some(group) = work.store.read::<Snapshot>(id)?.and_then(|snapshot| snapshot.group) {
        // C103, C104
        let problem = format!("{id} belongs to the group {group}; delete that one");
        return Err(Status::invalid_argument(problem));
    }
    removed(work, id)?;
    Ok(wire::DeleteSnapshotResponse {})
}

fn removed(work: &Work<'_>, id: &str) -> Result<(), Status> {
    let Some(snapshot) = work.store.read::<Snapshot>(id)? else { return Ok(()) };
    work.store.write(id, &Snapshot { is_ready: false, ..snapshot })?;
    work.changed();
    data::remove(&work.content(id))?;
    work.store.remove::<Snapshot>(id)
}

pub(in crate::hostpath) fn list(
    work: &Work<'_>,
    request: &wire::ListSnapshotsRequest,
) -> Result<wire::ListSnapshotsResponse, Status> {
    use wire::list_snapshots_response::Entry;
    let is_wished = |snapshot: &Snapshot| {
        let is = |wished: &str, found: &str| wished.is_empty() || wished == found;
        snapshot.is_ready
            && is(&request.source_volume_id, &snapshot.volume)
            && is(&request.snapshot_id, &snapshot.id)
    };
    let all: Vec<_> = work.store.all::<Snapshot>()?.into_iter().filter(is_wished).collect();
    let (page, next_token) = listing::page(
        ("snapshots", all),
        |snapshot| &snapshot.id,
        request.max_entries,
        &request.starting_token,
    )?;
    let entries = page.iter().map(|snapshot| Entry { snapshot: Some(snapshot.told()) }).collect();
    Ok(wire::ListSnapshotsResponse { entries, next_token })
}

pub(in crate::hostpath) fn get(
    work: &Work<'_>,
    request: &wire::GetSnapshotRequest,
) -> Result<wire::GetSnapshotResponse, Status> {
    let id = check::given(&request.snapshot_id, "snapshot id")?;
    Ok(wire::GetSnapshotResponse { snapshot: Some(snapshot(work, id)?.told()) })
}

fn snapshot(work: &Work<'_>, id: &str) -> Result<Snapshot, Status> {
    let found = work.store.read::<Snapshot>(id)?.filter(|snapshot| snapshot.is_ready);
    found.ok_or_else(|| Status::not_found(format!("there is no snapshot {id}")))
}

// === Groups ===

pub(in crate::hostpath) fn create_group(
    work: &Work<'_>,
    request: &wire::CreateVolumeGroupSnapshotRequest,
) -> Result<wire::CreateVolumeGroupSnapshotResponse, Status> {
    let name = check::given(&request.name, "name")?;
    if request.source_volume_ids.is_empty() {
        return Err(Status::invalid_argument("the request has no source volumes"));
    }
    let mut volumes = request.source_volume_ids.clone();
    volumes.sort();
    volumes.dedup();
    let id = id_of_group(name);
    let group = match work.store.read::<Group>(&id)? {
        Some(existing) if existing.volumes != volumes => {
            let problem = format!("{name} exists already, of the volumes {}", existing.volumes.join(", "));
            return Err(Status::already_exists(problem));
        }
        Some(existing) => existing,
        None => {
            // A recorded group can always be completed: until it is complete, its creator has no id to delete it by.
            let begun = |volume: &String| begun(work, &member(&id, volume), volume, Some(&id));
            let snapshots =
                volumes.iter().map(|volume| Ok(begun(volume)?.id)).collect::<Result<_, Status>>()?;
            let group = Group { id: id.clone(), name: name.to_owned(), volumes, snapshots, created: now() };
            work.store.write(&id, &group)?;
            work.changed();
            group
        }
    };
    for volume in &group.volumes {
        taken(work, &member(&id, volume), volume, Some(&id))?;
    }
    Ok(wire::CreateVolumeGroupSnapshotResponse { group_snapshot: Some(told(work, &group)?) })
}

/// The name of the snapshot of a volume in a group.
fn member(group: &str, volume: &str) -> String {
    format!("{group}/{volume}")
}

pub(in crate::hostpath) fn delete_group(
    work: &Work<'_>,
    request: &wire::DeleteVolumeGroupSnapshotRequest,
) -> Result<wire::DeleteVolumeGroupSnapshotResponse, Status> {
    let id = check::given(&request.group_snapshot_id, "group snapshot id")?;
    let Some(group) = work.store.read::<Group>(id)? else {
        return Ok(wire::DeleteVolumeGroupSnapshotResponse {});
    };
    are_its_own(&group, &request.snapshot_ids)?;
    group.snapshots.iter().try_for_each(|snapshot| removed(work, snapshot))?;
    work.store.remove::<Group>(id)?;
    Ok(wire::DeleteVolumeGroupSnapshotResponse {})
}

pub(in crate::hostpath) fn get_group(
    work: &Work<'_>,
    request: &wire::GetVolumeGroupSnapshotRequest,
) -> Result<wire::GetVolumeGroupSnapshotResponse, Status> {
    let id = check::given(&request.group_snapshot_id, "group snapshot id")?;
    let group = work.store.read::<Group>(id)?;
    let group = group.ok_or_else(|| Status::not_found(format!("there is no group snapshot {id}")))?;
    are_its_own(&group, &request.snapshot_ids)?;
    Ok(wire::GetVolumeGroupSnapshotResponse { group_snapshot: Some(told(work, &group)?) })
}

/// Whether these are the snapshots of the group, if any are named (C108).
fn are_its_own(group: &Group, named: &[String]) -> Result<(), Status> {
    let (mut named, mut ours) = (named.to_vec(), group.snapshots.clone());
    named.sort();
    ours.sort();
    if named.is_empty() || named == ours {
        return Ok(());
    }
    Err(Status::invalid_argument(format!("the group {} has other snapshots", group.id)))
}

fn told(work: &Work<'_>, group: &Group) -> Result<wire::VolumeGroupSnapshot, Status> {
    let snapshots: Vec<_> =
        group.snapshots.iter().map(|id| work.store.read::<Snapshot>(id)).collect::<Result<_, _>>()?;
    let is_whole = snapshots.iter().all(|found| found.as_ref().is_some_and(|snapshot| snapshot.is_ready));
    Ok(wire::VolumeGroupSnapshot {
        group_snapshot_id: group.id.clone(),
        snapshots: snapshots.iter().flatten().map(Snapshot::told).collect(),
        creation_time: Some(prost_types::Timestamp { seconds: group.created, nanos: 0 }),
        ready_to_use: is_whole,
    })
}
