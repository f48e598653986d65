//! Tests the registry from outside: the real actor on its shell and a store, in stories and with random messages.

mod chance;
#[allow(dead_code, reason = "the persister's own tests need more of it")]
#[path = "../persister/disk.rs"]
mod disk;
mod durable;
mod faulty;
mod fragile;
mod model;
#[allow(dead_code, reason = "the tests of calls need more of it")]
#[path = "../csi/plugin.rs"]
mod plugin;
mod sockets;
mod stage;
mod stories;
#[path = "../story/mod.rs"]
mod story;
mod subscribers;
