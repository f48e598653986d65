//! One mount, as the kernel describes it.

use std::fmt;
use std::path::{Path, PathBuf};

use super::record::{ListedMount, MountIdentity};

/// The id of a mount within a boot. The kernel reuses it as soon as the mount is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MountId(pub u64);

/// The id of a mount that no other mount of the same boot has or had (Linux 6.8 and later).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UniqueMountId(pub u64);

/// The number of a device. File systems without hardware have one of major number 0, which the kernel reuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceNumber {
    /// The number of the driver.
    pub major: u32,
    /// The number of the device within the driver.
    pub minor: u32,
}

/// A block device: its number, which the kernel gives to another disk as soon as it is free, and the sequence number of the disk behind it
/// (`diskseq`, Linux 5.15 and later), which no other disk of the same boot has or had. A partition has the sequence number of its disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockDevice {
    /// Its number.
    pub number: DeviceNumber,
    /// The sequence number of its disk; `None` if the kernel does not provide it.
    pub sequence: Option<u64>,
}

impl BlockDevice {
    /// Whether both are the same device with the same disk behind it; the sequence numbers count only if both are known.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        let is_other_disk = self.sequence.zip(other.sequence).is_some_and(|(one, two)| one != two);
        self.number == other.number && !is_other_disk
    }
}

/// How mounts and unmounts below a mount propagate to other mounts and from them (C178).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Propagation {
    /// The peer group that it shares with, in both directions.
    pub shared: Option<u32>,
    /// The peer group that it receives from.
    pub master: Option<u32>,
    /// The nearest peer group above `master` that this process can see.
    pub propagate_from: Option<u32>,
    /// Whether it cannot be bound elsewhere.
    pub is_unbindable: bool,
}

/// One mount.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Mount {
    /// Its id.
    pub id: MountId,
    /// Its unique id, where the kernel was asked and knows it. The mount table does not name it.
    pub unique_id: Option<UniqueMountId>,
    /// The id of the parent mount. The parent of the root is outside of the table, or is the root itself.
    pub parent: MountId,
    /// The device of its file system.
    pub device: DeviceNumber,
    /// Its root within its file system: `/`, unless it is a bind mount of a directory or file below.
    pub root: PathBuf,
    /// Whether the directory or file that is its root has been deleted.
    pub is_root_deleted: bool,
    /// The mount point, without symbolic links, as seen by the process that owns the table.
    pub mount_point: PathBuf,
    /// The options of this mount, as the kernel writes them: `rw,nosuid,noexec`.
    pub options: String,
    /// Its propagation.
    pub propagation: Propagation,
    /// The type of its file system: `ext4`, `fuse.sshfs`.
    pub fs_type: String,
    /// The mounted source, as the file system describes it: a device, a server, or any text.
    pub source: String,
    /// The options of its file system, as the kernel writes them: `rw,size=1024k`.
    pub fs_options: String,
}

impl Mount {
    /// The identity by which it is recognised later.
    #[must_use]
    pub fn identity(&self) -> MountIdentity {
        MountIdentity::Listed(ListedMount {
            id: self.id,
            unique_id: self.unique_id,
            device: self.device,
            root: self.root.clone(),
            fs_type: self.fs_type.clone(),
        })
    }

    /// Whether exactly this path is its mount point.
    #[must_use]
    pub fn is_at(&self, path: &Path) -> bool {
        self.mount_point == path
    }

    /// Whether nothing can be written through it: the mount or its file system is read-only.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.is_mounted_read_only() || has(&self.fs_options, "ro")
    }

    /// Whether this mount is read-only, regardless of its file system.
    #[must_use]
    pub fn is_mounted_read_only(&self) -> bool {
        has(&self.options, "ro")
    }
}

fn has(options: &str, wanted: &str) -> bool {
    options.split(',').any(|option| option == wanted)
}

impl fmt::Display for Mount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (from {:?} at {})", self.identity(), self.source, self.mount_point.display())
    }
}

impl fmt::Display for MountId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for UniqueMountId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

impl fmt::Display for BlockDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.sequence {
            Some(sequence) => write!(f, "{} of disk {sequence}", self.number),
            None => self.number.fmt(f),
        }
    }
}

impl fmt::Display for Propagation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.shared, self.master) {
            (Some(_), Some(_)) => f.write_str("shared and slave"),
            (Some(_), None) => f.write_str("shared"),
            (None, Some(_)) => f.write_str("slave"),
            (None, None) if self.is_unbindable => f.write_str("unbindable"),
            (None, None) => f.write_str("private"),
        }
    }
}
