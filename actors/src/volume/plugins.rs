//! Connects the calls of volumes to their plugin.

use std::fmt;
use std::time::Duration;

use futures_util::future::LocalBoxFuture;

use super::{Failure, Known};
use crate::csi::Client;
use crate::instances::Leases;
use crate::vocabulary::{Generation, PluginKey};

/// Gives clients of plugins. They are [leased](Leases) from the instances of this node. The controller of another node would need routes and a client
/// of its own.
pub trait Plugins: fmt::Debug {
    /// A client of exactly this generation of one half of a plugin (V16). It does not wait for one.
    ///
    /// # Errors
    /// A failure that is [`Known::NotMade`], if that generation takes no calls now.
    fn client(
        &self,
        half: PluginKey,
        generation: Generation,
    ) -> LocalBoxFuture<'static, Result<Client, Failure>>;
}

impl Plugins for Leases {
    fn client(
        &self,
        half: PluginKey,
        generation: Generation,
    ) -> LocalBoxFuture<'static, Result<Client, Failure>> {
        let leases = self.clone();
        Box::pin(async move {
            let lease = leases.lease(&half, Duration::ZERO).await;
            let lease = lease.map_err(|refused| not_made(refused.to_string()))?;
            let present = lease.generation();
            if present != generation {
                return Err(not_made(format!(
                    "it was meant for generation {generation} of {half}, but generation {present} serves now"
                )));
            }
            Ok(Client::new(lease))
        })
    }
}

/// The failure of a call that was not sent from this host.
pub(super) fn not_made(reason: impl fmt::Display) -> Failure {
    Failure { known: Known::NotMade, reason: format!("the call was not made: {reason}") }
}
