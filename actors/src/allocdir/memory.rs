//! Directories in memory (tmpfs), so that no secret reaches a disk (T045, T203).

use std::os::fd::{AsRawFd as _, OwnedFd};

use rustix::fs::StatVfsMountFlags;
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags, fsconfig_create,
    fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, mount_change, move_mount,
};

use super::error::AllocDirError;
use super::tree::{Dir, Owner};

const SIZE: &str = "1m";
/// The magic number of this file system.
const TMPFS_MAGIC: rustix::fs::FsWord = 0x0102_1994;
/// The mount is noexec, nosuid and nodev.
const ATTRIBUTES: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NOEXEC
    .union(MountAttrFlags::MOUNT_ATTR_NOSUID)
    .union(MountAttrFlags::MOUNT_ATTR_NODEV);
const FLAGS: StatVfsMountFlags =
    StatVfsMountFlags::NOEXEC.union(StatVfsMountFlags::NOSUID).union(StatVfsMountFlags::NODEV);

/// Whether the mount at this directory is one of these.
pub(super) fn is_one(dir: &Dir) -> Result<bool, AllocDirError> {
    let refused = |error: Errno| AllocDirError::refused("look at the file system of", &dir.path)(error);
    let kind = rustix::fs::fstatfs(dir.fd()).map_err(refused)?;
    let flags = rustix::fs::fstatvfs(dir.fd()).map_err(refused)?.f_flag;
    Ok(kind.f_type == TMPFS_MAGIC && flags.contains(FLAGS))
}

/// Mounts one over a directory. `Ok(Err(reason))` when this host may not mount at all.
pub(super) fn mount_over(
    dir: &Dir,
    mode: u32,
    owner: Option<Owner>,
) -> Result<Result<(), String>, AllocDirError> {
    let mounted = made(mode, owner).and_then(|made| {
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
        move_mount(&made, "", dir.fd(), "", flags)?;
        // Mounts inside do not propagate to other namespaces.
        mount_change(format!("/proc/self/fd/{}", made.as_raw_fd()), MountPropagationFlags::PRIVATE)
    });
    match mounted {
        Ok(()) => Ok(Ok(())),
        Err(error @ (Errno::PERM | Errno::ACCESS | Errno::NOSYS | Errno::NODEV)) => {
            Ok(Err(format!("this process may not mount: {error}")))
        }
        Err(error) => Err(AllocDirError::refused("mount a tmpfs on", &dir.path)(error)),
    }
}

fn made(mode: u32, owner: Option<Owner>) -> Result<OwnedFd, Errno> {
    match configured(mode, owner, true) {
        // Kernels before 6.4 do not support it, and some refuse it to root of a user namespace.
        Err(Errno::INVAL) => configured(mode, owner, false),
        other => other,
    }
}

fn configured(mode: u32, owner: Option<Owner>, without_swap: bool) -> Result<OwnedFd, Errno> {
    let context = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(&context, "size", SIZE)?;
    fsconfig_set_string(&context, "mode", format!("{mode:o}"))?;
    if let Some(owner) = owner {
        fsconfig_set_string(&context, "uid", owner.uid.to_string())?;
        fsconfig_set_string(&context, "gid", owner.gid.to_string())?;
    }
    if without_swap {
        fsconfig_set_flag(&context, "noswap")?;
    }
    fsconfig_create(&context)?;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, ATTRIBUTES)
}
