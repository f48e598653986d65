//! Where the secrets of volumes come from. They are asked for before each call, and never held (V11).

use std::fmt;

use futures_util::future::LocalBoxFuture;

use super::VolumeKey;
use crate::csi::{Call, Secrets};

/// Gives the secrets of volumes. A host program provides one.
///
/// It is asked before each call that can carry secrets, once for each try, so a secret that was replaced is used from the next try on.
/// What it gives is sent to the plugin, and neither kept nor logged (V11, C025).
///
/// It runs on the one thread on which all actors of the host run, and so does its future: while it blocks, for example to read a file or to
/// ask a server, the whole host stands still. What blocks belongs into `tokio::task::spawn_blocking`, and the future awaits that.
///
/// A panic of it, also in its future, is an error like any other. Its message is in no error and no status here, since it may hold a secret;
/// the panic hook of the program has it, as of every panic.
pub trait SecretSource: fmt::Debug + Send + Sync {
    /// The secrets of a volume for this call; [`Secrets::none`] if it needs none. The same call and its inverse need the same (C081).
    /// It counts towards the timeout of the call, and is dropped when that is over.
    ///
    /// # Errors
    /// Why they cannot be had, without any part of them: the reason is shown to operators. The call is not made, and tried again later.
    fn secrets(&self, volume: &VolumeKey, call: Call) -> LocalBoxFuture<'static, Result<Secrets, String>>;
}

/// The source of a host whose volumes need no secrets.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoSecrets;

impl SecretSource for NoSecrets {
    fn secrets(&self, _volume: &VolumeKey, _call: Call) -> LocalBoxFuture<'static, Result<Secrets, String>> {
        Box::pin(std::future::ready(Ok(Secrets::none())))
    }
}
