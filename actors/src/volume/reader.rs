//! Calls that only read: they take the turn of their volume and a permit of their plugin, as every call does, and give both back when
//! their caller stops waiting.

use super::bulkhead::Permit;
use super::shared::Shared;
use super::{Failure, Turn, VolumeKey};
use crate::csi::{Call, Client, Secrets};
use crate::vocabulary::{Generation, PluginKey};

/// A client for calls that only read, until it is dropped.
pub(crate) struct Reader {
    pub(crate) client: Client,
    _permit: Permit<PluginKey>,
}

/// A turn, until it is dropped (V2).
pub(crate) struct Held {
    _permit: Permit<Turn>,
}

impl Shared {
    /// Waits for a turn.
    pub(crate) async fn turn(&self, of: Turn) -> Held {
        Held { _permit: self.turns.enter(&of).await }
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
