//! Tests the actors of volumes with real plugins on real sockets, under virtual time. The kernel's mounts are simulated: see `kernel.rs`.

#[path = "../fixture/mod.rs"]
mod fixture;

mod kernel;
mod node;
mod plugin;
mod plugin_groups;
mod storage;

mod group_matrix;
mod isolation;
mod life_matrix;
mod lives;
mod matrix;
mod next_step;
mod uncut;
