//! Tests commands beside a task.

use std::time::Duration;

use callboard_proto::drivers::exec_task_streaming_request::Setup;
use callboard_proto::drivers::*;
use tonic::Code;

use crate::rig::{LONG, Place, lives, until};

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
async fn a_command_can_be_spoken_with() {
    let place = Place::new();
    let mut plugin = place.start(&[]).await;
    plugin.start(place.shell("t1", "sleep 1000")).await.expect("it starts");
    let setup = ExecTaskStreamingRequest {
        setup: Some(Setup { task_id: "t1".to_owned(), command: vec!["/bin/cat".to_owned()], tty: false }),
        ..Default::default()
    };
    let say = |data: &[u8], close| ExecTaskStreamingRequest {
        stdin: Some(ExecTaskStreamingIoOperation { data: data.to_vec(), close }),
        ..Default::default()
    };
    let words = tokio_stream::iter([
        setup,
        say(b"one ", false),
        ExecTaskStreamingRequest::default(),
        say(b"two", false),
        say(b"", true),
    ]);
    let mut answers = plugin.driver.exec_task_streaming(words).await.expect("a stream").into_inner();
    let (mut heard, mut ended) = (Vec::new(), None);
    while let Some(answer) = answers.message().await.expect("no error") {
        heard.extend(answer.stdout.map(|operation| operation.data).unwrap_or_default());
        ended = answer.exited.then_some(answer.result).flatten().or(ended);
    }
    assert_eq!((&*heard, ended.expect("it ended").exit_code), (&b"one two"[..], 0));
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
