//! Asks the kernel about mounts, and makes and removes the directories and files on which volumes are mounted. A module, not an actor.
//!
//! ```text
//!             +-- look(path) ----> the path opened without links, statx, statfs -------------------> PathLook
//!             |                    before Linux 6.8 the mount table, too
//!  Mounts ----+-- table() -------> /proc/self/mountinfo ------------------------------------------> MountTable
//!             +-- make, remove --> one name at a time, below a directory descriptor --------------> Made, or the paths removed
//!             |
//!             +-- hanging() -----> what has not answered in time, and since when
//! ```
//!
//! [`callboard_machines::mounts`] holds the types, and decides whether a mount is the one that was recorded (V7).
//!
//! - **Time limits.** Each of these has a thread to itself, which waits for more work afterwards. When it does not answer in time, the
//!   caller gets [`LookError::Hung`], and the thread keeps waiting: nothing ends a thread that waits for a dead NFS or FUSE server. The
//!   number of threads is bounded, also for each file system, so a dead one takes no thread of another (VOL-08).
//! - **No mount is touched by accident.** Directories are made and removed below a descriptor of their parent, by `openat2` with
//!   `RESOLVE_NO_SYMLINKS` and `RESOLVE_NO_XDEV`: a link or a mount on the way is an error (V6). Without `openat2` (Linux before 5.6, or a
//!   seccomp filter) the id of the mount is compared at each name.
//! - **Only empty places that are ours are removed**, with `rmdir`, or `unlink` for the empty file on which a block volume is mounted. The
//!   kernel itself refuses a directory that holds files, or that is a mount point of this mount namespace (V6).
//!
//! - **A look does not read the mount table**, which the kernel writes whole for each reader, where `statx` gives the unique id of the mount
//!   at the path. It reads the table where that is missing, and while anything hangs, so that it knows the file system before it touches it.
//!
//! `statmount` and `listmount` (Linux 6.8) are not used: rustix has no binding of them, and this crate has no `unsafe` code. A mount is
//! recognised by its unique id, which comes from `statx`.

mod workers;

mod threads;

mod reading;

mod kernel;

mod directories;

mod real;

mod memory;

pub use callboard_machines::mounts::*;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use futures_util::future::BoxFuture;

pub use kernel::{mounts_of_this_process, open_without_links};
pub use memory::MemoryMounts;
pub use real::KernelMounts;

/// The kernel operations that volumes need. [`KernelMounts`] is the real one; tests and scripts have [`MemoryMounts`].
///
/// All paths are without symbolic links, as the kernel names mount points. The futures work on any tokio runtime with a timer, and a
/// call continues when its future is dropped.
pub trait Mounts: fmt::Debug + Send + Sync {
    /// Looks at a path: what it is, what is mounted there, and whether that answers (V7). An absent path is not an error.
    ///
    /// # Errors
    /// [`LookError`]: then the state of the path is unknown, and it is not handed out.
    fn look(&self, path: PathBuf) -> BoxFuture<'static, Result<PathLook, LookError>>;

    /// Checks that the data directory in which a path lies is in its place. If it is not, an empty path proves nothing about the mounts in
    /// that directory. A look includes this check.
    ///
    /// # Errors
    /// [`LookError`], as for [`look`](Self::look).
    fn check(&self, path: PathBuf) -> BoxFuture<'static, Result<(), LookError>>;

    /// Looks at a path, and then at another one.
    ///
    /// # Errors
    /// As for [`look`](Self::look), of the first look that fails.
    fn look_at_both(
        &self,
        path: PathBuf,
        other: PathBuf,
    ) -> BoxFuture<'static, Result<[PathLook; 2], LookError>>;

    /// Reads the mount table, which touches no file system.
    ///
    /// # Errors
    /// [`LookError::Refused`] when it cannot be read.
    fn table(&self) -> BoxFuture<'static, Result<MountTable, LookError>>;

    /// Makes a mount point, and the missing directories above it. It has mode 000, so that no process without the rights
    /// of root writes to the local disk while nothing is mounted (V7). Idempotent.
    ///
    /// # Errors
    /// [`PlaceError`]; directories that were made before stay, and [`remove`](Self::remove) removes it.
    fn make_mount_point(&self, place: Place) -> BoxFuture<'static, Result<Made, PlaceError>>;

    /// Makes the directories above a path that a plugin makes itself (C136), with mode 711. Idempotent. [`Made::Mounted`] means that
    /// something is mounted at the path.
    ///
    /// # Errors
    /// As for [`make_mount_point`](Self::make_mount_point), and if the path is a symbolic link, through which a plugin would mount.
    fn make_parent(&self, place: Place) -> BoxFuture<'static, Result<Made, PlaceError>>;

    /// Makes an empty file of mode 000 on which a block volume is mounted, and the directories above it. Idempotent.
    ///
    /// # Errors
    /// As for [`make_mount_point`](Self::make_mount_point).
    fn make_file(&self, place: Place) -> BoxFuture<'static, Result<Made, PlaceError>>;

    /// Removes a directory or file if it is empty, ours and not a mount point; then the directories above it that are empty and ours and
    /// are [not kept](Place::keeping), up to the base, which stays. Returns the removed paths; none if nothing was there. Idempotent (V6).
    ///
    /// # Errors
    /// [`PlaceError`] if the path itself stays. It is not an error if a directory above it stays.
    fn remove(&self, place: Place) -> BoxFuture<'static, Result<Vec<PathBuf>, PlaceError>>;

    /// The work that has not answered within its time limit and still waits, the longest first.
    fn hanging(&self) -> Vec<Hanging>;
}

/// Work that has not answered in time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hanging {
    /// The path.
    pub path: PathBuf,
    /// The operation there: `look at`, `make`, `remove`.
    pub attempt: &'static str,
    /// The time that it has waited.
    pub since: Duration,
    /// The file system that does not answer, if it is known.
    pub device: Option<DeviceNumber>,
}

/// The limits of [`KernelMounts`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MountLimits {
    /// After this time the caller gets an answer.
    pub time: Duration,
    /// The number of threads at work at one time, including threads that hang; at least one. Up to 32 more wait for work, each for
    /// 10 s at most.
    pub threads: usize,
    /// The number of threads that may hang on one file system. Further looks at it are answered at once; at least one.
    pub hanging_per_device: usize,
}

impl Default for MountLimits {
    /// Five seconds, 32 threads, 2 of one file system.
    fn default() -> Self {
        Self { time: Duration::from_secs(5), threads: 32, hanging_per_device: 2 }
    }
}
