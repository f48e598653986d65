//! Tests the life of a task, from its start to what it leaves behind.

use std::fs::{self};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use callboard_proto::drivers::*;
use rustix::process::{Pid, Signal, kill_process};
use tonic::Code;

use crate::rig::{LONG, Place, lives, next, until};

#[tokio::test]
async fn a_task_lives_from_start_to_destroy_with_its_output_in_files() {
    let place = Place::new();
    let mut plugin = place.start(&[]).await;
    let mut events = plugin.events(None).await;
    let started = plugin
        .start(place.shell("t1", "echo $WORD; echo $PWD; echo no >&2; exit 3"))
        .await
        .expect("it starts");
    assert_eq!(started.state, TaskState::Running as i32);
    assert_eq!(plugin.wait("t1").await, (3, 0, String::new()));
    let directory = place.path("alloc/t1-task");
    assert_eq!(place.read("t1.out"), format!("hello\n{}\n", directory.display()));
    assert_eq!(place.read("t1.err"), "no\n");
    let task = plugin.inspect("t1").await.task.expect("a status");
    assert_eq!((task.state, task.result.expect("it has ended").exit_code), (TaskState::Exited as i32, 3));
    assert!(task.completed_at.expect("a time").seconds >= task.started_at.expect("a time").seconds);
    assert!(next(&mut events).await.message.starts_with("started"));
    let exited = next(&mut events).await;
    assert_eq!((&*exited.message, &*exited.annotations["exit_code"]), ("exited with code 3", "3"));
    plugin.destroy("t1", false).await.expect("it has ended");
    assert_eq!(plugin.destroy("t1", false).await, Err(Code::NotFound));
    assert_eq!(fs::read_dir(directory).expect("the task's own").count(), 0, "nothing of the driver is left");
}

#[tokio::test]
async fn a_task_that_cannot_be_started_is_refused_with_the_reason_and_leaves_nothing() {
    let place = Place::new();
    let mut plugin = place.start(&[]).await;
    let mut task = place.task("t1", &["/no/such/command"]);
    let refused = plugin.start(task.clone()).await.expect_err("there is no such command");
    assert!(refused.message().contains("/no/such/command") && refused.message().contains("t1"), "{refused}");
    assert!(!refused.details().is_empty(), "it says that trying again does not help (D110)");
    task.user = "no-such-user".to_owned();
    let refused = plugin.start(task.clone()).await.expect_err("there is no such user");
    assert_eq!(refused.code(), Code::InvalidArgument);
    task.user.clear();
    task.msgpack_driver_config = vec![0xc1];
    assert_eq!(plugin.start(task).await.expect_err("no msgpack").code(), Code::InvalidArgument);
    assert_eq!(fs::read_dir(place.path("alloc/t1-task")).expect("the task's own").count(), 0);
    plugin.start(place.shell("t1", "exit 0")).await.expect("the id is free");
}

#[tokio::test]
async fn signals_go_to_the_task_and_stop_ends_one_that_does_not_listen_shd_07() {
    let place = Place::new();
    let mut plugin = place.start(&[]).await;
    plugin
        .start(place.shell("t1", "trap 'echo caught' USR1; echo up; while :; do sleep 0.02; done"))
        .await
        .expect("it starts");
    place.until("t1.out", "up\n").await;
    plugin.signal_task("t1", "sigusr1").await.expect("it runs");
    place.until("t1.out", "up\ncaught\n").await;
    assert_eq!(plugin.signal_task("t1", "SIGNONE").await, Err(Code::InvalidArgument));
    plugin.stop("t1", LONG, "").await.expect("it ends");
    assert_eq!(plugin.wait("t1").await, (128 + 2, 2, String::new()));
    assert_eq!(plugin.signal_task("t1", "SIGTERM").await, Err(Code::FailedPrecondition));
    plugin.stop("t1", LONG, "SIGTERM").await.expect("stopping what has ended is no error");

    plugin
        .start(place.shell("t2", "trap '' TERM INT; echo up; while :; do sleep 0.02; done"))
        .await
        .expect("it starts");
    place.until("t2.out", "up\n").await;
    let began = Instant::now();
    plugin.stop("t2", Duration::from_millis(200), "SIGINT").await.expect("it is killed");
    assert!(began.elapsed() >= Duration::from_millis(200));
    assert_eq!(plugin.wait("t2").await, (128 + 9, 9, String::new()));
}

#[tokio::test]
async fn what_a_task_leaves_behind_ends_with_it_in_whatever_session_prc_03() {
    let place = Place::new();
    let mut plugin = place.start(&[]).await;
    let script = "setsid sleep 1000 & echo $!; sleep 1000 & echo $!; echo up; wait";
    plugin.start(place.shell("t1", script)).await.expect("it starts");
    let pids: Vec<i32> =
        place.until_lines("t1.out", 3).await.iter().filter_map(|line| line.parse().ok()).collect();
    assert_eq!(pids.len(), 2);
    let mut reports = plugin.stats("t1").await;
    let report = reports.message().await.expect("a report").expect("a report").stats.expect("stats");
    assert!(report.resource_usage_by_pid.len() >= 3, "the whole tree is counted");
    assert!(report.agg_resource_usage.expect("a sum").memory.expect("memory").rss > 0);
    let task = plugin.inspect("t1").await;
    let main: i32 = task.driver.expect("attributes").attributes["pid"].parse().expect("a number");
    kill_process(Pid::from_raw(main).expect("a number"), Signal::KILL).expect("it is our task");
    assert_eq!(plugin.wait("t1").await, (128 + 9, 9, String::new()));
    for pid in pids {
        until("a process that a task left behind ends", || !lives(pid)).await;
    }
    while reports.message().await.expect("the stats end in order").is_some() {}
}

#[tokio::test]
async fn no_other_user_can_read_the_logs_and_the_events_of_tasks() {
    let place = Place::new();
    let state = format!("--state-dir={}", place.path("drivers/exec").display());
    let mut plugin = place.start(&[&state]).await;
    plugin.start(place.shell("t1", "echo secret; echo more >&2")).await.expect("it starts");
    assert_eq!(plugin.wait("t1").await, (0, 0, String::new()));
    for (name, mode) in [
        ("drivers", 0o700),
        ("drivers/exec", 0o700),
        ("drivers/exec/events", 0o600),
        ("t1.out", 0o600),
        ("t1.err", 0o600),
    ] {
        let found = fs::metadata(place.path(name)).expect("it is there").permissions();
        assert_eq!(found.mode() & 0o777, mode, "{name}");
    }
}

#[tokio::test]
async fn a_task_runs_as_another_user_where_only_root_can_walk_and_leaves_the_drivers_state_alone() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can run a task as another user");
        return;
    }
    let place = Place::new();
    let mut plugin = place.start(&[]).await;
    let script =
        "echo here > made && ! mv .callboard away && ! rm -r .callboard && echo up && exec sleep 1000";
    let task = TaskConfig { user: "nobody".to_owned(), ..place.shell("t1", script) };
    let directory = place.path("alloc/t1-task");
    for closed in [place.path("alloc"), directory.clone()] {
        fs::set_permissions(closed, fs::Permissions::from_mode(0o700)).expect("it is ours");
    }
    plugin.start(task).await.expect("it starts");
    place.until("t1.out", "up\n").await;
    let output = plugin.exec("t1", &["/bin/cat", "made"], LONG).await.expect("it runs");
    assert_eq!(&*output.stdout, b"here\n");
    plugin.destroy("t1", true).await.expect("its state is where it was");
    assert_eq!(fs::read_dir(directory).expect("the task's own").count(), 1, "only what it made is left");
}

#[tokio::test]
async fn output_to_a_fifo_waits_for_no_reader_and_outlives_it_prc_07() {
    let place = Place::new();
    let mut plugin = place.start(&[]).await;
    let fifo = place.path("t1.out");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RWXU).expect("room");
    let script = format!(
        "echo one; while ! [ -e {}/go ]; do sleep 0.02; done; echo two; exit 0",
        place.path("").display()
    );
    plugin.start(place.shell("t1", &script)).await.expect("it has no reader yet");
    let mut reader =
        BufReader::new(fs::OpenOptions::new().read(true).write(true).open(&fifo).expect("a FIFO"));
    let mut line = String::new();
    reader.read_line(&mut line).expect("a line");
    assert_eq!(line, "one\n");
    drop(reader);
    fs::write(place.path("go"), "").expect("room");
    assert_eq!(plugin.wait("t1").await, (0, 0, String::new()), "a reader that goes ends no task");
}
