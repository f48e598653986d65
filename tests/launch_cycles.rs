//! Tests that nothing grows with the number of launches (SCL-06): a driver is added, becomes healthy and is removed, over and over, and
//! then the host holds as much as before.
//!
//! An ordinary run makes 200 cycles. `CALLBOARD_CYCLES=1000 cargo test --test launch_cycles` sets another number.

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

/// The number of cycles, unless the environment sets another.
const CYCLES: u32 = 200;
/// The number of cycles before the baseline is taken, which fill caches and pools.
const WARM_UP: u32 = 20;
/// The memory that may be held in the end for each cycle that was made. One task of the runtime alone would be more.
const BYTES_EACH_MAX: u64 = 1_024;
/// The memory that the allocator may keep, whatever the number of cycles.
const BYTES_KEPT_MAX: u64 = 1_024 * 1_024;

/// How many more threads for blocking work the runtime may hold. Their number follows the peak of work at one time, which depends
/// on the scheduler, and a thread that gets work now and then does not end. A thread for each cycle would be more.
const THREADS_KEPT_MAX: usize = 8;

/// The resources that could grow.
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

    /// Whether the host holds no more than before.
    fn is_as(&self, before: &Self) -> bool {
        self.threads <= before.threads + THREADS_KEPT_MAX
            && Self { threads: before.threads, ..*self } == *before
    }
}

fn entries(directory: &Path) -> usize {
    std::fs::read_dir(directory).unwrap().count()
}

/// The number of files and directories below a directory.
fn files(directory: &Path) -> usize {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| 1 + if path.is_dir() { files(&path) } else { 0 }).sum()
}

fn actors(node: &TreeNode) -> usize {
    1 + node.children.iter().map(actors).sum::<usize>()
}

/// The memory that this program holds.
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
        // Each cycle has its own subscription: ended subscriptions must not be kept either.
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
