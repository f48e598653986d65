//! Unmounts what hosts mount below a test's directory.

use std::path::{Path, PathBuf};

use rustix::mount::{UnmountFlags, unmount};

/// Detaches everything that is mounted below a directory; returns whether nothing is left there.
pub(crate) fn detach_below(directory: &Path) -> bool {
    // A mount below another one appears once the upper one is detached.
    for _ in 0..100 {
        let found = mounted_below(directory);
        let Some(deepest) = found.iter().max_by_key(|path| path.components().count()) else { return true };
        if unmount(deepest, UnmountFlags::DETACH).is_err() {
            return false;
        }
    }
    false
}

fn mounted_below(directory: &Path) -> Vec<PathBuf> {
    // Fails closed: if the table cannot be read, there may be a mount.
    let Ok(table) = std::fs::read_to_string("/proc/self/mountinfo") else {
        return vec![directory.to_owned()];
    };
    let paths = table.lines().filter_map(|line| line.split(' ').nth(4)).map(PathBuf::from);
    paths.filter(|path| path.starts_with(directory)).collect()
}
