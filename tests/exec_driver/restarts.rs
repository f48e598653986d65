//! Tests drivers that end, die and lose their supervisors, and the knowledge of the next driver about the tasks.

use std::fs::{self};

use callboard::actors::driver::EventPosition;
use callboard::plugin::position_of;
use callboard_proto::drivers::*;
use rustix::process::{Pid, Signal, kill_process};
use tonic::Code;

use crate::rig::{LONG, Place, lives, next, until};

#[tokio::test]
async fn a_killed_driver_is_followed_by_one_that_knows_the_true_exit_code_prc_04_prc_09_evt_02() {
    let place = Place::new();
    let state = format!("--state-dir={}", place.path("state").display());
    let mut first = place.start(&[&state]).await;
    let mut events = first.events(None).await;
    let script = format!(
        "echo up >> {0}/starts; while ! [ -e {0}/go ]; do sleep 0.02; done; exit 42",
        place.path("").display()
    );
    let handle = first.start(place.shell("t1", &script)).await.expect("it starts");
    let started = next(&mut events).await;
    place.until("starts", "up\n").await;
    first.kill().await;

    let mut second = place.start(&[&state]).await;
    let position = position_of(&started).expect("its events have positions");
    let mut events = second.events(Some(&position)).await;
    assert_eq!(second.wait_code("t1").await, Err(Code::NotFound), "not before it is recovered");
    second.recover(handle.clone()).await.expect("it runs still");
    second.recover(handle.clone()).await.expect("twice is no error");
    let again = second.start(place.shell("t1", &script)).await.expect("the same task is the same task");
    assert_eq!(again.state, TaskState::Running as i32);
    let other = second.start(place.shell("t1", "exit 0")).await.expect_err("another task of this id");
    assert_eq!(other.code(), Code::AlreadyExists);
    fs::write(place.path("go"), "").expect("room");
    assert_eq!(second.wait("t1").await, (42, 0, String::new()));
    let messages = [next(&mut events).await, next(&mut events).await]
        .map(|event| (event.annotations["callboard.sequence"].clone(), event.annotations["kind"].clone()));
    assert_eq!(messages, [("2".to_owned(), "recovered".to_owned()), ("3".to_owned(), "exited".to_owned())]);
    assert_eq!(place.read("starts"), "up\n", "it was started once");

    // The task has ended, and its end was reported: the next driver reports the code, but does not report the event again.
    second.kill().await;
    let mut third = place.start(&[&state]).await;
    let position = EventPosition { sequence: 3, ..position };
    let mut events = third.events(Some(&position)).await;
    third.recover(handle).await.expect("its state is there");
    assert_eq!(third.wait("t1").await, (42, 0, String::new()));
    third.destroy("t1", false).await.expect("it has ended");
    third.start(place.shell("t2", "exit 0")).await.expect("it starts");
    let kinds = [next(&mut events).await, next(&mut events).await]
        .map(|event| (event.task_id, event.annotations["kind"].clone()));
    assert_eq!(kinds, [("t1".to_owned(), "recovered".to_owned()), ("t2".to_owned(), "started".to_owned())]);
}

#[tokio::test]
async fn a_start_whose_answer_was_lost_with_the_driver_gives_the_running_task_prc_09() {
    let place = Place::new();
    let mut first = place.start(&[]).await;
    let script = format!("echo up >> {}; sleep 1000", place.path("starts").display());
    let handle = first.start(place.shell("t1", &script)).await.expect("it starts");
    place.until("starts", "up\n").await;
    first.kill().await;
    let mut second = place.start(&[]).await;
    let found = second.start(place.shell("t1", &script)).await.expect("it is found");
    assert_eq!(found.driver_state, handle.driver_state, "the very same processes");
    assert_eq!(place.read("starts"), "up\n");
    second.destroy("t1", true).await.expect("it is killed");
}

#[tokio::test]
async fn a_task_that_was_started_and_never_told_of_is_known_to_the_next_driver_prc_09_evt_02() {
    let place = Place::new();
    let state = format!("--state-dir={}", place.path("state").display());
    let mut first = place.start(&[&state]).await;
    let mut events = first.events(None).await;
    let script = format!("echo up >> {}; sleep 1000", place.path("starts").display());
    first.start(place.shell("t1", &script)).await.expect("it starts, and its handle is lost");
    let position = position_of(&next(&mut events).await).expect("its events have positions");
    place.until("starts", "up\n").await;
    first.kill().await;

    let mut second = place.start(&[&state]).await;
    let pid = second.inspect("t1").await.driver.expect("attributes").attributes["pid"].parse::<i32>();
    let pid = pid.expect("a number");
    assert!(lives(pid));
    assert_eq!(second.destroy("t1", false).await, Err(Code::FailedPrecondition), "it runs");
    second.destroy("t1", true).await.expect("it is killed");
    assert!(!lives(pid));
    assert_eq!(second.destroy("t1", true).await, Err(Code::NotFound));
    let mut events = second.events(Some(&position)).await;
    assert_eq!(next(&mut events).await.annotations["kind"], "exited", "its start was told before");
    assert_eq!(place.read("starts"), "up\n");
}

#[tokio::test]
async fn an_exit_that_was_not_seen_is_unknown_and_no_success_evt_05_prc_01() {
    let place = Place::new();
    let mut plugin = place.start(&[]).await;
    let handle = plugin.start(place.shell("t1", "sleep 1000")).await.expect("it starts");
    let attributes = plugin.inspect("t1").await.driver.expect("attributes").attributes;
    let pid = |name: &str| attributes[name].parse::<i32>().expect("a number");
    kill_process(Pid::from_raw(pid("supervisor_pid")).expect("a number"), Signal::KILL).expect("it is ours");
    until("the supervisor ends", || !lives(pid("supervisor_pid"))).await;
    assert!(lives(pid("pid")), "the task goes on without its supervisor");
    plugin.stop("t1", LONG, "SIGTERM").await.expect("it is found by its tag");
    let (code, _, error) = plugin.wait("t1").await;
    assert!(code != 0 && error.contains("unknown"), "{code} {error}");
    plugin.kill().await;

    // A handle of an earlier boot names processes whose numbers may have been reused.
    let mut state: serde_json::Value = serde_json::from_slice(&handle.driver_state).expect("JSON");
    state["record"]["boot_id"] = "another boot".into();
    state["record"]["task"]["pid"] = std::process::id().into();
    state["place"] = place.path("nowhere").display().to_string().into();
    let mut plugin = place.start(&[]).await;
    plugin
        .recover(TaskHandle { driver_state: state.to_string().into_bytes(), ..handle })
        .await
        .expect("it has ended");
    let (code, _, error) = plugin.wait("t1").await;
    assert!(code != 0 && error.contains("rebooted"), "{code} {error}");
    plugin.destroy("t1", true).await.expect("nothing is signalled");
}

/// A supervisor that does not answer in time is killed with everything it started, before the start is answered (PRC-09, PRC-03).
#[tokio::test]
async fn a_task_that_was_answered_not_to_have_started_does_not_start_later_prc_09() {
    let place = Place::new();
    let script = format!("echo up >> {}; sleep 1000", place.path("starts").display());
    for when in ["before-start", "after-start"] {
        let hangs = format!("--supervisor-hangs={when}");
        let mut plugin = place.start(&[&hangs, "--start-timeout=300ms"]).await;
        // Every process of its tree clears its environment, and with it the tag.
        let task = place.task("t1", &["/usr/bin/env", "-i", "/bin/sh", "-c", &script]);
        let refused = plugin.start(task).await.expect_err("its supervisor hangs");
        assert!(refused.message().contains("did not answer within 300ms"), "{refused}");
        assert_eq!(place.living(), [0; 0], "neither a supervisor nor a task, {when}");
        plugin.kill().await;
    }
    let before = place.read("starts").lines().count();
    let mut plugin = place.start(&[]).await;
    plugin.start(place.shell("t1", &script)).await.expect("the id is free");
    place.until_lines("starts", before + 1).await;
    plugin.destroy("t1", true).await.expect("it is killed");
    assert_eq!(place.read("starts").lines().count(), before + 1);
}

#[tokio::test]
async fn a_task_without_its_tag_and_its_supervisor_can_be_signalled_and_stopped_prc_01() {
    let place = Place::new();
    let mut plugin = place.start(&[]).await;
    for (id, is_stopped) in [("t1", true), ("t2", false)] {
        plugin.start(place.task(id, &["/usr/bin/env", "-i", "sleep", "1000"])).await.expect("it starts");
        let pid = plugin.lose_supervisor(id).await;
        until("it has thrown its tag away", || Place::command_of(pid).starts_with("sleep")).await;
        plugin.signal_task(id, "SIGCONT").await.expect("its number and its start time are known");
        match is_stopped {
            true => plugin.stop(id, LONG, "SIGTERM").await.expect("it is found"),
            false => plugin.destroy(id, true).await.expect("it is killed"),
        }
        assert!(!lives(pid));
    }
    assert_eq!(plugin.signal_task("t1", "SIGCONT").await, Err(Code::FailedPrecondition), "it has ended");
}

#[tokio::test]
async fn what_a_task_without_supervisor_left_behind_is_ended_before_its_end_is_told_prc_03_evt_05() {
    let place = Place::new();
    let mut plugin = place.start(&[]).await;
    let script = "setsid sleep 1000 & echo $!; sleep 1000 & echo $!; exec sleep 1000";
    plugin.start(place.shell("t1", script)).await.expect("it starts");
    let children: Vec<i32> =
        place.until_lines("t1.out", 2).await.iter().filter_map(|line| line.parse().ok()).collect();
    let pid = plugin.lose_supervisor("t1").await;
    kill_process(Pid::from_raw(pid).expect("a number"), Signal::KILL).expect("it is our task");
    let (code, _, error) = plugin.wait("t1").await;
    assert!(code != 0 && error.contains("unknown"), "{code} {error}");
    for child in children {
        assert!(!lives(child), "nothing runs beside the task that comes after it");
    }
}

#[tokio::test]
async fn a_driver_in_good_order_leaves_its_tasks_to_the_next_prc_04() {
    let place = Place::new();
    let mut first = place.start(&[]).await;
    let handle = first
        .start(place.shell("t1", "trap 'exit 6' TERM; echo up; while :; do sleep 0.02; done"))
        .await
        .expect("it starts");
    place.until("t1.out", "up\n").await;
    first.signal(Signal::TERM);
    assert_eq!(first.end().await.code(), Some(0));
    let mut second = place.start(&[]).await;
    second.recover(handle).await.expect("it runs");
    second.stop("t1", LONG, "SIGTERM").await.expect("it ends");
    assert_eq!(second.wait("t1").await, (6, 0, String::new()));
}
