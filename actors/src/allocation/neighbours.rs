//! Whom the supervisor of an allocation talks to: the registry, and the supervisor of the instances.

use futures_util::future::LocalBoxFuture;

use crate::instances::{AwaitRetired, HealthOf};
use crate::registry::{Deregister, Deregistered, Register, RegisterError, Registered};
use crate::shell::AskError;
use crate::vocabulary::Health;

/// What came of a [`Register`].
pub type RegisterOutcome = Result<Result<Registered, RegisterError>, AskError>;

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
    fn await_retired(&self, message: AwaitRetired) -> LocalBoxFuture<'static, Result<(), AskError>>;
}
