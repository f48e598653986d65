//! The polite call that asks a plugin to end itself (D51, D60, D65).

use std::time::Instant;

use callboard_actors::goplugin::ShutdownAnswer;
use callboard_actors::rpc::Class;
use tonic::Status;

use crate::plugin::{LONG, Place, Plugin, Reply, SHORT, connected, heard};

#[tokio::test]
async fn a_plugin_answers_its_end_d51() {
    let plugin = Plugin::default();
    let (_place, connection) = connected(&plugin).await;
    assert_eq!(connection.shutdown(LONG).await, Ok(ShutdownAnswer::Answered));
    assert_eq!(*plugin.heard.lock().expect("free"), ["shutdown"]);
}

#[tokio::test]
async fn one_that_says_it_is_unavailable_or_that_the_call_is_cancelled_has_obeyed_d51() {
    for status in [Status::unavailable("transport is closing"), Status::cancelled("server stopped")] {
        let (_place, connection) =
            connected(&Plugin { shutdown: Reply::Fail(status), ..Plugin::default() }).await;
        let shutdown = connection.shutdown(LONG).await.expect("it obeys");
        assert!(matches!(shutdown, ShutdownAnswer::HungUp { .. }), "{shutdown:?}");
    }
}

#[tokio::test]
async fn one_that_dies_within_the_call_has_obeyed_too_d51() {
    let plugin = Plugin { shutdown: Reply::Hang, ..Plugin::default() };
    let place = Place::new();
    let process = place.serve_apart(plugin.router());
    let connection = place.dial().await;
    let asked = tokio::spawn({
        let connection = connection.clone();
        async move { connection.shutdown(LONG).await }
    });
    heard(&plugin, "shutdown").await;
    process.kill();
    let shutdown = asked.await.expect("it did not panic").expect("it obeys");
    assert!(matches!(shutdown, ShutdownAnswer::HungUp { .. }), "{shutdown:?}");
    let again = connection.shutdown(LONG).await.expect("asking again is harmless");
    assert!(matches!(again, ShutdownAnswer::HungUp { .. }), "{again:?}");
}

#[tokio::test]
async fn a_call_that_never_answers_ends_with_our_own_deadline_d65() {
    let (_place, connection) = connected(&Plugin { shutdown: Reply::Hang, ..Plugin::default() }).await;
    let began = Instant::now();
    let error = connection.shutdown(SHORT).await.expect_err("it never answers");
    assert_eq!((error.class(), error.deadline()), (Class::DeadlineExceeded, SHORT));
    assert!(began.elapsed() < LONG / 4);
    connection.ping(LONG).await.expect("it lives on, to be ended by other means");
}
