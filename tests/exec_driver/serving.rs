//! Tests how the driver itself starts, serves, misbehaves on request, and ends.

use std::fs::{self};
use std::io::{BufRead, BufReader, Read};
use std::process::Command;
use std::time::Duration;

use callboard::plugin::Cookie;
use callboard_proto::base::base_plugin_client::BasePluginClient;
use callboard_proto::base::{ConfigSchemaRequest, PluginInfoRequest, PluginType, SetConfigRequest};
use callboard_proto::drivers::fingerprint_response::HealthState;
use callboard_proto::drivers::*;
use callboard_proto::goplugin::Empty;
use callboard_proto::goplugin::grpc_controller_client::GrpcControllerClient;
use callboard_proto::goplugin::grpc_stdio_client::GrpcStdioClient;
use rustix::process::Signal;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use crate::rig::{LONG, Place, next, until};

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
        ("callboard_exec", PluginType::Driver as i32, &["v0.1.0".to_owned()][..])
    );
    GrpcStdioClient::new(plugin.channel.clone()).stream_stdio(()).await.expect("it listens");
    plugin.signal(Signal::INT);
    let capabilities =
        plugin.driver.capabilities(CapabilitiesRequest {}).await.expect("an interrupt is ignored");
    let capabilities = capabilities.into_inner().capabilities.expect("some");
    assert!(capabilities.send_signals && capabilities.exec);
    assert_eq!(capabilities.fs_isolation(), driver_capabilities::FsIsolation::None);
    let unshare = Command::new("unshare").args(["--mount", "true"]).output();
    let mounts = match unshare.is_ok_and(|tried| tried.status.success()) {
        true => driver_capabilities::MountConfigs::UnknownMounts,
        false => driver_capabilities::MountConfigs::NoMounts,
    };
    assert_eq!(capabilities.mount_configs(), mounts, "it mounts where it may");
    let mut reports = plugin.driver.fingerprint(FingerprintRequest {}).await.expect("a stream").into_inner();
    let report = reports.message().await.expect("a report").expect("a report");
    assert_eq!(report.health, HealthState::Healthy as i32);
    assert!(
        report.attributes.contains_key("driver.callboard_exec")
            && report.attributes.contains_key("driver.callboard_exec.version")
    );
    let says_so = report.attributes["driver.callboard_exec.mounts"].value.clone();
    let is_permitted = mounts == driver_capabilities::MountConfigs::UnknownMounts;
    assert_eq!(says_so, Some(callboard_proto::structs::attribute::Value::BoolVal(is_permitted)));
    // The answer may be lost with the connection.
    let _ = GrpcControllerClient::new(plugin.channel.clone()).shutdown(Empty {}).await;
    assert_eq!(reports.message().await.expect("the stream ends in order"), None);
    assert_eq!(plugin.end().await.code(), Some(0));
    assert!(fs::read_dir(place.path("sockets")).expect("there").next().is_none(), "no socket is left");
}

/// Nomad silently prefers an external driver to its own driver of the same name: jobs for the isolated driver would run unisolated.
#[tokio::test]
async fn the_name_of_a_driver_built_into_nomad_is_taken_only_on_purpose_t171_th091() {
    let place = Place::new();
    for name in ["exec", "raw_exec", "java", "docker", "qemu", "mock_driver", "mock"] {
        let mut refused = place.spawn(&["--name", name]);
        assert_eq!(refused.0.wait().expect("our child").code(), Some(1), "{name}");
        let told = place.read("stderr");
        assert!(told.contains(&format!("{name:?}")) && told.contains("--allow-builtin-name"), "{told}");
    }
    let plugin = place.start(&["--name=exec", "--allow-builtin-name"]).await;
    let info = BasePluginClient::new(plugin.channel.clone()).plugin_info(PluginInfoRequest {}).await;
    assert_eq!(info.expect("it answers").into_inner().name, "exec");
}

#[tokio::test]
async fn what_an_operator_writes_of_the_driver_counts_t145() {
    let place = Place::new();
    let mut plugin = place.start(&[]).await;
    let mut base = BasePluginClient::new(plugin.channel.clone());
    let spec = base.config_schema(ConfigSchemaRequest {}).await.expect("it answers").into_inner().spec;
    assert!(format!("{spec:?}").contains("stop_signal"));
    let mut set = async |written: serde_json::Value| {
        let msgpack_config = rmp_serde::to_vec_named(&written).expect("it can be written");
        base.set_config(SetConfigRequest { msgpack_config, ..Default::default() }).await.map(drop)
    };
    let wrong =
        set(serde_json::json!({ "stop_signal": "SIGNAL" })).await.expect_err("there is no such signal");
    assert_eq!(wrong.code(), Code::InvalidArgument);
    let script = |id: &str| {
        format!(
            "trap 'exit 2' INT; trap 'exit 15' TERM; echo up > {}; while :; do sleep 0.02; done",
            place.path(id).display()
        )
    };
    plugin.start(place.shell("t1", &script("up1"))).await.expect("it starts");
    place.until("up1", "up\n").await;
    plugin.stop("t1", LONG, "").await.expect("it ends");
    assert_eq!(plugin.wait("t1").await.0, 2, "as by the drivers that are built into Nomad");
    set(serde_json::json!({ "stop_signal": "SIGTERM" })).await.expect("it makes sense");
    plugin.start(place.shell("t2", &script("up2"))).await.expect("it starts");
    place.until("up2", "up\n").await;
    plugin.stop("t2", LONG, "").await.expect("it ends");
    assert_eq!(plugin.wait("t2").await.0, 15);
    set(serde_json::json!({ "enabled": false })).await.expect("it makes sense");
    let mut reports = plugin.driver.fingerprint(FingerprintRequest {}).await.expect("a stream").into_inner();
    let report = reports.message().await.expect("a report").expect("a report");
    assert_eq!((report.health, report.attributes.len()), (HealthState::Undetected as i32, 0));
    let refused = plugin.start(place.shell("t3", "exit 0")).await.expect_err("it is disabled");
    assert!(refused.message().contains("enabled = true"), "{refused}");
}

/// The bytes of a client that names the server by the path of its socket: the library of our other clients would not send
/// them.
#[tokio::test]
async fn a_client_that_names_the_server_by_its_socket_is_answered_d115() {
    let place = Place::new();
    let plugin = place.start(&[]).await;
    let path = plugin.socket.display().to_string();
    for authority in [path.clone(), path.replace('/', "%2F"), format!("unix:{path}")] {
        let text = |text: &str| [&[u8::try_from(text.len()).expect("short")], text.as_bytes()].concat();
        let field = |name: &str, value: &str| [vec![0], text(name), text(value)].concat();
        let fields = [
            field(":method", "POST"),
            field(":scheme", "http"),
            field(":path", "/grpc.health.v1.Health/Check"),
            [vec![0x41], text(&authority)].concat(),
            field("content-type", "application/grpc"),
            field("te", "trailers"),
        ];
        let frame = |kind, flags, stream, payload: &[u8]| {
            let length = u32::try_from(payload.len()).expect("short").to_be_bytes();
            [&length[1..], &[kind, flags, 0, 0, 0, stream], payload].concat()
        };
        let body = [&[0, 0, 0, 0, 8, 0x0a, 6], &b"plugin"[..]].concat();
        let said = [
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
            frame(4, 0, 0, &[]),
            frame(1, 4, 1, &fields.concat()),
            frame(0, 1, 1, &body),
        ];
        let mut stream = UnixStream::connect(&plugin.socket).await.expect("it listens");
        stream.write_all(&said.concat()).await.expect("it reads");
        assert_eq!(first_answer(&mut stream).await, 1, "headers, and no end of the stream: {authority}");
    }
}

/// The type of the first frame of the first stream.
async fn first_answer(stream: &mut UnixStream) -> u8 {
    loop {
        let mut head = [0; 9];
        let read = tokio::time::timeout(LONG, stream.read_exact(&mut head));
        read.await.expect("in time").expect("it goes on");
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        stream.read_exact(&mut payload).await.expect("it goes on");
        if head[8] == 1 {
            return head[3];
        }
    }
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
        (&["--no-listener"], "-unused|grpc|\n"),
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
