//! Drivers over real sockets, under virtual time: a plugin in this process, and an owner of processes that only pretends.

mod health;
mod house;
mod plugin;
mod questions;
mod tasks;
