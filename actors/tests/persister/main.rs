//! The promises of the persister (P1 to P5, RES-08), told through its public surface.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod company;
mod damage;
mod disk;
mod faults;
mod opening;
mod power_cuts;
mod sharing;
