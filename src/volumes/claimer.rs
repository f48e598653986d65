//! Claims and releases volumes for their users.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use callboard_actors::agent::{AllocationVolume, ClaimTrouble, Unreleased};
use callboard_actors::shell::{Address, AskError};
use callboard_actors::vocabulary::AllocationId;
use callboard_actors::volume::{self, Claimed, ObservedEnd, Usage, VolumeKey};
use callboard_actors::volumes::{
    AllocationEnded, Claim, CreateVolume, RegisterVolume, ReleaseError, VolumeReleased, Volumes,
};
use futures_util::future::{LocalBoxFuture, join_all};
use tokio::time::{Instant, sleep};

use super::{FIRST_PAUSE, LONGEST_PAUSE};
use crate::agent::VolumeClaims;
use crate::config::{VolumeConfig, VolumeOrigin};

/// The pause before a registration that was refused for now is repeated.
const REGISTER_PAUSE: Duration = Duration::from_secs(1);

/// Claims the volumes of a configuration from their owner. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Claimer {
    volumes: Address<Volumes>,
    configured: Arc<BTreeMap<VolumeKey, VolumeConfig>>,
}

impl Claimer {
    /// Claims these volumes from the owner at this address.
    #[must_use]
    pub fn new(volumes: Address<Volumes>, configured: &[VolumeConfig]) -> Self {
        let configured = configured.iter().map(|volume| (volume.key.clone(), volume.clone())).collect();
        Self { volumes, configured: Arc::new(configured) }
    }

    /// The volumes of the configuration.
    pub fn configured(&self) -> impl Iterator<Item = &VolumeConfig> {
        self.configured.values()
    }

    /// The entry of a volume in the configuration.
    #[must_use]
    pub fn entry(&self, volume: &VolumeKey) -> Option<&VolumeConfig> {
        self.configured.get(volume)
    }

    /// Registers the volumes of the configuration that exist at their plugins, so that they are known before their first use. Ends when
    /// each volume is registered, or refused permanently.
    pub async fn register(&self) {
        let exist = self.configured().filter(|config| matches!(config.origin, VolumeOrigin::Registered(_)));
        join_all(exist.map(|config| self.register_one(config))).await;
    }

    async fn register_one(&self, config: &VolumeConfig) {
        loop {
            match self.provide(config, Instant::now()).await {
                Ok(()) => return,
                Err(trouble) if trouble.is_transient => sleep(REGISTER_PAUSE).await,
                Err(trouble) => {
                    tracing::warn!(volume = %config.key, error = %trouble, "cannot register a volume of the configuration");
                    return;
                }
            }
        }
    }

    /// Makes a volume known to its owner if the configuration has it: registers or creates it.
    ///
    /// # Errors
    /// Why that is not done, or not in time.
    pub async fn make_known(&self, volume: &VolumeKey, within: Duration) -> Result<(), ClaimTrouble> {
        match self.configured.get(volume) {
            Some(config) => self.provide(config, Instant::now() + within).await,
            None => Ok(()),
        }
    }

    /// Claims these volumes for a user, concurrently; `true` for volumes that it only reads. A volume that its plugin has to create is
    /// created first. Idempotent; each call proves each mount again (V7). When the future is dropped, nothing more is sent.
    ///
    /// # Errors
    /// One of the volumes that are not claimed, preferably a volume for which a retry is useless. Some may be claimed until `release`.
    pub async fn hold(
        &self,
        user: &AllocationId,
        wanted: &[(VolumeKey, bool)],
        within: Duration,
    ) -> Result<Vec<Claimed>, ClaimTrouble> {
        let until = Instant::now() + within;
        let all = wanted.iter().map(|(volume, read_only)| self.hold_one(user, volume, *read_only, until));
        let (mut claimed, mut passing) = (Vec::new(), None);
        for one in join_all(all).await {
            match one {
                Ok(one) => claimed.push(one),
                Err(trouble) if trouble.is_transient => passing = passing.or(Some(trouble)),
                Err(trouble) => return Err(trouble),
            }
        }
        passing.map_or(Ok(claimed), Err)
    }

    async fn hold_one(
        &self,
        user: &AllocationId,
        volume: &VolumeKey,
        read_only: bool,
        until: Instant,
    ) -> Result<Claimed, ClaimTrouble> {
        let Some(config) = self.configured.get(volume) else {
            let reason = format!("volume {volume} is not in the configuration; add a [[volume]] for it");
            return Err(ClaimTrouble { reason, is_transient: false });
        };
        self.provide(config, until).await?;
        let read_only = config.usage.read_only || read_only;
        let usage = Usage { read_only, ..config.usage.clone() };
        let within = until.saturating_duration_since(Instant::now());
        let claim = Claim { volume: volume.clone(), allocation: user.clone(), usage, within };
        let claimed = self.volumes.ask(claim).await.map_err(|error| unanswered(volume, &error))?;
        claimed
            .map_err(|error| ClaimTrouble { is_transient: error.is_transient(), reason: error.to_string() })
    }

    /// Registers a volume with its owner, or has it created.
    async fn provide(&self, config: &VolumeConfig, until: Instant) -> Result<(), ClaimTrouble> {
        let key = &config.key;
        match &config.origin {
            VolumeOrigin::Registered(known) => {
                let registered = self.volumes.ask(RegisterVolume { volume: known.clone() }).await;
                registered.map_err(|error| unanswered(key, &error))?.map(drop).map_err(|error| ClaimTrouble {
                    is_transient: error.is_transient(),
                    reason: error.to_string(),
                })
            }
            VolumeOrigin::Created(new) => {
                let within = until.saturating_duration_since(Instant::now());
                let (volume, plugin) = (key.clone(), config.plugin.clone());
                let asked = self.volumes.ask(CreateVolume { volume, plugin, new: (**new).clone(), within });
                let created = asked.await.map_err(|error| unanswered(key, &error))?;
                created.map(drop).map_err(|error| ClaimTrouble {
                    is_transient: error.is_transient(),
                    reason: error.to_string(),
                })
            }
        }
    }

    /// Releases all volumes of a user with this observation of its processes, and retries with backoff until that is recorded.
    pub async fn release_until_recorded(&self, user: &AllocationId, observed: ObservedEnd, within: Duration) {
        let mut pause = FIRST_PAUSE;
        while let Err(error) = self.release(user, observed, within).await {
            tracing::warn!(%user, %error, goes_on = error.goes_on, "the volumes of a user that has ended are not released yet");
            if error.goes_on {
                return;
            }
            sleep(pause).await;
            pause = LONGEST_PAUSE.min(pause * 2);
        }
    }

    /// Releases all volumes of a user with this observation of its processes (V8). Idempotent.
    ///
    /// # Errors
    /// If that is not confirmed in time, or not recorded.
    pub async fn release(
        &self,
        user: &AllocationId,
        observed: ObservedEnd,
        within: Duration,
    ) -> Result<(), Unreleased> {
        let ended = AllocationEnded { allocation: user.clone(), observed, within };
        match self.volumes.ask(ended).await {
            Ok(released) => confirmed(released),
            Err(error) => {
                let reason = format!("cannot release the volumes of {user}: {error}");
                Err(Unreleased { reason, goes_on: false })
            }
        }
    }
}

fn unanswered(volume: &VolumeKey, error: &AskError) -> ClaimTrouble {
    ClaimTrouble { reason: format!("cannot claim volume {volume}: {error}"), is_transient: true }
}

fn confirmed(released: Vec<VolumeReleased>) -> Result<(), Unreleased> {
    // Nothing is held of an unknown volume, nor of a volume that was given up by force.
    let is_left = |error: &ReleaseError| {
        !matches!(
            error,
            ReleaseError::Unknown(_) | ReleaseError::Unconfirmed(volume::ReleaseError::Forced { .. })
        )
    };
    let errors = released.into_iter().filter_map(|released| released.result.err()).filter(is_left);
    let errors: Vec<_> = errors.collect();
    if errors.is_empty() {
        return Ok(());
    }
    let goes_on = errors.iter().all(|error| matches!(error, ReleaseError::Unconfirmed(_)));
    let reasons: Vec<_> = errors.iter().map(ToString::to_string).collect();
    Err(Unreleased { reason: reasons.join("; "), goes_on })
}

impl VolumeClaims for Claimer {
    fn claim(
        &self,
        user: AllocationId,
        volumes: Vec<AllocationVolume>,
        within: Duration,
    ) -> LocalBoxFuture<'static, Result<BTreeMap<VolumeKey, PathBuf>, ClaimTrouble>> {
        let claimer = self.clone();
        Box::pin(async move {
            let wanted: Vec<_> = volumes.into_iter().map(|of| (of.volume, of.read_only)).collect();
            let claimed = claimer.hold(&user, &wanted, within).await?;
            let keys = wanted.into_iter().map(|(volume, _)| volume);
            Ok(keys.zip(claimed.into_iter().map(|claimed| claimed.path)).collect())
        })
    }

    fn ended(
        &self,
        user: AllocationId,
        observed: ObservedEnd,
        within: Duration,
    ) -> LocalBoxFuture<'static, Result<(), Unreleased>> {
        let claimer = self.clone();
        Box::pin(async move { claimer.release(&user, observed, within).await })
    }
}
