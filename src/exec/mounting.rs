//! The mount namespace of a task: the mounts that its host requests for it alone.
//!
//! If the system shares its mounts, later mounts of the host appear in the namespace, and unmounted ones disappear. If it does not, a task
//! would keep the volumes of others busy, so they are unmounted in the namespace. Mounting and unmounting in the namespace has no effect on
//! the host.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::thread;

use callboard_actors::allocdir::bind_between;
use callboard_actors::mounts::{mounts_of_this_process, open_without_links};
use rustix::fs::FileType;
use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags, mount_change, unmount};
use rustix::thread::UnshareFlags;

use super::record::BoundMount;

/// The failed operation, and the error.
pub(super) type Failed = (String, io::Error);

/// Checks whether this process may make such namespaces.
///
/// # Errors
/// Why it may not make them.
pub(super) fn permitted() -> io::Result<()> {
    // The namespace ends with the thread.
    let tried = thread::Builder::new().name("mounting".to_owned()).spawn(own_namespace)?;
    tried.join().unwrap_or_else(|_| Err(io::Error::other("the thread that tried it panicked")))
}

/// Enters a namespace of its own, and mounts these in it. The calling process has one thread.
///
/// # Errors
/// The mount that failed.
pub(super) fn enter(mounts: &[BoundMount]) -> Result<(), Failed> {
    if mounts.is_empty() {
        return Ok(());
    }
    let failed = |doing: &str| {
        let doing = doing.to_owned();
        |error: io::Error| (doing, error)
    };
    let of_host = namespace().map_err(failed("look at the mount namespace of the host"))?;
    own_namespace().map_err(failed("make a mount namespace for the task"))?;
    mounts.iter().try_for_each(bind)?;
    leave_volumes_of_others(mounts, &of_host).map_err(failed("unmount the volumes of other tasks"))
}

/// The mount namespace of this thread, as the kernel names it.
fn namespace() -> io::Result<PathBuf> {
    std::fs::read_link("/proc/thread-self/ns/mnt")
}

/// Unmounts, in this namespace alone, all other volumes of the host: if the host's mounts are private, they would stay mounted here after
/// the host has unmounted them.
fn leave_volumes_of_others(mounts: &[BoundMount], of_host: &Path) -> io::Result<()> {
    if namespace()? == of_host {
        return Err(io::Error::other(
            "the task is in the mount namespace of the host, which must stay as it is",
        ));
    }
    let own: BTreeSet<&Path> = mounts.iter().map(|mount| mount.host_path.as_path()).collect();
    let volumes: BTreeSet<&Path> = own.iter().filter_map(|path| directory_of_volumes(path)).collect();
    if volumes.is_empty() {
        return Ok(());
    }
    let is_of_other = |point: &Path| {
        volumes.iter().any(|volumes| point.starts_with(volumes) && point != *volumes)
            && !own.iter().any(|own| point.starts_with(own))
            && !mounts.iter().any(|mount| point.starts_with(&mount.task_path))
    };
    // In the order of mounting: mounts on a dead file system end with it, and are not looked up on it.
    let table = mounts_of_this_process()?;
    let points = table.mounts().iter().map(|mount| &mount.mount_point);
    points.filter(|point| is_of_other(point)).try_for_each(|point| {
        match unmount(point, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW) {
            // It ended with another mount, or the host has unmounted it meanwhile.
            Ok(()) | Err(Errno::INVAL | Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    })
}

/// The directory of all volumes of a host, if this is the path of a volume in an allocation: `DIRECTORY/PLUGIN/per-alloc/...`.
fn directory_of_volumes(path: &Path) -> Option<&Path> {
    let per_alloc = path.ancestors().find(|above| above.ends_with("per-alloc"))?;
    per_alloc.ancestors().nth(2).filter(|volumes| volumes.ends_with("csi/node"))
}

#[allow(deprecated, reason = "what takes its place is unsafe, for flags that are not used here")]
fn own_namespace() -> io::Result<()> {
    rustix::thread::unshare(UnshareFlags::NEWNS)?;
    Ok(mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)?)
}

/// Neither end may be a link, nor lie behind one: this process is root, and the task's user may have write access at the mount point.
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
    if let Some(advice) = other_kind(&from, &onto) {
        return Err((format!("mount {source} at {target}"), io::Error::other(advice)));
    }
    let flags = if *read_only { MountFlags::RDONLY } else { MountFlags::empty() };
    let bound = bind_between(&from, &onto, flags).map_err(io::Error::from);
    bound.map_err(failed(format!("mount {source} at {target}")))
}

/// Advice if a directory would be mounted on a file, or a file or device on a directory. The kernel's error mentions neither.
fn other_kind(from: &OwnedFd, onto: &OwnedFd) -> Option<&'static str> {
    let is_directory = |file: &OwnedFd| {
        let facts = rustix::fs::fstat(file).ok()?;
        Some(FileType::from_raw_mode(facts.st_mode) == FileType::Directory)
    };
    match (is_directory(from)?, is_directory(onto)?) {
        (false, true) => Some(
            "a device or a file is mounted on a file only; put an empty file there instead of the directory",
        ),
        (true, false) => Some(
            "a file system is mounted on a directory only; put an empty directory there instead of the file",
        ),
        (true, true) | (false, false) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_volumes_of_a_host_are_known_by_the_path_of_one_and_by_no_other_path() {
        let found = |path: &'static str| directory_of_volumes(Path::new(path));
        let volumes = Path::new("/data/csi/node");
        assert_eq!(found("/data/csi/node/nfs/per-alloc/a/default/v/rw"), Some(volumes));
        for other in
            ["/", "/srv", "/srv/per-alloc/a", "/data/csi/node/nfs/staging/v", "/csi/other/nfs/per-alloc/a"]
        {
            assert_eq!(found(other), None, "{other}");
        }
    }

    #[test]
    fn a_device_on_a_directory_and_a_file_system_on_a_file_are_refused_with_what_to_do() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("file");
        std::fs::write(&file, "").expect("it can be written");
        let opened = |path: &Path| open_without_links(path).expect("it can be opened");
        let (directory, file) = (opened(directory.path()), opened(&file));
        assert!(other_kind(&file, &directory).is_some_and(|advice| advice.contains("an empty file there")));
        assert!(
            other_kind(&directory, &file).is_some_and(|advice| advice.contains("an empty directory there"))
        );
        assert_eq!((other_kind(&file, &file), other_kind(&directory, &directory)), (None, None));
    }

    #[test]
    fn nothing_is_unmounted_in_the_namespace_of_the_host() {
        let refused = leave_volumes_of_others(&[], &namespace().expect("/proc is there"));
        assert!(refused.expect_err("it is the same").to_string().contains("namespace of the host"));
    }
}
