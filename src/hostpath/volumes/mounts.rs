//! Mounts and loop devices.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, mount_remount, unmount};
use tonic::Status;

use super::{failed, failed_at};

/// The list of mounts of this process, and the maximum number of mounts at one path.
const MOUNTS: &str = "/proc/self/mountinfo";
const STACKED_MAX: usize = 16;

/// Whether something is mounted at exactly this path.
pub(super) fn is_mounted(path: &Path) -> Result<bool, Status> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT | AtFlags::STATX_DONT_SYNC;
    match statx(CWD, path, flags, StatxFlags::empty()) {
        Ok(facts) if facts.stx_attributes_mask.contains(StatxAttributes::MOUNT_ROOT) => {
            Ok(facts.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
        }
        Err(Errno::NOENT) => Ok(false),
        // Before Linux 5.8 the kernel does not report this, and a file system mounted there may not respond.
        Ok(_) | Err(_) => is_listed(path),
    }
}

/// The same from the list of all mounts, which takes longer with more mounts.
fn is_listed(path: &Path) -> Result<bool, Status> {
    let list = fs::read(MOUNTS).map_err(|error| failed_at("read", Path::new(MOUNTS), &error))?;
    let mut points = list.split(|byte| *byte == b'\n').filter_map(point);
    Ok(points.any(|point| point == path))
}

/// The mount point in a line of the list: its fifth field.
fn point(line: &[u8]) -> Option<PathBuf> {
    let field = line.split(|byte| *byte == b' ').nth(4)?;
    Some(PathBuf::from(OsStr::from_bytes(&unescaped(field))))
}

/// The kernel writes blank characters and backslashes as a backslash with three octal digits.
fn unescaped(field: &[u8]) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::new(), field);
    while let Some((first, after)) = rest.split_first() {
        let octal = after.get(..3).filter(|_| *first == b'\\');
        let code = octal.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        match code {
            Some(code) => (bytes.push(code), rest = &after[3..]),
            None => (bytes.push(*first), rest = after),
        };
    }
    bytes
}

pub(super) fn bind(source: &Path, target: &Path) -> Result<(), Status> {
    mount_bind(source, target).map_err(|error| refused("bind", target, error))
}

/// Makes a mount read-only; other mounts of the same file system are unaffected.
pub(super) fn make_read_only(target: &Path) -> Result<(), Status> {
    let flags = MountFlags::BIND | MountFlags::RDONLY;
    mount_remount(target, flags, "").map_err(|error| {
        // It must not stay writable.
        let _ = unmount(target, UnmountFlags::NOFOLLOW);
        refused("make read-only", target, error)
    })
}

/// Mounts a tmpfs of this size, or changes the size of one.
pub(super) fn memory(target: &Path, size: i64, is_there: bool) -> Result<(), Status> {
    let options = format!("size={size},mode=0777");
    let mounted = if is_there {
        mount_remount(target, MountFlags::empty(), options.as_str())
    } else {
        let options = std::ffi::CString::new(options).map_err(|error| Status::internal(error.to_string()))?;
        mount("callboard", target, "tmpfs", MountFlags::NODEV | MountFlags::NOSUID, options.as_c_str())
    };
    mounted.map_err(|error| refused("mount a tmpfs at", target, error))
}

/// Removes every mount at this path.
pub(super) fn remove(path: &Path) -> Result<(), Status> {
    for _ in 0..STACKED_MAX {
        if !is_mounted(path)? {
            return Ok(());
        }
        unmount(path, UnmountFlags::NOFOLLOW).map_err(|error| match error {
            Errno::BUSY => {
                let problem =
                    format!("{} is in use: a process has a file or directory of it open", path.display());
                Status::failed_precondition(problem)
            }
            error => refused("unmount", path, error),
        })?;
    }
    Err(Status::internal(format!("more than {STACKED_MAX} mounts are at {}", path.display())))
}

fn refused(doing: &str, path: &Path, error: Errno) -> Status {
    if error == Errno::PERM {
        let problem = format!(
            "cannot {doing} {}: the plugin may not mount; run it as root, or in a user and mount namespace of its own \
             (unshare --map-root-user --mount)",
            path.display()
        );
        return Status::failed_precondition(problem);
    }
    failed_at(doing, path, &error.into())
}

/// The loop device on this image, created if there is none. `None` if the plugin may not create one; then the image itself takes the place
/// of the device.
pub(super) fn device(image: &Path) -> Result<Option<PathBuf>, Status> {
    if let Some(device) = devices(image)?.pop() {
        return Ok(Some(device));
    }
    if !may_have_devices() {
        return Ok(None);
    }
    let made = losetup(&["--find".as_ref(), "--show".as_ref(), "--".as_ref(), image.as_os_str()])?;
    Ok(made.map(|said| PathBuf::from(said.trim())))
}

fn may_have_devices() -> bool {
    fs::File::options().read(true).write(true).open("/dev/loop-control").is_ok()
}

/// The loop devices on this image.
fn devices(image: &Path) -> Result<Vec<PathBuf>, Status> {
    if !may_have_devices() {
        return Ok(Vec::new());
    }
    let list = ["--noheadings", "--raw", "--output", "NAME", "--associated"].map(OsStr::new);
    let said = losetup(&[&list[..], &[image.as_os_str()]].concat())?.unwrap_or_default();
    Ok(said.lines().map(str::trim).filter(|line| !line.is_empty()).map(PathBuf::from).collect())
}

pub(super) fn detach_devices(image: &Path) -> Result<(), Status> {
    let devices = devices(image)?;
    devices.iter().try_for_each(|device| losetup(&["--detach".as_ref(), device.as_os_str()]).map(drop))
}

/// Resizes the devices to the present size of their image.
pub(super) fn resize_devices(image: &Path) -> Result<(), Status> {
    let devices = devices(image)?;
    devices.iter().try_for_each(|device| losetup(&["--set-capacity".as_ref(), device.as_os_str()]).map(drop))
}

/// The output of `losetup`, or `None` if it is not installed.
fn losetup(arguments: &[&OsStr]) -> Result<Option<String>, Status> {
    let output = match Command::new("losetup").args(arguments).stdin(Stdio::null()).output() {
        Ok(output) => output,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed("run losetup", &error)),
    };
    if output.status.success() {
        return Ok(Some(String::from_utf8_lossy(&output.stdout).into_owned()));
    }
    Err(Status::internal(format!("losetup failed: {}", String::from_utf8_lossy(&output.stderr).trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_point_is_found_whatever_its_name_holds() {
        let line = br"36 35 98:0 /a /mnt/with\040blank\134and\011tab rw,noatime master:1 - ext4 /dev/root rw";
        assert_eq!(point(line), Some(PathBuf::from("/mnt/with blank\\and\ttab")));
        assert_eq!(point(b""), None);
        assert_eq!(unescaped(br"\9\04"), br"\9\04");
    }

    #[test]
    fn what_is_mounted_is_seen_with_the_list_and_without() {
        let gone = PathBuf::from("/proc/this is not there");
        for (path, expected) in [(Path::new("/proc"), true), (Path::new("/proc/self"), false), (&gone, false)]
        {
            assert_eq!(is_mounted(path).expect("it is told"), expected, "{}", path.display());
            assert_eq!(is_listed(path).expect("the list can be read"), expected, "{}", path.display());
        }
    }
}
