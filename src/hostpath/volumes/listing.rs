//! Describes one volume, lists all volumes in pages, and reports the free capacity.

use callboard_proto::csi::v1 as wire;
use tonic::Status;

use super::records::Volume;
use super::{Work, check, failed_at};

/// The part of a page token after the name of its list; the last id of the previous page follows.
const AFTER: &str = "-after:";
/// The name of the list of all volumes.
const VOLUMES: &str = "volumes";

/// The volume of this id, which must exist and be complete.
pub(super) fn volume(work: &Work<'_>, id: &str) -> Result<Volume, Status> {
    let found = work.store.read::<Volume>(id)?.filter(|volume| volume.is_ready);
    found.ok_or_else(|| Status::not_found(format!("there is no volume {id}")))
}

/// A page of entries that are sorted by their ids, and the token for the next page, empty at the end. A token of another list is refused.
pub(super) fn page<T>(
    (list, entries): (&str, Vec<T>),
    id: impl Fn(&T) -> &str,
    entries_max: i32,
    token: &str,
) -> Result<(Vec<T>, String), Status> {
    let size = usize::try_from(entries_max)
        .map_err(|_| Status::invalid_argument(format!("at most {entries_max} entries is less than none")))?;
    let last = |token| str::strip_prefix(token, list)?.strip_prefix(AFTER).filter(|last| !last.is_empty());
    let after = match token {
        "" => "",
        token => last(token).ok_or_else(|| {
            Status::aborted(format!("{token:?} is no token of this list; begin anew without one"))
        })?,
    };
    let mut rest = entries.into_iter().filter(|entry| id(entry) > after);
    let size = if size == 0 { usize::MAX } else { size };
    let page: Vec<T> = rest.by_ref().take(size).collect();
    let is_more = rest.next().is_some();
    let next = page.last().filter(|_| is_more).map(|last| format!("{list}{AFTER}{}", id(last)));
    Ok((page, next.unwrap_or_default()))
}

pub(in crate::hostpath) fn list(
    work: &Work<'_>,
    request: &wire::ListVolumesRequest,
) -> Result<wire::ListVolumesResponse, Status> {
    use wire::list_volumes_response::{Entry, VolumeStatus};
    let all: Vec<_> = work.store.all::<Volume>()?.into_iter().filter(|volume| volume.is_ready).collect();
    let (page, next) =
        page((VOLUMES, all), |volume| &volume.id, request.max_entries, &request.starting_token)?;
    let entry = |volume: &Volume| Entry {
        volume: Some(volume.told(work.settings.topology.as_ref())),
        status: Some(VolumeStatus {
            published_node_ids: volume.attached.keys().cloned().collect(),
            volume_condition: Some(condition(work, volume)),
        }),
    };
    let entries = page.iter().map(entry).collect();
    // A lie is an endless list.
    let next_token = if work.lies() { format!("{VOLUMES}{AFTER}0") } else { next };
    Ok(wire::ListVolumesResponse { entries, next_token })
}

pub(in crate::hostpath) fn get(
    work: &Work<'_>,
    request: &wire::ControllerGetVolumeRequest,
) -> Result<wire::ControllerGetVolumeResponse, Status> {
    use wire::controller_get_volume_response::VolumeStatus;
    let volume = volume(work, check::given(&request.volume_id, "volume id")?)?;
    let status = VolumeStatus {
        published_node_ids: volume.attached.keys().cloned().collect(),
        volume_condition: Some(condition(work, &volume)),
    };
    let told = volume.told(work.settings.topology.as_ref());
    Ok(wire::ControllerGetVolumeResponse { volume: Some(told), status: Some(status) })
}

/// Whether the content of a volume exists.
pub(super) fn condition(work: &Work<'_>, volume: &Volume) -> wire::VolumeCondition {
    let place = work.content(&volume.id);
    let is_there = place.symlink_metadata().is_ok_and(|found| found.is_dir() != volume.is_block);
    if is_there != work.lies() {
        return wire::VolumeCondition { abnormal: false, message: "its content is there".to_owned() };
    }
    wire::VolumeCondition { abnormal: true, message: format!("its content is not at {}", place.display()) }
}

pub(in crate::hostpath) fn capacity(
    work: &Work<'_>,
    request: &wire::GetCapacityRequest,
) -> Result<wire::GetCapacityResponse, Status> {
    if !request.volume_capabilities.is_empty() {
        check::access_type(&request.volume_capabilities)?;
    }
    let wished = request.accessible_topology.as_ref().map(|topology| check::map(&topology.segments));
    let is_here = match (&wished, &work.settings.topology) {
        (Some(wished), Some(ours)) => wished == ours,
        (Some(_), None) | (None, _) => true,
    };
    let available = if is_here { left(work)? } else { 0 };
    Ok(wire::GetCapacityResponse {
        available_capacity: if work.lies() { -1 } else { available },
        maximum_volume_size: Some(available),
        minimum_volume_size: None,
    })
}

/// Refuses a size that exceeds the free capacity.
pub(super) fn has_room(work: &Work<'_>, bytes: i64) -> Result<(), Status> {
    if work.settings.capacity.is_none() {
        // Volumes occupy only the space of written data, so the sum of their sizes may exceed the available space.
        return Ok(());
    }
    let left = left(work)?;
    if bytes <= left {
        return Ok(());
    }
    Err(Status::resource_exhausted(format!("{bytes} bytes are asked for, and {left} are left")))
}

fn left(work: &Work<'_>) -> Result<i64, Status> {
    if let Some(capacity) = work.settings.capacity {
        let used: i64 = work.store.all::<Volume>()?.iter().map(|volume| volume.capacity_bytes).sum();
        return Ok(capacity.saturating_sub(used).max(0));
    }
    let directory = work.store.directory();
    let found = rustix::fs::statvfs(directory);
    let found = found.map_err(|error| failed_at("look at the file system of", directory, &error.into()))?;
    Ok(i64::try_from(found.f_bavail.saturating_mul(found.f_frsize)).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_cover_everything_once_and_a_token_of_another_list_is_refused_c092_c093() {
        fn id(entry: &String) -> &str {
            entry
        }
        let entries = || ["a", "b", "c", "d", "e"].map(str::to_owned).to_vec();
        let page = |list, size, token: &str| page((list, entries()), id, size, token);
        let (mut seen, mut token) = (Vec::new(), String::new());
        loop {
            let (found, next) = page("letters", 2, &token).expect("a good token");
            assert!(found.len() <= 2);
            seen.extend(found);
            if next.is_empty() {
                break;
            }
            token = next;
        }
        assert_eq!(seen, entries());
        assert_eq!(page("letters", 0, "").expect("no limit"), (entries(), String::new()));
        let code = |list, size, token: &str| page(list, size, token).expect_err("it is refused").code();
        let (_, token) = page("letters", 2, "").expect("a page");
        assert_eq!(code("numbers", 2, &token), tonic::Code::Aborted);
        assert_eq!(code("letters", 2, "7"), tonic::Code::Aborted);
        assert_eq!(code("letters", -1, ""), tonic::Code::InvalidArgument);
    }
}
