//! Runs the official checks of CSI plugins (csi-sanity), if Go, its modules and root are available.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::go::SANITY;
use crate::stage::{LONG, NODE};

#[test]
fn the_official_checks_of_a_csi_plugin_pass_without_one_skipped_that_it_claims() {
    let Some(programs) = SANITY.or_say("csi-sanity against the reference plugin") else { return };
    if !rustix::process::geteuid().is_root() {
        eprintln!(
            "SKIPPED: csi-sanity against the reference plugin is not shown, since only root may mount where it looks"
        );
        return;
    }
    for access_type in ["mount", "block"] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let socket = directory.path().join("csi.sock");
        let mut plugin = Command::new(env!("CARGO_BIN_EXE_callboard"))
            .args(["plugin", "hostpath", "--node-id", NODE, "--max-volumes", "4", "--endpoint"])
            .arg(&socket)
            .arg("--volumes")
            .arg(directory.path().join("volumes"))
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let began = Instant::now();
        while !socket.exists() {
            assert!(began.elapsed() < LONG, "it does not listen");
            std::thread::sleep(Duration::from_millis(5));
        }
        let checks = Command::new(programs.join("sanity"))
            .arg(&socket)
            .arg(directory.path())
            .arg(access_type)
            .output();
        plugin.kill().expect("it is ours");
        plugin.wait().expect("it ends");
        let checks = checks.expect("it runs");
        let said = String::from_utf8_lossy(&checks.stdout);
        assert!(checks.status.success(), "{access_type}: {said}");
        // The skipped checks need capabilities that the plugin does not have; docs/hostpath.md names them.
        assert!(said.contains("95 Passed") && said.contains("7 Skipped"), "{access_type}: {said}");
    }
}
