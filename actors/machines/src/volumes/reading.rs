//! Handles questions that only read: sends them to their plugins, and the answers to their callers.

use std::sync::Arc;
use std::time::Duration;

use super::messages::{VolumesAnswer, VolumesAsk};
use super::purposes::{ReadKind, Reading};
use super::reads::{
    DescribeGroupSnapshot, Found, GetCapacity, ListSnapshots, ListVolumesOfPlugin, Published, Read,
    ReadError, ValidateVolume, VolumeStats,
};
use super::reasons::{TooManyCallers, UnknownVolume};
use super::state::{Volumes, VolumesCall, VolumesOutcome};
use crate::csi::{VolumeCapability, controller_can};
use crate::instances::InstanceReport;
use crate::kernel::{AskId, CallKey, CallLost, StepContext};
use crate::vocabulary::{
    ControllerCapability, CsiFingerprint, Generation, Health, NodeCapability, PluginName,
};
use crate::volume::VolumeKey;

/// The limit of questions in flight to one plugin: a plugin that hangs takes no capacity from another.
const READS_MAX: usize = 64;
/// The longest time of a question that does not concern a single volume.
const LIST_WITHIN_MAX: Duration = Duration::from_secs(60);
/// The longest time of a question about one volume: no call of that volume waits longer for it.
const READ_WITHIN_MAX: Duration = Duration::from_secs(10);

const NOT_PUBLISHED: &str =
    "no claim has it published here, and its controller does not offer GET_VOLUME; claim it first";
const NOT_OFFERED: &str = "its plugin offers neither GET_VOLUME_STATS nor GET_VOLUME here";
const NOT_SERVED: &str = "no healthy instance of its plugin is here; start one";

impl Volumes {
    pub(super) fn question(&mut self, id: AskId, ask: &VolumesAsk, cx: &mut StepContext<Self>) {
        let (kind, read, within_max) = match ask {
            VolumesAsk::VolumeStats(asked) => (ReadKind::Stats, self.stats_read(asked), READ_WITHIN_MAX),
            VolumesAsk::ValidateVolume(asked) => {
                (ReadKind::Validate, self.validate_read(asked), READ_WITHIN_MAX)
            }
            VolumesAsk::ListSnapshots(asked) => {
                (ReadKind::Snapshots, self.snapshots_read(asked), LIST_WITHIN_MAX)
            }
            VolumesAsk::DescribeGroupSnapshot(asked) => {
                (ReadKind::Group, self.group_read(asked), LIST_WITHIN_MAX)
            }
            VolumesAsk::ListVolumesOfPlugin(asked) => {
                (ReadKind::Volumes, self.volumes_read(asked), LIST_WITHIN_MAX)
            }
            VolumesAsk::GetCapacity(asked) => {
                (ReadKind::Capacity, self.capacity_read(asked), LIST_WITHIN_MAX)
            }
            // The others change something, or are answered from local data.
            _ => return,
        };
        let admitted = read.and_then(|(read, within)| Ok((self.admit_read(read)?, within)));
        match admitted {
            Ok((read, within)) => self.read((id, kind), read, within.min(within_max), cx),
            Err(error) => cx.reply(id, kind.refusal(error)),
        }
    }

    /// The sources of the statistics of a volume: a proven mount of it on this node, and its controller.
    fn stats_read(&self, asked: &VolumeStats) -> Result<(Read, Duration), ReadError> {
        let VolumeStats { volume: key, within } = asked;
        let known = self.known.get(key).ok_or_else(|| UnknownVolume { volume: key.clone() })?;
        let plugin = self.plugins.get(&known.spec.plugin);
        let tells = |found: &CsiFingerprint| {
            found.node.as_ref().is_some_and(|can| can.contains(&NodeCapability::GetVolumeStats))
        };
        let describes = |found: &CsiFingerprint| controller_can(found, ControllerCapability::GetVolume);
        let of_healthy = |(generation, _)| generation;
        let generation = plugin.and_then(|plugin| healthy(plugin.node.as_ref(), tells)).map(of_healthy);
        let controller =
            plugin.and_then(|plugin| healthy(plugin.controller.as_ref(), describes)).map(of_healthy);
        let node = generation.zip(self.published(key));
        if node.is_none() && controller.is_none() {
            let is_healthy = |half: Option<&InstanceReport>| healthy(half, |_| true).is_some();
            let is_served = plugin.is_some_and(|plugin| {
                is_healthy(plugin.node.as_ref()) || is_healthy(plugin.controller.as_ref())
            });
            let reason = match (generation, is_served) {
                (Some(_), _) => NOT_PUBLISHED,
                (None, true) => NOT_OFFERED,
                (None, false) => NOT_SERVED,
            };
            return Err(ReadError::Nothing { volume: key.clone(), reason });
        }
        Ok((Read::Stats { spec: Arc::clone(&known.spec), node, controller }, *within))
    }

    /// The path where a claim has the volume, as its actor has proven last.
    fn published(&self, key: &VolumeKey) -> Option<Published> {
        let status = self.entries.get(key)?.status.as_ref()?;
        let claim = status.claims.iter().find(|claim| claim.is_mounted())?;
        Some(Published { path: claim.path.clone(), staged_at: claim.staged_at.clone() })
    }

    fn snapshots_read(&self, asked: &ListSnapshots) -> Result<(Read, Duration), ReadError> {
        let ListSnapshots { plugin, volume, snapshot_id, page, within } = asked.clone();
        let of = volume.map(|key| match self.known.get(&key) {
            None => Err(ReadError::from(UnknownVolume { volume: key })),
            Some(known) if known.spec.plugin != plugin => {
                Err(ReadError::OtherPlugin { volume: key, plugin: known.spec.plugin.clone() })
            }
            Some(known) => Ok(Arc::clone(&known.spec)),
        });
        let of = of.transpose()?;
        let generation = self.controller_of(&plugin)?;
        Ok((Read::Snapshots { plugin, generation, of, snapshot_id, page }, within))
    }

    fn volumes_read(&self, asked: &ListVolumesOfPlugin) -> Result<(Read, Duration), ReadError> {
        let generation = self.controller_of(&asked.plugin)?;
        Ok((Read::Volumes { generation, asked: asked.clone() }, asked.within))
    }

    fn capacity_read(&self, asked: &GetCapacity) -> Result<(Read, Duration), ReadError> {
        let (generation, capabilities) = self.controller_for(&asked.plugin, &asked.capabilities)?;
        let asked = GetCapacity { capabilities, ..asked.clone() };
        let within = asked.within;
        Ok((Read::Capacity { generation, asked }, within))
    }

    fn validate_read(&self, asked: &ValidateVolume) -> Result<(Read, Duration), ReadError> {
        let key = &asked.volume;
        let known = self.known.get(key).ok_or_else(|| UnknownVolume { volume: key.clone() })?;
        let (generation, capabilities) = self.controller_for(&known.spec.plugin, &asked.capabilities)?;
        let asked = ValidateVolume { capabilities, ..asked.clone() };
        let within = asked.within;
        Ok((Read::Validate { spec: Arc::clone(&known.spec), generation, asked }, within))
    }

    fn group_read(&self, asked: &DescribeGroupSnapshot) -> Result<(Read, Duration), ReadError> {
        let key = &asked.volume;
        let known = self.known.get(key).ok_or_else(|| UnknownVolume { volume: key.clone() })?;
        let generation = self.controller_of(&known.spec.plugin)?;
        Ok((Read::Group { spec: Arc::clone(&known.spec), generation, asked: asked.clone() }, asked.within))
    }

    /// The healthy controller of a plugin.
    fn controller_of(&self, plugin: &PluginName) -> Result<Generation, ReadError> {
        self.healthy_controller(plugin).map(|(generation, _)| generation)
    }

    fn healthy_controller(&self, plugin: &PluginName) -> Result<(Generation, &CsiFingerprint), ReadError> {
        let found = self.plugins.get(plugin).and_then(|plugin| healthy(plugin.controller.as_ref(), |_| true));
        found.ok_or_else(|| ReadError::NoController { plugin: plugin.clone() })
    }

    /// The healthy controller of a plugin, and these capabilities with the modes in which it is asked when they are claimed (C154).
    fn controller_for(
        &self,
        plugin: &PluginName,
        asked: &[VolumeCapability],
    ) -> Result<(Generation, Vec<VolumeCapability>), ReadError> {
        let (generation, found) = self.healthy_controller(plugin)?;
        let knows_alpha = controller_can(found, ControllerCapability::SingleNodeMultiWriter);
        Ok((generation, asked.iter().map(|asked| asked.for_plugin(knows_alpha)).collect()))
    }

    // === The way to the plugin and back ===

    /// Whether one more question may go to its plugin.
    fn admit_read(&self, read: Read) -> Result<Read, ReadError> {
        let plugin = read.plugin().clone();
        if self.stop.is_some() {
            return Err(ReadError::Stopping { plugin });
        }
        let waiting = self.reads.values().filter(|reading| reading.plugin == plugin).count();
        match waiting >= READS_MAX {
            true => Err(TooManyCallers { plugin, waiting }.into()),
            false => Ok(read),
        }
    }

    fn read(
        &mut self,
        (id, kind): (AskId, ReadKind),
        read: Read,
        within: Duration,
        cx: &mut StepContext<Self>,
    ) {
        self.asked = self.asked.next();
        self.reads.insert(self.asked, Reading { id, kind, plugin: read.plugin().clone() });
        let key = CallKey { attempt: self.asked, ..CallKey::default() };
        cx.call(key, within, VolumesCall::Read(Box::new(read)));
    }

    pub(super) fn found(
        &mut self,
        key: CallKey,
        outcome: &Result<VolumesOutcome, CallLost>,
        cx: &mut StepContext<Self>,
    ) {
        // A question that was answered because of the stop of the host is gone.
        let Some(Reading { id, kind, plugin }) = self.reads.remove(&key.attempt) else { return };
        let failed =
            |reason: String| ReadError::Failed { plugin: plugin.clone(), reason, is_transient: true };
        let answer = match outcome {
            Ok(VolumesOutcome::Found(Ok(found))) => kind.answer(found),
            Ok(VolumesOutcome::Found(Err(error))) => Some(kind.refusal(error.clone())),
            Ok(_) => None,
            Err(CallLost::DeadlineExceeded(_)) => {
                Some(kind.refusal(ReadError::Overdue { plugin: plugin.clone() }))
            }
            Err(lost) => Some(kind.refusal(failed(lost.to_string()))),
        };
        let another = || kind.refusal(failed("the reply does not match the request".to_owned()));
        cx.reply(id, answer.unwrap_or_else(another));
    }

    /// The host stops: no caller waits for a plugin from now on.
    pub(super) fn refuse_reads(&mut self, cx: &mut StepContext<Self>) {
        for Reading { id, kind, plugin } in std::mem::take(&mut self.reads).into_values() {
            cx.reply(id, kind.refusal(ReadError::Stopping { plugin }));
        }
    }
}

/// The generation of a half that is healthy and has the capability.
fn healthy(
    report: Option<&InstanceReport>,
    can: impl Fn(&CsiFingerprint) -> bool,
) -> Option<(Generation, &CsiFingerprint)> {
    let report = report.filter(|report| report.health == Health::Healthy)?;
    report.fingerprint.as_deref().filter(|found| can(found)).map(|found| (report.generation, found))
}

impl ReadKind {
    /// The result as an answer, if it matches the question.
    fn answer(self, found: &Found) -> Option<VolumesAnswer> {
        Some(match (self, found.clone()) {
            (Self::Stats, Found::Stats(stats)) => VolumesAnswer::VolumeStats(Ok(stats)),
            (Self::Snapshots, Found::Snapshots(page)) => VolumesAnswer::ListSnapshots(Ok(page)),
            (Self::Volumes, Found::Volumes(page)) => VolumesAnswer::ListVolumesOfPlugin(Ok(page)),
            (Self::Capacity, Found::Capacity(capacity)) => VolumesAnswer::GetCapacity(Ok(capacity)),
            (Self::Group, Found::Group(group)) => VolumesAnswer::DescribeGroupSnapshot(Ok(group)),
            (Self::Validate, Found::Validated(validated)) => VolumesAnswer::ValidateVolume(Ok(validated)),
            _ => return None,
        })
    }

    fn refusal(self, error: ReadError) -> VolumesAnswer {
        match self {
            Self::Stats => VolumesAnswer::VolumeStats(Err(error)),
            Self::Snapshots => VolumesAnswer::ListSnapshots(Err(error)),
            Self::Volumes => VolumesAnswer::ListVolumesOfPlugin(Err(error)),
            Self::Capacity => VolumesAnswer::GetCapacity(Err(error)),
            Self::Group => VolumesAnswer::DescribeGroupSnapshot(Err(error)),
            Self::Validate => VolumesAnswer::ValidateVolume(Err(error)),
        }
    }
}
