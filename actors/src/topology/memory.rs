//! The memory size of the machine.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The memory of the machine whose `/proc` is below this directory, in MiB; `None` if unknown.
#[must_use]
pub fn machine_memory_mib(root: &Path) -> Option<u64> {
    let mut text = String::new();
    File::open(root.join("proc/meminfo")).ok()?.take(64 * 1_024).read_to_string(&mut text).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib = line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?;
    (kib >= 1_024).then_some(kib / 1_024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_is_what_the_kernel_says_and_else_not_known() {
        let root = tempfile::tempdir().expect("a directory");
        assert_eq!(machine_memory_mib(root.path()), None);
        std::fs::create_dir(root.path().join("proc")).expect("room");
        for (text, expected) in [
            ("MemTotal:       24576000 kB\nMemFree: 7 kB\n", Some(24_000)),
            ("MemTotal: 0 kB", None),
            ("MemTotal: many", None),
            ("", None),
        ] {
            std::fs::write(root.path().join("proc/meminfo"), text).expect("room");
            assert_eq!(machine_memory_mib(root.path()), expected, "{text}");
        }
        assert!(machine_memory_mib("/".as_ref()).is_some_and(|mib| mib > 16));
    }
}
