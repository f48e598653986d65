//! Which descriptors a process of ours is born with: the three standard ones and nothing else.
//!
//! Our own descriptors, and those of careful libraries, are closed when another program begins. One that a host program opened
//! without asking for that would reach every plugin and every task, and stay open in them: a lock, a listening socket, a secret.
//! Where our own program is at hand, the child itself sees to it between its birth and the program that it becomes, when no other
//! thread can open anything. Where it is not, the host's descriptors are marked before each launch; one that another thread opens
//! in that very instant can slip through.

/// The first descriptor that is not a standard one.
const FIRST: i32 = 3;

/// Has every descriptor of this process but the standard ones closed when it, or a child of it, becomes another program. The
/// descriptors stay open here.
pub fn close_on_exec() {
    close_fds::set_fds_cloexec_threadsafe(FIRST, &[]);
}
