//! The counters of a task's control groups: CPU time and memory, including processes that have ended.

use std::fs;
use std::path::{Path, PathBuf};

use callboard_proto::drivers::{MemoryUsage, memory_usage};

/// CPU time since the group was created, and how often it was throttled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CpuTime {
    /// In user mode, in microseconds.
    pub(super) user_us: u64,
    /// In the kernel, in microseconds.
    pub(super) system_us: u64,
    /// The number of throttled periods.
    pub(super) throttled_periods: u64,
    /// The throttled time, in microseconds.
    pub(super) throttled_us: u64,
}

/// The CPU time from these groups; `None` if none counts it, as in version 1: a task has no group in that hierarchy.
pub(super) fn cpu_time(groups: &[PathBuf]) -> Option<CpuTime> {
    groups.iter().find_map(|group| {
        let stat = fs::read_to_string(group.join("cpu.stat")).ok()?;
        let number = |name: &str| entry(&stat, name);
        Some(CpuTime {
            user_us: number("user_usec")?,
            system_us: number("system_usec")?,
            throttled_periods: number("nr_throttled").unwrap_or(0),
            throttled_us: number("throttled_usec").unwrap_or(0),
        })
    })
}

/// The memory from these groups; `None` if none counts it.
pub(super) fn memory(groups: &[PathBuf]) -> Option<MemoryUsage> {
    groups.iter().find_map(|group| unified(group).or_else(|| of_version_1(group)))
}

fn unified(group: &Path) -> Option<MemoryUsage> {
    let usage = number(group, "memory.current")?;
    let stat = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
    Some(measured([
        (memory_usage::Fields::Usage, Some(usage)),
        (memory_usage::Fields::Rss, entry(&stat, "anon")),
        (memory_usage::Fields::Cache, entry(&stat, "file")),
        (memory_usage::Fields::KernelUsage, entry(&stat, "kernel")),
        (memory_usage::Fields::MaxUsage, number(group, "memory.peak")),
        (memory_usage::Fields::Swap, number(group, "memory.swap.current")),
    ]))
}

fn of_version_1(group: &Path) -> Option<MemoryUsage> {
    let usage = number(group, "memory.usage_in_bytes")?;
    let stat = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
    // Includes child groups, which a task may have created.
    let of_all = |name: &str| entry(&stat, &format!("total_{name}")).or_else(|| entry(&stat, name));
    Some(measured([
        (memory_usage::Fields::Usage, Some(usage)),
        (memory_usage::Fields::Rss, of_all("rss")),
        (memory_usage::Fields::Cache, of_all("cache")),
        (memory_usage::Fields::KernelUsage, number(group, "memory.kmem.usage_in_bytes")),
        (memory_usage::Fields::MaxUsage, number(group, "memory.max_usage_in_bytes")),
        (memory_usage::Fields::Swap, of_all("swap")),
    ]))
}

fn measured(figures: [(memory_usage::Fields, Option<u64>); 6]) -> MemoryUsage {
    let mut usage = MemoryUsage::default();
    for (field, figure) in figures {
        let Some(figure) = figure else { continue };
        usage.measured_fields.push(field.into());
        match field {
            memory_usage::Fields::Usage => usage.usage = figure,
            memory_usage::Fields::Rss => usage.rss = figure,
            memory_usage::Fields::Cache => usage.cache = figure,
            memory_usage::Fields::KernelUsage => usage.kernel_usage = figure,
            memory_usage::Fields::KernelMaxUsage => usage.kernel_max_usage = figure,
            memory_usage::Fields::MaxUsage => usage.max_usage = figure,
            memory_usage::Fields::Swap => usage.swap = figure,
        }
    }
    usage
}

fn number(group: &Path, file: &str) -> Option<u64> {
    fs::read_to_string(group.join(file)).ok()?.trim().parse().ok()
}

/// The number behind a name at the start of a line.
fn entry(text: &str, name: &str) -> Option<u64> {
    let numbers = text.lines().filter_map(|line| line.split_once(' '));
    numbers.into_iter().find(|(found, _)| *found == name)?.1.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(files: &[(&str, &str)]) -> (tempfile::TempDir, Vec<PathBuf>) {
        let directory = tempfile::tempdir().expect("room");
        files.iter().for_each(|(file, text)| fs::write(directory.path().join(file), text).expect("room"));
        let groups = vec![PathBuf::from("/no/such/group"), directory.path().to_owned()];
        (directory, groups)
    }

    #[test]
    fn a_group_of_version_2_counts_time_and_memory_t176() {
        let (_held, groups) = group(&[
            (
                "cpu.stat",
                "usage_usec 30\nuser_usec 20\nsystem_usec 10\nnr_periods 5\nnr_throttled 2\nthrottled_usec 7\n",
            ),
            ("memory.current", "4096\n"),
            ("memory.peak", "8192\n"),
            ("memory.stat", "anon 1024\nfile 2048\nanon_thp 9\nkernel 3\n"),
        ]);
        let time = CpuTime { user_us: 20, system_us: 10, throttled_periods: 2, throttled_us: 7 };
        assert_eq!(cpu_time(&groups), Some(time));
        let memory = memory(&groups).expect("it counts");
        assert_eq!(
            (memory.usage, memory.rss, memory.cache, memory.kernel_usage, memory.max_usage),
            (4096, 1024, 2048, 3, 8192)
        );
        assert_eq!(memory.measured_fields.len(), 5, "what is not known is not told as zero");
    }

    #[test]
    fn a_group_of_version_1_counts_memory_and_no_time_t176() {
        let (_held, groups) = group(&[
            ("cpu.stat", "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n"),
            ("memory.usage_in_bytes", "4096\n"),
            ("memory.max_usage_in_bytes", "8192\n"),
            ("memory.stat", "cache 1\nrss 2\ntotal_cache 2048\ntotal_rss 1024\n"),
        ]);
        assert_eq!(cpu_time(&groups), None);
        let memory = memory(&groups).expect("it counts");
        assert_eq!((memory.usage, memory.rss, memory.cache, memory.max_usage), (4096, 1024, 2048, 8192));
    }

    #[test]
    fn a_group_that_counts_nothing_is_asked_no_further() {
        let (_held, groups) = group(&[]);
        assert_eq!((cpu_time(&groups), memory(&groups)), (None, None));
    }
}
