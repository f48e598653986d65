//! Mounts: the kernel's description of them, and whether it matches a record (V7). Plain types and functions; `callboard-actors`
//! asks the kernel.
//!
//! ```text
//! openat2(path), statx ------------ UniqueMountId ----------+
//!                                                           v
//! /proc/self/mountinfo --parse--> MountTable --of(path)--> PathLook --mounted()--> MountIdentity, kept in a MountRecord
//!                                                           |                                         |
//!                                                           +---------- MountRecord::compare <--------+
//!                                                                    same, gone, replaced, covered
//! ```
//!
//! A mount is recognised by its unique id (Linux 6.8 and later), which is never reused within a boot: it decides alone where both
//! sides know it, and a look asks for that one path only. Elsewhere the table is read, and a mount is recognised by its id, device, root
//! and type of file system. The kernel gives such an id, and the number of a device without hardware, to the next mount as soon as they
//! are free: a tmpfs that replaces another one often has the same id and device. No id survives a reboot, so a record also names the boot.
//!
//! A block device is recognised by its number and the sequence number of its disk, in addition to the mount of its file: that mount stays
//! the same when another disk gets the number.

mod mount;

mod line;

mod table;

mod record;

mod look;

mod place;

pub use line::MalformedMount;
pub use look::{FileId, LookError, MountsAt, PathKind, PathLook};
pub use mount::{BlockDevice, DeviceNumber, Mount, MountId, Propagation, UniqueMountId};
pub use place::{Made, MalformedPlace, NAME_BYTES_MAX, PATH_BYTES_MAX, Place, PlaceError};
pub use record::{Difference, ListedMount, MountIdentity, MountRecord, MountState};
pub use table::MountTable;
