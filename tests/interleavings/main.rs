//! Every small interleaving of the agent of `callboard run` and of its tasks with their drivers is tried, and each of many broken machines is found
//! out. The machines of the library are tried in `actors/simulation/tests/interleavings`.
//!
//! In the ordinary run the bounds are small. `CALLBOARD_INTERLEAVINGS=all` tries the larger ones, in a release build: see
//! `docs/simulation.md`.

mod agent;
mod broken_agent;
mod broken_tasks;
mod tasks;
#[path = "../../actors/simulation/tests/interleavings/trying.rs"]
mod trying;
mod walks;

use trying::{changed, is_full, tampered_is_found_out, try_all, without};
