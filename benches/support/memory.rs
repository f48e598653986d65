//! The memory usage of this process.

/// Resident memory in bytes, as Linux reports it.
pub(crate) fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("this runs on Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("Linux tells it");
    let kilobytes = line.trim().trim_end_matches(" kB").parse::<u64>().expect("it is a number");
    kilobytes * 1024
}
