//! Tests that the number of threads of `callboard run` does not depend on the number of plugins (SCL-02).

mod program;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use callboard::host::BLOCKING_THREADS_MAX;
use program::{Program, Stage, allocation, until_true};

/// Few plugins and many: if each had a thread, the difference would be many times the limit.
const NUMBERS: [usize; 2] = [10, 40];
/// The name of the threads of the pool for blocking work.
const POOL: &str = "tokio-rt-worker";
/// How many of these threads may be left at rest. Their number follows the peak of work at one time, which depends on the scheduler; and a
/// thread that gets work now and then does not end.
const POOL_AT_REST_MAX: usize = 16;
/// More time than the start of all plugins takes, and longer than the pool keeps an idle thread.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The number of threads of the pool of a host, and of its other threads by name.
fn threads(host: u64) -> (usize, BTreeMap<String, usize>) {
    let mut names = BTreeMap::new();
    for thread in std::fs::read_dir(format!("/proc/{host}/task")).expect("it runs").flatten() {
        // The thread may have ended.
        let Ok(name) = std::fs::read_to_string(Path::new(&thread.path()).join("comm")) else { continue };
        *names.entry(name.trim().to_owned()).or_default() += 1;
    }
    (names.remove(POOL).unwrap_or_default(), names)
}

/// Waits until this many plugins are healthy. Meanwhile the pool stays within its limit, and each status request is answered.
fn until_healthy(host: &Program<'_>, pid: u64, number: usize) {
    host.until_within(TIMEOUT, "all plugins as healthy", |status| {
        let pool = threads(pid).0;
        assert!(pool <= BLOCKING_THREADS_MAX, "{pool} threads of the pool");
        let plugins = status["plugins"].as_array().expect("a list");
        plugins.len() == number && plugins.iter().all(|plugin| plugin["health"] == "healthy")
    });
}

#[test]
fn four_times_as_many_plugins_need_no_more_threads_scl_02() {
    let [few, many] = NUMBERS.map(|number| {
        let allocations = (0..number).map(|one| {
            // Every other plugin survives its host.
            let more = format!("health_timeout = \"2m\"\nsurvives = {}", one % 2 == 1);
            allocation(&format!("a{one}"), &format!("p{one}"), "node", &[], &more)
        });
        let stage = Stage::new(&allocations.collect::<String>());
        let host = stage.run();
        let pid = host.json(&["status"])["host"]["pid"].as_u64().expect("it runs");
        until_healthy(&host, pid, number);
        // A thread that has just started has the name of another thread for a moment.
        let seen = RefCell::new(threads(pid));
        until_true("threads at rest", TIMEOUT, || {
            let before = seen.replace(threads(pid));
            let now = seen.borrow();
            now.0 <= POOL_AT_REST_MAX && now.1 == before.1
        });
        seen.into_inner()
    });
    println!("threads of the pool and others: {few:?} and {many:?}");
    assert_eq!(few.1, many.1, "the threads beside the pool");
}
