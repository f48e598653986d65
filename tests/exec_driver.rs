//! The reference driver in a process of its own, through the bare generated clients: what a host sees of it.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use callboard::actors::driver::{
    EVENTS_AFTER_METADATA, EVENTS_FROM_THE_BEGINNING, EVENTS_STREAM_METADATA, EventPosition,
};
use callboard::plugin::{Cookie, position_of};
use callboard_proto::base::base_plugin_client::BasePluginClient;
use callboard_proto::base::{PluginInfoRequest, PluginType, SetConfigRequest};
use callboard_proto::drivers::driver_client::DriverClient;
use callboard_proto::drivers::exec_task_streaming_request::Setup;
use callboard_proto::drivers::fingerprint_response::HealthState;
use callboard_proto::drivers::*;
use callboard_proto::goplugin::Empty;
use callboard_proto::goplugin::grpc_controller_client::GrpcControllerClient;
use callboard_proto::goplugin::grpc_stdio_client::GrpcStdioClient;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Streaming};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

/// More time than anything here takes on the slowest machine.
const LONG: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(5);

#[test]
fn a_driver_run_by_hand_says_so_and_ends_with_1_d36() {
    for cookie in [None, Some("wrong")] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_callboard"));
        command.args(["plugin", "exec"]).env_clear();
        command.envs(cookie.map(|value| (Cookie::NOMAD.key, value)));
        let output = command.output().expect("it starts");
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(told.contains("is a plugin") && told.lines().count() == 1, "{told}");
        assert!(output.stdout.is_empty(), "nothing that looks like a line");
    }
}

#[tokio::test]
async fn a_driver_prints_its_line_serves_and_leaves_no_socket_d8_d20_d31_d50_d51_d55() {
    let place = Place::new();
    let mut plugin = place.start(&[]).await;
    assert!(plugin.socket.starts_with(place.path("sockets")));
    assert_eq!(plugin.line, format!("1|2|unix|{}|grpc|\n", plugin.socket.display()));
    let mut health = HealthClient::new(plugin.channel.clone());
    let check = HealthCheckRequest { service: "plugin".to_owned() };
    assert_eq!(health.check(check).await.expect("it answers").into_inner().status, 1);
    let info = BasePluginClient::new(plugin.channel.clone()).plugin_info(PluginInfoRequest {}).await;
    let info = info.expect("it answers").into_inner();
    assert_eq!(
        (&*info.name, info.r#type, &info.plugin_api_versions[..]),
        ("exec", PluginType::Driver as i32, &["v0.1.0".to_owned()][..])
    );
    GrpcStdioClient::new(plugin.channel.clone()).stream_stdio(()).await.expect("it listens");
    plugin.signal(Signal::INT);
    let capabilities =
        plugin.driver.capabilities(CapabilitiesRequest {}).await.expect("an interrupt is ignored");
    assert!(capabilities.into_inner().capabilities.expect("some").send_signals);
    let mut reports = plugin.driver.fingerprint(FingerprintRequest {}).await.expect("a stream").into_inner();
    let report = reports.message().await.expect("a report").expect("a report");
    assert_eq!(report.health, HealthState::Healthy as i32);
    assert!(
        report.attributes.contains_key("driver.exec")
            && report.attributes.contains_key("driver.exec.version")
    );
    // The answer may be lost with the connection.
    let _ = GrpcControllerClient::new(plugin.channel.clone()).shutdown(Empty {}).await;
    assert_eq!(reports.message().await.expect("the stream ends in order"), None);
    assert_eq!(plugin.end().await.code(), Some(0));
    assert!(fs::read_dir(place.path("sockets")).expect("there").next().is_none(), "no socket is left");
}

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
    task.user = "nobody-at-all".to_owned();
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
    assert_eq!(plugin.wait("t1").await, (128 + 15, 15, String::new()));
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
async fn commands_run_beside_a_task_and_end_with_their_call() {
    let place = Place::new();
    let mut plugin = place.start(&[]).await;
    plugin.start(place.shell("t1", "sleep 1000")).await.expect("it starts");
    let output = plugin
        .exec("t1", &["/bin/sh", "-c", "echo $WORD; echo no >&2; exit 4"], LONG)
        .await
        .expect("it runs");
    assert_eq!((&*output.stdout, &*output.stderr), (&b"hello\n"[..], &b"no\n"[..]));
    assert_eq!(output.result.expect("a result").exit_code, 4);
    let late =
        plugin.exec("t1", &["/bin/sh", "-c", "sleep 1000 & sleep 1000"], Duration::from_millis(100)).await;
    assert_eq!(late.expect_err("too slow").code(), Code::DeadlineExceeded);
    let absent = plugin.exec("t1", &["/no/such"], LONG).await.expect("a shell would say so too");
    assert_eq!(absent.result.expect("a result").exit_code, 127);
    assert_eq!(plugin.exec("t2", &["true"], LONG).await.expect_err("no such task").code(), Code::NotFound);
    plugin.stop("t1", LONG, "").await.expect("it ends");
    assert_eq!(
        plugin.exec("t1", &["true"], LONG).await.expect_err("it ended").code(),
        Code::FailedPrecondition
    );
}

#[tokio::test]
async fn a_command_can_be_spoken_with_and_terminals_are_refused() {
    let place = Place::new();
    let mut plugin = place.start(&[]).await;
    plugin.start(place.shell("t1", "sleep 1000")).await.expect("it starts");
    let setup = |tty| ExecTaskStreamingRequest {
        setup: Some(Setup { task_id: "t1".to_owned(), command: vec!["/bin/cat".to_owned()], tty }),
        ..Default::default()
    };
    let say = |data: &[u8], close| ExecTaskStreamingRequest {
        stdin: Some(ExecTaskStreamingIoOperation { data: data.to_vec(), close }),
        ..Default::default()
    };
    let words = tokio_stream::iter([setup(false), say(b"one ", false), say(b"two", false), say(b"", true)]);
    let mut answers = plugin.driver.exec_task_streaming(words).await.expect("a stream").into_inner();
    let (mut heard, mut ended) = (Vec::new(), None);
    while let Some(answer) = answers.message().await.expect("no error") {
        heard.extend(answer.stdout.map(|operation| operation.data).unwrap_or_default());
        ended = answer.exited.then_some(answer.result).flatten().or(ended);
    }
    assert_eq!((&*heard, ended.expect("it ended").exit_code), (&b"one two"[..], 0));
    let refused =
        plugin.driver.exec_task_streaming(tokio_stream::iter([setup(true)])).await.expect_err("a terminal");
    assert_eq!(refused.code(), Code::Unimplemented);
    assert!(refused.message().contains("terminals"), "{refused}");
}

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

    // It has ended, and that was told: the next driver tells the code, and does not tell the event again.
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
async fn an_exit_that_nobody_has_seen_is_unknown_and_no_success_evt_05_prc_01() {
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

    // A handle of an earlier boot names processes that can be anybody's now.
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
    assert!(code != 0 && error.contains("started anew"), "{code} {error}");
    plugin.destroy("t1", true).await.expect("nothing is signalled");
}

/// A supervisor that does not answer in time is ended with what it has begun, before the start is answered (PRC-09, PRC-03).
#[tokio::test]
async fn a_task_that_was_answered_not_to_have_started_does_not_start_later_prc_09() {
    let place = Place::new();
    let script = format!("echo up >> {}; sleep 1000", place.path("starts").display());
    for when in ["before-start", "after-start"] {
        let hangs = format!("--supervisor-hangs={when}");
        let mut plugin = place.start(&[&hangs, "--start-patience=300ms"]).await;
        // Its whole tree throws the tag away.
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
async fn what_a_command_beside_a_task_leaves_behind_ends_with_its_call_prc_03() {
    let place = Place::new();
    let mut plugin = place.start(&[]).await;
    plugin.start(place.shell("t1", "sleep 1000")).await.expect("it starts");
    for script in ["sleep 1000 & echo $!", "sleep 1000 > /dev/null 2>&1 & echo $!"] {
        let output = plugin.exec("t1", &["/bin/sh", "-c", script], LONG).await.expect("it ends by itself");
        assert_eq!(output.result.expect("a result").exit_code, 0);
        let left: i32 = String::from_utf8_lossy(&output.stdout).trim().parse().expect("a number");
        until("what the command left behind ends", || !lives(left)).await;
    }
    plugin.destroy("t1", true).await.expect("it is killed");
}

#[tokio::test]
async fn nobody_else_can_look_into_the_logs_and_the_events_of_tasks() {
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
    plugin.start(place.shell("t1", &script)).await.expect("nobody reads yet");
    let mut reader =
        BufReader::new(fs::OpenOptions::new().read(true).write(true).open(&fifo).expect("a FIFO"));
    let mut line = String::new();
    reader.read_line(&mut line).expect("a line");
    assert_eq!(line, "one\n");
    drop(reader);
    fs::write(place.path("go"), "").expect("room");
    assert_eq!(plugin.wait("t1").await, (0, 0, String::new()), "a reader that goes ends no task");
}

#[tokio::test]
async fn a_driver_ends_its_streams_and_fails_its_calls_as_it_is_told_hlt_05_evt_02() {
    let place = Place::new();
    let mut plugin = place
        .start(&[
            "--unhealthy-for=300ms",
            "--fingerprints-end-after=2",
            "--fingerprints-end=error",
            "--without-init",
            "--events-break-after=1",
            "--fail=WaitTask=UNAVAILABLE",
        ])
        .await;
    assert_eq!(plugin.driver.init(InitRequest {}).await.expect_err("none").code(), Code::Unimplemented);
    let mut reports = plugin.driver.fingerprint(FingerprintRequest {}).await.expect("a stream").into_inner();
    let mut health = Vec::new();
    let end = loop {
        match reports.message().await {
            Ok(Some(report)) => health.push(report.health),
            other => break other,
        }
    };
    assert_eq!(health, [HealthState::Unhealthy as i32, HealthState::Healthy as i32]);
    assert_eq!(end.expect_err("an error").code(), Code::Internal);
    let mut events = plugin.events(None).await;
    plugin.start(place.shell("t1", "exit 0")).await.expect("it starts");
    next(&mut events).await;
    assert_eq!(events.message().await.expect_err("it breaks").code(), Code::Internal);
    assert_eq!(plugin.wait_code("t1").await, Err(Code::Unavailable));
}

#[tokio::test]
async fn a_driver_takes_no_notice_of_who_wants_it_to_end_d65_shd_07() {
    let place = Place::new();
    let mut plugin =
        place.start(&["--ignore-sigterm", "--ignore-shutdown", "--hang=SetConfig", "--hang-health"]).await;
    plugin.signal(Signal::TERM);
    until("the signal has come", || place.read("stderr").contains("signal ignored")).await;
    let mut controller = GrpcControllerClient::new(plugin.channel.clone());
    controller.shutdown(Empty {}).await.expect("it answers, and goes on");
    let soon = Duration::from_millis(100);
    let mut base = BasePluginClient::new(plugin.channel.clone());
    assert!(tokio::time::timeout(soon, base.set_config(SetConfigRequest::default())).await.is_err());
    let mut health = HealthClient::new(plugin.channel.clone());
    assert!(tokio::time::timeout(soon, health.check(HealthCheckRequest::default())).await.is_err());
    plugin.driver.capabilities(CapabilitiesRequest {}).await.expect("it serves");
}

#[tokio::test]
async fn a_driver_panics_with_words_that_a_reader_of_logs_knows_d74() {
    let place = Place::new();
    let mut panicking = place.spawn(&["--panic-after=50ms"]);
    assert_eq!(panicking.0.wait().expect("our child").code(), Some(101));
    assert!(place.read("stderr").contains("panic: as --panic-after demands"));
}

#[tokio::test]
async fn a_driver_spoils_its_line_in_every_way_d20_d22_d24_d26_d27_prc_06() {
    let place = Place::new();
    for (arguments, expected) in [
        (&["--stray-line=hello", "--stray-line="][..], "hello\n\n1|2|unix|"),
        (&["--line=nonsense"], "nonsense\n"),
        (&["--line=1|2|unix|{socket}|netrpc|"], "1|2|unix|/"),
        (&["--app-version=7"], "1|7|unix|/"),
        (&["--insist-on-tls"], "|grpc|MIIBMIIB"),
        (&["--nobody-listens"], "-nobody|grpc|\n"),
        (&["--fork-and-exit"], "1|2|unix|/"),
    ] {
        let mut raw = place.spawn(arguments);
        let mut said = String::new();
        let mut output = BufReader::new(raw.0.stdout.take().expect("piped"));
        while !said.contains(expected) {
            assert!(output.read_line(&mut said).expect("readable") > 0, "{arguments:?}: {said:?}");
        }
        if arguments == ["--fork-and-exit"] {
            assert_eq!(raw.0.wait().expect("our child").code(), Some(0), "the copy goes on");
            place.shut_down(&said).await;
        }
    }
    let mut silent = place.spawn(&["--exit-before-line=9"]);
    let mut said = String::new();
    silent.0.stdout.take().expect("piped").read_to_string(&mut said).expect("readable");
    assert_eq!((silent.0.wait().expect("our child").code(), &*said), (Some(9), ""));
}

#[tokio::test]
async fn a_driver_floods_and_goes_on_serving() {
    let place = Place::new();
    let faults = ["--flood-stderr=2000000", "--odd-log", "--long-line=1000000", "--flood-stdout=100"];
    let mut plugin = place.start(&faults).await;
    plugin.driver.capabilities(CapabilitiesRequest {}).await.expect("it answers");
    until("the flood is over", || place.read("stderr").len() > 3_000_000).await;
    let mut closed = place.start(&["--close-output"]).await;
    closed.driver.capabilities(CapabilitiesRequest {}).await.expect("it answers");
}

/// The outer world of a driver: a directory for everything.
struct Place {
    directory: TempDir,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        fs::create_dir(directory.path().join("sockets")).expect("room");
        Self { directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read(self.path(name)).map(|text| String::from_utf8_lossy(&text).into_owned()).unwrap_or_default()
    }

    async fn until(&self, name: &str, text: &str) {
        until(&format!("{name} holds {text:?}"), || self.read(name) == text).await;
    }

    async fn until_lines(&self, name: &str, count: usize) -> Vec<String> {
        until(&format!("{name} has {count} lines"), || self.read(name).lines().count() >= count).await;
        self.read(name).lines().map(str::to_owned).collect()
    }

    /// Starts a driver and nothing more.
    fn spawn(&self, arguments: &[&str]) -> Raw {
        let log = File::options().append(true).create(true).open(self.path("stderr")).expect("room");
        let child = Command::new(env!("CARGO_BIN_EXE_callboard"))
            .args(["plugin", "exec"])
            .args(arguments)
            .env_clear()
            .env(Cookie::NOMAD.key, Cookie::NOMAD.value)
            .env("PLUGIN_PROTOCOL_VERSIONS", "2")
            .env("PLUGIN_UNIX_SOCKET_DIR", self.path("sockets"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .expect("it starts");
        Raw(child)
    }

    /// Starts a driver and connects to it.
    async fn start(&self, arguments: &[&str]) -> Plugin {
        let mut raw = self.spawn(arguments);
        let mut output = BufReader::new(raw.0.stdout.take().expect("piped"));
        let mut line = String::new();
        output.read_line(&mut line).expect("it says where it is");
        let socket = PathBuf::from(line.split('|').nth(3).expect("a path"));
        let channel = connect(&socket).await;
        // Read on, so that a flood finds room.
        std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
        let driver = DriverClient::new(channel.clone());
        Plugin { raw, line, socket, channel, driver }
    }

    async fn shut_down(&self, line: &str) {
        let channel = connect(Path::new(line.split('|').nth(3).expect("a path"))).await;
        // The answer may be lost with the connection.
        let _ = GrpcControllerClient::new(channel).shutdown(Empty {}).await;
    }

    fn task(&self, id: &str, command: &[&str]) -> TaskConfig {
        let name = format!("{id}-task");
        fs::create_dir_all(self.path("alloc").join(&name)).expect("room");
        let config = serde_json::json!({ "command": command[0], "args": &command[1..] });
        TaskConfig {
            id: id.to_owned(),
            name,
            alloc_id: "a".to_owned(),
            alloc_dir: self.path("alloc").display().to_string(),
            env: [("WORD".to_owned(), "hello".to_owned())].into(),
            msgpack_driver_config: rmp_serde::to_vec_named(&config).expect("it can be written"),
            stdout_path: self.path(&format!("{id}.out")).display().to_string(),
            stderr_path: self.path(&format!("{id}.err")).display().to_string(),
            ..Default::default()
        }
    }

    fn shell(&self, id: &str, script: &str) -> TaskConfig {
        self.task(id, &["/bin/sh", "-c", script])
    }
}

impl Place {
    /// Every living process whose command line names this place, and that is no driver.
    fn living(&self) -> Vec<i32> {
        let mark = self.path("").display().to_string();
        let numbers = fs::read_dir("/proc").expect("it is there").flatten();
        let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let mut living: Vec<i32> = numbers.filter(|pid| Self::command_of(*pid).contains(&mark)).collect();
        living.retain(|pid| !Self::command_of(*pid).contains("plugin exec --"));
        living
    }

    /// The words of a process's command line.
    fn command_of(pid: i32) -> String {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).replace('\0', " ")
    }
}

impl Drop for Place {
    /// Ends what a test has left of its tasks: they would outlive it, as they outlive their driver.
    fn drop(&mut self) {
        let Ok(tasks) = fs::read_dir(self.path("alloc")) else { return };
        for place in tasks
            .flatten()
            .filter_map(|task| fs::read_dir(task.path().join(".callboard")).ok())
            .flatten()
            .flatten()
        {
            let Ok(mut control) =
                fs::OpenOptions::new().read(true).write(true).open(place.path().join("control"))
            else {
                continue;
            };
            let _ = std::io::Write::write_all(&mut control, b"kill\n");
        }
    }
}

async fn connect(socket: &Path) -> Channel {
    let endpoint = Endpoint::try_from(format!("unix://{}", socket.display())).expect("a path");
    endpoint.connect().await.expect("it listens before it says so (D32)")
}

/// A process that is killed when it is dropped.
struct Raw(Child);

impl Drop for Raw {
    fn drop(&mut self) {
        // One that has ended already takes no signal.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A driver that runs, and a connection to it.
struct Plugin {
    raw: Raw,
    line: String,
    socket: PathBuf,
    channel: Channel,
    driver: DriverClient<Channel>,
}

impl Plugin {
    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.raw.0), signal).expect("it is our child and not reaped");
    }

    async fn end(&mut self) -> ExitStatus {
        let began = Instant::now();
        loop {
            if let Some(status) = self.raw.0.try_wait().expect("it is our child") {
                return status;
            }
            assert!(began.elapsed() < LONG, "the driver does not end");
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn kill(mut self) {
        self.signal(Signal::KILL);
        assert_eq!(self.end().await.signal(), Some(9));
    }

    async fn start(&mut self, task: TaskConfig) -> Result<TaskHandle, tonic::Status> {
        let answer = self.driver.start_task(StartTaskRequest { task: Some(task) }).await?;
        Ok(answer.into_inner().handle.expect("a handle"))
    }

    async fn recover(&mut self, handle: TaskHandle) -> Result<(), tonic::Status> {
        let request = RecoverTaskRequest { handle: Some(handle), ..Default::default() };
        self.driver.recover_task(request).await.map(drop)
    }

    /// Exit code, signal, and why these cannot be relied on.
    async fn wait(&mut self, task_id: &str) -> (i32, i32, String) {
        let request = WaitTaskRequest { task_id: task_id.to_owned() };
        let waiting = tokio::time::timeout(LONG, self.driver.wait_task(request));
        let answer = waiting.await.expect("it ends").expect("it is known").into_inner();
        let result = answer.result.expect("a result");
        (result.exit_code, result.signal, answer.err)
    }

    async fn wait_code(&mut self, task_id: &str) -> Result<(), Code> {
        let request = WaitTaskRequest { task_id: task_id.to_owned() };
        self.driver.wait_task(request).await.map(drop).map_err(|status| status.code())
    }

    async fn stop(&mut self, task_id: &str, timeout: Duration, signal: &str) -> Result<(), Code> {
        let timeout = Some(timeout.try_into().expect("a span"));
        let request = StopTaskRequest { task_id: task_id.to_owned(), timeout, signal: signal.to_owned() };
        self.driver.stop_task(request).await.map(drop).map_err(|status| status.code())
    }

    async fn signal_task(&mut self, task_id: &str, signal: &str) -> Result<(), Code> {
        let request = SignalTaskRequest { task_id: task_id.to_owned(), signal: signal.to_owned() };
        self.driver.signal_task(request).await.map(drop).map_err(|status| status.code())
    }

    async fn destroy(&mut self, task_id: &str, force: bool) -> Result<(), Code> {
        let request = DestroyTaskRequest { task_id: task_id.to_owned(), force };
        self.driver.destroy_task(request).await.map(drop).map_err(|status| status.code())
    }

    async fn inspect(&mut self, task_id: &str) -> InspectTaskResponse {
        let request = InspectTaskRequest { task_id: task_id.to_owned() };
        self.driver.inspect_task(request).await.expect("it is known").into_inner()
    }

    /// Kills the supervisor of a task, and gives the process of the task itself.
    async fn lose_supervisor(&mut self, task_id: &str) -> i32 {
        let attributes = self.inspect(task_id).await.driver.expect("attributes").attributes;
        let pid = |name: &str| attributes[name].parse::<i32>().expect("a number");
        let supervisor = pid("supervisor_pid");
        kill_process(Pid::from_raw(supervisor).expect("a number"), Signal::KILL).expect("it is ours");
        until("the supervisor ends", || !lives(supervisor)).await;
        pid("pid")
    }

    async fn stats(&mut self, task_id: &str) -> Streaming<TaskStatsResponse> {
        let collection_interval = Some(Duration::from_millis(50).try_into().expect("a span"));
        let request = TaskStatsRequest { task_id: task_id.to_owned(), collection_interval };
        self.driver.task_stats(request).await.expect("it is known").into_inner()
    }

    async fn exec(
        &mut self,
        task_id: &str,
        command: &[&str],
        timeout: Duration,
    ) -> Result<ExecTaskResponse, tonic::Status> {
        let command = command.iter().map(|word| (*word).to_owned()).collect();
        let timeout = Some(timeout.try_into().expect("a span"));
        let request = ExecTaskRequest { task_id: task_id.to_owned(), command, timeout };
        self.driver.exec_task(request).await.map(tonic::Response::into_inner)
    }

    async fn events(&mut self, after: Option<&EventPosition>) -> Streaming<DriverTaskEvent> {
        let mut request = Request::new(TaskEventsRequest {});
        let from = after.map_or(EVENTS_FROM_THE_BEGINNING.to_owned(), ToString::to_string);
        request.metadata_mut().insert(EVENTS_AFTER_METADATA, from.parse().expect("plain text"));
        let response = self.driver.task_events(request).await.expect("a stream");
        assert!(response.metadata().contains_key(EVENTS_STREAM_METADATA), "the stream is named at once");
        response.into_inner()
    }
}

async fn next(events: &mut Streaming<DriverTaskEvent>) -> DriverTaskEvent {
    let event = tokio::time::timeout(LONG, events.message()).await.expect("an event in time");
    event.expect("no error").expect("no end")
}

async fn until(what: &str, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < LONG, "{what}");
        tokio::time::sleep(PAUSE).await;
    }
}

/// Whether such a process lives: a zombie does not.
fn lives(pid: i32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    !stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z'))
}
