//! Bind mounts from file descriptor to file descriptor, so that neither end can be replaced meanwhile (no race).

use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};

use rustix::fs::StatVfsMountFlags;
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount_change, mount_remount,
    move_mount, open_tree,
};

use super::error::AllocDirError;
use super::tree::Dir;

/// Bind-mounts `source` on `target`, with these flags in addition to its own, and without the mounts below it.
pub(super) fn bind(source: &Dir, target: &Dir, flags: MountFlags) -> Result<(), AllocDirError> {
    bind_between(source.fd(), target.fd(), flags)
        .map_err(AllocDirError::refused(format!("bind {} on", source.path.display()), &target.path))
}

/// Bind-mounts `source` on `target`, both directories or both files, with these flags in addition to its own, privately and without the
/// mounts below it.
///
/// # Errors
/// The error of the system.
pub fn bind_between(source: impl AsFd, target: impl AsFd, flags: MountFlags) -> Result<(), Errno> {
    let clone =
        OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_EMPTY_PATH;
    let tree: OwnedFd = open_tree(&source, "", clone)?;
    let whole = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(&tree, "", &target, "", whole)?;
    let mounted = format!("/proc/self/fd/{}", tree.as_raw_fd());
    mount_change(&mounted, MountPropagationFlags::PRIVATE)?;
    if flags.is_empty() {
        return Ok(());
    }
    let kept = kept(rustix::fs::fstatvfs(&source)?.f_flag);
    mount_remount(&mounted, MountFlags::BIND | flags | kept, c"")
}

/// The flags of a mount that a remount would clear if it did not repeat them.
fn kept(flags: StatVfsMountFlags) -> MountFlags {
    let pairs = [
        (StatVfsMountFlags::RDONLY, MountFlags::RDONLY),
        (StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
        (StatVfsMountFlags::NODEV, MountFlags::NODEV),
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        (StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
        (StatVfsMountFlags::NODIRATIME, MountFlags::NODIRATIME),
        (StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
    ];
    pairs
        .into_iter()
        .filter(|(has, _)| flags.contains(*has))
        .fold(MountFlags::empty(), |all, (_, keep)| all | keep)
}

pub(super) fn is_read_only(dir: &Dir) -> Result<bool, AllocDirError> {
    let found =
        rustix::fs::fstatvfs(dir.fd()).map_err(AllocDirError::refused("look at the mount", &dir.path))?;
    Ok(found.f_flag.contains(StatVfsMountFlags::RDONLY))
}
