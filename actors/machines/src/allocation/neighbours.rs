//! Answers of the registry and the supervisor of instances to an allocation's supervisor.

use crate::AskError;
use crate::instances::{AwaitRetiredError, InstanceReport};
use crate::registry::{Description, RegisterError, Registered};
use crate::vocabulary::{AllocationId, Health, PluginKey};

/// The outcome of a [`Register`](crate::registry::Register).
#[doc(hidden)]
pub type RegisterOutcome = Result<Result<Registered, RegisterError>, AskError>;

/// The outcome of an [`AwaitRetired`](crate::instances::AwaitRetired).
#[doc(hidden)]
pub type RetiredOutcome = Result<Result<(), AwaitRetiredError>, AskError>;

/// The health of each plugin of an allocation whose instance talks to it, or is about to.
pub fn healths<'a>(
    allocation: &AllocationId,
    described: impl IntoIterator<Item = &'a Description>,
    reports: &[InstanceReport],
) -> Vec<Health> {
    let active = described.into_iter().filter(|described| is_active(described, allocation));
    let is_reported = |plugin: &PluginKey| reports.iter().any(|report| report.plugin == *plugin);
    // Active plugins without a report of their instance are starting.
    let beginning = active.filter(|described| !is_reported(&described.plugin)).count();
    let healths = reports.iter().map(|report| report.health.clone());
    healths.chain(std::iter::repeat_n(Health::Starting, beginning)).collect()
}

fn is_active(described: &Description, allocation: &AllocationId) -> bool {
    described.active.as_ref().is_some_and(|active| active.registration.allocation == *allocation)
}
