//! Tests how calls fail, and that each failure is distinguished from the others.

use std::time::{Duration, Instant};

use callboard_actors::csi::{Cause, Class, Code, Readiness};
use tonic::Status;

use crate::plugin::{LONG, Place, Plugin, Reply, named};

#[tokio::test]
async fn every_code_a_plugin_can_answer_with_is_told_by_name_and_class_c016_c022() {
    for (number, code) in (1..).zip(Code::ALL.into_iter().skip(1)) {
        let place = Place::new();
        let status = Status::new(tonic::Code::from(number), format!("said with {number}"));
        place.serve(Plugin { probe: Reply::Fail(status), ..Plugin::default() });
        let error = place.dial().await.probe(LONG).await.expect_err("the plugin says no");
        assert_eq!((error.code(), error.class()), (Some(code), code.class()));
        let told = error.to_string();
        assert!(told.contains(&format!("{code} \"said with {number}\"; {}", code.hint())), "{told}");
    }
}

#[tokio::test]
async fn success_without_an_answer_is_a_fault_c011_c016() {
    let place = Place::new();
    let status = Status::new(tonic::Code::Ok, "fine");
    place.serve(Plugin { probe: Reply::Fail(status), ..Plugin::default() });
    let error = place.dial().await.probe(LONG).await.expect_err("there is no answer");
    assert_eq!(error.class(), Class::Fault, "{error}");
}

#[tokio::test(start_paused = true)]
async fn our_own_deadline_is_told_apart_from_the_plugins_log_05() {
    let place = Place::new();
    let info = Reply::Fail(Status::cancelled("Timeout expired"));
    let offers = Reply::Fail(Status::deadline_exceeded("backend"));
    place.serve(Plugin { probe: Reply::Hang, info, offers, ..Plugin::default() });
    let connection = place.dial().await;

    let began = tokio::time::Instant::now();
    let ours = connection.probe(Duration::from_secs(30)).await.expect_err("it hangs");
    assert_eq!((ours.class(), ours.cause()), (Class::DeadlineExceeded, &Cause::DeadlineExceeded));
    assert!(ours.to_string().contains("own deadline of 30s"), "{ours}");
    assert!(began.elapsed() < Duration::from_secs(31));

    let theirs = connection.plugin_info(LONG).await.expect_err("cancelled");
    assert_eq!((theirs.class(), theirs.code()), (Class::Unclear, Some(Code::Cancelled)));
    let backend = connection.plugin_capabilities(LONG).await.expect_err("too slow");
    assert_eq!((backend.class(), backend.code()), (Class::Unclear, Some(Code::DeadlineExceeded)));
}

#[tokio::test]
async fn a_call_that_is_given_up_holds_nothing_up_c015() {
    let place = Place::new();
    place.serve(Plugin { info: Reply::Hang, ..Plugin::default() });
    let connection = place.dial().await;
    for _ in 0..300 {
        connection.plugin_info(Duration::from_millis(1)).await.expect_err("it hangs");
    }
    assert_eq!(connection.probe(LONG).await, Ok(Readiness::Ready));
}

#[tokio::test]
async fn a_plugin_that_is_killed_during_a_call_is_disconnected_at_once() {
    let place = Place::new();
    let plugin = place.serve_apart(Plugin { probe: Reply::Hang, ..Plugin::default() });
    let connection = place.dial().await;
    let call = tokio::spawn({
        let connection = connection.clone();
        async move { connection.probe(LONG).await }
    });
    plugin.witness.call().await;

    let began = Instant::now();
    plugin.kill();
    let error = call.await.expect("no panic").expect_err("it was killed");
    assert_eq!(error.class(), Class::Disconnected, "{error}");
    assert!(error.is_transient() && began.elapsed() < Duration::from_secs(10));
    assert!(error.to_string().contains("disconnected"), "{error}");
}

#[tokio::test]
async fn a_connection_never_takes_the_next_process_for_the_last_one_i3() {
    let place = Place::new();
    let first = place.serve_apart(Plugin { info: Reply::Answer(named("a.example")), ..Plugin::default() });
    let connection = place.dial().await;
    connection.plugin_info(LONG).await.expect("it lives");
    first.kill();
    std::fs::remove_file(place.socket.as_path()).expect("the dead socket is there");
    place.serve(Plugin { info: Reply::Answer(named("b.example")), ..Plugin::default() });

    for _ in 0..3 {
        let error = connection.plugin_info(LONG).await.expect_err("that process is gone");
        assert_eq!(error.class(), Class::Disconnected, "{error}");
    }
    let redialled = place.dial().await;
    assert_ne!(redialled.socket_file(), connection.socket_file());
    assert_eq!(&*redialled.plugin_info(LONG).await.expect("it lives").provider, "b.example");
}

#[tokio::test]
async fn a_handler_that_panics_fails_its_call_only() {
    let place = Place::new();
    let plugin = place.serve_apart(Plugin { node: Reply::Panic, ..Plugin::default() });
    let connection = place.dial().await;
    let error = connection.node_capabilities(LONG).await.expect_err("it panics");
    assert!(error.is_transient(), "{error}");
    assert_eq!(error.class(), Class::Disconnected, "{error}");
    plugin.kill();
}

#[tokio::test]
async fn a_plugin_cannot_flood_a_log_with_its_message_c021() {
    let place = Place::new();
    let probe = Reply::Fail(Status::internal(format!("bad\n{}", "x".repeat(4000))));
    place.serve(Plugin { probe, ..Plugin::default() });
    let error = place.dial().await.probe(LONG).await.expect_err("it fails");
    let told = error.to_string();
    assert!(told.contains("INTERNAL \"bad\\nxxx") && told.contains("(4004 bytes in all)"), "{told}");
    assert!(told.len() < 900, "{told}");
}

#[tokio::test]
async fn a_status_with_the_whole_output_of_a_command_keeps_its_code_c011_c041() {
    let place = Place::new();
    let probe = Reply::Fail(Status::failed_precondition("no such module\n".repeat(8_000)));
    place.serve(Plugin { probe, ..Plugin::default() });
    let connection = place.dial().await;
    let error = connection.probe(LONG).await.expect_err("it fails");
    assert_eq!(error.code(), Some(Code::FailedPrecondition), "{error}");
    assert!(error.to_string().len() < 900, "{error}");
}

#[tokio::test]
async fn a_status_of_one_mebibyte_is_an_error_like_any_other_c011() {
    let place = Place::new();
    let probe = Reply::Fail(Status::internal("x".repeat(1 << 20)));
    place.serve(Plugin { probe, ..Plugin::default() });
    let connection = place.dial().await;
    let error = connection.probe(LONG).await.expect_err("it fails");
    assert!(error.is_transient() && error.to_string().len() < 900, "{error}");
}
