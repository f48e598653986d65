//! Maintains the inventory: the offers of this node through its plugins of every family, derived from the reports of the instances of
//! CSI plugins and of the drivers.
//!
//! ```text
//!  start ► gathering ── all known, or waited long enough ──► First, once ──► published
//!
//!  then, for each plugin:
//!
//!                  report                             its instance leaves
//!   (nothing) ────────────────► current ────────────────────────────────────────► restarting
//!       ▲          Changed       │  ▲ ▲                                             │ │  │
//!       │                        └──┘ └── successor is healthy: Changed if it ──────┘ │  │
//!       │            another report:      differs, else nothing                       │  │
//!       │            Changed if it differs   ▲                                        │  │
//!       │                                    └── grace over, successor is not: Changed┘  │
//!       └───────────────────────────────── grace over, no successor: Removed, once ──────┘
//! ```
//!
//! Invariants:
//!
//! - The published state is a pure function of the instances' reports (HLT-07). Nothing is published before the first
//!   fingerprints. They are published in one notification, as soon as every plugin that was registered at the start has answered or
//!   failed, and so has every allocation that the host program expects or that is prepared. A node without plugins does not wait
//!   (N1, HLT-06). An allocation has failed when it was stopped permanently, or could not be prepared. Missing ones are named.
//! - Offers that differ only in generation or in `since` are equal, and equal offers are not published (SCL-05).
//! - An offer whose plugin has left is kept for a grace period, marked as restarting, and this is not published. Within the grace
//!   period a successor is published only when it is healthy and its offer differs. There is no grace period for a plugin whose last
//!   allocation was stopped permanently (HLT-08).
//! - The number of volumes of a plugin in use on this node is published beside its offer, whenever it changes: it shows whether
//!   there is room for another volume (C147), and is not a change of the plugin's offer.
//! - Drivers are offered in the same shape. Their reports are followed once the first wait for drivers is over. A driver that is being
//!   restarted has the grace period; a driver that is removed, or no longer finds anything to drive, does not (D105).

mod messages;

mod state;

mod behaviour;
mod drivers;
mod expecting;
mod following;
mod volumes;

#[cfg(test)]
mod scripts;

pub use messages::*;
pub use state::{
    AllocationsItem, DriversItem, DriversKnown, InstancesItem, Inventory, InventoryCall, InventoryConfig,
    InventoryOptions, InventoryOutcome, InventoryTimer, Source, VolumesItem,
};
