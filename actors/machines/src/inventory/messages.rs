//! The messages and notifications of the inventory.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::conversation;
use crate::driver::{Attributes, DriverCapabilities};
use crate::vocabulary::{
    AllocationId, CsiFingerprint, Family, Generation, Health, PluginKey, PluginName, PluginType, Timestamp,
};

/// The self-description of a plugin: one kind for each family.
#[derive(Debug, Clone, PartialEq, Hash)]
pub enum Fingerprint {
    /// A half of a CSI plugin.
    Csi(Arc<CsiFingerprint>),
    /// A task driver.
    Driver(DriverFingerprint),
}

impl Fingerprint {
    /// The fingerprint of a CSI plugin.
    #[must_use]
    pub const fn csi(&self) -> Option<&Arc<CsiFingerprint>> {
        match self {
            Self::Csi(fingerprint) => Some(fingerprint),
            Self::Driver(_) => None,
        }
    }

    /// The fingerprint of a driver.
    #[must_use]
    pub const fn driver(&self) -> Option<&DriverFingerprint> {
        match self {
            Self::Driver(fingerprint) => Some(fingerprint),
            Self::Csi(_) => None,
        }
    }
}

/// The self-description of a task driver.
#[derive(Debug, Clone, PartialEq, Hash)]
pub struct DriverFingerprint {
    /// Its own version; `None` before it has reported one.
    pub version: Option<Arc<str>>,
    /// Its capabilities; `None` before it has reported them.
    pub capabilities: Option<Arc<DriverCapabilities>>,
    /// The attributes of its last fingerprint.
    pub attributes: Arc<Attributes>,
}

/// An offer: what this node provides through one plugin, in the same shape for every family.
#[derive(Debug, Clone, PartialEq, Hash)]
pub struct Offer {
    /// The plugin.
    pub plugin: PluginKey,
    /// The allocation that serves it; `None` for a plugin of the host itself, such as a driver.
    pub allocation: Option<AllocationId>,
    /// The generation.
    pub generation: Generation,
    /// Its health.
    pub health: Health,
    /// Since when. While it is restarting: the time when its plugin left.
    pub since: Timestamp,
    /// Its self-description; `None` before its first report.
    pub fingerprint: Option<Fingerprint>,
    /// Whether it has left, or is being restarted, and a successor is awaited: it is still listed, and nothing new may be placed
    /// on it (HLT-08).
    pub restarting: bool,
    /// Anomalies that do not prevent it from serving.
    pub remarks: Vec<String>,
}

/// Queries all offers of this node. The answer is empty until the first fingerprints are published.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TakeInventory;

/// Waits until the first fingerprints have been published (N1), and returns the offers at that time. An answer without
/// [`InventoryView::first`] means that the call did not wait: too many callers wait already, or the host is stopping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AwaitFirst;

/// An allocation that is to serve a plugin.
pub type Expected = (PluginKey, AllocationId);

/// The state at the end of the first wait (N2).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct FirstSummary {
    /// The healthy plugins.
    pub healthy: Vec<PluginKey>,
    /// The plugins that answered and are unhealthy, each with its reason.
    pub unhealthy: Vec<(PluginKey, String)>,
    /// The plugins that are not there: no owner returned for an earlier registration, or a driver found nothing that it supports.
    pub undetected: Vec<PluginKey>,
    /// The plugins that had not answered, including drivers that were expected and are not set up yet.
    pub no_answer: Vec<PluginKey>,
    /// The allocations that had neither answered nor failed, by plugin, even if another allocation serves the plugin.
    pub missing: Vec<Expected>,
}

conversation! {
    /// The messages of the inventory.
    #[derive(Clone, Hash)]
    pub enum InventoryAsk -> #[derive(Hash)] InventoryAnswer {
        TakeInventory => InventoryView,
        AwaitFirst => InventoryView,
    }
}

/// The notifications of the inventory.
#[derive(Debug, Clone, PartialEq, Hash)]
pub enum InventoryNews {
    /// The first fingerprints, in one notification; nothing is published before it (N1, HLT-06).
    First(Vec<Offer>, FirstSummary),
    /// An offer is new or changed in something that counts. A new generation alone does not count (SCL-05).
    Changed(Offer),
    /// A plugin is gone: it left, and no successor came within the grace period (HLT-08). This is its last offer, with
    /// health `Gone`.
    Removed(Offer),
    /// The number of volumes of a plugin in use on this node has changed. Published after the first fingerprints; right after them for
    /// each plugin that has such volumes.
    VolumesUsed {
        /// The plugin.
        plugin: PluginName,
        /// The number of its volumes that are claimed or set up on this node, or may be.
        in_use: u64,
    },
}

/// The view of the inventory for subscribers.
#[derive(Debug, Clone, PartialEq, Hash, Default)]
pub struct InventoryView {
    /// All offers, by plugin. Empty until the first fingerprints are published.
    pub offers: Vec<Offer>,
    /// The result of the first wait, once it is over.
    pub first: Option<FirstSummary>,
    /// The number of volumes in use on this node, by plugin; 0 for a plugin that is not listed. `None` while unknown: before
    /// the first fingerprints are published, and before the first report of the owner of the volumes.
    pub volumes_in_use: Option<BTreeMap<PluginName, u64>>,
}

/// The room for volumes of one plugin on this node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct VolumeRoom {
    /// The number of its volumes that are claimed or set up on this node, or may be.
    pub in_use: u64,
    /// The maximum number (C147); `None` if the plugin sets no limit.
    pub limit: Option<u64>,
}

impl InventoryView {
    /// The number of volumes of a plugin on this node, and its limit; `None` while either is unknown.
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
