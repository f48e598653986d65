//! The mount namespace of a task: what its host mounts for it alone.
//!
//! Mounts that the host makes later appear in it, and what the host unmounts disappears from it, where the system shares its mounts:
//! otherwise a task would keep the volumes of others busy. Nothing that is mounted in it appears at the host.

use std::io;
use std::thread;

use callboard_actors::allocdir::bind_between;
use callboard_actors::mounts::open_without_links;
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

/// Neither end may be a link, nor lie behind one: this is root, and the task's user may write where it is mounted.
fn bind(mount: &BoundMount) -> Result<(), Failed> {
    let BoundMount { host_path, task_path, read_only } = mount;
    let (source, target) = (host_path.display(), task_path.display());
    let failed = |doing: String| |error: io::Error| (doing, error);
    let from = open_without_links(host_path);
    let from = from.map_err(failed(format!("open {source}, which is to be mounted at {target}")))?;
    let onto = open_without_links(task_path).map_err(|error| {
        let missing = error.kind() == io::ErrorKind::NotFound;
        let advice = if missing { " (create an empty directory there, or a file for a device)" } else { "" };
        (format!("mount {source} at {target}{advice}"), error)
    })?;
    let flags = if *read_only { MountFlags::RDONLY } else { MountFlags::empty() };
    let bound = bind_between(&from, &onto, flags).map_err(io::Error::from);
    bound.map_err(failed(format!("mount {source} at {target}")))
}
