//! What the inventory is made of, and what it remembers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::messages::{FirstSummary, Offer};
use crate::instances::{InstanceReport, InstancesNews, InstancesView};
use crate::shell::{AskId, FeedItem};
use crate::vocabulary::{Attempt, Health, PluginKey};

/// How the inventory is set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InventoryOptions {
    /// How long to wait at most for the first fingerprints (N1). 50 s by default.
    pub first_wait: Duration,
    /// How long an offer is kept whose plugin has left (HLT-08). 15 s by default.
    pub restart_grace: Duration,
    /// How many may wait for the first fingerprints at once. 4096 by default.
    pub waiting_max: usize,
}

impl Default for InventoryOptions {
    fn default() -> Self {
        Self {
            first_wait: Duration::from_secs(50),
            restart_grace: Duration::from_secs(15),
            waiting_max: 4_096,
        }
    }
}

/// One item of the instances' feed.
pub type InstancesItem = FeedItem<InstancesNews, InstancesView>;

/// What the inventory has done for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InventoryCall {
    /// Wait for what the instances say next; `afresh` begins with a snapshot.
    Follow {
        /// Whether to subscribe anew.
        afresh: bool,
    },
}

/// What the inventory waits for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum InventoryTimer {
    /// The instances may be there again.
    Refollow,
    /// The end of the wait for the first fingerprints.
    FirstWait,
    /// The end of the grace for this plugin.
    Grace(PluginKey),
}

/// Where the inventory stands.
#[derive(Debug, Clone)]
pub(super) enum Phase {
    /// The first fingerprints are being gathered.
    Gathering {
        /// What has come, by plugin.
        reports: BTreeMap<PluginKey, InstanceReport>,
        /// Which plugins were registered at the start.
        awaited: BTreeSet<PluginKey>,
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
#[derive(Debug, Clone)]
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
    /// The offer as it stands in the books.
    pub(super) const fn offer(&self) -> &Offer {
        match self {
            Self::Current(offer) | Self::Restarting { told: offer, .. } => offer,
        }
    }
}

impl Offer {
    /// What an instance offers.
    pub(super) fn of(report: &InstanceReport) -> Self {
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
    pub(super) fn equals(&self, other: &Self) -> bool {
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

/// The machine: see the [module](super).
#[derive(Debug, Clone)]
pub struct Inventory {
    pub(super) options: InventoryOptions,
    pub(super) phase: Phase,
    /// Which try of following the instances is current.
    pub(super) following: Attempt,
    pub(super) waiting: Vec<AskId>,
}
