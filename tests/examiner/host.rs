//! Tests Callboard itself in an exam: the calls of its host to every plugin.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::exam::rules;
use crate::program::{CALLBOARD, Stage};

#[test]
fn a_host_of_callboard_passes_with_a_plugin_that_is_ready_late_fails_now_and_then_and_claims_what_is_unknown_c003_c033_c039()
 {
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str| directory.path().join(name).display().to_string();
    let (volumes, report) = (file("volumes"), file("report.json"));
    let faults = [
        "--ready-after=300ms",
        "--garbage=unknown-capabilities",
        "--fault=NodeGetInfo=UNAVAILABLE,before,nth:1",
        "--fault=Probe=INTERNAL,before,nth:2",
        "--fault=ControllerGetCapabilities=ABORTED,before,nth:1",
    ];
    let exam =
        ["plugin", "examiner", "--endpoint", "${CSI_ENDPOINT}", "--volumes", &volumes, "--report", &report];
    let arguments = json!(exam.iter().chain(&faults).collect::<Vec<_>>());
    let stage = Stage::new(&format!(
        "[[allocation]]\nname = \"exam\"\nplugin = \"zfs\"\ntype = \"monolith\"\nprobe_interval = \"100ms\"\n\
         command = {CALLBOARD:?}\nargs = {arguments}\n"
    ));
    let host = stage.run();
    host.until_active("csi-node", "zfs", "exam");
    host.until_active("csi-controller", "zfs", "exam");
    host.signal(Signal::TERM);
    let (exit, printed) = host.ended();
    assert_eq!(exit.code(), Some(0), "{printed}");
    let report: Value = serde_json::from_slice(&std::fs::read(report).expect("it is written")).expect("JSON");
    assert_eq!(report["clean"], true, "{report:#}");
    assert!(rules(&report, "tried").contains(&"C039".to_owned()), "{report:#}");
    for call in ["GetPluginCapabilities", "ControllerGetCapabilities", "NodeGetCapabilities", "NodeGetInfo"] {
        assert!(report["calls"][call].as_u64().is_some_and(|count| count > 0), "{call}: {}", report["calls"]);
    }
}
