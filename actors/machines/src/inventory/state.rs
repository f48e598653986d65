//! What the inventory is made of, and what it remembers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::messages::{DriverFingerprint, Expected, Fingerprint, FirstSummary, Offer};
use super::volumes::VolumesInUse;
use crate::allocations::{AllocationsNews, AllocationsView};
use crate::driver::{DriverHealth, DriverReport};
use crate::drivers::{DriverSummary, DriversNews, DriversView};
use crate::instances::{InstanceReport, InstancesNews, InstancesView};
use crate::kernel::AskId;
use crate::vocabulary::{
    AllocationId, DriverName, Health, PluginKey, PluginName, PluginType, Probings, Timestamp,
};
use crate::volumes::{VolumesNews, VolumesView};
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
    /// Who the first wait is for besides the plugins that were registered before and those of drivers: whatever the host program is
    /// about to run.
    pub expected: Vec<Expected>,
    /// Until when they, and the prepared allocations, are waited for: the end of the first wait of the host. An inventory
    /// that is built later waits for none of them.
    pub expected_until: Timestamp,
}

impl Default for InventoryOptions {
    fn default() -> Self {
        Self {
            first_wait: Duration::from_secs(50),
            restart_grace: Duration::from_secs(15),
            probings: Probings::default(),
            waiting_max: 4_096,
            expected: Vec::new(),
            expected_until: Timestamp::default(),
        }
    }
}

impl InventoryOptions {
    /// How long this offer is kept when its plugin has left.
    #[must_use]
    pub fn restart_grace_of(&self, offer: &Offer) -> Duration {
        let probing = offer.allocation.as_ref().and_then(|allocation| self.probings.get(allocation));
        probing.and_then(|probing| probing.restart_grace).unwrap_or(self.restart_grace)
    }
}

/// What an inventory is started with.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct InventoryConfig {
    /// How it is set up.
    pub options: InventoryOptions,
    /// Whom it follows. With the drivers, these are offered, and the first wait covers those that their owner has or expects.
    pub follows: BTreeSet<Source>,
}

impl InventoryConfig {
    /// One that follows the instances, and of the others those that are there.
    #[must_use]
    pub fn new(options: InventoryOptions, others: impl IntoIterator<Item = (Source, bool)>) -> Self {
        let others = others.into_iter().filter_map(|(source, is_there)| is_there.then_some(source));
        Self { options, follows: others.chain([Source::Instances]).collect() }
    }
}

/// An actor whose feed is followed.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Source {
    /// The instances.
    Instances,
    /// The owner of the allocations.
    Allocations,
    /// The owner of the drivers.
    Drivers,
    /// The owner of the volumes.
    Volumes,
}

/// One item of the instances' feed.
#[doc(hidden)]
pub type InstancesItem = FeedItem<InstancesNews, InstancesView>;

/// One item of the allocations' feed.
#[doc(hidden)]
pub type AllocationsItem = FeedItem<AllocationsNews, AllocationsView>;

/// One item of the drivers' feed.
#[doc(hidden)]
pub type DriversItem = FeedItem<DriversNews, DriversView>;

/// One item of the volumes' feed.
#[doc(hidden)]
pub type VolumesItem = FeedItem<VolumesNews, VolumesView>;

/// The drivers at the end of the first wait: their summary, and what each reports then.
#[doc(hidden)]
pub type DriversKnown = (DriverSummary, Vec<DriverReport>);

/// What the inventory has done for it.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InventoryCall {
    /// Wait for what this actor says next; `afresh` begins with a snapshot.
    Follow {
        /// Whose feed.
        source: Source,
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
#[doc(hidden)]
#[derive(Debug)]
pub enum InventoryOutcome {
    /// What the instances said.
    Instances(Result<Vec<InstancesItem>, AskError>),
    /// What the allocations said.
    Allocations(Result<Vec<AllocationsItem>, AskError>),
    /// What the drivers said.
    Drivers(Result<Vec<DriversItem>, AskError>),
    /// What the volumes said.
    Volumes(Result<Vec<VolumesItem>, AskError>),
    /// What is known of drivers.
    DriversKnown(Result<DriversKnown, AskError>),
}

/// What the inventory waits for.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum InventoryTimer {
    /// This actor may be there again, and is followed.
    Refollow(Source),
    /// The owner of the drivers may be there again, and is asked what is known of them.
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
        reports: BTreeMap<PluginKey, Offer>,
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
        states: BTreeMap<PluginKey, OfferState>,
    },
}

/// How one plugin's offer stands.
#[derive(Debug, Clone, Hash)]
pub(super) enum OfferState {
    /// It is offered, and this was told.
    Current(Offer),
    /// Its instance has left and the grace runs.
    Restarting {
        /// This was told, and is listed.
        told: Offer,
        /// A successor has come, and this is what it offers.
        successor: Option<Offer>,
    },
}

impl OfferState {
    /// The offer as it is listed.
    pub(super) const fn offer(&self) -> &Offer {
        match self {
            Self::Current(offer) | Self::Restarting { told: offer, .. } => offer,
        }
    }

    /// The offer as it is published when it is gone for good.
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
            allocation: Some(report.allocation.clone()),
            generation: report.generation,
            health: report.health.clone(),
            since: report.since,
            fingerprint: report.fingerprint.clone().map(Fingerprint::Csi),
            restarting: false,
            remarks: report.remarks.clone(),
        }
    }

    /// What a driver offers. One that found nothing to drive offers nothing (D105): that is published as gone.
    pub fn of_driver(report: &DriverReport) -> Self {
        // Before it has answered, it is still being read.
        let has_answered = report.health != DriverHealth::NoAnswerYet;
        let fingerprint = has_answered.then(|| DriverFingerprint {
            version: report.version.clone(),
            capabilities: report.capabilities.clone(),
            attributes: report.attributes.clone(),
        });
        Self {
            plugin: driver_key(&report.name),
            allocation: None,
            generation: report.generation,
            health: match report.health {
                DriverHealth::NoAnswerYet => Health::Starting,
                DriverHealth::Healthy => Health::Healthy,
                DriverHealth::Unhealthy => Health::Unhealthy { reason: report.reason.clone() },
                DriverHealth::Undetected | DriverHealth::Gone => Health::Gone,
            },
            since: report.since,
            fingerprint: fingerprint.map(Fingerprint::Driver),
            restarting: false,
            remarks: Vec::new(),
        }
    }

    /// Whether two offers are the same to a scheduler that places work by them. The generation, the time since when, and the mark of
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
    /// Sorts what is offered by its health.
    pub(super) fn of<'a>(offers: impl Iterator<Item = &'a Offer>) -> Self {
        let mut summary = Self::default();
        for Offer { plugin, health, .. } in offers {
            let plugin = plugin.clone();
            match health {
                Health::Healthy => summary.healthy.push(plugin),
                Health::Unhealthy { reason } => summary.unhealthy.push((plugin, reason.clone())),
                Health::Starting => summary.no_answer.push(plugin),
                Health::Gone => summary.undetected.push(plugin),
            }
        }
        summary
    }

    /// Adds the drivers that offer nothing, and puts each group in the order of names.
    pub(super) fn with_drivers(
        mut self,
        drivers: &DriverSummary,
        is_offered: impl Fn(&PluginKey) -> bool,
    ) -> Self {
        // One that was healthy, and is not offered, was removed meanwhile.
        let DriverSummary { healthy: _, unhealthy, undetected, no_answer } = drivers;
        let other = |plugin: &PluginKey| !is_offered(plugin);
        let reasons = unhealthy.iter().map(|(driver, reason)| (driver_key(driver), reason.clone()));
        self.unhealthy.extend(reasons.filter(|(plugin, _)| other(plugin)));
        self.undetected.extend(undetected.iter().map(driver_key).filter(other));
        self.no_answer.extend(no_answer.iter().map(driver_key).filter(other));
        self.healthy.sort();
        self.unhealthy.sort();
        self.undetected.sort();
        self.no_answer.sort();
        self
    }
}

/// A driver as a plugin.
pub(super) fn driver_key(driver: &DriverName) -> PluginKey {
    PluginKey::new(PluginType::Driver, PluginName::from(driver))
}

/// The machine: see the [module](super).
#[derive(Debug, Clone, Hash)]
pub struct Inventory {
    pub(super) options: InventoryOptions,
    pub(super) follows: BTreeSet<Source>,
    pub(super) phase: Phase,
    pub(super) waiting: Vec<AskId>,
    /// When the first wait ends.
    pub(super) first_until: Timestamp,
    /// The allocations that there are, and the plugins that each serves.
    pub(super) allocations: BTreeMap<AllocationId, Vec<PluginKey>>,
    /// The plugins whose last allocation was stopped for good: those that are offered and have not left yet, and until the first fingerprints
    /// are published all others too.
    pub(super) stopped: BTreeSet<PluginKey>,
    /// The volumes that are in use; `None` before the owner of the volumes has told.
    pub(super) volumes: Option<VolumesInUse>,
}
