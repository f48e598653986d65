//! What the supervisor of the instances is made of, and what it remembers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::messages::{InstanceReport, InstanceState};
use super::waiters::Waiters;
use crate::instance::{InstanceConfig, InstanceLimits};
use crate::registry::{Active, RegistryNews, RegistryView};
use crate::shell::{AskError, AskId, Ending, FeedItem, Vitals};
use crate::vocabulary::{
    AllocationId, Attempt, Backoff, BackoffState, CsiFingerprint, Generation, PluginKey, RestartBudget,
    RestartHistory,
};

/// How the supervisor of the instances is set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InstancesOptions {
    /// The limits of each instance.
    pub limits: InstanceLimits,
    /// How long an instance may take to retire; then it is ended by force. Should exceed its own
    /// [`retire_deadline`](InstanceLimits::retire_deadline). 5 s by default.
    pub retire_deadline: Duration,
    /// How often the actor of one plugin's instance is started again after it ended unexpectedly.
    pub restart_budget: RestartBudget,
    /// How soon it is started again.
    pub restart_backoff: Backoff,
    /// How many questions may wait for plugins, all together. 4096 by default.
    pub waiting_max: usize,
    /// How long [`AwaitRetired`](super::AwaitRetired) waits at most. 60 s by default.
    pub retirement_deadline: Duration,
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

/// What the supervisor of the instances has done for it.
#[derive(Debug, Clone)]
pub enum InstancesCall {
    /// Wait for what the registry says next; `afresh` begins with a snapshot.
    Follow {
        /// Whether to subscribe anew.
        afresh: bool,
    },
    /// Wait until instances have ended.
    AwaitEndings,
    /// End every instance that there is, by force: none of them is known to this life of the machine.
    Sweep,
    /// Start an instance.
    Start {
        /// Which life of it this will be.
        life: Attempt,
        /// What it is born with.
        config: Box<InstanceConfig>,
    },
    /// Tell an instance to retire.
    Retire {
        /// Which life.
        life: Attempt,
    },
    /// End an instance by force.
    Kill {
        /// Which life.
        life: Attempt,
    },
    /// Have an instance look at its plugin now.
    Look {
        /// Which plugin.
        plugin: PluginKey,
        /// Which life of its instance.
        life: Attempt,
    },
    /// Look at the actors of all instances.
    Describe,
}

/// What came of an [`InstancesCall`].
#[derive(Debug)]
pub enum InstancesOutcome {
    /// What the registry said, or that it is not there.
    Followed(Result<Vec<RegistryItem>, AskError>),
    /// These instances have ended; at least one.
    Ended(Vec<ChildEnded>),
    /// It was done.
    Done,
    /// What an instance saw, or that it could not be asked.
    Looked(Result<InstanceReport, AskError>),
    /// What can be seen of the actors, by life.
    Described(BTreeMap<Attempt, Vitals>),
}

/// An instance has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChildEnded {
    /// Of which plugin.
    pub plugin: PluginKey,
    /// Which life.
    pub life: Attempt,
    /// How.
    pub ending: Ending,
}

/// What the supervisor of the instances waits for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum InstancesTimer {
    /// The registry may be there again.
    Refollow,
    /// The instance of this plugin should have retired by now.
    Retire(PluginKey),
    /// The instance of this plugin is to be started again.
    Restart(PluginKey),
    /// Whoever waits for this plugin has waited long enough.
    Dispense(PluginKey, AskId),
    /// Whoever waits for the end of this allocation's instances has waited long enough.
    AwaitRetired(AllocationId, AskId),
}

/// What there is of a plugin's instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Child {
    /// It runs, for this generation.
    Serving { life: Attempt, generation: Generation },
    /// It was told to end.
    Retiring { life: Attempt },
    /// It ended unexpectedly; a timer starts it again.
    Pausing,
    /// It ended unexpectedly, too often.
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

    /// The life of the actor, if there is one.
    pub(super) const fn life(self) -> Option<Attempt> {
        match self {
            Self::Serving { life, .. } | Self::Retiring { life } => Some(life),
            Self::Pausing | Self::GivenUp => None,
        }
    }
}

/// One plugin.
#[derive(Debug, Clone)]
pub(super) struct Post {
    /// The instance.
    pub(super) child: Child,
    /// What is known of it. It is about the child, not about a successor that is still to come.
    pub(super) report: InstanceReport,
    /// The last full fingerprint of any generation of the plugin (C031, C032).
    pub(super) known: Option<Arc<CsiFingerprint>>,
    pub(super) restarts: RestartHistory,
    pub(super) backoff: BackoffState,
}

/// Whether the plugins that were registered at the start are known by now.
#[derive(Debug, Clone)]
pub(super) enum Settling {
    /// The registry has not told yet what there is.
    Unknown,
    /// Of these it is not known yet what became of them. Each comes with the allocations that may still serve it.
    Awaiting(BTreeMap<PluginKey, BTreeSet<AllocationId>>),
    /// They are all known.
    Settled,
}

/// The machine: see the [module](super).
#[derive(Debug, Clone)]
pub struct Instances {
    pub(super) options: InstancesOptions,
    /// Whom the registry routes to.
    pub(super) wanted: BTreeMap<PluginKey, Active>,
    /// What is there.
    pub(super) posts: BTreeMap<PluginKey, Post>,
    pub(super) settling: Settling,
    pub(super) is_stopping: bool,
    /// The number of the latest life of any instance. It starts at random, so that lives known to a former life of this
    /// machine have other numbers.
    pub(super) life: Attempt,
    /// Which try of following the registry is current.
    pub(super) following: Attempt,
    pub(super) dispensing: Waiters<PluginKey>,
    pub(super) checking: Waiters<PluginKey>,
    pub(super) retirement: Waiters<AllocationId>,
    pub(super) describing: Vec<AskId>,
}
