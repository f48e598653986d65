//! Tests looking at mounts and changing what is below them, with real mounts in a user and mount namespace of each test.

mod block;
mod directories;
mod fuse;
mod looks;
mod namespace;
mod servers;
