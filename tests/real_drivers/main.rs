//! Tests unmodified third-party task drivers under a real `callboard run`: from their packages in the official Go module, in
//! two versions, served as external plugins by a few lines of ours (`tests/interop`). If there is no Go, or this machine lacks
//! something that a driver needs, the tests report what they skipped.

mod client;
mod lives;
#[path = "../program/mod.rs"]
mod program;
mod restarts;
mod rig;
#[path = "../support/mod.rs"]
mod support;
