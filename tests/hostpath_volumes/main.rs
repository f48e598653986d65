//! The reference plugin with real volumes, called as a host calls it: mounts in a user and mount namespace of its own, so that it needs
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
