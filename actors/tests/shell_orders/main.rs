//! Tries to break the shell: every fault at every moment, on a tiny machine whose disk is held by the test.

mod faults;
mod orders;

#[path = "../story/mod.rs"]
mod story;
mod tally;
