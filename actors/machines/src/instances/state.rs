//! The configuration and the state of the supervisor of instances.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::gates::Gate;
use super::messages::InstanceReport;
use super::waiters::Waiters;
use crate::csi::Limits;
use crate::instance::{InstanceConfig, InstanceLimits};
use crate::kernel::{AskId, Ending, Vitals};
use crate::lease::{LeasedCalls, RetireCause};
use crate::registry::{Active, Entry as Registered, RegistryNews, RegistryView, Renew, ReportFitness};
use crate::supervisor::DynamicChild;
use crate::vocabulary::{
    AllocationId, Attempt, Backoff, CsiFingerprint, Fitness, Generation, Health, PluginKey, Probings,
    Registration, RegistrationNumber, RestartBudget, Timestamp,
};
use crate::{AskError, FeedItem};

/// The options of the supervisor of instances.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct InstancesOptions {
    /// The limits of each instance.
    pub limits: InstanceLimits,
    /// The exceptions from these limits for the instances of certain allocations.
    pub probings: Probings,
    /// The deadline for an instance to retire; then it is killed. 5 s by default. It is extended to the time that the instance itself may
    /// take, see [`retire_bound`](Self::retire_bound).
    pub retire_deadline: Duration,
    /// The restart budget of each instance.
    pub restart_budget: RestartBudget,
    /// The backoff before a restart.
    pub restart_backoff: Backoff,
    /// The limit of callers that wait for plugins, in total. 4096 by default.
    pub waiting_max: usize,
    /// The timeout of [`AwaitRetired`](super::AwaitRetired). 60 s by default.
    pub retirement_deadline: Duration,
}

/// How much longer an instance may take to retire than its calls in flight.
const RETIRE_MARGIN: Duration = Duration::from_secs(1);

impl InstancesOptions {
    /// The limits of the instances of this allocation.
    pub(super) fn limits_of(&self, allocation: &AllocationId) -> InstanceLimits {
        let probing = self.probings.get(allocation).copied().unwrap_or_default();
        let limits = self.limits;
        InstanceLimits {
            round: probing.interval.unwrap_or(limits.round),
            call_deadline: probing.call_deadline.unwrap_or(limits.call_deadline),
            failures_until_unhealthy: probing
                .failures_until_unhealthy
                .unwrap_or(limits.failures_until_unhealthy),
            connection: Limits {
                strict: probing.strict.unwrap_or(limits.connection.strict),
                ..limits.connection
            },
            ..limits
        }
    }

    /// How long an instance may take to retire before it is killed: its calls in flight have their whole
    /// [`retire_deadline`](InstanceLimits::retire_deadline).
    #[must_use]
    pub fn retire_bound(&self) -> Duration {
        self.retire_deadline.max(self.limits.retire_deadline.saturating_add(RETIRE_MARGIN))
    }
}

impl Default for InstancesOptions {
    fn default() -> Self {
        Self {
            limits: InstanceLimits::default(),
            probings: Probings::default(),
            retire_deadline: Duration::from_secs(5),
            restart_budget: RestartBudget::default(),
            restart_backoff: Backoff::default(),
            waiting_max: 4_096,
            retirement_deadline: Duration::from_secs(60),
        }
    }
}

/// One item of the registry's feed.
#[doc(hidden)]
pub type RegistryItem = FeedItem<RegistryNews, RegistryView>;

/// The calls of the supervisor of instances.
#[doc(hidden)]
#[derive(Debug, Clone, Hash)]
pub enum InstancesCall {
    /// Wait for the next items of the registry; `afresh` begins with a snapshot.
    Follow {
        /// Whether to subscribe again.
        afresh: bool,
    },
    /// Wait until instances have ended.
    AwaitEndings,
    /// Kill every living instance: this life of the machine knows none of them.
    Sweep,
    /// Start an instance.
    Start {
        /// The life of the instance.
        life: Attempt,
        /// The configuration of the instance.
        config: Box<InstanceConfig>,
    },
    /// Ask an instance to retire.
    Retire {
        /// The life of the instance.
        life: Attempt,
        /// The reason.
        cause: RetireCause,
    },
    /// Kill an instance.
    Kill {
        /// The life of the instance.
        life: Attempt,
    },
    /// Ask an instance to check its plugin now.
    Look {
        /// The plugin.
        plugin: PluginKey,
        /// The life of the instance.
        life: Attempt,
    },
    /// Report the fitness of a registration to the registry.
    Report(ReportFitness),
    /// Ask the registry for a new generation.
    Renew(Renew),
    /// Read the counters of all instances.
    Describe,
}

/// The outcome of an [`InstancesCall`].
#[doc(hidden)]
#[derive(Debug)]
pub enum InstancesOutcome {
    /// The items of the registry, or the error that it is not running.
    Followed(Result<Vec<RegistryItem>, AskError>),
    /// These instances have ended; at least one.
    Ended(Vec<ChildEnded>),
    /// Whether a former life of this machine, or a former owner, has started instances. They may have ended since.
    Swept(bool),
    /// It was done.
    Done,
    /// The registry took the message, or the error of the call.
    Sent(Result<(), AskError>),
    /// The report of the instance, or the error of the call.
    Looked(Result<InstanceReport, AskError>),
    /// The counters of the actors, and their leases and calls in flight, by life.
    Described(BTreeMap<Attempt, (Vitals, LeasedCalls)>),
}

/// An instance has ended.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ChildEnded {
    /// The plugin.
    pub plugin: PluginKey,
    /// The allocation that serves it.
    pub allocation: AllocationId,
    /// The life of the instance.
    pub life: Attempt,
    /// How it ended. An instance that ends normally although it was not asked to has lost its connection.
    pub ending: Ending,
}

/// The timers of the supervisor of instances.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum InstancesTimer {
    /// The endings of children are waited for again.
    AwaitEndings,
    /// The registry is followed again.
    Refollow,
    /// The retire deadline of the instance of this registration.
    Retire(Place),
    /// The restart of the instance of this registration after its pause.
    Restart(Place),
    /// The retry of what the registry did not take for this registration.
    Resend(Place),
    /// The timeout of a caller that waits for this plugin.
    Dispense(PluginKey, AskId),
    /// The timeout of a caller that waits for the retirement of this allocation's instances.
    AwaitRetired(AllocationId, AskId),
    /// The next check of an allocation whose health this caller waits for.
    Gate(AskId),
}

/// A registration: the plugin, and the allocation that serves it.
pub(super) type Place = (PluginKey, AllocationId);

/// The instance of one registration.
#[derive(Debug, Clone, Hash)]
pub(super) struct Entry {
    /// While it waits, the registry is asked for the generation after this one.
    pub(super) child: DynamicChild<Generation>,
    pub(super) number: RegistrationNumber,
    pub(super) registration: Arc<Registration>,
    /// The last report of the present child, not of a pending successor.
    pub(super) report: InstanceReport,
    /// Whether another instance has to replace this one, although its registration is the same: its generation was dispensed and is
    /// no longer active, or it was given up before its registration became the active one.
    pub(super) needs_successor: bool,
    /// Whether its actor crashed last. A crash is no evidence about the plugin.
    pub(super) has_crashed: bool,
    /// Its shown health and since when, from the end of its generation until its successor has checked: a standby as it was, the
    /// active one as starting.
    pub(super) kept: Option<(Health, Timestamp)>,
    /// The fitness that was last reported to the registry; `None` if it must be reported again.
    pub(super) told: Option<Fitness>,
    /// Whether it was reported as fit under its present generation: it may have been dispensed while it was active.
    pub(super) was_told_fit: bool,
}

/// Whether the state of the plugins that were registered at the start is known.
#[derive(Debug, Clone, Hash)]
pub(super) enum Settling {
    /// The registry has not sent its snapshot yet.
    Unknown,
    /// The plugins that are not settled yet, each with the allocations that may still serve it.
    Awaiting(BTreeMap<PluginKey, BTreeSet<AllocationId>>),
    Settled,
}

/// The machine: see the [module](super).
#[derive(Debug, Clone, Hash)]
pub struct Instances {
    pub(super) options: InstancesOptions,
    /// The confirmed registrations.
    pub(super) wanted: BTreeMap<Place, Registered>,
    /// The allocations of each plugin that are confirmed or have an instance.
    pub(super) allocations: BTreeMap<PluginKey, BTreeSet<AllocationId>>,
    /// The registrations that work is routed to.
    pub(super) active: BTreeMap<PluginKey, Active>,
    pub(super) entries: BTreeMap<Place, Entry>,
    /// The last published report of each plugin.
    pub(super) shown: BTreeMap<PluginKey, InstanceReport>,
    /// The last published report of each registration that stands by.
    pub(super) shown_standby: BTreeMap<Place, InstanceReport>,
    /// The fingerprint of each plugin's generation that served last (C031, C032).
    pub(super) known: BTreeMap<PluginKey, Arc<CsiFingerprint>>,
    pub(super) settling: Settling,
    /// Whether a former life of this machine has started instances, which may have ended, and no snapshot has come since.
    pub(super) had_instances: bool,
    pub(super) is_stopping: bool,
    /// The number of the latest life of any instance. Starts at random, to differ from those before a rebuild.
    pub(super) life: Attempt,
    pub(super) dispensing: Waiters<PluginKey>,
    pub(super) checking: Waiters<PluginKey>,
    /// For each plugin, the instance that makes the check that callers wait for.
    pub(super) looking: BTreeMap<PluginKey, Attempt>,
    pub(super) retirement: Waiters<AllocationId>,
    pub(super) gates: BTreeMap<AskId, Gate>,
    pub(super) describing: Vec<AskId>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_is_not_killed_before_the_time_of_its_calls_in_flight_is_over_a4() {
        let second = Duration::from_secs(1);
        assert_eq!(InstancesOptions::default().retire_bound(), 5 * second);
        let limits = InstanceLimits { retire_deadline: 60 * second, ..InstanceLimits::default() };
        assert_eq!(InstancesOptions { limits, ..InstancesOptions::default() }.retire_bound(), 61 * second);
    }
}
