//! What the inventory is made of, and what it remembers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::messages::{FirstSummary, Offer};
use crate::allocations::{AllocationsNews, AllocationsView};
use crate::drivers::DriverSummary;
use crate::instances::{InstanceReport, InstancesNews, InstancesView};
use crate::kernel::AskId;
use crate::vocabulary::{
    AllocationId, Attempt, DriverName, Health, PluginKey, PluginName, PluginType, Probings, Timestamp,
};
use crate::{AskError, FeedItem};

/// How the inventory is set up.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct InventoryOptions {
    /// How long to wait at most for the first fingerprints (N1). 50 s by default.
    pub first_wait: Duration,
    /// How long an offer is kept whose plugin has left (HLT-08). 15 s by default.
    pub restart_grace: Duration,
    /// What differs from that for the offers of these allocations.
    pub probings: Probings,
    /// How many may wait for the first fingerprints at once. 4096 by default.
    pub waiting_max: usize,
    /// Whether the first wait covers the drivers that their owner has or expects. Set by the start function of the shell.
    pub awaits_drivers: bool,
    /// Who the first wait is for besides the plugins that were registered before and those of drivers: whatever the host program is
    /// about to run.
    pub expected: Vec<Expected>,
    /// Until when they, and the prepared allocations, are waited for: the end of the first wait of the host. An inventory
    /// that is built later waits for none of them.
    pub expected_until: Timestamp,
    /// Whether it hears of allocations. Set by the start function of the shell.
    pub follows_allocations: bool,
}

impl Default for InventoryOptions {
    fn default() -> Self {
        Self {
            first_wait: Duration::from_secs(50),
            restart_grace: Duration::from_secs(15),
            probings: Probings::default(),
            waiting_max: 4_096,
            awaits_drivers: false,
            expected: Vec::new(),
            expected_until: Timestamp::default(),
            follows_allocations: false,
        }
    }
}

impl InventoryOptions {
    /// How long an offer of this allocation is kept when its plugin has left.
    #[must_use]
    pub fn restart_grace_of(&self, allocation: &AllocationId) -> Duration {
        self.probings.get(allocation).and_then(|probing| probing.restart_grace).unwrap_or(self.restart_grace)
    }
}

/// An allocation that is to serve a plugin.
pub type Expected = (PluginKey, AllocationId);

/// One item of the instances' feed.
pub type InstancesItem = FeedItem<InstancesNews, InstancesView>;

/// One item of the allocations' feed.
pub type AllocationsItem = FeedItem<AllocationsNews, AllocationsView>;

/// What the inventory has done for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InventoryCall {
    /// Wait for what the instances say next; `afresh` begins with a snapshot.
    Follow {
        /// Whether to subscribe anew.
        afresh: bool,
    },
    /// Wait for what the allocations say next; `afresh` begins with a snapshot.
    FollowAllocations {
        /// Whether to subscribe anew.
        afresh: bool,
    },
    /// Wait until it is known of every driver whether it serves, or until a time is over.
    AwaitDrivers {
        /// How long at most.
        within: Duration,
    },
}

/// What came of an [`InventoryCall`].
#[derive(Debug)]
pub enum InventoryOutcome {
    /// What the instances said.
    Heard(Result<Vec<InstancesItem>, AskError>),
    /// What the allocations said.
    Allocations(Result<Vec<AllocationsItem>, AskError>),
    /// What is known of drivers.
    Drivers(Result<DriverSummary, AskError>),
}

/// What the inventory waits for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum InventoryTimer {
    /// The instances may be there again.
    Refollow,
    /// The allocations may be there again.
    RefollowAllocations,
    /// The owner of the drivers may be there again.
    AskDrivers,
    /// The end of the wait for the first fingerprints.
    FirstWait,
    /// The end of the grace for this plugin.
    Grace(PluginKey),
}

/// Where the inventory stands.
#[derive(Debug, Clone, Hash)]
pub(super) enum Phase {
    /// The first fingerprints are being gathered.
    Gathering {
        /// What has come, by plugin.
        reports: BTreeMap<PluginKey, InstanceReport>,
        /// Which plugins were registered at the start.
        awaited: BTreeSet<PluginKey>,
        /// Who is expected besides: each is waited for until it has answered or failed.
        expected: BTreeSet<Expected>,
        /// Who has answered, active or standing by.
        answered: BTreeSet<Expected>,
        /// Whether every one of them is known.
        is_settled: bool,
        /// What is known of drivers; `None` while that is waited for.
        drivers: Option<DriverSummary>,
    },
    /// The first fingerprints are published.
    Published {
        /// What was known then.
        summary: FirstSummary,
        /// What is offered now, by plugin.
        standings: BTreeMap<PluginKey, Standing>,
    },
}

/// How one plugin's offer stands.
#[derive(Debug, Clone, Hash)]
pub(super) enum Standing {
    /// It is offered, and this was told.
    Current(Offer),
    /// Its instance has left and the grace runs.
    Restarting {
        /// This was told, and holds for the books.
        told: Offer,
        /// A successor has come, and this is how it does.
        successor: Option<InstanceReport>,
    },
}

impl Standing {
    /// The offer as it is listed.
    pub(super) const fn offer(&self) -> &Offer {
        match self {
            Self::Current(offer) | Self::Restarting { told: offer, .. } => offer,
        }
    }

    /// The offer as it is told when it is gone for good.
    pub(super) fn last_offer(self) -> Offer {
        let (Self::Current(told) | Self::Restarting { told, .. }) = self;
        Offer { health: Health::Gone, restarting: false, ..told }
    }
}

impl Offer {
    /// What an instance offers.
    pub fn of(report: &InstanceReport) -> Self {
        Self {
            plugin: report.plugin.clone(),
            allocation: report.allocation.clone(),
            generation: report.generation,
            health: report.health.clone(),
            since: report.since,
            fingerprint: report.fingerprint.clone(),
            restarting: false,
            remarks: report.remarks.clone(),
        }
    }

    /// Whether two offers are the same to whoever places work by them. The generation, the time since when, and the mark of
    /// a restart do not count (SCL-05).
    pub fn equals(&self, other: &Self) -> bool {
        let Self { plugin, allocation, health, fingerprint, remarks, generation: _, since: _, restarting: _ } =
            self;
        *plugin == other.plugin
            && *allocation == other.allocation
            && *health == other.health
            && *fingerprint == other.fingerprint
            && *remarks == other.remarks
    }
}

impl FirstSummary {
    /// Sorts what has been reported by what it says.
    pub(super) fn of<'a>(reports: impl Iterator<Item = &'a InstanceReport>) -> Self {
        let mut summary = Self::default();
        for report in reports {
            let plugin = report.plugin.clone();
            match &report.health {
                Health::Healthy => summary.healthy.push(plugin),
                Health::Unhealthy { reason } => summary.unhealthy.push((plugin, reason.clone())),
                Health::Starting => summary.no_answer.push(plugin),
                Health::Gone => summary.undetected.push(plugin),
            }
        }
        summary
    }
}

impl FirstSummary {
    /// Adds what is known of drivers, and puts each group in the order of names.
    pub(super) fn with_drivers(mut self, drivers: &DriverSummary) -> Self {
        let DriverSummary { healthy, unhealthy, undetected, no_answer } = drivers;
        self.healthy.extend(healthy.iter().filter_map(key));
        let reasons = unhealthy.iter().filter_map(|(driver, reason)| Some((key(driver)?, reason.clone())));
        self.unhealthy.extend(reasons);
        self.undetected.extend(undetected.iter().filter_map(key));
        self.no_answer.extend(no_answer.iter().filter_map(key));
        self.healthy.sort();
        self.unhealthy.sort();
        self.undetected.sort();
        self.no_answer.sort();
        self
    }
}

/// A driver as a plugin: what may be the name of one may be that of the other.
fn key(driver: &DriverName) -> Option<PluginKey> {
    Some(PluginKey::new(PluginType::Driver, PluginName::new(driver.as_str()).ok()?))
}

/// The machine: see the [module](super).
#[derive(Debug, Clone, Hash)]
pub struct Inventory {
    pub(super) options: InventoryOptions,
    pub(super) phase: Phase,
    /// Which try of following the instances is current.
    pub(super) following: Attempt,
    pub(super) waiting: Vec<AskId>,
    /// When the first wait ends.
    pub(super) first_until: Timestamp,
    /// The allocations that there are, and the plugins that each serves.
    pub(super) allocations: BTreeMap<AllocationId, Vec<PluginKey>>,
    /// The offered plugins whose last allocation was stopped for good, and which have not left yet.
    pub(super) stopped: BTreeSet<PluginKey>,
}
