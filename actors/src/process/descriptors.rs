//! Prevents file descriptor leaks into child processes: they get the three standard ones and nothing else.
//!
//! Our own file descriptors, and those of careful libraries, are close-on-exec. One that a host program opened without that
//! flag would leak into every plugin and every task: a lock, a listening socket, a secret. If our own program is available,
//! the intermediate stage sets the flag in the child, where no other thread can open anything. Otherwise the host's file
//! descriptors are flagged before each launch; one that another thread opens at that very moment can leak (race).

const FIRST: i32 = 3;

/// Sets close-on-exec on every file descriptor of this process except the standard ones. They stay open in this process.
pub fn close_on_exec() {
    close_fds::set_fds_cloexec_threadsafe(FIRST, &[]);
}
