//! The known facts about the socket of a plugin and its listener.

/// The identity of a socket file. Another value at the same path is a new socket: old pauses do not apply (REG-10).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SocketFile {
    device: u64,
    inode: u64,
    /// Some file systems reuse inode numbers at once; the change time distinguishes such files.
    changed: (i64, i64),
}

impl SocketFile {
    /// The socket file with these numbers. `changed` is its change time in seconds and nanoseconds.
    #[must_use]
    pub const fn new(device: u64, inode: u64, changed: (i64, i64)) -> Self {
        Self { device, inode, changed }
    }

    /// Whether both are one file. Its change time may differ: a plugin sets the mode of its socket when it listens already. The kernel
    /// keeps the file of an open connection, so that no other file has its number.
    #[must_use]
    pub const fn is_same_file(&self, other: &Self) -> bool {
        self.device == other.device && self.inode == other.inode
    }

    /// A fake file for tests without a file system, identified by its number.
    pub const fn numbered(inode: u64) -> Self {
        Self { device: 0, inode, changed: (0, 0) }
    }
}

/// The listener at an endpoint, as the kernel reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listener {
    /// A listener on a Unix socket.
    Socket {
        /// The process that called `listen`; `None` if it is not visible.
        pid: Option<u32>,
        /// Its user at that time.
        user: u32,
        /// The owner of the socket file.
        file_owner: u32,
    },
    /// A listener on a port of this machine.
    Port(core::net::SocketAddr),
}
