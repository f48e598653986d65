//! The configuration and the state of the supervisor of instances.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::messages::{InstanceReport, InstanceState};
use super::waiters::Waiters;
use crate::instance::{InstanceConfig, InstanceLimits};
use crate::kernel::{AskId, Ending, Vitals};
use crate::lease::LeasedCalls;
use crate::registry::{Active, RegistryNews, RegistryView};
use crate::vocabulary::{
    AllocationId, Attempt, Backoff, BackoffState, CsiFingerprint, Generation, PluginKey, RestartBudget,
    RestartHistory,
};
use crate::{AskError, FeedItem};

/// The options of the supervisor of instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct InstancesOptions {
    /// The limits of each instance.
    pub limits: InstanceLimits,
    /// The deadline for an instance to retire; then it is killed. 5 s by default. It is extended to what the instance itself may
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
            retire_deadline: Duration::from_secs(5),
            restart_budget: RestartBudget::default(),
            restart_backoff: Backoff::default(),
            waiting_max: 4_096,
            retirement_deadline: Duration::from_secs(60),
        }
    }
}

/// One item of the registry's feed.
pub type RegistryItem = FeedItem<RegistryNews, RegistryView>;

/// The calls of the supervisor of instances.
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
    /// Read the counters of all instances.
    Describe,
}

/// The outcome of an [`InstancesCall`].
#[derive(Debug)]
pub enum InstancesOutcome {
    /// The items of the registry, or the error that it is not running.
    Followed(Result<Vec<RegistryItem>, AskError>),
    /// These instances have ended; at least one.
    Ended(Vec<ChildEnded>),
    /// It was done.
    Done,
    /// The report of the instance, or the error of the call.
    Looked(Result<InstanceReport, AskError>),
    /// The counters of the actors, and their leases and calls in flight, by life.
    Described(BTreeMap<Attempt, (Vitals, LeasedCalls)>),
}

/// An instance has ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ChildEnded {
    /// The plugin.
    pub plugin: PluginKey,
    /// The life of the instance.
    pub life: Attempt,
    /// How it ended.
    pub ending: Ending,
}

/// The timers of the supervisor of instances.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum InstancesTimer {
    /// The registry is followed again.
    Refollow,
    /// The retire deadline of this plugin's instance.
    Retire(PluginKey),
    /// The restart of this plugin's instance after its pause.
    Restart(PluginKey),
    /// The timeout of a caller that waits for this plugin.
    Dispense(PluginKey, AskId),
    /// The timeout of a caller that waits for the retirement of this allocation's instances.
    AwaitRetired(AllocationId, AskId),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Child {
    /// It runs, for this generation.
    Serving { life: Attempt, generation: Generation },
    /// It was asked to retire.
    Retiring { life: Attempt },
    /// It crashed; a timer restarts it.
    Pausing,
    /// It crashed too often.
    GivenUp,
}

impl Child {
    pub(super) const fn state(self) -> InstanceState {
        match self {
            Self::Serving { .. } => InstanceState::Running,
            Self::Retiring { .. } => InstanceState::Retiring,
            Self::Pausing => InstanceState::Pausing,
            Self::GivenUp => InstanceState::GivenUp,
        }
    }

    pub(super) const fn life(self) -> Option<Attempt> {
        match self {
            Self::Serving { life, .. } | Self::Retiring { life } => Some(life),
            Self::Pausing | Self::GivenUp => None,
        }
    }
}

#[derive(Debug, Clone, Hash)]
pub(super) struct Entry {
    pub(super) child: Child,
    /// The last report of the present child, not of a pending successor.
    pub(super) report: InstanceReport,
    /// The last full fingerprint of any generation of the plugin (C031, C032).
    pub(super) known: Option<Arc<CsiFingerprint>>,
    pub(super) restarts: RestartHistory,
    pub(super) backoff: BackoffState,
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
    pub(super) wanted: BTreeMap<PluginKey, Active>,
    pub(super) entries: BTreeMap<PluginKey, Entry>,
    pub(super) settling: Settling,
    pub(super) is_stopping: bool,
    /// The number of the latest life of any instance. Starts at random, to differ from those before a rebuild.
    pub(super) life: Attempt,
    pub(super) following: Attempt,
    pub(super) dispensing: Waiters<PluginKey>,
    pub(super) checking: Waiters<PluginKey>,
    pub(super) retirement: Waiters<AllocationId>,
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
