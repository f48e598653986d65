//! The configuration and the state of the inventory.

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

/// The options of the inventory.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct InventoryOptions {
    /// The timeout of the first wait for fingerprints (N1). 50 s by default.
    pub first_wait: Duration,
    /// How long an offer is kept after its plugin has left (HLT-08). 15 s by default.
    pub restart_grace: Duration,
    /// The exceptions from this for the offers of certain allocations.
    pub probings: Probings,
    /// The limit of concurrent callers that wait for the first fingerprints. 4096 by default.
    pub waiting_max: usize,
    /// The allocations that the first wait is for, besides the plugins that were registered before and those of drivers: the allocations
    /// that the host program is about to run.
    pub expected: Vec<Expected>,
    /// The time until which these, and the prepared allocations, are waited for: the end of the first wait of the host. An inventory
    /// that is built later does not wait for them.
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
    /// How long this offer is kept after its plugin has left.
    #[must_use]
    pub fn restart_grace_of(&self, offer: &Offer) -> Duration {
        let probing = offer.allocation.as_ref().and_then(|allocation| self.probings.get(allocation));
        probing.and_then(|probing| probing.restart_grace).unwrap_or(self.restart_grace)
    }
}

/// The configuration of the inventory.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct InventoryConfig {
    /// The options.
    pub options: InventoryOptions,
    /// The actors that it follows. With the drivers, these are offered, and the first wait covers those that their owner has or expects.
    pub follows: BTreeSet<Source>,
}

impl InventoryConfig {
    /// A configuration that follows the instances, and those of the other actors that exist.
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

/// The calls of the inventory.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InventoryCall {
    /// Wait for the next items of this actor's feed; `afresh` begins with a snapshot.
    Follow {
        /// The actor.
        source: Source,
        /// Whether to subscribe again.
        afresh: bool,
    },
    /// Wait until it is known for every driver whether it serves, or until the timeout.
    AwaitDrivers {
        /// The timeout.
        within: Duration,
    },
}

/// The outcome of an [`InventoryCall`].
#[doc(hidden)]
#[derive(Debug)]
pub enum InventoryOutcome {
    /// The items of the instances' feed.
    Instances(Result<Vec<InstancesItem>, AskError>),
    /// The items of the allocations' feed.
    Allocations(Result<Vec<AllocationsItem>, AskError>),
    /// The items of the drivers' feed.
    Drivers(Result<Vec<DriversItem>, AskError>),
    /// The items of the volumes' feed.
    Volumes(Result<Vec<VolumesItem>, AskError>),
    /// The known state of drivers.
    DriversKnown(Result<DriversKnown, AskError>),
}

/// The timers of the inventory.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum InventoryTimer {
    /// This actor may be running again, and is followed.
    Refollow(Source),
    /// The owner of the drivers may be running again, and is asked for the known state of the drivers.
    AskDrivers,
    /// The end of the wait for the first fingerprints.
    FirstWait,
    /// The end of the grace period of this plugin.
    Grace(PluginKey),
}

/// The phase of the inventory.
#[derive(Debug, Clone, Hash)]
pub(super) enum Phase {
    /// The first fingerprints are being gathered.
    Gathering {
        /// The received offers, by plugin.
        reports: BTreeMap<PluginKey, Offer>,
        /// The plugins that were registered at the start.
        awaited: BTreeSet<PluginKey>,
        /// The other expected allocations: each is waited for until it has answered or failed.
        expected: BTreeSet<Expected>,
        /// The allocations that have answered, active or standby.
        answered: BTreeSet<Expected>,
        /// Whether the state of every plugin is known.
        is_settled: bool,
        /// The known state of drivers; `None` while it is waited for.
        drivers: Option<DriverSummary>,
    },
    /// The first fingerprints are published.
    Published {
        /// The summary at that time.
        summary: FirstSummary,
        /// The present offers, by plugin.
        states: BTreeMap<PluginKey, OfferState>,
    },
}

/// The state of one plugin's offer.
#[derive(Debug, Clone, Hash)]
pub(super) enum OfferState {
    /// It is offered, and this was published.
    Current(Offer),
    /// Its instance has left and the grace period runs.
    Restarting {
        /// The published offer, which is still listed.
        told: Offer,
        /// The offer of a successor, if one has come.
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

    /// The offer as it is published when its plugin is gone.
    pub(super) fn last_offer(self) -> Offer {
        let (Self::Current(told) | Self::Restarting { told, .. }) = self;
        Offer { health: Health::Gone, restarting: false, ..told }
    }
}

impl Offer {
    /// The offer of an instance.
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

    /// The offer of a driver. A driver that found nothing to drive offers nothing (D105): its offer is published as gone.
    pub fn of_driver(report: &DriverReport) -> Self {
        // Before it has answered, its fingerprint is still being read.
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

    /// Whether two offers are the same to a scheduler that places work by them. The generation, `since`, and the mark of
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
    /// Sorts the offers by their health.
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

    /// Adds the drivers that offer nothing, and sorts each group by name.
    pub(super) fn with_drivers(
        mut self,
        drivers: &DriverSummary,
        is_offered: impl Fn(&PluginKey) -> bool,
    ) -> Self {
        // A driver that was healthy, and is not offered, was removed meanwhile.
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

/// The plugin key of a driver.
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
    /// The existing allocations, and the plugins that each serves.
    pub(super) allocations: BTreeMap<AllocationId, Vec<PluginKey>>,
    /// The plugins whose last allocation was stopped permanently: those that are offered and have not left yet, and also all others until
    /// the first fingerprints are published.
    pub(super) stopped: BTreeSet<PluginKey>,
    /// The volumes that are in use; `None` before the first report of the owner of the volumes.
    pub(super) volumes: Option<VolumesInUse>,
}
