//! Drivers over real sockets, under virtual time: a plugin in this process, and an owner of processes that only pretends.

mod fixture;
mod health;
mod plugin;
mod questions;
#[path = "../story/mod.rs"]
mod story;
mod tasks;
