//! The only place where a file descriptor is registered with the runtime for readiness.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Registers a file descriptor for read readiness.
///
/// # Errors
/// When the kernel does not support that.
#[expect(
    deprecated,
    reason = "it is unsound for types whose descriptor may change; an owned descriptor stays open and the same, which is all \
              that the unsafe function in its place asks for"
)]
pub(super) fn watch(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(descriptor, Interest::READABLE)
}
