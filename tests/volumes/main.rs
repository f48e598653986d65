//! Tests volumes of a host with the reference plugin, in its own user and mount namespace, so that it needs no root: real mounts, real
//! files, plugins that are killed, and hosts that are killed.

#[path = "../../actors/tests/mounts/namespace.rs"]
#[allow(dead_code, reason = "the tests of mounts use more of it")]
mod namespace;
#[path = "../support/mod.rs"]
mod support;

mod node;

mod blocks;
mod doubled;
mod forced;
mod foreign;
mod killed;
mod lies;
mod lives;
mod moved;
mod snapshots;
mod stops;
