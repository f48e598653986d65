//! The kernel under the volumes of a test and its plugins.

pub(crate) use callboard_actors::mounts::MemoryMounts as Kernel;
