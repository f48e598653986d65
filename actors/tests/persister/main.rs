//! The promises of the persister (P1 to P5, RES-08), told through its public surface.

mod common;
mod damage;
mod disk;
mod faults;
mod format;
mod opening;
mod power_cuts;
mod sharing;
