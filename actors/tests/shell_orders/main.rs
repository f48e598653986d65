//! Tests the shell with every fault at every moment, on a tiny machine whose disk is controlled by the test.

mod faults;
mod orders;

#[path = "../story/mod.rs"]
mod story;
mod tally;
