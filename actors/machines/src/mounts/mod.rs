//! Mounts: what the kernel says of them, and whether it is what a record says (V7). Plain types and functions; `callboard-actors`
//! asks the kernel.
//!
//! ```text
//! /proc/self/mountinfo --parse--> MountTable --visible_at(path)--> Mount --identity()--> MountIdentity, kept in a MountRecord
//!                                     |                                                        |
//!                                     +------------------ MountRecord::compare <---------------+
//!                                                 same, gone, replaced, covered
//! ```
//!
//! A mount is recognised by its id, device, root and type of file system. The kernel gives the id, and the number of a device without
//! hardware, to the next mount as soon as they are free: a tmpfs that replaces another one often has the same of both. The unique id
//! (Linux 6.8 and later) is never given twice within a boot, and is compared where both sides know it. No id survives a reboot, so a
//! record also names the boot.

mod mount;

mod line;

mod table;

mod record;

mod look;

mod place;

pub use line::MalformedMount;
pub use look::{LookError, PathKind, PathLook};
pub use mount::{DeviceNumber, Mount, MountId, Propagation, UniqueMountId};
pub use place::{Made, MalformedPlace, NAME_BYTES_MAX, PATH_BYTES_MAX, Place, PlaceError, Purpose};
pub use record::{Difference, MountIdentity, MountRecord, MountState};
pub use table::MountTable;
