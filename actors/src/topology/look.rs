//! Reads a machine's files below a root. Unreadable files are treated as missing; nothing fails.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use super::{CPU_NUMBER_MAX, CpuFinding, CpuList, Findings, NodeFinding, Topology, cpuinfo, decide};

/// The size limit of a file with one value, in bytes.
const VALUE_BYTES_MAX: u64 = 512 * 1_024;
/// The size limit of `/proc/cpuinfo`, in bytes: some 2 KiB per CPU.
const CPUINFO_BYTES_MAX: u64 = 64 * 1_024 * 1_024;

/// Reads the topology of the machine whose `/sys` and `/proc` are below this directory. It never fails: missing facts are
/// derived from others (T017), as a last fallback one core of one node.
#[must_use]
pub fn read(root: &Path) -> Topology {
    decide(&findings(root))
}

/// The topology of the present machine, cached at the first call of this process.
#[must_use]
pub fn of_this_machine() -> Arc<Topology> {
    static FOUND: OnceLock<Arc<Topology>> = OnceLock::new();
    Arc::clone(FOUND.get_or_init(|| {
        let mut findings = findings(Path::new("/"));
        if !findings.names_processors() {
            // Neither /sys nor /proc exists. The system call still returns the number of CPUs.
            let count = std::thread::available_parallelism().map_or(1, usize::from);
            let last = u32::try_from(count - 1).unwrap_or(CPU_NUMBER_MAX).min(CPU_NUMBER_MAX);
            findings.online = Some((0..=last).collect());
        }
        Arc::new(decide(&findings))
    }))
}

fn findings(root: &Path) -> Findings {
    let devices = root.join("sys/devices");
    let (cpus, nodes) = (devices.join("system/cpu"), devices.join("system/node"));
    let status = text(&root.join("proc/self/status"), VALUE_BYTES_MAX);
    let allowed = status.as_deref().and_then(allowed);
    let info = text(&root.join("proc/cpuinfo"), CPUINFO_BYTES_MAX).unwrap_or_default();
    Findings {
        online: list(&cpus.join("online")),
        cpus: numbered(&cpus, "cpu", cpu),
        nodes_online: list(&nodes.join("online")),
        nodes: numbered(&nodes, "node", node),
        sparing: list(&devices.join("cpu_atom/cpus")),
        cpuinfo: cpuinfo(&info),
        allowed,
    }
}

fn cpu(directory: &Path) -> CpuFinding {
    let scaling = text(&directory.join("cpufreq/scaling_driver"), VALUE_BYTES_MAX);
    let number = |path: &str| number(&directory.join(path));
    CpuFinding {
        package: number("topology/physical_package_id").and_then(|id| u32::try_from(id).ok()),
        siblings: list(&directory.join("topology/thread_siblings_list")),
        is_acpi: scaling.is_some_and(|driver| driver.trim() == "acpi-cpufreq"),
        nominal_mhz: number("acpi_cppc/nominal_freq"),
        base_khz: number("cpufreq/base_frequency"),
        max_khz: number("cpufreq/cpuinfo_max_freq"),
    }
}

fn node(directory: &Path) -> NodeFinding {
    let distances = text(&directory.join("distance"), VALUE_BYTES_MAX);
    let distances = distances.and_then(|row| row.split_ascii_whitespace().map(|d| d.parse().ok()).collect());
    NodeFinding { cpus: list(&directory.join("cpulist")), distances }
}

fn numbered<T>(directory: &Path, prefix: &str, read: impl Fn(&Path) -> T) -> BTreeMap<u32, T> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let named = entries.filter_map(|entry| {
        let name = entry.file_name();
        let digits = name.to_str()?.strip_prefix(prefix)?;
        let number = digits.parse::<u32>().ok().filter(|number| *number <= CPU_NUMBER_MAX)?;
        // "cpu+1" and "cpu01" are other names.
        let is_directory = number.to_string() == digits && entry.path().is_dir();
        is_directory.then(|| (number, read(&entry.path())))
    });
    named.collect()
}

fn allowed(status: &str) -> Option<CpuList> {
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    CpuList::parse(line).ok().filter(|list| !list.is_empty())
}

fn list(path: &Path) -> Option<CpuList> {
    CpuList::parse(&text(path, VALUE_BYTES_MAX)?).ok()
}

fn number(path: &Path) -> Option<u64> {
    text(path, VALUE_BYTES_MAX)?.trim().parse().ok()
}

/// A regular file as text. Anything else, such as a FIFO without a writer, counts as missing.
fn text(path: &Path, bytes_max: u64) -> Option<String> {
    if !fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(bytes_max).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
