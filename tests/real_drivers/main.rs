//! Task drivers that others wrote, unmodified, under a real `callboard run`: from their packages in the official Go module, of
//! two versions, served as external plugins by a few lines of ours (`tests/interop`). Where there is no Go, or a driver needs
//! what this machine has not, it is said what is not shown.

mod client;
mod lives;
#[path = "../program/mod.rs"]
mod program;
mod restarts;
mod rig;
#[path = "../support/mod.rs"]
mod support;
