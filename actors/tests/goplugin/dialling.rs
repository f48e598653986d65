//! Connecting: why it cannot be done is known at once and told apart (D32, D40 to D42).

use std::fs;
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

use callboard_actors::goplugin::{Connection, Limits, PluginEndpoint, Step};
use callboard_actors::rpc::{Cause, Class};

use crate::plugin::{LONG, Place, Plugin, SHORT, serve_on_port};

#[tokio::test]
async fn a_plugin_is_reached_over_a_unix_socket_and_over_a_port_d25_d40() {
    let plugin = Plugin::default();
    let place = Place::new();
    place.serve(plugin.router());
    let on_port = serve_on_port(plugin.router()).await;
    for endpoint in [&place.endpoint, &on_port] {
        let connection = Connection::dial(endpoint, Limits::default()).await.expect("it listens");
        connection.ping(LONG).await.expect("it answers");
        assert_eq!(connection.endpoint(), endpoint);
    }
}

#[tokio::test]
async fn right_line_and_no_listener_is_refused_at_once_d42() {
    let place = Place::new();
    assert_eq!(place.refused().await.class(), Class::Absent);
    drop(UnixListener::bind(place.path()).expect("free"));
    let began = Instant::now();
    let error = place.refused().await;
    assert_eq!((error.class(), error.step(), error.is_transient()), (Class::Refused, Step::Dial, true));
    let told = error.to_string();
    assert!(told.starts_with("Dial on unix:/") && told.contains("no process listens"), "{told}");

    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let endpoint = PluginEndpoint::Tcp(listener.local_addr().expect("bound"));
    drop(listener);
    let error = Connection::dial(&endpoint, Limits::default()).await.expect_err("no process listens");
    assert_eq!(error.cause(), &Cause::Refused);
    assert!(error.to_string().starts_with("Dial on tcp:127.0.0.1:"), "{error}");
    assert!(began.elapsed() < Duration::from_secs(4));
}

#[tokio::test]
async fn what_is_no_socket_is_told_and_a_path_that_none_can_have_too_d25() {
    let place = Place::new();
    fs::write(place.path(), "").expect("writable");
    assert_eq!(place.refused().await.cause(), &Cause::NotASocket { what: "a regular file" });
    for path in ["relative", "/a/../b", ""] {
        let endpoint = PluginEndpoint::Unix(path.into());
        let error = Connection::dial(&endpoint, Limits::default()).await.expect_err(path);
        assert_eq!((error.class(), error.is_transient()), (Class::NotASocket, false), "{path}");
    }
}

/// Connecting needs no answer of the plugin; a plugin that accepts and does not answer is detected by the first call.
#[tokio::test]
async fn a_plugin_that_accepts_and_says_nothing_is_found_out_by_the_deadline_of_a_call_d50() {
    let place = Place::new();
    let _listener = UnixListener::bind(place.path()).expect("free");
    let connection = place.dial().await;
    let error = connection.ping(SHORT).await.expect_err("no answer comes");
    assert_eq!((error.class(), error.is_transient()), (Class::DeadlineExceeded, true));
}

#[tokio::test]
async fn a_connection_ends_with_its_process_and_never_turns_to_another_one() {
    let place = Place::new();
    let first = place.serve_apart(Plugin::default().router());
    let connection = place.dial().await;
    connection.ping(LONG).await.expect("it answers");
    first.kill();
    fs::remove_file(place.path()).expect("it is there");
    place.serve(Plugin::default().router());
    place.dial().await.ping(LONG).await.expect("the new one answers who dials anew");
    for _ in 0..3 {
        let error = connection.ping(LONG).await.expect_err("the first one is gone");
        assert_eq!((error.class(), error.is_transient()), (Class::Disconnected, true), "{error}");
    }
}
