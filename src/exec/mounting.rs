//! The mount namespace of a task: what its host mounts for it alone.
//!
//! Mounts that the host makes later appear in it, and what the host unmounts disappears from it, where the system shares its mounts:
//! otherwise a task would keep the volumes of others busy. Nothing that is mounted in it appears at the host.

use std::fmt::Display;
use std::io;
use std::thread;

use callboard_actors::allocdir::bind_between;
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::mount::{MountFlags, MountPropagationFlags, mount_change};
use rustix::thread::UnshareFlags;

use super::record::BoundMount;

/// What could not be done, and why.
pub(super) type Failed = (String, io::Error);

/// Whether this process may make such namespaces.
///
/// # Errors
/// Why it may not.
pub(super) fn permitted() -> io::Result<()> {
    // The namespace ends with the thread.
    let tried = thread::Builder::new().name("mounting".to_owned()).spawn(own_namespace)?;
    tried.join().unwrap_or_else(|_| Err(io::Error::other("the thread that tried it panicked")))
}

/// Enters a namespace of its own, and mounts these in it. The calling process has one thread.
///
/// # Errors
/// What could not be mounted.
pub(super) fn enter(mounts: &[BoundMount]) -> Result<(), Failed> {
    if mounts.is_empty() {
        return Ok(());
    }
    own_namespace().map_err(|error| ("make a mount namespace for the task".to_owned(), error))?;
    mounts.iter().try_for_each(bind)
}

#[allow(deprecated, reason = "what takes its place is unsafe, for flags that are not used here")]
fn own_namespace() -> io::Result<()> {
    rustix::thread::unshare(UnshareFlags::NEWNS)?;
    Ok(mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)?)
}

fn bind(mount: &BoundMount) -> Result<(), Failed> {
    let BoundMount { host_path, task_path, read_only } = mount;
    let (source, target) = (host_path.display(), task_path.display());
    let failed = |doing: &dyn Display| {
        let doing = doing.to_string();
        |error: rustix::io::Errno| (doing, io::Error::from(error))
    };
    let path_only = OFlags::PATH | OFlags::CLOEXEC;
    let from = openat(CWD, host_path, path_only, Mode::empty());
    let from = from.map_err(failed(&format_args!("open {source}, which is to be mounted at {target}")))?;
    let onto = openat(CWD, task_path, path_only, Mode::empty());
    let advice = "create an empty directory there, or a file for a device";
    let onto = onto.map_err(failed(&format_args!("mount {source} at {target} ({advice})")))?;
    let flags = if *read_only { MountFlags::RDONLY } else { MountFlags::empty() };
    bind_between(&from, &onto, flags).map_err(failed(&format_args!("mount {source} at {target}")))
}
