//! The directories of a task: created before each start, released after each end, removed when its owner requests it.
//!
//! A module, not an actor: its operations block, so it must be used on a blocking thread. Drivers receive the allocation's
//! directory and the task's name, and compute the rest (T041 to T048):
//!
//! ```text
//!  ROOT                    0711  ours     traversable by every user, listed by none
//!  └─ ALLOCID              0755  ours     ALLOC
//!     ├─ alloc             0777  `nobody` shared by the tasks of an allocation
//!     │  └─ logs tmp data  0777  `nobody`
//!     └─ NAME              0777  `nobody` TASK; `alloc` and the read-only bind mounts of a chroot, if the driver uses them
//!        ├─ local          0777  the task's user, else `nobody`
//!        ├─ tmp            1777  the task's user, else `nobody`
//!        └─ secrets private      the task's user: 0710; else `nobody`: 0777; in memory if permitted
//!  MOUNTS/ALLOCID-NAME           the same task as shown by a driver with `unveil` isolation (T048)
//! ```
//!
//! A host that is not root owns everything, and secrets have 0700 in place of 0777.
//!
//! Tasks may write into most of this, so no path is trusted: every step starts from an open directory, symlinks are not
//! followed, and directories of unrelated users are refused. The mount state is read from the kernel and not from a marker
//! file (T203). A removal unmounts our own mounts, refuses to begin while any other mount is below, crosses no mount point
//! and reports what is left (T050, T202, TH060).

mod error;
mod prepare;
mod release;
mod removal;
mod roots;
mod tree;

mod binding;
mod chroot;
mod memory;

pub use callboard_machines::allocdir::{Layout, Seen, TaskNames};

pub use binding::bind_between;
pub use error::{AllocDirError, Left};
pub use prepare::{Prepared, Secrets, TaskTree};
pub use roots::{AllocDirs, CHROOT};
