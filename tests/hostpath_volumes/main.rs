//! Tests the reference plugin with real volumes, called as a host calls it: mounts in its own user and mount namespace, so it needs
//! no root.

#[path = "../support/go.rs"]
mod go;
mod stage;

mod contents;
mod faults;
mod half_done;
mod lives;
mod official;
mod wrong;
