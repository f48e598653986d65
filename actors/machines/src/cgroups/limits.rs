//! The resource limits of a task, as values for the kernel's files. For drivers that do not write them themselves (T106).

use super::mode::CgroupMode;

/// The period of a CPU quota, in microseconds.
const PERIOD_US: u64 = 100_000;

/// The resource limits of a task. `None` means unlimited.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Limits {
    /// The memory protected under pressure, in bytes (T092: `memory`, where `memory_max` is given too).
    pub memory_low: Option<u64>,
    /// The memory limit, in bytes; above it the kernel kills the task. Zero is not written: it would kill at once (T092).
    pub memory_max: Option<u64>,
    /// The CPU weight, in shares: 2 to 262,144, 1,024 is the default. Values out of range are clamped (T094).
    pub cpu_shares: Option<u64>,
    /// The CPU quota, in thousandths of one CPU.
    pub cpu_milli: Option<u64>,
    /// The CPUs it may run on, in the kernel's list format: `0-2,7`.
    pub cpus: Option<String>,
    /// The limit of processes and threads.
    pub pids: Option<u64>,
}

/// One write to a cgroup file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// The hierarchy of the file, used in version 1 only.
    pub controller: &'static str,
    /// The file.
    pub file: &'static str,
    /// The content.
    pub text: String,
}

impl Limits {
    /// The writes that set these limits, in an order that the kernel accepts.
    #[must_use]
    pub fn writes(&self, mode: &CgroupMode) -> Vec<Write> {
        match mode {
            CgroupMode::V2 => self.writes_v2(),
            CgroupMode::V1 => self.writes_v1(),
            CgroupMode::None { .. } => Vec::new(),
        }
    }

    fn writes_v2(&self) -> Vec<Write> {
        let quota = self.cpu_milli.map(|milli| format!("{} {PERIOD_US}", quota(milli)));
        let weight = self.cpu_shares.map(|shares| weight(shares).to_string());
        [
            write("memory", "memory.low", self.memory_low.filter(is_some).map(text)),
            write("memory", "memory.max", self.memory_max.filter(is_some).map(text)),
            write("cpu", "cpu.weight", weight),
            write("cpu", "cpu.max", quota),
            write("cpuset", "cpuset.cpus", self.cpus.clone()),
            write("pids", "pids.max", self.pids.filter(is_some).map(text)),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// In version 1 a task has no cgroup in `pids`; the number of processes is not limited there.
    fn writes_v1(&self) -> Vec<Write> {
        let period = self.cpu_milli.map(|_| PERIOD_US.to_string());
        [
            write("memory", "memory.soft_limit_in_bytes", self.memory_low.filter(is_some).map(text)),
            write("memory", "memory.limit_in_bytes", self.memory_max.filter(is_some).map(text)),
            write("cpu", "cpu.shares", self.cpu_shares.map(within).map(text)),
            write("cpu", "cpu.cfs_period_us", period),
            write("cpu", "cpu.cfs_quota_us", self.cpu_milli.map(quota).map(text)),
            write("cpuset", "cpuset.cpus", self.cpus.clone()),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

fn write(controller: &'static str, file: &'static str, text: Option<String>) -> Option<Write> {
    Some(Write { controller, file, text: text? })
}

const fn is_some(number: &u64) -> bool {
    *number > 0
}

fn text(number: u64) -> String {
    number.to_string()
}

fn within(shares: u64) -> u64 {
    shares.clamp(2, 262_144)
}

/// Converts shares of version 1 to the weight of version 2: 2 becomes 1, and 262,144 becomes 10,000.
fn weight(shares: u64) -> u64 {
    1 + (within(shares) - 2) * 9_999 / 262_142
}

/// The quota per period in microseconds. The kernel's minimum is a thousand.
fn quota(milli: u64) -> u64 {
    milli.saturating_mul(PERIOD_US / 1_000).max(1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(limits: &Limits, mode: &CgroupMode) -> Vec<String> {
        limits.writes(mode).into_iter().map(|write| format!("{} {}", write.file, write.text)).collect()
    }

    fn all() -> Limits {
        Limits {
            memory_low: Some(1_048_576),
            memory_max: Some(2_097_152),
            cpu_shares: Some(1_024),
            cpu_milli: Some(1_500),
            cpus: Some("0-1".to_owned()),
            pids: Some(64),
        }
    }

    #[test]
    fn limits_are_written_in_the_words_of_either_version() {
        let v2 = [
            "memory.low 1048576",
            "memory.max 2097152",
            "cpu.weight 39",
            "cpu.max 150000 100000",
            "cpuset.cpus 0-1",
            "pids.max 64",
        ];
        assert_eq!(said(&all(), &CgroupMode::V2), v2);
        let v1 = [
            "memory.soft_limit_in_bytes 1048576",
            "memory.limit_in_bytes 2097152",
            "cpu.shares 1024",
            "cpu.cfs_period_us 100000",
            "cpu.cfs_quota_us 150000",
            "cpuset.cpus 0-1",
        ];
        assert_eq!(said(&all(), &CgroupMode::V1), v1);
        assert!(said(&all(), &CgroupMode::None { reason: String::new() }).is_empty());
        assert!(said(&Limits::default(), &CgroupMode::V2).is_empty());
    }

    #[test]
    fn a_limit_of_no_memory_is_no_limit_and_shares_keep_to_their_scale_t092_t094() {
        let nothing = Limits { memory_max: Some(0), memory_low: Some(0), pids: Some(0), ..Limits::default() };
        assert!(said(&nothing, &CgroupMode::V2).is_empty() && said(&nothing, &CgroupMode::V1).is_empty());
        assert_eq!((weight(0), weight(2), weight(262_144), weight(u64::MAX)), (1, 1, 10_000, 10_000));
        assert_eq!((quota(0), quota(1_000), quota(u64::MAX)), (1_000, 100_000, u64::MAX));
    }
}
