//! The directories that a task stands on: made before each start, released after each end, removed when its owner says so.
//!
//! A module, not an actor: what is done here blocks, so it belongs on a thread for blocking work. Drivers are told the allocation's
//! directory and the task's name, and compute the rest (T041 to T048):
//!
//! ```text
//!  ROOT                    0711  ours     passable by every user, listed by none
//!  └─ ALLOCID              0755  ours     ALLOC
//!     ├─ alloc             0777  nobody   shared by the tasks of an allocation
//!     │  └─ logs tmp data  0777  nobody
//!     └─ NAME              0777  nobody   TASK; `alloc` and the read-only binds of a chroot lie in it where the driver wants them
//!        ├─ local          0777  the task's user, else nobody
//!        ├─ tmp            1777  the task's user, else nobody
//!        └─ secrets private      the task's user: 0710; else nobody: 0777; in memory where the host may
//!  MOUNTS/ALLOCID-NAME           the same task as a driver with isolation by `unveil` shows it (T048)
//! ```
//!
//! Who is not root owns everything, and what would be 0777 is 0700 for secrets.
//!
//! Tasks may write into most of this, so nothing here trusts a path: every step is taken from a directory that is held open, no
//! link is followed, and a directory of a stranger is refused. What is mounted is asked of the kernel and not of a marker (T203).
//! A removal unmounts what was mounted here, refuses to begin while anything else is mounted below, crosses no mount and says what
//! is left (T050, T202, TH060).

mod layout;

mod error;
mod prepare;
mod release;
mod removal;
mod roots;
mod tree;

mod binding;
mod chroot;
mod memory;

pub use error::{AllocDirError, Left};
pub use layout::{Layout, Seen, TaskNames};
pub use prepare::{Prepared, Secrets, TaskTree};
pub use roots::{AllocDirs, CHROOT};
