//! What a plugin prints after its handshake line (D30, D55, D77).

use std::time::Duration;

use callboard_actors::goplugin::{Output, Printed, Stdio};
use callboard_actors::rpc::Class;
use callboard_proto::goplugin as wire;
use tokio::time::timeout;
use tonic::Status;
use tonic::transport::Server;
use tonic_health::pb::health_server::HealthServer;

use crate::plugin::{LONG, Place, Plugin, Prints, SHORT, connected, heard};

fn piece(channel: i32, text: &str) -> wire::StdioData {
    wire::StdioData { channel, data: text.into() }
}

async fn all(stdio: &mut Stdio) -> Vec<(Output, String)> {
    let mut all = Vec::new();
    while let Some(Printed { output, data }) = stdio.next().await.expect("the stream is whole") {
        all.push((output, String::from_utf8(data).expect("text")));
    }
    all
}

#[tokio::test]
async fn both_outputs_come_in_order_and_an_unknown_channel_is_dropped_and_counted_d55() {
    let pieces = vec![piece(1, "a"), piece(0, "?"), piece(2, "b"), piece(7, "?"), piece(1, "c")];
    let (_place, connection) =
        connected(&Plugin { prints: Prints::Pieces(pieces), ..Plugin::default() }).await;
    let mut stdio = connection.stdio();
    let expected = [(Output::Stdout, "a"), (Output::Stderr, "b"), (Output::Stdout, "c")];
    assert_eq!(all(&mut stdio).await, expected.map(|(output, text)| (output, text.to_owned())));
    assert_eq!((stdio.dropped(), stdio.is_supported()), (2, true));
    assert_eq!(stdio.next().await, Ok(None), "what has ended stays so");
}

#[tokio::test]
async fn an_old_plugin_without_the_stream_is_gone_on_with_d55() {
    let refusing = |status| Plugin { prints: Prints::Fail(status), ..Plugin::default() }.router();
    let without = Server::builder().add_service(HealthServer::new(Plugin::default()));
    for router in [without, refusing(Status::unimplemented("old")), refusing(Status::unavailable("old"))] {
        let place = Place::new();
        place.serve(router);
        let connection = place.dial().await;
        let mut stdio = connection.stdio();
        assert_eq!(stdio.next().await, Ok(None));
        assert!(!stdio.is_supported());
        connection.ping(LONG).await.expect("everything else goes on");
    }
}

#[tokio::test]
async fn another_refusal_is_an_error_and_ends_the_stream_d55() {
    let prints = Prints::Fail(Status::failed_precondition("another client reads already"));
    let (_place, connection) = connected(&Plugin { prints, ..Plugin::default() }).await;
    let mut stdio = connection.stdio();
    let error = stdio.next().await.expect_err("it refuses");
    assert!(error.to_string().starts_with("StreamStdio on unix:/"), "{error}");
    assert_eq!((error.class(), stdio.next().await), (Class::Final, Ok(None)));
}

/// A Go server does not even open the stream before the plugin prints. A reader that also waits for other things opens
/// it once and loses nothing; the other calls continue meanwhile.
#[tokio::test]
async fn a_plugin_that_prints_nothing_delays_no_other_and_is_asked_once_d55() {
    let plugin = Plugin { prints: Prints::NothingYet, ..Plugin::default() };
    let (_place, connection) = connected(&plugin).await;
    let mut stdio = connection.stdio();
    for _ in 0..3 {
        assert!(timeout(SHORT, stdio.next()).await.is_err(), "it says nothing");
        connection.ping(LONG).await.expect("it lives");
    }
    heard(&plugin, "stdio").await;
    let heard = plugin.heard.lock().expect("free").clone();
    assert_eq!(heard.iter().filter(|said| *said == "stdio").count(), 1);
}

#[tokio::test]
async fn a_plugin_that_dies_ends_the_stream_with_an_error_d55() {
    let plugin = Plugin { prints: Prints::NothingYet, ..Plugin::default() };
    let place = Place::new();
    let process = place.serve_apart(plugin.router());
    let mut stdio = place.dial().await.stdio();
    let reading = tokio::spawn(async move { (stdio.next().await, stdio.next().await) });
    heard(&plugin, "stdio").await;
    process.kill();
    let (first, second) = timeout(LONG, reading).await.expect("it ends").expect("it did not panic");
    let error = first.expect_err("it broke off");
    assert_eq!((error.class(), second), (Class::Disconnected, Ok(None)));
    assert_eq!(error.deadline(), Duration::MAX, "a stream has none");
}

#[tokio::test]
async fn a_piece_that_is_too_large_ends_the_stream_with_a_fault_d55() {
    let pieces = vec![piece(1, &"x".repeat(2 << 20))];
    let (_place, connection) =
        connected(&Plugin { prints: Prints::Pieces(pieces), ..Plugin::default() }).await;
    let mut stdio = connection.stdio();
    let error = stdio.next().await.expect_err("it is too large");
    assert_eq!((error.class(), stdio.next().await), (Class::Fault, Ok(None)));
}
