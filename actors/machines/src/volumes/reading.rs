//! Questions that only read: whom they go to, and the way back to their callers.

use std::sync::Arc;
use std::time::Duration;

use super::messages::{VolumesAnswer, VolumesAsk};
use super::reads::{
    Found, GetCapacity, ListSnapshots, ListVolumesOfPlugin, Published, Read, ReadError, ValidateVolume,
    VolumeStats,
};
use super::reasons::{TooManyCallers, UnknownVolume};
use super::state::{Volumes, VolumesCall, VolumesOutcome};
use crate::instances::InstanceReport;
use crate::kernel::{AskId, CallKey, CallLost, Effects};
use crate::vocabulary::{
    ControllerCapability, CsiFingerprint, Generation, Health, NodeCapability, PluginName,
};
use crate::volume::VolumeKey;

/// The limit of questions in flight to one plugin: one that hangs takes none from another.
const READS_MAX: usize = 64;
/// The longest time of a question that is about no single volume.
const LIST_WITHIN_MAX: Duration = Duration::from_secs(60);
/// The longest time of a question about one volume: no call of that volume waits longer for it.
const READ_WITHIN_MAX: Duration = Duration::from_secs(10);

const NOT_PUBLISHED: &str =
    "no claim has it published here, and its controller does not offer GET_VOLUME; claim it first";
const NOT_OFFERED: &str =
    "its plugin offers neither GET_VOLUME_STATS nor GET_VOLUME here; look for a healthy instance of it";

impl Volumes {
    pub(super) fn question(&mut self, id: AskId, ask: &VolumesAsk, effects: &mut Effects<Self>) {
        match ask {
            VolumesAsk::VolumeStats(asked) => self.stats(id, asked, effects),
            VolumesAsk::ListSnapshots(asked) => self.snapshots(id, asked, effects),
            VolumesAsk::ListVolumesOfPlugin(asked) => self.volumes_of(id, asked, effects),
            VolumesAsk::GetCapacity(asked) => self.capacity(id, asked, effects),
            VolumesAsk::ValidateVolume(asked) => self.validate(id, asked, effects),
            // The others change something, or are answered by what is known here.
            _ => {}
        }
    }

    fn stats(&mut self, id: AskId, asked: &VolumeStats, effects: &mut Effects<Self>) {
        match self.stats_read(&asked.volume) {
            Ok(read) => self.read(id, read, asked.within.min(READ_WITHIN_MAX), effects),
            Err(error) => effects.reply(id, VolumesAnswer::VolumeStats(Err(error))),
        }
    }

    /// Where the figures of a volume are: at a proven mount of it on this node, and at its controller.
    fn stats_read(&self, key: &VolumeKey) -> Result<Read, ReadError> {
        let known = self.known.get(key).ok_or_else(|| UnknownVolume { volume: key.clone() })?;
        let plugin = self.plugins.get(&known.spec.plugin);
        let tells = |found: &CsiFingerprint| {
            found.node.as_ref().is_some_and(|can| can.contains(&NodeCapability::GetVolumeStats))
        };
        let describes = |found: &CsiFingerprint| {
            found.controller.as_ref().is_some_and(|can| can.contains(&ControllerCapability::GetVolume))
        };
        let generation = plugin.and_then(|plugin| healthy(plugin.node.as_ref(), tells));
        let controller = plugin.and_then(|plugin| healthy(plugin.controller.as_ref(), describes));
        let node = generation.zip(self.published(key));
        if node.is_none() && controller.is_none() {
            let reason = if generation.is_some() { NOT_PUBLISHED } else { NOT_OFFERED };
            return Err(ReadError::Nothing { volume: key.clone(), reason });
        }
        Ok(Read::Stats { spec: Arc::clone(&known.spec), node, controller })
    }

    /// Where a claim has the volume, as its actor has proven last.
    fn published(&self, key: &VolumeKey) -> Option<Published> {
        let status = self.entries.get(key)?.status.as_ref()?;
        let claim = status.claims.iter().find(|claim| claim.is_mounted())?;
        Some(Published { path: claim.path.clone(), staged_at: claim.staged_at.clone() })
    }

    fn snapshots(&mut self, id: AskId, asked: &ListSnapshots, effects: &mut Effects<Self>) {
        match self.snapshots_read(asked) {
            Ok(read) => self.read(id, read, asked.within, effects),
            Err(error) => effects.reply(id, VolumesAnswer::ListSnapshots(Err(error))),
        }
    }

    fn snapshots_read(&self, asked: &ListSnapshots) -> Result<Read, ReadError> {
        let ListSnapshots { plugin, volume, snapshot_id, page, .. } = asked.clone();
        let of = volume.map(|key| match self.known.get(&key) {
            None => Err(ReadError::from(UnknownVolume { volume: key })),
            Some(known) if known.spec.plugin != plugin => {
                Err(ReadError::OtherPlugin { volume: key, plugin: known.spec.plugin.clone() })
            }
            Some(known) => Ok(Arc::clone(&known.spec)),
        });
        let of = of.transpose()?;
        let generation = self.controller_of(&plugin)?;
        Ok(Read::Snapshots { plugin, generation, of, snapshot_id, page })
    }

    fn volumes_of(&mut self, id: AskId, asked: &ListVolumesOfPlugin, effects: &mut Effects<Self>) {
        let (asked, within) = (asked.clone(), asked.within);
        match self.controller_of(&asked.plugin) {
            Ok(generation) => self.read(id, Read::Volumes { generation, asked }, within, effects),
            Err(error) => effects.reply(id, VolumesAnswer::ListVolumesOfPlugin(Err(error))),
        }
    }

    fn capacity(&mut self, id: AskId, asked: &GetCapacity, effects: &mut Effects<Self>) {
        let (asked, within) = (asked.clone(), asked.within);
        match self.controller_of(&asked.plugin) {
            Ok(generation) => self.read(id, Read::Capacity { generation, asked }, within, effects),
            Err(error) => effects.reply(id, VolumesAnswer::GetCapacity(Err(error))),
        }
    }

    fn validate(&mut self, id: AskId, asked: &ValidateVolume, effects: &mut Effects<Self>) {
        let within = asked.within.min(READ_WITHIN_MAX);
        match self.validate_read(asked) {
            Ok(read) => self.read(id, read, within, effects),
            Err(error) => effects.reply(id, VolumesAnswer::ValidateVolume(Err(error))),
        }
    }

    fn validate_read(&self, asked: &ValidateVolume) -> Result<Read, ReadError> {
        let key = &asked.volume;
        let known = self.known.get(key).ok_or_else(|| UnknownVolume { volume: key.clone() })?;
        let generation = self.controller_of(&known.spec.plugin)?;
        Ok(Read::Validate { spec: Arc::clone(&known.spec), generation, asked: asked.clone() })
    }

    /// The healthy controller of a plugin.
    fn controller_of(&self, plugin: &PluginName) -> Result<Generation, ReadError> {
        let found = self.plugins.get(plugin).and_then(|plugin| healthy(plugin.controller.as_ref(), |_| true));
        found.ok_or_else(|| ReadError::NoController { plugin: plugin.clone() })
    }

    // === The way to the plugin, and back ===

    fn read(&mut self, id: AskId, read: Read, within: Duration, effects: &mut Effects<Self>) {
        let plugin = read.plugin().clone();
        if self.stop.is_some() {
            return effects.reply(id, answer(&read, Err(ReadError::Stopping { plugin })));
        }
        let waiting = self.reads.values().filter(|(_, read)| *read.plugin() == plugin).count();
        if waiting >= READS_MAX {
            let error = TooManyCallers { plugin, waiting };
            return effects.reply(id, answer(&read, Err(error.into())));
        }
        self.asked = self.asked.next();
        self.reads.insert(self.asked, (id, read.clone()));
        let key = CallKey { attempt: self.asked, ..CallKey::default() };
        effects.call(key, within.min(LIST_WITHIN_MAX), VolumesCall::Read(Box::new(read)));
    }

    pub(super) fn found(
        &mut self,
        key: CallKey,
        outcome: &Result<VolumesOutcome, CallLost>,
        effects: &mut Effects<Self>,
    ) {
        // One that the stop of the host has answered is not there any more.
        let Some((id, read)) = self.reads.remove(&key.attempt) else { return };
        let plugin = read.plugin().clone();
        let failed = |plugin: PluginName, reason: String| {
            Err(ReadError::Failed { plugin, reason, is_transient: true })
        };
        let found = match outcome {
            Ok(VolumesOutcome::Found(found)) => found.clone(),
            Ok(_) => failed(plugin, "another question was answered".to_owned()),
            Err(CallLost::DeadlineExceeded(_)) => Err(ReadError::Overdue { plugin }),
            Err(lost) => failed(plugin, lost.to_string()),
        };
        effects.reply(id, answer(&read, found));
    }

    /// The host stops: no caller waits for a plugin any more.
    pub(super) fn refuse_reads(&mut self, effects: &mut Effects<Self>) {
        for (id, read) in std::mem::take(&mut self.reads).into_values() {
            let plugin = read.plugin().clone();
            effects.reply(id, answer(&read, Err(ReadError::Stopping { plugin })));
        }
    }
}

/// The generation of a half that is healthy and can do this.
fn healthy(report: Option<&InstanceReport>, can: impl Fn(&CsiFingerprint) -> bool) -> Option<Generation> {
    let report = report.filter(|report| report.health == Health::Healthy)?;
    report.fingerprint.as_deref().filter(|found| can(found)).map(|_| report.generation)
}

/// The answer to a question.
fn answer(read: &Read, found: Result<Found, ReadError>) -> VolumesAnswer {
    let plugin = read.plugin();
    match read {
        Read::Stats { .. } => VolumesAnswer::VolumeStats(only(plugin, found, |found| match found {
            Found::Stats(stats) => Some(stats),
            _ => None,
        })),
        Read::Snapshots { .. } => VolumesAnswer::ListSnapshots(only(plugin, found, |found| match found {
            Found::Snapshots(page) => Some(page),
            _ => None,
        })),
        Read::Volumes { .. } => {
            VolumesAnswer::ListVolumesOfPlugin(only(plugin, found, |found| match found {
                Found::Volumes(page) => Some(page),
                _ => None,
            }))
        }
        Read::Capacity { .. } => VolumesAnswer::GetCapacity(only(plugin, found, |found| match found {
            Found::Capacity(capacity) => Some(capacity),
            _ => None,
        })),
        Read::Validate { .. } => VolumesAnswer::ValidateVolume(only(plugin, found, |found| match found {
            Found::Validated(validated) => Some(validated),
            _ => None,
        })),
    }
}

/// What was found, if it is what was asked for.
fn only<T>(
    plugin: &PluginName,
    found: Result<Found, ReadError>,
    is_it: impl Fn(Found) -> Option<T>,
) -> Result<T, ReadError> {
    found.and_then(|found| is_it(found).ok_or_else(|| another(plugin)))
}

fn another(plugin: &PluginName) -> ReadError {
    let reason = "another question was answered".to_owned();
    ReadError::Failed { plugin: plugin.clone(), reason, is_transient: true }
}
