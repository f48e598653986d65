//! Plugins that send frames without end are cut off; plugins that answer as fast as they can are not.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread::{self, JoinHandle};

use callboard_actors::csi::{Class, Rpc};

use crate::plugin::{LONG, Place, Plugin};

/// HTTP/2 frames of the server without any call in flight: type, payload.
const FLOODS: [(&str, u8, &[u8]); 4] = [
    ("PING", 6, &[0; 8]),
    ("WINDOW_UPDATE", 8, &[0, 0, 0, 1]),
    ("SETTINGS", 4, &[]),
    ("unknown", 0xf0, &[0; 100]),
];

/// Accepts one connection, and sends these frames until it is closed. Returns how many it sent.
fn flood(place: &Place, kind: u8, payload: &'static [u8]) -> JoinHandle<usize> {
    let listener = UnixListener::bind(place.socket.as_path()).expect("the path is free");
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client connects");
        let mut reading = stream.try_clone().expect("a descriptor");
        // The bytes that it receives, acknowledgements included, are read and dropped.
        thread::spawn(move || while reading.read(&mut [0; 4_096]).is_ok_and(|bytes| bytes > 0) {});
        stream.write_all(&frame(4, &[])).expect("it is connected");
        let frames = frame(kind, payload).repeat(16);
        (0..).find(|_| write(&mut stream, &frames).is_err()).expect("it ends") * 16
    })
}

fn write(stream: &mut UnixStream, bytes: &[u8]) -> std::io::Result<()> {
    stream.write_all(bytes)
}

fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).expect("a short payload");
    [&[0, 0, length, kind, 0, 0, 0, 0, 0], payload].concat()
}

#[tokio::test]
async fn a_plugin_that_floods_its_connection_is_cut_off_and_the_reason_names_the_frames_f17() {
    for (name, kind, payload) in FLOODS {
        let place = Place::new();
        let flooding = flood(&place, kind, payload);
        let error = place.dial().await.call(Rpc::Probe, LONG).await.expect_err("it never answers");
        assert_eq!(error.class(), Class::Disconnected, "{error}");
        let told = error.to_string();
        assert!(
            told.contains("floods the connection") && told.contains(&format!("last one {name}")),
            "{told}"
        );
        let sent = tokio::task::spawn_blocking(|| flooding.join()).await.expect("it ends").expect("no panic");
        assert!(sent >= 1_000, "{sent} frames of {name} are within the budget");
    }
}

#[tokio::test]
async fn a_call_that_begins_after_the_cut_gives_the_same_reason_f17() {
    for (name, kind, payload) in FLOODS {
        let place = Place::new();
        let flooding = flood(&place, kind, payload);
        let connection = place.dial().await;
        tokio::task::spawn_blocking(|| flooding.join()).await.expect("it ends").expect("no panic");
        let error = connection.call(Rpc::Probe, LONG).await.expect_err("it was cut off");
        assert_eq!(error.class(), Class::Disconnected, "{error}");
        let told = error.to_string();
        let reason = "the connection was cut off: the plugin floods the connection";
        assert!(told.contains(reason) && told.contains(&format!("last one {name}")), "{told}");
        assert!(!told.contains("died"), "{told}");
    }
}

#[tokio::test]
async fn a_plugin_that_answers_thousands_of_calls_is_within_its_budget() {
    let place = Place::new();
    let _witness = place.serve(Plugin::default());
    let connection = place.dial().await;
    for _ in 0..100 {
        let calls = (0..30).map(|_| connection.call(Rpc::Probe, LONG));
        for answer in futures_util::future::join_all(calls).await {
            answer.expect("it answers");
        }
    }
}
