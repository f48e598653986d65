//! What can be said to the inventory, and what it says.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::conversation;
use crate::driver::{Attributes, DriverCapabilities};
use crate::vocabulary::{
    AllocationId, CsiFingerprint, Family, Generation, Health, PluginKey, PluginName, PluginType, Timestamp,
};

/// What a plugin reported of itself: one kind for each family.
#[derive(Debug, Clone, PartialEq, Hash)]
pub enum Fingerprint {
    /// A half of a CSI plugin.
    Csi(Arc<CsiFingerprint>),
    /// A task driver.
    Driver(DriverFingerprint),
}

impl Fingerprint {
    /// That of a CSI plugin.
    #[must_use]
    pub const fn csi(&self) -> Option<&Arc<CsiFingerprint>> {
        match self {
            Self::Csi(fingerprint) => Some(fingerprint),
            Self::Driver(_) => None,
        }
    }

    /// That of a driver.
    #[must_use]
    pub const fn driver(&self) -> Option<&DriverFingerprint> {
        match self {
            Self::Driver(fingerprint) => Some(fingerprint),
            Self::Csi(_) => None,
        }
    }
}

/// What a task driver reported of itself.
#[derive(Debug, Clone, PartialEq, Hash)]
pub struct DriverFingerprint {
    /// Its own version; `None` before it has reported one.
    pub version: Option<Arc<str>>,
    /// What it can do; `None` before it has reported that.
    pub capabilities: Option<Arc<DriverCapabilities>>,
    /// The attributes of its last fingerprint.
    pub attributes: Arc<Attributes>,
}

/// What this node offers through one plugin, in the same shape for every family.
#[derive(Debug, Clone, PartialEq, Hash)]
pub struct Offer {
    /// Which plugin.
    pub plugin: PluginKey,
    /// The allocation that serves it; `None` for a plugin of the host's own, as a driver is.
    pub allocation: Option<AllocationId>,
    /// Which generation.
    pub generation: Generation,
    /// Its health.
    pub health: Health,
    /// Since when. While it is restarting: since when its plugin has left.
    pub since: Timestamp,
    /// What it reported of itself; `None` before its first report.
    pub fingerprint: Option<Fingerprint>,
    /// Whether it has left, or is being restarted, and a successor is awaited: it is still listed and nothing new may be placed
    /// on it (HLT-08).
    pub restarting: bool,
    /// Oddities that do not keep it from serving.
    pub remarks: Vec<String>,
}

/// Asks for everything this node offers. Nothing is published before the first fingerprints are published.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TakeInventory;

/// Waits until the first fingerprints have been published (N1), and gives what is offered then. An answer without
/// [`InventoryView::first`] says that it was not waited: too many wait already, or the host is stopping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AwaitFirst;

/// An allocation that is to serve a plugin.
pub type Expected = (PluginKey, AllocationId);

/// What was known at the end of the first wait (N2).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct FirstSummary {
    /// These are healthy.
    pub healthy: Vec<PluginKey>,
    /// These answered that they are not, each with its reason.
    pub unhealthy: Vec<(PluginKey, String)>,
    /// These are not there at all: no owner came back for what was registered before, or a driver found nothing that it supports.
    pub undetected: Vec<PluginKey>,
    /// These had not answered; among them drivers that were expected and are not set up yet.
    pub no_answer: Vec<PluginKey>,
    /// The allocations that had neither answered nor failed, by plugin, also where another one serves that.
    pub missing: Vec<Expected>,
}

conversation! {
    /// What is said to the inventory.
    #[derive(Clone, Hash)]
    pub enum InventoryAsk -> #[derive(Hash)] InventoryAnswer {
        TakeInventory => InventoryView,
        AwaitFirst => InventoryView,
    }
}

/// What subscribers receive.
#[derive(Debug, Clone, PartialEq, Hash)]
pub enum InventoryNews {
    /// The first fingerprints, in one piece; nothing is published before this (N1, HLT-06).
    First(Vec<Offer>, FirstSummary),
    /// An offer came or changed in something that counts. A new generation alone does not count (SCL-05).
    Changed(Offer),
    /// A plugin is gone for good: it left, and no successor came within the grace (HLT-08). This is its last offer, with
    /// health `Gone`.
    Removed(Offer),
    /// How many volumes of a plugin are in use on this node has changed. Told after the first fingerprints, also for each plugin that
    /// has some then.
    VolumesUsed {
        /// Which plugin.
        plugin: PluginName,
        /// How many of its volumes are claimed or set up on this node, or may be.
        in_use: u64,
    },
}

/// Everything subscribers may know of the inventory.
#[derive(Debug, Clone, PartialEq, Hash, Default)]
pub struct InventoryView {
    /// All offers, by plugin. Empty until the first are published.
    pub offers: Vec<Offer>,
    /// What the first wait found, once it is over.
    pub first: Option<FirstSummary>,
    /// How many volumes are in use on this node, by plugin; none of those that it does not name. `None` while that is not known: before
    /// the first fingerprints are published, and before the owner of the volumes has told.
    pub volumes_in_use: Option<BTreeMap<PluginName, u64>>,
}

/// How much room for volumes of one plugin is on this node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct VolumeRoom {
    /// How many of its volumes are claimed or set up on this node, or may be.
    pub in_use: u64,
    /// How many there may be (C147); `None` if the plugin sets no limit.
    pub limit: Option<u64>,
}

impl InventoryView {
    /// How many volumes of a plugin are on this node, and how many may be; `None` while either is not known.
    #[must_use]
    pub fn volume_room(&self, plugin: &PluginName) -> Option<VolumeRoom> {
        let in_use = self.volumes_in_use.as_ref()?.get(plugin).copied().unwrap_or_default();
        let node = PluginKey::new(PluginType::CsiNode, plugin.clone());
        let offer = self.offers.iter().find(|offer| offer.plugin == node)?;
        let info = offer.fingerprint.as_ref()?.csi()?.node_info.as_ref()?;
        Some(VolumeRoom { in_use, limit: info.max_volumes.filter(|limit| *limit > 0) })
    }

    /// The offers of one family, by plugin.
    pub fn family(&self, family: Family) -> impl Iterator<Item = &Offer> {
        self.offers.iter().filter(move |offer| offer.plugin.plugin_type.family() == family)
    }
}
