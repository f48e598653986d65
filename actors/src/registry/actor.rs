//! The effect handler of the registry: checks the identity of restored plugins.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::LocalBoxFuture;

use super::{Active, CheckIdentity, CheckOutcome, Registry, RegistryNews, RegistryOptions};
use crate::csi::{Connection, Limits};
use crate::shell::{self, Address, EffectHandler, Running, Settings, Started, Store};
use crate::vocabulary::Registration;

/// Checks whether a restored registration is still valid.
pub trait IdentityCheck: 'static {
    /// Runs the check, concurrently with the registry and under its deadline.
    fn check(&mut self, registration: Arc<Registration>) -> LocalBoxFuture<'static, CheckOutcome>;
}

/// An identity check over the plugin's own socket.
#[derive(Debug, Clone, Copy)]
pub struct SocketCheck {
    /// The timeout for the plugin's identity response.
    pub deadline: Duration,
}

impl IdentityCheck for SocketCheck {
    fn check(&mut self, registration: Arc<Registration>) -> LocalBoxFuture<'static, CheckOutcome> {
        let deadline = self.deadline;
        Box::pin(async move {
            let asked = async {
                let connection = Connection::dial(&registration.socket, Limits::default()).await?;
                connection.plugin_info(deadline).await
            };
            match asked.await {
                Ok(identity) if Some(&identity.provider) == registration.provider.as_ref() => {
                    CheckOutcome::Proven
                }
                Ok(identity) => CheckOutcome::NotProven(format!(
                    "{} answers as {}",
                    registration.socket, identity.provider
                )),
                Err(error) => CheckOutcome::NotProven(error.to_string()),
            }
        })
    }
}

struct Handler<I>(I);

impl<I: IdentityCheck> EffectHandler<Registry> for Handler<I> {
    fn call(&mut self, call: CheckIdentity) -> Started<CheckOutcome> {
        let CheckIdentity { number, registration } = call;
        let span = Arc::clone(&registration);
        let check = self.0.check(registration);
        Started::running(async move {
            let outcome = check.await;
            tracing::debug!(
                plugin = %span.plugin, allocation = %span.allocation, %number,
                outcome = outcome.as_str(), reason = outcome.reason(),
                "looked for the owner of a restored registration"
            );
            outcome
        })
    }

    fn published(&mut self, news: &RegistryNews) {
        let RegistryNews::ActiveChanged { plugin, from, to, reason } = news else { return };
        fn name(active: &Active) -> &str {
            active.registration.allocation.as_str()
        }
        let (from, generation) = (from.as_ref().map(name), to.as_ref().map(|to| to.generation.get()));
        match to.as_ref().map(name) {
            None => tracing::info!(%plugin, from, %reason, "no registration is active"),
            Some(to) if from == Some(to) => {
                tracing::info!(%plugin, allocation = to, generation, %reason, "the active registration has a new generation");
            }
            Some(to) => {
                tracing::info!(%plugin, from, to, generation, %reason, "another registration is active")
            }
        }
    }
}

/// Starts the registry at a vacant address.
pub fn start(
    address: &Address<Registry>,
    options: RegistryOptions,
    check: impl IdentityCheck,
    store: impl Store<Registry>,
    settings: Settings,
) -> Running {
    shell::start(address, options, Handler(check), store, settings)
}
