//! What can be said to the inventory, and what it says.

use std::sync::Arc;

use super::state::{Expected, Inventory};
use crate::conversation;
use crate::vocabulary::{AllocationId, CsiFingerprint, Generation, Health, PluginKey, Timestamp};

/// What this node offers through one plugin.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Offer {
    /// Which plugin.
    pub plugin: PluginKey,
    /// Who serves it.
    pub allocation: AllocationId,
    /// Which generation.
    pub generation: Generation,
    /// Its health.
    pub health: Health,
    /// Since when. While it is restarting: since when its plugin has left.
    pub since: Timestamp,
    /// What it reported of itself.
    pub fingerprint: Option<Arc<CsiFingerprint>>,
    /// Whether its allocation has left and a successor is awaited: it is still listed and nothing new may be placed on
    /// it (HLT-08).
    pub restarting: bool,
    /// Oddities that do not keep it from serving.
    pub remarks: Vec<String>,
}

/// Asks for everything this node offers. Nothing is told before the first fingerprints are published.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TakeInventory;

/// Waits until the first fingerprints have been published (N1), and gives what is offered then. An answer without
/// [`InventoryView::first`] says that it was not waited: too many wait already, or the host is stopping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AwaitFirst;

/// What was known at the end of the first wait (N2).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct FirstSummary {
    /// These are healthy.
    pub healthy: Vec<PluginKey>,
    /// These answered that they are not, each with its reason.
    pub unhealthy: Vec<(PluginKey, String)>,
    /// These are not there at all: nobody came back for what was registered before, or a driver found nothing to drive.
    pub undetected: Vec<PluginKey>,
    /// These had not answered; among them drivers that were expected and had not been brought.
    pub no_answer: Vec<PluginKey>,
    /// The allocations that had neither answered nor failed, by plugin, also where another one serves that.
    pub missing: Vec<Expected>,
}

conversation! {
    /// What is said to the inventory.
    #[derive(Clone, Hash)]
    pub enum InventoryAsk -> #[derive(Hash)] InventoryAnswer for Inventory {
        TakeInventory => InventoryView,
        AwaitFirst => InventoryView,
    }
}

/// What subscribers are told.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum InventoryNews {
    /// The first fingerprints, in one piece; nothing is told before this (N1, HLT-06).
    First(Vec<Offer>, FirstSummary),
    /// An offer came or changed in something that counts. A new generation alone does not count (SCL-05).
    Changed(Offer),
    /// A plugin is gone for good: it left, and no successor came within the grace (HLT-08). This is its last offer, with
    /// health `Gone`.
    Removed(Offer),
}

/// Everything subscribers may know of the inventory.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct InventoryView {
    /// All offers, by plugin. Empty until the first are published.
    pub offers: Vec<Offer>,
    /// What the first wait found, once it is over.
    pub first: Option<FirstSummary>,
}
