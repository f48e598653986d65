//! The mounts and block devices of a volume, as its ledger records them.

use std::fmt;
use std::sync::Arc;

use crate::mounts::{BlockDevice, MountIdentity};

/// Identifies the object at a path in the kernel (V7).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Mark {
    /// A mount. Earlier versions recorded a block device with a mount as the mount alone.
    Mount(MountIdentity),
    /// A block device.
    Device {
        /// The mount of its file; `None` if its file was made at the path.
        mount: Option<MountIdentity>,
        /// The device.
        device: BlockDevice,
    },
}

impl Mark {
    /// Whether the observed object is the recorded one.
    #[must_use]
    pub fn is(&self, seen: &Self) -> bool {
        let is_mount = |recorded: &MountIdentity, seen: &MountIdentity| recorded.differences(seen).is_empty();
        match (self, seen) {
            (Self::Mount(recorded), Self::Mount(seen) | Self::Device { mount: Some(seen), .. }) => {
                is_mount(recorded, seen)
            }
            (Self::Device { mount: recorded, device }, Self::Device { mount: seen, device: seen_device }) => {
                let is_same_mount = match (recorded, seen) {
                    (Some(recorded), Some(seen)) => is_mount(recorded, seen),
                    (None, None) => true,
                    (Some(_), None) | (None, Some(_)) => false,
                };
                is_same_mount && device.is(seen_device)
            }
            (Self::Mount(_), Self::Device { mount: None, .. }) | (Self::Device { .. }, Self::Mount(_)) => {
                false
            }
        }
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mount(mount) => mount.fmt(f),
            Self::Device { mount: None, device } => write!(f, "block device {device}"),
            Self::Device { mount: Some(mount), device } => write!(f, "{mount}, block device {device}"),
        }
    }
}

/// The observation in the kernel right after a step.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Proof {
    /// The boot of the machine: mounts do not survive it.
    pub boot_id: Arc<str>,
    /// The object at the path; `None` for a staging path at which the plugin mounts nothing.
    pub mark: Option<Mark>,
}
