//! The one place where a descriptor is given to the runtime, to be told when it is ready.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Waits for a descriptor to be readable, by the kernel's word.
///
/// # Errors
/// When the kernel does not watch it.
#[expect(
    deprecated,
    reason = "it is unsound for types whose descriptor may change; an owned descriptor stays open and the same, which is all \
              that the unsafe function in its place asks for"
)]
pub(super) fn watch(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(descriptor, Interest::READABLE)
}
