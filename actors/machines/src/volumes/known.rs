//! Keeps the known volumes, and reports each.

use std::sync::Arc;

use super::errors::{ForgetVolumeError, RegisterVolumeError};
use super::messages::VolumeRegistered;
use super::news::{VolumeActor, VolumeReport, VolumesNews};
use super::purposes::Request;
use super::reasons::{InUse, SameVolume, UnknownVolume};
use super::state::{Entry, KnownVolume, Vacancy, Volumes, VolumesChange};
use crate::kernel::StepContext;
use crate::supervisor::ChildState;
use crate::vocabulary::Attempt;
use crate::volume::{Exists, VolumeAsk, VolumeKey, VolumeSpec, VolumeStatus};

impl Volumes {
    pub(super) fn register(
        &mut self,
        volume: &KnownVolume,
        cx: &mut StepContext<Self>,
    ) -> Result<VolumeRegistered, RegisterVolumeError> {
        let key = &volume.spec.key;
        if self.stop.is_some() {
            return Err(RegisterVolumeError::Stopping { volume: key.clone() });
        }
        volume.check().map_err(|fault| RegisterVolumeError::Invalid { volume: key.clone(), fault })?;
        let registered = match self.known.get(key) {
            Some(known) if known.has(volume) => return Ok(VolumeRegistered::Unchanged),
            Some(_) => VolumeRegistered::Replaced,
            None if self.known.len() >= self.config.options.volumes_max => {
                return Err(RegisterVolumeError::TooMany { count: self.known.len() });
            }
            None => VolumeRegistered::New,
        };
        self.admit_id(&volume.spec)?;
        // A volume that is only in the ledger can become known again with the same spec.
        let is_another =
            |entry: &&Entry| registered == VolumeRegistered::Replaced || entry.spec != volume.spec;
        if let Some(entry) = self.used(key).filter(is_another) {
            return Err(RegisterVolumeError::InUse { in_use: entry.in_use() });
        }
        if self.created.contains(key) {
            return Err(RegisterVolumeError::Created { volume: key.clone() });
        }
        let volume = Arc::new(volume.clone());
        if let Some(entry) = self.entries.get_mut(key) {
            entry.spec = volume.spec.clone();
        }
        self.know(volume.clone());
        cx.persist(VolumesChange::Keep(volume.clone()));
        self.publish(key, cx);
        Ok(registered)
    }

    pub(super) fn forget(
        &mut self,
        key: &VolumeKey,
        cx: &mut StepContext<Self>,
    ) -> Result<bool, ForgetVolumeError> {
        if !self.known.contains_key(key) {
            return Ok(false);
        }
        if self.stop.is_some() {
            return Err(ForgetVolumeError::Stopping { volume: key.clone() });
        }
        if let Some(entry) = self.used(key) {
            return Err(ForgetVolumeError::InUse { in_use: entry.in_use() });
        }
        if self.created.contains(key) {
            return Err(ForgetVolumeError::Created { volume: key.clone() });
        }
        self.know_no_more(key);
        self.deleting.remove(key);
        cx.persist(VolumesChange::Forget(key.clone()));
        self.publish(key, cx);
        Ok(true)
    }

    /// Makes a volume known by its name and by its id.
    pub(super) fn know(&mut self, volume: Arc<KnownVolume>) {
        self.know_no_more(&volume.spec.key);
        let VolumeSpec { key, plugin, volume_id, .. } = &*volume.spec;
        self.names.entry((plugin.clone(), volume_id.clone())).or_default().insert(key.clone());
        self.known.insert(key.clone(), volume);
    }

    /// Makes a volume unknown. Returns whether it was known.
    pub(super) fn know_no_more(&mut self, key: &VolumeKey) -> bool {
        let Some(known) = self.known.remove(key) else { return false };
        let id = (known.spec.plugin.clone(), known.spec.volume_id.clone());
        if let Some(names) = self.names.get_mut(&id) {
            names.remove(key);
            if names.is_empty() {
                self.names.remove(&id);
            }
        }
        true
    }

    /// Whether no other volume here is the same one at its plugin: an operation on one of them would affect the other.
    pub(super) fn admit_id(&self, spec: &VolumeSpec) -> Result<(), SameVolume> {
        let VolumeSpec { key, plugin, volume_id, .. } = spec;
        let names = self.names.get(&(plugin.clone(), volume_id.clone()));
        let known = names.and_then(|names| names.iter().find(|name| *name != key));
        let is_same = |entry: &&Entry| {
            let other = &*entry.spec;
            other.key != *key && other.plugin == *plugin && other.volume_id == *volume_id && entry.is_in_use()
        };
        let used = || self.entries.values().find(is_same).map(|entry| &entry.spec.key);
        match known.or_else(used).filter(|_| !volume_id.is_empty()) {
            None => Ok(()),
            Some(other) => Err(SameVolume {
                volume: key.clone(),
                other: other.clone(),
                plugin: plugin.clone(),
                volume_id: volume_id.clone(),
            }),
        }
    }

    pub(super) fn describe(&self, key: &VolumeKey) -> Result<VolumeReport, UnknownVolume> {
        self.report(key).ok_or_else(|| UnknownVolume { volume: key.clone() })
    }

    /// Every volume that is known or has an actor, ordered by key.
    pub(super) fn reports(&self) -> Vec<VolumeReport> {
        let unknown = self.entries.keys().filter(|key| !self.known.contains_key(key));
        let mut keys: Vec<_> = self.known.keys().chain(unknown).collect();
        keys.sort();
        keys.into_iter().filter_map(|key| self.report(key)).collect()
    }

    fn report(&self, key: &VolumeKey) -> Option<VolumeReport> {
        let (known, entry) = (self.known.get(key), self.entries.get(key));
        let from_ledger = || entry.map(|entry| Arc::new(KnownVolume::new(entry.spec.clone())));
        Some(VolumeReport {
            volume: known.cloned().or_else(from_ledger)?,
            is_known: known.is_some(),
            actor: entry.map_or(VolumeActor::Unneeded, Entry::actor),
            restarts: entry.map_or(0, |entry| entry.child.restarts()),
            status: entry.and_then(|entry| entry.status.as_ref()).or_else(|| self.unfit.get(key)).cloned(),
        })
    }

    /// The volume of this key, if it is in use, or may be.
    pub(super) fn used(&self, key: &VolumeKey) -> Option<&Entry> {
        self.entries.get(key).filter(|entry| entry.is_in_use())
    }

    /// Publishes the present state of a volume.
    pub(super) fn publish(&self, key: &VolumeKey, cx: &mut StepContext<Self>) {
        cx.publish(match self.report(key) {
            Some(report) => VolumesNews::Changed(report),
            None => VolumesNews::Forgotten(key.clone()),
        });
    }
}

impl Entry {
    /// Whether the volume is in use, or may be.
    pub(super) fn is_in_use(&self) -> bool {
        self.vacancy != Vacancy::Proven || !self.queue.is_empty()
    }

    /// The change of its existence that is under way, as requested or reported.
    pub(super) fn changes(&self) -> Option<Exists> {
        let is_creation = |request: &Request| matches!(request.ask, VolumeAsk::CreateVolume(_));
        let is_asked = self.last_change != Attempt::default() && !self.is_settled;
        let is_created = || is_asked || self.queue.iter().any(is_creation);
        match &self.status {
            Some(status) if status.exists.is_changing() => Some(status.exists),
            Some(status) if status.exists != Exists::Absent => None,
            Some(_) | None => is_created().then_some(Exists::BeingCreated),
        }
    }

    /// Whether it is claimed or set up on this node, or may be.
    pub(super) fn is_on_node(&self) -> bool {
        let is_claim = |request: &Request| matches!(request.ask, VolumeAsk::Claim(_));
        let may_be_claimed = !self.claimants.is_empty() || self.queue.iter().any(is_claim);
        may_be_claimed || self.is_here() || self.is_unread && self.status.is_none()
    }

    /// Whether its actor has reported that it is claimed or set up on this node.
    pub(super) fn is_here(&self) -> bool {
        self.status.as_deref().is_some_and(VolumeStatus::is_on_node)
    }

    fn actor(&self) -> VolumeActor {
        let reason = || self.fallen.as_deref().unwrap_or_default().to_owned();
        match self.child.state() {
            ChildState::Running(_) => VolumeActor::Running,
            ChildState::Stopping(_) => VolumeActor::Stopping,
            ChildState::Pausing => VolumeActor::Pausing { reason: reason() },
            ChildState::GivenUp => VolumeActor::GivenUp { reason: reason() },
        }
    }

    /// The volume with its users.
    pub(super) fn in_use(&self) -> InUse {
        let state = match (self.child.life(), &self.status) {
            (Some(_), Some(status)) => status.to_string(),
            (Some(_), None) => "its ledger is being read".to_owned(),
            (None, _) => {
                let reason = self.fallen.as_deref().unwrap_or_default();
                format!("unknown, since its actor has ended: {reason}")
            }
        };
        let shown = self.status.iter().flat_map(|status| &status.claims).map(|claim| &claim.allocation);
        // The last report may be older than a claim.
        let others = self.claimants.iter().filter(|id| !self.shows_claim_of(id));
        let claims = shown.chain(others).cloned().collect();
        InUse { volume: self.spec.key.clone(), claims, state }
    }
}
