//! Tests which processes live: also processes whose first thread has ended while others run, which the kernel shows as zombies, and
//! processes that are about to end, which no longer have an environment.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use callboard_actors::process::{EndedBy, Executable, ProcessSpec, ProcessStatus};
use callboard_actors::processes::Recalled;
use callboard_actors::shell::StopMode;
use rustix::process::{Pid, WaitOptions, waitpid};
use tokio::time::sleep;

use crate::stage::{HANDSHAKE, Stage, kill, plugin, story};

/// The program that is compiled from this C file.
fn compiled(stage: &Stage, name: &str) -> PathBuf {
    let program = stage.path(name);
    let source = format!("{}/tests/processes/{name}.c", env!("CARGO_MANIFEST_DIR"));
    let compiled = Command::new("cc").args(["-pthread", "-o"]).arg(&program).arg(source).output();
    let compiled = compiled.unwrap_or_else(|error| {
        panic!("a C compiler is needed, as the README says, and cc cannot be run: {error}")
    });
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    program
}

fn status(pid: u32) -> Option<ProcessStatus> {
    ProcessStatus::of(pid.cast_signed())
}

async fn is_over(pid: u32) {
    while status(pid).is_some_and(|status| !status.is_zombie) {
        sleep(Duration::from_millis(5)).await;
    }
}

/// The process of this group that has lost its first thread, as soon as there is such a process.
async fn without_first_thread(group: u32) -> u32 {
    let numbers = || {
        let entries = std::fs::read_dir("/proc").expect("/proc").filter_map(Result::ok);
        entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
    };
    let is_it = |status: ProcessStatus| status.group == group && status.has_lost_first_thread;
    loop {
        match numbers().find(|pid| status(*pid).is_some_and(is_it)) {
            Some(pid) => return pid,
            None => sleep(Duration::from_millis(5)).await,
        }
    }
}

#[test]
fn a_plugin_whose_first_thread_has_ended_is_adopted_and_stopped_like_any_other_prc_01_prc_04() {
    story(|stage| async move {
        let fixture = stage.open();
        let spec = ProcessSpec {
            executable: Executable::at(compiled(&stage, "first_thread")),
            arguments: vec![HANDSHAKE.to_owned()],
            ..plugin("")
        };
        let launched = fixture.launch("a", spec).await.expect("it is ready");
        assert_eq!(without_first_thread(launched.pid).await, launched.pid);
        fixture.end(StopMode::Detach).await;
        let fixture = stage.open();
        let Recalled::Proven(again) = fixture.recall("a").await else { panic!("it lives and is ours") };
        assert_eq!((again.pid, again.is_adopted), (launched.pid, true));
        assert_eq!(fixture.stop("a", Duration::from_secs(2)).await.by, EndedBy::Request);
        is_over(launched.pid).await;
        fixture.end(StopMode::Stop).await;
    });
}

#[test]
fn a_member_of_the_group_whose_first_thread_has_ended_ends_with_its_leader_prc_03() {
    story(|stage| async move {
        let program = compiled(&stage, "first_thread").display().to_string();
        // The shell is recorded, and is killed while no host runs.
        let script = format!("{program} ready >&2 & echo '{HANDSHAKE}'; while :; do sleep 0.05; done");
        let fixture = stage.open();
        let launched = fixture.launch("a", plugin(&script)).await.expect("it is ready");
        fixture.end(StopMode::Detach).await;
        let member = without_first_thread(launched.pid).await;
        kill(launched.pid);
        // Reaps it, as `init` does with the processes that a host leaves behind.
        let ended = waitpid(Pid::from_raw(launched.pid.cast_signed()), WaitOptions::empty());
        assert!(ended.expect("it is a child of this process").is_some());
        let fixture = stage.open();
        assert!(matches!(fixture.recall("a").await, Recalled::Ended { .. }));
        assert!(
            status(member).is_none_or(|status| status.is_zombie),
            "it has ended when its leader is said to have"
        );
        fixture.end(StopMode::Stop).await;
    });
}

#[test]
fn a_socket_is_looked_at_when_the_last_member_of_the_group_has_closed_it_th030() {
    story(|stage| async move {
        let program = compiled(&stage, "large").display().to_string();
        let script = format!(
            "{program} \"$PLUGIN_UNIX_SOCKET_DIR/large\" & while [ ! -e \"$PLUGIN_UNIX_SOCKET_DIR/large\" ]; do \
             sleep 0.01; done; echo '{HANDSHAKE}'; sleep 1000; :"
        );
        let fixture = stage.open();
        let launched = fixture.launch("a", plugin(&script)).await.expect("it is ready");
        let socket = stage.output("a", "sockets").join("large");
        assert!(socket.exists());
        kill(launched.pid);
        fixture.ended(&launched).await;
        assert!(!socket.exists(), "it goes with its group");
        fixture.end(StopMode::Stop).await;
    });
}
