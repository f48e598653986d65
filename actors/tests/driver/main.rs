//! Tests drivers over real sockets, under virtual time: a plugin in this process, and a simulated owner of processes.

mod fixture;
mod health;
mod plugin;
mod questions;
#[path = "../story/mod.rs"]
mod story;
mod tasks;
