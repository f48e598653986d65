//! The source of the secrets of volumes. It is asked before each call, and secrets are never kept (V11).

use std::fmt;

use futures_util::future::LocalBoxFuture;

use super::VolumeKey;
use crate::csi::{Call, Secrets};

/// Provides the secrets of volumes. A host program implements it.
///
/// It is asked before each call that can carry secrets, once for each try, so a secret that was replaced is used from the next try on.
/// The secrets are sent to the plugin, and neither kept nor logged (V11, C025).
///
/// It runs on the thread on which all actors of the host run, and so does its future: while it blocks, for example to read a file or to ask
/// a server, the whole host stands still. Blocking work belongs in `tokio::task::spawn_blocking`, and the future awaits that.
///
/// A panic of the source, also in its future, is an error like any other. Its message is in no error and no status here, since it may hold
/// a secret; the panic hook of the program gets it, as for every panic.
pub trait SecretSource: fmt::Debug + Send + Sync {
    /// The secrets of a volume for this call; [`Secrets::none`] if it needs none. The same call and its inverse need the same (C081).
    /// It counts towards the timeout of the call, and is dropped when that is over.
    ///
    /// # Errors
    /// The reason that there are none, without any part of a secret: it is shown to operators. The call is not made, and is retried later.
    fn secrets(&self, volume: &VolumeKey, call: Call) -> LocalBoxFuture<'static, Result<Secrets, String>>;
}

/// The secret source of a host whose volumes need no secrets.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoSecrets;

impl SecretSource for NoSecrets {
    fn secrets(&self, _volume: &VolumeKey, _call: Call) -> LocalBoxFuture<'static, Result<Secrets, String>> {
        Box::pin(std::future::ready(Ok(Secrets::none())))
    }
}
