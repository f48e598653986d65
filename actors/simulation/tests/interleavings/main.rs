//! Every small interleaving is tried, and each of many broken machines is detected.
//!
//! In the ordinary run the bounds are small. `CALLBOARD_INTERLEAVINGS=all` tries the larger ones, which takes minutes and a
//! release build: see `docs/simulation.md`.

mod allocation;
mod allocations;
mod broken_access_modes;
mod broken_allocation;
mod broken_allocations;
mod broken_database;
mod broken_drivers;
mod broken_instances;
mod broken_inventory;
mod broken_processes;
mod broken_registry;
mod broken_supervision;
mod broken_volume;
mod broken_volumes;
mod database;
mod drivers;
mod instances;
mod inventory;
mod pairs;
mod processes;
mod registry;
mod supervision;
mod trying;
mod volume;
mod volume_pairs;
mod volumes;

use pairs::{Trouble, try_pairs, with_large};
use trying::{changed, is_found_out, is_full, tampered_is_found_out, try_all, without};
