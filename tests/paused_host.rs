//! Tests a host that is stopped for a while: it checks what its plugins did meanwhile before it reports anything about them.

#[path = "support/preloaded.rs"]
mod preloaded;
mod program;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use program::{Stage, allocation, pid_of, task, until_true};
use rustix::process::Signal;

/// How long the host is stopped: longer than its plugin may take to get ready.
const PAUSE: Duration = Duration::from_secs(6);

#[test]
fn a_plugin_that_got_ready_while_its_host_was_stopped_is_not_restarted_for_that_hlt_02() {
    let arguments = ["--ready-after", "3s"];
    let stage = Stage::new(&allocation("slow", "zfs", "node", &arguments, "health_timeout = \"5s\""));
    let host = stage.run();
    host.until("its plugin is asked whether it is ready", |status| {
        task(status, "slow")["state"] == "probing"
    });
    host.signal(Signal::STOP);
    // The pause itself is tested, so it must last.
    std::thread::sleep(PAUSE);
    host.signal(Signal::CONT);
    host.until_active("csi-node", "zfs", "slow");
    let status = host.json(&["status"]);
    assert_eq!(task(&status, "slow")["restarts"], 0, "{}", host.log());
    let log = host.log();
    assert!(log.contains("the host did not run for a while"), "{log}");
}

/// How long the machine is suspended: far from a whole number of seconds, since the measured pause is off by some milliseconds.
const SUSPENDED: Duration = Duration::from_millis(6_500);

/// A monotonic clock that can be stopped for one process, like that of a suspended machine.
struct StoppableClock {
    library: PathBuf,
    stood_still: PathBuf,
}

impl StoppableClock {
    fn below(directory: &Path) -> Self {
        let library = preloaded::compiled("stood_still", directory);
        let clock = Self { library, stood_still: directory.join("stood_still") };
        std::fs::write(&clock.stood_still, [0; 16]).expect("it can be written");
        clock
    }

    fn environment(&self) -> [(&'static str, &str); 2] {
        [("LD_PRELOAD", preloaded::text(&self.library)), ("STOOD_STILL", preloaded::text(&self.stood_still))]
    }

    /// Subtracts this much time from the clock of the process.
    fn leave_out(&self, time: Duration, pid: u64) {
        let numbers =
            [i64::try_from(pid).expect("a pid"), i64::try_from(time.as_nanos()).expect("a short time")];
        let file = File::options().write(true).open(&self.stood_still).expect("it is there");
        file.write_all_at(&numbers.map(i64::to_ne_bytes).concat(), 0).expect("it can be written");
    }
}

fn unix_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later");
    u64::try_from(now.as_millis()).expect("it is not that late")
}

#[test]
fn the_time_of_a_suspended_machine_is_a_pause_and_counts_in_all_times_that_are_shown_hlt_02() {
    let stage = Stage::new(&allocation("a", "zfs", "node", &[], ""));
    let clock = StoppableClock::below(stage.directory.path());
    let host = stage.run_as(&[], &clock.environment());
    host.until_active("csi-node", "zfs", "a");
    let pid = host.json(&["status"])["host"]["pid"].as_u64().expect("it runs");
    host.signal(Signal::STOP);
    let is_stopped = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it is our child");
        stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T'))
    };
    until_true("a host that stands still", program::TIMEOUT, is_stopped);
    // The pause itself is tested, so it must last. The monotonic clock then has not counted it; only the time since the boot has.
    std::thread::sleep(SUSPENDED);
    clock.leave_out(SUSPENDED, pid);
    host.signal(Signal::CONT);
    let told = || {
        host.log().lines().find(|line| line.contains("the host did not run for a while")).map(str::to_owned)
    };
    until_true("the pause in the log", program::TIMEOUT, || told().is_some());
    let pause = told().expect("it was there");
    assert!(pause.contains("suspended_ms=6"), "{pause}");
    assert_eq!(task(&host.json(&["status"]), "a")["restarts"], 0, "{}", host.log());

    let before = unix_ms();
    program::left::kill_if_there(pid_of(&host.json(&["status"]), "a"));
    let status = host.until("another process", |status| {
        task(status, "a")["restarts"] == 1 && task(status, "a")["health"] == "healthy"
    });
    let since = task(&status, "a")["since_unix_ms"].as_u64().expect("a time");
    // The clock of the host is set once, so it may differ slightly from that of the system.
    assert!(since + 1_000 > before && since < unix_ms() + 1_000, "since {since}, after {before}");
}
