//! Mounts of the kernel, looked at and made and removed below, with real mounts in a user and mount namespace of each test.

mod block;
mod directories;
mod fuse;
mod looks;
mod namespace;
mod servers;
