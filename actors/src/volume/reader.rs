//! Calls that only read: they take the turn of their volume and a permit of their plugin, as every call does, and give both back when
//! their caller stops waiting.

use super::bulkhead::Permit;
use super::shared::Shared;
use super::{Failure, VolumeKey};
use crate::csi::{Call, Client, Secrets};
use crate::vocabulary::{Generation, PluginKey};

/// A client for calls that only read, until it is dropped.
pub(crate) struct Reader {
    pub(crate) client: Client,
    _permit: Permit<PluginKey>,
}

/// The turn of a volume, until it is dropped (V2).
pub(crate) struct Turn {
    _permit: Permit<VolumeKey>,
}

impl Shared {
    /// Waits for the turn of a volume.
    pub(crate) async fn turn(&self, volume: &VolumeKey) -> Turn {
        Turn { _permit: self.turns.enter(volume).await }
    }

    /// The secrets of a volume for a call (V11).
    pub(crate) async fn secrets_of(&self, volume: &VolumeKey, call: Call) -> Result<Secrets, String> {
        self.secrets.secrets(volume, call).await
    }

    /// A client of exactly this generation of one half of a plugin, when it is its turn (V9, V16).
    pub(crate) async fn reader(&self, half: PluginKey, generation: Generation) -> Result<Reader, Failure> {
        let permit = self.halves.enter(&half).await;
        let client = self.plugins.client(half, generation).await?;
        Ok(Reader { client, _permit: permit })
    }
}
