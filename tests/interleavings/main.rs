//! Searches every small interleaving of the agent of `callboard run` and of its tasks with their drivers; each of many broken machines is
//! detected. The machines of the library are searched in `actors/simulation/tests/interleavings`.
//!
//! An ordinary run has small bounds. `CALLBOARD_INTERLEAVINGS=all` searches the larger ones, in a release build: see
//! `docs/simulation.md`.

mod agent;
mod broken_agent;
mod broken_tasks;
mod tasks;
#[path = "../../actors/simulation/tests/interleavings/trying.rs"]
mod trying;
mod walks;

use trying::{changed, is_full, tampered_is_found_out, try_all, without};
