//! Nothing grows with the number of launches (SCL-06): a driver is added, becomes healthy and is removed, over and over, and
//! then this host is as it was.
//!
//! The ordinary run makes 200 cycles. `CALLBOARD_CYCLES=1000 cargo test --test launch_cycles` makes as many as are said.

mod support;

use std::path::Path;
use std::time::Instant;

use callboard::actors::driver::DriverHealth;
use callboard::actors::drivers::Removed;
use callboard::actors::processes::ListProcesses;
use callboard::actors::supervisor::TreeNode;
use callboard::host::Host;

use support::drivers::{DriverStage, DriversWatch, add, remove, until_driver};
use support::{Watch, children_of_this, until_in_time};

/// How many cycles are made unless the environment says otherwise.
const CYCLES: u32 = 200;
/// How many are made before the base line is taken: caches and pools are filled then.
const WARM_UP: u32 = 20;
/// How much memory may be held in the end for each cycle that was made. One task of the runtime alone would be more.
const BYTES_EACH_MAX: u64 = 1_024;
/// What the allocator may keep to itself, however many cycles there were.
const BYTES_KEPT_MAX: u64 = 1_024 * 1_024;

/// How many more threads for blocking work the runtime may hold. Their number follows the most work at one time, which depends
/// on how the system schedules, and one that is given work now and then does not end. A thread for each cycle would be more.
const THREADS_KEPT_MAX: usize = 8;

/// What could grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct BaseLine {
    descriptors: usize,
    threads: usize,
    children: usize,
    living: usize,
    sockets: usize,
    files: usize,
    processes: usize,
    actors: usize,
}

impl BaseLine {
    async fn of(stage: &DriverStage, host: &Host) -> Self {
        Self {
            descriptors: entries(Path::new("/proc/self/fd")),
            threads: entries(Path::new("/proc/self/task")),
            children: children_of_this(),
            living: stage.living().len(),
            sockets: entries(&stage.path("sockets")),
            files: files(&stage.path("data")),
            processes: host.processes().ask(ListProcesses).await.unwrap().len(),
            actors: actors(&host.tree().await.unwrap()),
        }
    }

    /// Whether it is as it was before.
    fn is_as(&self, before: &Self) -> bool {
        self.threads <= before.threads + THREADS_KEPT_MAX
            && Self { threads: before.threads, ..*self } == *before
    }
}

fn entries(directory: &Path) -> usize {
    std::fs::read_dir(directory).unwrap().count()
}

/// How many files and directories there are below a directory.
fn files(directory: &Path) -> usize {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| 1 + if path.is_dir() { files(&path) } else { 0 }).sum()
}

fn actors(node: &TreeNode) -> usize {
    1 + node.children.iter().map(actors).sum::<usize>()
}

/// How much memory this program holds.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1_024
}

async fn cycle(stage: &DriverStage, host: &Host, watch: &mut DriversWatch) {
    add(host, &stage.exec("exec", &[])).await;
    until_driver(watch, "exec", DriverHealth::Healthy).await;
    let removed = remove(host, "exec").await;
    assert!(
        matches!(&removed, Removed::Ended { ending } if ending.starts_with("exit code 0")),
        "{removed:?}"
    );
}

#[actix::test]
async fn launches_and_stops_leave_sockets_processes_tasks_descriptors_and_memory_as_they_were_scl_06() {
    let cycles = std::env::var("CALLBOARD_CYCLES").map_or(CYCLES, |text| text.parse().expect("a number"));
    let stage = DriverStage::new();
    let host = stage.host().await;
    for _ in 0..WARM_UP {
        cycle(&stage, &host, &mut Watch::on(host.drivers())).await;
    }
    let (before, memory_before) = (BaseLine::of(&stage, &host).await, resident_bytes());
    let began = Instant::now();
    for _ in 0..cycles {
        // Each cycle has a subscription of its own: those that are over must not be kept either.
        cycle(&stage, &host, &mut Watch::on(host.drivers())).await;
    }
    let took = began.elapsed();
    let mut last = before;
    let is_as_it_was = until_in_time(async || {
        last = BaseLine::of(&stage, &host).await;
        last.is_as(&before)
    });
    assert!(is_as_it_was.await, "it was {before:?} and stays {last:?}");
    let memory = resident_bytes();
    println!(
        "{cycles} cycles took {took:.1?}, {:.1?} each; memory was {memory_before} and is {memory} bytes; as it was: {before:?}",
        took / cycles
    );
    let allowed = memory_before + BYTES_KEPT_MAX + BYTES_EACH_MAX * u64::from(cycles);
    assert!(memory <= allowed, "{memory_before} bytes became {memory}");
    host.stop().await;
    assert_eq!(stage.living(), []);
}
