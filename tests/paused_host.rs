//! A host that is stopped for a while: what its plugins did meanwhile is looked at before anything is said of them.

mod program;

use std::time::Duration;

use program::{Stage, allocation, task};
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
    // The pause is what is tried here: it has to last.
    std::thread::sleep(PAUSE);
    host.signal(Signal::CONT);
    host.until_active("csi-node", "zfs", "slow");
    let status = host.json(&["status"]);
    assert_eq!(task(&status, "slow")["restarts"], 0, "{}", host.log());
    let log = host.log();
    assert!(log.contains("the host did not run for a while"), "{log}");
}
