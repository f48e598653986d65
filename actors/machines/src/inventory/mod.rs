//! The inventory: what this node offers through its plugins of every family, folded from what the instances of CSI plugins and the
//! drivers report.
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
//! What holds:
//!
//! - What is published is a pure function of what the instances reported (HLT-07). Nothing is published before the first
//!   fingerprints, and these are published in one piece, as soon as every plugin has answered or failed that was registered at the start,
//!   and every allocation that the host program expects, or that is prepared; a node without plugins waits for nothing (N1, HLT-06).
//!   An allocation has failed when it was stopped for good, or could not be prepared. Who is missing when the wait ends is named.
//! - Offers that differ only in generation or in the time since when are equal, and equal offers are not published (SCL-05).
//! - An offer whose plugin has left is kept for a grace, marked as restarting, and nothing is published of that. Within the grace
//!   a successor is published only when it is healthy, and only if it offers something else. There is no grace for a plugin whose last
//!   allocation was stopped for good (HLT-08).
//! - How many volumes of a plugin are in use on this node is published beside its offer, whenever that number changes: it says whether there is
//!   room for another one (C147), and is no change of what the plugin offers.
//! - Drivers are offered in the same shape. Their reports are followed once the first wait for drivers is over. A driver that is being restarted
//!   has the grace; one that is removed, or finds nothing to drive any more, has not (D105).

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
