//! Makes the calls of questions that only read. A caller that stops waiting ends them, since they have no effect.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use super::tokens::List;
use super::{DescribeGroupSnapshot, Found, Page, Published, Read, ReadError, Validated, VolumeStatistics};
use crate::csi::{
    Call, ControllerGetVolumeRequest, GetCapacityRequest, GetVolumeGroupSnapshotRequest,
    ListSnapshotsRequest, ListSnapshotsResponse, ListVolumesRequest, NodeGetVolumeStatsRequest, Secrets,
    UnaryRequest, ValidateVolumeCapabilitiesRequest, VolumeGroupSnapshot,
};
use crate::vocabulary::{Generation, PluginKey, PluginName, PluginType};
use crate::volume::{self, Failure, Known, Shared, Turn, VolumeSpec};

/// The timeout of one call; the machine may end it before.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);
/// The maximum number of pages of a list that are read for one question.
const PAGES_MAX: usize = 1_000;

pub(super) async fn read(shared: Shared, read: Read) -> Result<Found, ReadError> {
    match read {
        Read::Stats { spec, node, controller } => {
            let _turn = shared.turn(Turn::Volume(spec.key.clone())).await;
            let mut found = VolumeStatistics::default();
            if let Some((generation, published)) = node {
                on_node(&shared, &spec, generation, published, &mut found).await?;
            }
            if let Some(generation) = controller {
                at_controller(&shared, &spec, generation, &mut found).await?;
            }
            Ok(Found::Stats(found))
        }
        Read::Volumes { generation, asked } => {
            let list = List { plugin: &asked.plugin, of: &["volumes"] };
            let starting_token = list.read(&asked.page.token)?;
            let request = ListVolumesRequest { max_entries: asked.page.max_entries, starting_token };
            let listed = ask(&shared, (PluginType::CsiController, &asked.plugin, generation), &request).await;
            let mut page = of_page(&request.starting_token, listed)?;
            page.next_token = list.give(&page.next_token);
            Ok(Found::Volumes(page))
        }
        Read::Capacity { generation, asked } => {
            let request = GetCapacityRequest {
                volume_capabilities: asked.capabilities,
                parameters: asked.parameters,
                accessible_topology: asked.topology,
            };
            ask(&shared, (PluginType::CsiController, &asked.plugin, generation), &request)
                .await
                .map(Found::Capacity)
        }
        Read::Validate { spec, generation, asked } => {
            let _turn = shared.turn(Turn::Volume(spec.key.clone())).await;
            let request = ValidateVolumeCapabilitiesRequest {
                volume_id: spec.volume_id.clone(),
                volume_context: spec.volume_context.clone(),
                volume_capabilities: asked.capabilities,
                parameters: asked.parameters,
                secrets: secrets(&shared, Some(&*spec), Call::ValidateVolumeCapabilities).await?,
                mutable_parameters: BTreeMap::new(),
            };
            let answer =
                ask(&shared, (PluginType::CsiController, &spec.plugin, generation), &request).await?;
            let unconfirmed = answer.unconfirmed(&request);
            Ok(Found::Validated(Validated { unconfirmed, message: answer.message }))
        }
        Read::Group { spec, generation, asked } => {
            group(&shared, &spec, generation, asked).await.map(Found::Group)
        }
        Read::Snapshots { plugin, generation, of, snapshot_id, page } => {
            snapshots(&shared, (&plugin, generation), of.as_deref(), snapshot_id, page)
                .await
                .map(Found::Snapshots)
        }
    }
}

/// A page of the snapshots of a plugin, of this volume and with this id if they are given.
async fn snapshots(
    shared: &Shared,
    (plugin, generation): (&PluginName, Generation),
    of: Option<&VolumeSpec>,
    snapshot_id: String,
    page: Page,
) -> Result<ListSnapshotsResponse, ReadError> {
    let source_volume_id = of.map(|spec| spec.volume_id.clone()).unwrap_or_default();
    let filters = ["snapshots", &*source_volume_id, &*snapshot_id];
    let list = List { plugin, of: &filters };
    let request = ListSnapshotsRequest {
        max_entries: page.max_entries,
        starting_token: list.read(&page.token)?,
        source_volume_id: source_volume_id.clone(),
        snapshot_id: snapshot_id.clone(),
        secrets: secrets(shared, of, Call::ListSnapshots).await?,
    };
    let listed = ask(shared, (PluginType::CsiController, plugin, generation), &request).await;
    let mut page = of_page(&request.starting_token, listed)?;
    page.next_token = list.give(&page.next_token);
    Ok(page)
}

/// A group with all of its snapshots, whose ids come from the plugin's list if the question has none.
async fn group(
    shared: &Shared,
    spec: &VolumeSpec,
    generation: Generation,
    asked: DescribeGroupSnapshot,
) -> Result<VolumeGroupSnapshot, ReadError> {
    let DescribeGroupSnapshot { group_snapshot_id, snapshot_ids, .. } = asked;
    let snapshot_ids = match snapshot_ids.is_empty() {
        true => members(shared, spec, generation, &group_snapshot_id).await?,
        false => snapshot_ids,
    };
    let _turn = shared.turn(Turn::Group(spec.plugin.clone(), group_snapshot_id.clone())).await;
    let request = GetVolumeGroupSnapshotRequest {
        group_snapshot_id,
        snapshot_ids: snapshot_ids.into_iter().collect(),
        secrets: secrets(shared, Some(spec), Call::GetVolumeGroupSnapshot).await?,
    };
    ask(shared, (PluginType::CsiController, &spec.plugin, generation), &request).await
}

/// The ids of the snapshots of a group, from all pages of the list of its plugin.
async fn members(
    shared: &Shared,
    spec: &VolumeSpec,
    generation: Generation,
    group_snapshot_id: &str,
) -> Result<BTreeSet<String>, ReadError> {
    let (mut found, mut starting_token) = (BTreeSet::new(), String::new());
    for _ in 0..PAGES_MAX {
        let secrets = secrets(shared, Some(spec), Call::ListSnapshots).await?;
        let request = ListSnapshotsRequest { starting_token, secrets, ..ListSnapshotsRequest::default() };
        let whom = (PluginType::CsiController, &spec.plugin, generation);
        let page = of_page("", ask(shared, whom, &request).await)?;
        let of_group = page.entries.into_iter().filter(|one| one.group_snapshot_id == group_snapshot_id);
        found.extend(of_group.map(|snapshot| snapshot.snapshot_id));
        starting_token = page.next_token;
        if starting_token.is_empty() {
            let (plugin, group_snapshot_id) = (spec.plugin.clone(), group_snapshot_id.to_owned());
            let none = ReadError::NoGroup { plugin, group_snapshot_id };
            return if found.is_empty() { Err(none) } else { Ok(found) };
        }
    }
    Err(ReadError::Failed {
        plugin: spec.plugin.clone(),
        reason: format!(
            "its list of snapshots has more than {PAGES_MAX} pages; give the ids of all snapshots of the group"
        ),
        is_transient: false,
    })
}

/// The page with this token; an empty token means the first page.
fn of_page<T>(token: &str, listed: Result<T, ReadError>) -> Result<T, ReadError> {
    listed.map_err(|error| if token.is_empty() { error.without_token() } else { error })
}

async fn on_node(
    shared: &Shared,
    spec: &VolumeSpec,
    generation: Generation,
    published: Published,
    found: &mut VolumeStatistics,
) -> Result<(), ReadError> {
    let request = NodeGetVolumeStatsRequest {
        volume_id: spec.volume_id.clone(),
        volume_path: text(&spec.plugin, &published.path)?,
        staging_target_path: published.staged_at.map(|path| text(&spec.plugin, &path)).transpose()?,
    };
    let answer = ask(shared, (PluginType::CsiNode, &spec.plugin, generation), &request).await?;
    found.path = Some(published.path);
    (found.usage, found.on_node) = (answer.usage, answer.volume_condition);
    Ok(())
}

/// A path as text for a request.
fn text(plugin: &PluginName, path: &Path) -> Result<String, ReadError> {
    volume::text(path).map_err(|Failure { reason, .. }| ReadError::Failed {
        plugin: plugin.clone(),
        reason,
        is_transient: false,
    })
}

async fn at_controller(
    shared: &Shared,
    spec: &VolumeSpec,
    generation: Generation,
    found: &mut VolumeStatistics,
) -> Result<(), ReadError> {
    let request = ControllerGetVolumeRequest { volume_id: spec.volume_id.clone() };
    let answer = ask(shared, (PluginType::CsiController, &spec.plugin, generation), &request).await?;
    found.at_controller = answer.status.and_then(|status| status.volume_condition);
    Ok(())
}

/// The secrets of a volume for this call; none without a known volume.
async fn secrets(shared: &Shared, of: Option<&VolumeSpec>, call: Call) -> Result<Secrets, ReadError> {
    let Some(spec) = of else { return Ok(Secrets::none()) };
    shared.secrets_of(&spec.key, call).await.map_err(|reason| ReadError::Failed {
        plugin: spec.plugin.clone(),
        reason: format!("cannot read its secrets: {reason}"),
        is_transient: true,
    })
}

async fn ask<R: UnaryRequest>(
    shared: &Shared,
    (half, plugin, generation): (PluginType, &PluginName, Generation),
    request: &R,
) -> Result<R::Answer, ReadError> {
    let reader = shared.reader(PluginKey::new(half, plugin.clone()), generation).await;
    let reader = reader.map_err(|Failure { known, reason }| {
        let plugin = plugin.clone();
        ReadError::Failed { plugin, reason, is_transient: known == Known::NotMade }
    })?;
    let answer = reader.client.call(request, CALL_TIMEOUT).await;
    answer.map_err(|failed| ReadError::of(plugin, &failed))
}
