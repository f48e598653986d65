//! Strangers on the node of a running host program: processes that take what belongs to others.

mod program;

use std::os::unix::net::UnixListener;

use program::{CALLBOARD, Stage};

/// An allocation whose process never listens.
fn silent(name: &str) -> String {
    format!(
        "[[allocation]]\nname = {name:?}\nplugin = \"zfs\"\ntype = \"node\"\ncommand = \"/bin/sleep\"\nargs = [\"1000\"]\n"
    )
}

#[test]
fn a_process_that_listens_at_the_socket_of_another_allocation_is_refused_and_both_are_named_sec_02() {
    let stage = Stage::new(&silent("quiet"));
    let program = stage.run();
    let status =
        program.until("a process runs", |status| program::task(status, "quiet")["task"] == "running");
    let task = program::pid_of(&status, "quiet");
    let socket = stage.data_dir().join("csi/plugins/quiet/csi.sock");
    let _stranger = UnixListener::bind(&socket).expect("the path is free");
    let said = format!("process {} (", std::process::id());
    let expected = format!("allocation quiet (pid {task})");
    program.until("the stranger is named", |status| {
        let text = status.to_string();
        text.contains(&said) && text.contains(&expected) && text.contains("nothing was said to it")
    });
}

#[test]
fn a_plugin_behind_a_wrapper_that_leaves_it_alone_is_the_allocations_own_process_sec_02() {
    let script =
        format!("setsid {CALLBOARD} plugin hostpath --endpoint \"$CSI_ENDPOINT\" --role node & wait");
    let stage = Stage::new(&format!(
        "[[allocation]]\nname = \"wrapped\"\nplugin = \"zfs\"\ntype = \"node\"\ncommand = \"/bin/sh\"\nargs = [\"-c\", {script:?}]\n"
    ));
    let program = stage.run();
    program.until_active("csi-node", "zfs", "wrapped");
}
