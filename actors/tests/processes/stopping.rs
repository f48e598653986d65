//! Tests the end of a process, and of all processes that must end with it.

use std::time::{Duration, Instant};

use callboard_actors::process::{EndedBy, Exit, ProcessSpec, Reach};
use callboard_actors::shell::StopMode;

use crate::stage::{all_tagged, is_gone, kill, line_of, lives, pid_in, shell, story, tagged};

#[test]
fn a_plugin_that_needs_a_while_within_its_grace_ends_by_itself_and_is_killed_when_the_grace_is_over_shd_07() {
    story(|stage| async move {
        let fixture = stage.open();
        let ready = stage.path("ready");
        let slow = format!(
            "trap 'sleep 0.6; exit 7' TERM; echo ready > {}; while :; do sleep 0.01; done",
            ready.display()
        );
        let launched = fixture.launch("a", shell(&slow)).await.expect("it starts");
        line_of(&ready).await;
        let ending = fixture.stop("a", Duration::from_secs(20)).await;
        assert_eq!((ending.exit, ending.by), (Exit::Code(7), EndedBy::Request));
        assert!(!lives(launched.pid));

        std::fs::remove_file(&ready).expect("it was there");
        fixture.launch("a", shell(&slow)).await.expect("it starts");
        line_of(&ready).await;
        let asked = Instant::now();
        let ending = fixture.stop("a", Duration::from_millis(200)).await;
        assert_eq!((ending.exit, ending.by), (Exit::Signal(9), EndedBy::Force));
        assert!(
            asked.elapsed() >= Duration::from_millis(200) && asked.elapsed() < Duration::from_millis(600)
        );
        fixture.end(StopMode::Stop).await;
    });
}

#[test]
fn a_helper_that_is_killed_leaves_nothing_of_its_group_when_its_replacement_starts_prc_03() {
    story(|stage| async move {
        let fixture = stage.open();
        let mark = stage.path("child");
        let script = format!("trap '' TERM; sleep 60 & sleep 61 & echo $! > {}; wait", mark.display());
        for _ in 0..3 {
            let _ = std::fs::remove_file(&mark);
            let launched = fixture.launch("a", shell(&script)).await.expect("nothing stands in its way");
            let child = pid_in(&mark).await;
            all_tagged(launched.tag, 3).await;
            // Only the helper is killed.
            kill(launched.pid);
            assert_eq!(fixture.ended(&launched).await.exit, Exit::Signal(9));
            assert!(!lives(child));
            assert!(tagged(launched.tag).is_empty());
        }
        fixture.end(StopMode::Stop).await;
    });
}

#[test]
fn what_left_the_group_on_purpose_goes_on_unless_everything_is_to_end_prc_03() {
    story(|mut stage| async move {
        for with_control_groups in [false, true] {
            stage.with_control_groups = with_control_groups;
            let fixture = stage.open();
            let mark = stage.path("task");
            let script =
                format!("setsid sh -c 'echo $$ > {}; exec sleep 60' & exec sleep 60", mark.display());
            let launched = fixture.launch("a", shell(&script)).await.expect("it starts");
            let task = pid_in(&mark).await;
            fixture.stop("a", Duration::from_secs(5)).await;
            assert!(lives(task) && !lives(launched.pid), "a task outlives its driver");
            kill(task);
            is_gone(task).await;

            std::fs::remove_file(&mark).expect("it was there");
            let spec = ProcessSpec { reach: Reach::Everything, ..shell(&script) };
            let launched = fixture.launch("a", spec).await.expect("it starts");
            let task = pid_in(&mark).await;
            if with_control_groups {
                let group =
                    std::fs::read_to_string(format!("/proc/{}/cgroup", launched.pid)).expect("it lives");
                let is_contained = group.contains(&launched.tag.to_string());
                println!(
                    "control groups are {}",
                    if is_contained { "tested" } else { "not to be had here; tags are tested twice" }
                );
            }
            fixture.stop("a", Duration::from_secs(5)).await;
            assert!(!lives(task) && !lives(launched.pid));
            std::fs::remove_file(&mark).expect("it was there");
            fixture.end(StopMode::Stop).await;
        }
    });
}

#[test]
fn the_end_of_a_process_is_learned_at_once_and_not_by_looking_scl_06_prc_05() {
    story(|stage| async move {
        let fixture = stage.open();
        let launched = fixture.launch("a", shell("exec sleep 60")).await.expect("it starts");
        let ended = fixture.ended(&launched);
        let killed = Instant::now();
        kill(launched.pid);
        ended.await;
        assert!(killed.elapsed() < Duration::from_millis(100), "{:?}", killed.elapsed());
        fixture.end(StopMode::Stop).await;
    });
}

#[test]
fn a_process_that_is_stopped_while_it_starts_is_ended_and_its_launch_says_so() {
    story(|stage| async move {
        let fixture = stage.open();
        let mark = stage.path("pid");
        let spec = crate::stage::plugin(&format!("echo $$ > {}; exec sleep 60", mark.display()));
        let asked = fixture.launch("a", spec);
        let stop = async {
            let pid = pid_in(&mark).await;
            let ending = fixture.stop("a", Duration::from_secs(5)).await;
            assert_eq!((ending.exit, ending.pid), (Exit::Signal(15), Some(pid)));
        };
        let (launched, ()) = tokio::join!(asked, stop);
        let error = launched.expect_err("it was stopped");
        assert!(error.to_string().contains("stopped before it was ready"), "{error}");
        fixture.end(StopMode::Stop).await;
    });
}

#[test]
fn two_hundred_launches_that_are_given_up_leave_no_zombie_prc_10() {
    story(|stage| async move {
        let fixture = stage.open();
        let mut pids = Vec::new();
        for round in 0..200_u32 {
            let spec = ProcessSpec {
                start_timeout: Duration::from_millis(u64::from(round % 7)),
                ..crate::stage::plugin("exec sleep 60")
            };
            let error = fixture.launch("a", spec).await.expect_err("it says no handshake");
            pids.extend(error.ending().and_then(|ending| ending.pid));
        }
        assert_eq!(pids.len(), 200);
        let is_there = |pid: &u32| std::path::Path::new(&format!("/proc/{pid}/stat")).exists();
        let ours = |pid: &u32| {
            is_there(pid)
                && std::fs::read_to_string(format!("/proc/{pid}/status"))
                    .is_ok_and(|status| status.contains(&format!("PPid:\t{}\n", std::process::id())))
        };
        assert_eq!(pids.into_iter().filter(ours).count(), 0, "zombies are left");
        fixture.end(StopMode::Stop).await;
    });
}
