//! Whom the supervisor of an allocation talks to: the registry, and the supervisor of the instances.

use futures_util::future::LocalBoxFuture;

use crate::instances::{AwaitRetired, AwaitRetiredError, HealthOf, Instances};
use crate::registry::{Deregister, Deregistered, Register, RegisterError, Registered, Registry};
use crate::shell::{Address, AskError};
use crate::vocabulary::Health;

/// What came of a [`Register`].
pub type RegisterOutcome = Result<Result<Registered, RegisterError>, AskError>;

/// What came of an [`AwaitRetired`].
pub type RetiredOutcome = Result<Result<(), AwaitRetiredError>, AskError>;

/// The neighbours of an allocation's supervisor. Every message is handed in before its future is returned, so that messages
/// arrive in the order in which they are sent.
pub trait Neighbours: 'static {
    /// Registers the plugins of an allocation.
    fn register(&self, message: Register) -> LocalBoxFuture<'static, RegisterOutcome>;

    /// Deregisters them.
    fn deregister(&self, message: Deregister) -> LocalBoxFuture<'static, Result<Deregistered, AskError>>;

    /// The health of each instance that talks to an allocation; none if none does.
    fn health_of(&self, message: HealthOf) -> LocalBoxFuture<'static, Result<Vec<Health>, AskError>>;

    /// Waits until no instance talks to an allocation any more.
    fn await_retired(&self, message: AwaitRetired) -> LocalBoxFuture<'static, RetiredOutcome>;
}

/// The neighbours of a host: the actors at these addresses.
#[derive(Debug, Clone)]
pub struct Addresses {
    /// Who is told of plugins that are ready.
    pub registry: Address<Registry>,
    /// Who knows how they are.
    pub instances: Address<Instances>,
}

impl Neighbours for Addresses {
    fn register(&self, message: Register) -> LocalBoxFuture<'static, RegisterOutcome> {
        Box::pin(self.registry.ask(message))
    }

    fn deregister(&self, message: Deregister) -> LocalBoxFuture<'static, Result<Deregistered, AskError>> {
        Box::pin(self.registry.ask(message))
    }

    fn health_of(&self, message: HealthOf) -> LocalBoxFuture<'static, Result<Vec<Health>, AskError>> {
        let asked = self.instances.ask(message);
        Box::pin(async move {
            let reports = asked.await?;
            Ok(reports.into_iter().map(|report| report.health).collect())
        })
    }

    fn await_retired(&self, message: AwaitRetired) -> LocalBoxFuture<'static, RetiredOutcome> {
        Box::pin(self.instances.ask(message))
    }
}
