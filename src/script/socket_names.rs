//! Assigns sockets to the plugins of a script whose workloads were not prepared: a short path for every name.

use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};

use callboard_actors::vocabulary::AllocationId;

/// A longer name is not used in a path: a socket path has room for 107 bytes, including its directory.
const NAME_BYTES_MAX: usize = 64;
/// The directory for sockets of longer names. It cannot be the name of a socket, since sockets have an extension.
const LONG: &str = "long";

/// The sockets of one script.
#[derive(Debug)]
pub(super) struct SocketNames {
    directory: PathBuf,
    /// The names that are too long, in the order of their first use.
    long: RefCell<Vec<AllocationId>>,
}

impl SocketNames {
    /// Sockets below an existing directory.
    pub(super) fn below(directory: &Path) -> io::Result<Self> {
        std::fs::create_dir(directory.join(LONG))?;
        Ok(Self { directory: directory.to_owned(), long: RefCell::default() })
    }

    /// The path of an allocation's socket: by its name, or by a number if the name is too long.
    pub(super) fn path_of(&self, allocation: &AllocationId) -> PathBuf {
        if allocation.as_str().len() <= NAME_BYTES_MAX {
            return self.directory.join(format!("{allocation}.sock"));
        }
        let mut long = self.long.borrow_mut();
        let place = long.iter().position(|known| known == allocation);
        let number = place.unwrap_or_else(|| {
            long.push(allocation.clone());
            long.len() - 1
        }) + 1;
        self.directory.join(LONG).join(format!("{number}.sock"))
    }
}
