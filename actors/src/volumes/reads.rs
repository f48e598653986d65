//! Questions that only read: makes their calls. A caller that stops waiting ends them, since they have no effect.

use std::path::Path;
use std::time::Duration;

use super::{Found, Published, Read, ReadError, VolumeStatistics};
use crate::csi::{ControllerGetVolumeRequest, NodeGetVolumeStatsRequest, UnaryRequest};
use crate::vocabulary::{Generation, PluginKey, PluginName, PluginType};
use crate::volume::{self, Failure, Known, Shared, VolumeSpec};

/// The timeout of one call; the machine may end it before.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);

pub(super) async fn read(shared: Shared, read: Read) -> Result<Found, ReadError> {
    match read {
        Read::Stats { spec, node, controller } => {
            let _turn = shared.turn(&spec.key).await;
            let mut found = VolumeStatistics::default();
            if let Some((generation, published)) = node {
                on_node(&shared, &spec, generation, published, &mut found).await?;
            }
            if let Some(generation) = controller {
                at_controller(&shared, &spec, generation, &mut found).await?;
            }
            Ok(Found::Stats(found))
        }
    }
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

/// A path as a request can carry it.
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
