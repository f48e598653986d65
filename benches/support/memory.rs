//! The memory and the processor time of this process.

use std::time::Duration;

use rustix::time::ClockId;

/// Resident memory in bytes, as Linux reports it.
pub(crate) fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("this runs on Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("Linux tells it");
    let kilobytes = line.trim().trim_end_matches(" kB").parse::<u64>().expect("it is a number");
    kilobytes * 1024
}

/// The processor time that this process has used, on all its threads.
pub(crate) fn processor_time() -> Duration {
    let used = rustix::time::clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(used.tv_sec as u64, used.tv_nsec as u32)
}
