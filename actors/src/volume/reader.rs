//! Calls that only read: they take the turn of their volume and a permit of their plugin, as every call does, and return both when the
//! caller stops waiting.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;

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

    /// The secrets of a volume for a call (V11). A source that panics has none, and its panic message is left out: it may be a secret.
    pub(crate) async fn secrets_of(&self, volume: &VolumeKey, call: Call) -> Result<Secrets, String> {
        // In one future, so that a panic is caught both in the call and while the answer is awaited.
        let asked = AssertUnwindSafe(async { self.secrets.secrets(volume, call).await });
        let answer = asked.catch_unwind().await;
        answer.unwrap_or_else(|_panic| {
            Err("the source of secrets panicked; the log of the host program has more".to_owned())
        })
    }

    /// A client of exactly this generation of one half of a plugin, when a permit is free (V9, V16).
    pub(crate) async fn reader(&self, half: PluginKey, generation: Generation) -> Result<Reader, Failure> {
        let permit = self.halves.enter(&half).await;
        let client = self.plugins.client(half, generation).await?;
        Ok(Reader { client, _permit: permit })
    }
}
