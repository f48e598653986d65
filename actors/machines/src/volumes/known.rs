//! The known volumes, and what is shown of each.

use std::sync::Arc;

use super::errors::{ForgetVolumeError, InUse, RegisterVolumeError, UnknownVolume};
use super::messages::VolumeRegistered;
use super::news::{VolumeActor, VolumeReport, VolumesNews};
use super::state::{Entry, KnownVolume, Request, Vacancy, Volumes, VolumesChange};
use crate::kernel::Effects;
use crate::supervisor::ChildState;
use crate::volume::{VolumeAsk, VolumeKey, VolumeStatus};

impl Volumes {
    pub(super) fn register(
        &mut self,
        volume: &KnownVolume,
        effects: &mut Effects<Self>,
    ) -> Result<VolumeRegistered, RegisterVolumeError> {
        let key = &volume.spec.key;
        if self.stop.is_some() {
            return Err(RegisterVolumeError::Stopping { volume: key.clone() });
        }
        volume.check().map_err(|fault| RegisterVolumeError::Invalid { volume: key.clone(), fault })?;
        let registered = match self.known.get(key) {
            Some(known) if **known == *volume => return Ok(VolumeRegistered::Unchanged),
            Some(_) => VolumeRegistered::Replaced,
            None if self.known.len() >= self.config.options.volumes_max => {
                return Err(RegisterVolumeError::TooMany { count: self.known.len() });
            }
            None => VolumeRegistered::New,
        };
        // What is only in the ledger can be known again as it is there.
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
        self.known.insert(key.clone(), volume.clone());
        effects.persist(VolumesChange::Keep(volume.clone()));
        self.publish(key, effects);
        Ok(registered)
    }

    pub(super) fn forget(
        &mut self,
        key: &VolumeKey,
        effects: &mut Effects<Self>,
    ) -> Result<bool, ForgetVolumeError> {
        if !self.known.contains_key(key) {
            return Ok(false);
        }
        if let Some(entry) = self.used(key) {
            return Err(ForgetVolumeError::InUse { in_use: entry.in_use() });
        }
        if self.created.contains(key) {
            return Err(ForgetVolumeError::Created { volume: key.clone() });
        }
        self.known.remove(key);
        self.deleting.remove(key);
        effects.persist(VolumesChange::Forget(key.clone()));
        self.publish(key, effects);
        Ok(true)
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
            status: entry.and_then(|entry| entry.status.clone()),
        })
    }

    /// The volume of this key, if it is in use, or may be.
    pub(super) fn used(&self, key: &VolumeKey) -> Option<&Entry> {
        self.entries.get(key).filter(|entry| entry.is_in_use())
    }

    /// Publishes what has become of a volume.
    pub(super) fn publish(&self, key: &VolumeKey, effects: &mut Effects<Self>) {
        effects.publish(match self.report(key) {
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

    /// Whether it is claimed or set up on this node, or may be.
    pub(super) fn is_on_node(&self) -> bool {
        let is_down = |status: &VolumeStatus| status.attach == "down" && status.stage == "down";
        let is_claim = |request: &Request| matches!(request.ask, VolumeAsk::Claim(_));
        let is_claimed = !self.claimants.is_empty() || self.queue.iter().any(is_claim);
        is_claimed || !self.status.as_ref().is_some_and(is_down)
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

    /// By whom it is used.
    pub(super) fn in_use(&self) -> InUse {
        let state = match (self.child.life(), &self.status) {
            (Some(_), Some(status)) => status.to_string(),
            (Some(_), None) => "its ledger is being read".to_owned(),
            (None, _) => {
                let reason = self.fallen.as_deref().unwrap_or_default();
                format!("unknown, since its actor has ended: {reason}")
            }
        };
        let claims = match &self.status {
            Some(status) => status.claims.iter().map(|claim| claim.allocation.clone()).collect(),
            None => self.claimants.iter().cloned().collect(),
        };
        InUse { volume: self.spec.key.clone(), claims, state }
    }
}
