//! Tests the reference plugin in its own process, read as a host reads it, with each of its faults.

use std::fs::{self, File};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use callboard_actors::csi::{
    Answer, CallError, Class, Code, Connection, Limits, Readiness, Rpc, check_same_provider,
};
use callboard_actors::vocabulary::{
    ControllerCapability, GroupControllerCapability, NodeCapability, NodeInfo, PluginCapability, SocketPath,
};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

#[path = "../examples/csi_plugin.rs"]
#[allow(dead_code, reason = "an example has a main function of its own")]
mod csi_plugin;

/// More time than any step of these tests takes on the slowest machine.
const LONG: Duration = Duration::from_secs(30);

#[tokio::test]
async fn a_monolith_serves_all_it_claims_on_one_socket_c173_c181() {
    let place = Place::new();
    let plugin = place.start(&[
        "--controller-capability=CREATE_DELETE_VOLUME",
        "--controller-capability=PUBLISH_UNPUBLISH_VOLUME",
        "--node-capability=STAGE_UNSTAGE_VOLUME",
        "--node-id=node-7",
        "--max-volumes=16",
        "--topology=topology.callboard.example/rack=r1",
    ]);
    let connection = plugin.connection().await;
    let identity = connection.plugin_info(LONG).await.expect("it answers");
    assert_eq!((&*identity.provider, &*identity.version), ("hostpath.callboard.example", "0.1.0"));
    let (offers, _) = connection.plugin_capabilities(LONG).await.expect("it answers");
    assert_eq!(
        offers,
        [PluginCapability::ControllerService, PluginCapability::VolumeAccessibilityConstraints]
    );
    assert_eq!(connection.probe(LONG).await, Ok(Readiness::Ready));
    assert_eq!(
        connection.controller_capabilities(LONG).await,
        Ok(vec![ControllerCapability::CreateDeleteVolume, ControllerCapability::PublishUnpublishVolume])
    );
    assert_eq!(connection.node_capabilities(LONG).await, Ok(vec![NodeCapability::StageUnstageVolume]));
    assert_eq!(
        connection.node_info(LONG).await,
        Ok(NodeInfo {
            node_id: "node-7".to_owned(),
            max_volumes: Some(16),
            topology: Some([("topology.callboard.example/rack".to_owned(), "r1".to_owned())].into()),
        })
    );
}

#[tokio::test]
async fn each_half_leaves_the_calls_of_the_other_unimplemented_c181() {
    for (role, others) in [("controller", Rpc::NodeCapabilities), ("node", Rpc::ControllerCapabilities)] {
        let place = Place::new();
        let plugin = place.start(&["--role", role]);
        let connection = plugin.connection().await;
        let (offers, _) = connection.plugin_capabilities(LONG).await.expect("it answers");
        assert_eq!(offers, [PluginCapability::ControllerService], "both halves say the same (C032)");
        assert_eq!(error_of(&connection, others).await.class(), Class::Unimplemented, "{role}");
    }
}

#[tokio::test]
async fn a_plugin_that_is_all_node_claims_no_controller_c183() {
    let place = Place::new();
    let plugin = place.start(&["--role=node", "--without-controller"]);
    let (offers, _) = plugin.connection().await.plugin_capabilities(LONG).await.expect("it answers");
    assert_eq!(offers, []);
}

#[tokio::test]
async fn a_plugin_that_is_ready_after_a_while_says_not_ready_until_then_c039() {
    let place = Place::new();
    let plugin = place.start(&["--ready-after=600ms"]);
    let connection = plugin.connection().await;
    while connection.probe(LONG).await.expect("not ready is no error") == Readiness::NotReady {
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert!(plugin.born.elapsed() < LONG, "it never becomes ready");
    }
    assert!(plugin.born.elapsed() >= Duration::from_millis(600));
}

#[tokio::test]
async fn a_plugin_that_is_never_ready_still_says_who_it_is_c039() {
    let place = Place::new();
    let plugin = place.start(&["--never-ready"]);
    let connection = plugin.connection().await;
    for _ in 0..3 {
        assert_eq!(connection.probe(LONG).await, Ok(Readiness::NotReady));
    }
    assert!(connection.plugin_info(LONG).await.is_ok());
}

#[tokio::test]
async fn a_plugin_that_hangs_on_one_call_answers_the_others() {
    let place = Place::new();
    let plugin = place.start(&["--hang=GetPluginInfo"]);
    let connection = plugin.connection().await;
    let error = connection.plugin_info(Duration::from_millis(100)).await.expect_err("it hangs");
    assert_eq!(error.class(), Class::DeadlineExceeded);
    assert_eq!(connection.probe(LONG).await, Ok(Readiness::Ready));
}

#[tokio::test]
async fn a_plugin_fails_the_calls_it_is_told_to_with_the_codes_it_is_told_c016() {
    let place = Place::new();
    let plugin = place.start(&["--fail=NodeGetInfo=UNIMPLEMENTED", "--fail=Probe=FAILED_PRECONDITION"]);
    let connection = plugin.connection().await;
    assert_eq!(error_of(&connection, Rpc::NodeInfo).await.code(), Some(Code::Unimplemented));
    assert_eq!(error_of(&connection, Rpc::Probe).await.code(), Some(Code::FailedPrecondition));
}

#[tokio::test]
async fn every_garbled_name_and_map_is_a_fault_of_one_line_c005_c011_c030() {
    for (garbage, wrong) in [
        ("empty-name", "name is empty"),
        ("long-name", "name has 200 bytes, at most 63 are allowed"),
        ("bad-name", "name is \"no domain\\nname\", expected a domain name"),
        ("large-map", "manifest has 1048581 bytes, at most 4096 are allowed"),
    ] {
        let place = Place::new();
        let plugin = place.start(&["--garbage", garbage]);
        let error = error_of(&plugin.connection().await, Rpc::PluginInfo).await;
        let told = error.to_string();
        assert_eq!(error.class(), Class::Fault, "{told}");
        assert!(told.contains(wrong) && told.lines().count() == 1 && told.len() < 400, "{told}");
    }
}

#[tokio::test]
async fn unknown_capabilities_are_left_out_with_a_remark_c026() {
    let place = Place::new();
    let plugin = place.start(&["--garbage=unknown-capabilities", "--node-capability=EXPAND_VOLUME"]);
    let connection = plugin.connection().await;
    let (offers, _) = connection.plugin_capabilities(LONG).await.expect("it answers");
    assert_eq!(offers, [PluginCapability::ControllerService]);
    assert_eq!(connection.controller_capabilities(LONG).await, Ok(vec![]));
    let groups = connection.group_controller_capabilities(LONG).await;
    assert_eq!(groups.map_err(|error| error.class()), Err(Class::Unimplemented), "it has no volumes");
    assert_eq!(connection.node_capabilities(LONG).await, Ok(vec![NodeCapability::ExpandVolume]));
    for (rpc, kind) in [
        (Rpc::PluginCapabilities, "service"),
        (Rpc::ControllerCapabilities, "controller"),
        (Rpc::NodeCapabilities, "node"),
    ] {
        let (_, remarks) = connection.call(rpc, LONG).await.expect("it answers");
        let unknown = "capability of the plugin is unknown to this version and left out: 4711";
        assert_eq!(remarks, [format!("a {kind} {unknown}")]);
    }
}

#[tokio::test]
async fn a_plugin_with_volumes_says_what_it_can_do_with_groups_of_them_c026_c034() {
    let (place, volumes) = (Place::new(), tempfile::tempdir().expect("a directory"));
    let volumes = volumes.path().to_str().expect("a readable path");
    let plugin = place.start(&["--volumes", volumes, "--garbage=unknown-capabilities"]);
    let connection = plugin.connection().await;
    let (offers, _) = connection.plugin_capabilities(LONG).await.expect("it answers");
    assert!(offers.contains(&PluginCapability::GroupControllerService), "{offers:?}");
    let (answer, remarks) =
        connection.call(Rpc::GroupControllerCapabilities, LONG).await.expect("it answers");
    let groups = vec![GroupControllerCapability::CreateDeleteGetVolumeGroupSnapshot];
    assert_eq!(answer, Answer::GroupControllerCapabilities(groups));
    let unknown = "a group controller capability of the plugin is unknown to this version and left out: 4711";
    assert_eq!(remarks, [unknown]);
}

#[tokio::test]
async fn a_plugin_that_changes_its_name_while_it_runs_is_found_out_c031() {
    let place = Place::new();
    let plugin = place.start(&["--rename-after=600ms", "--name=a.example"]);
    let connection = plugin.connection().await;
    let ask = async || connection.plugin_info(LONG).await.expect("it answers");
    while &*ask().await.provider == "a.example" {
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert!(plugin.born.elapsed() < LONG, "it keeps its name");
    }
    assert!(plugin.born.elapsed() >= Duration::from_millis(600));
    assert_eq!(&*ask().await.provider, "renamed.a.example");
}

#[tokio::test]
async fn a_plugin_that_comes_back_under_another_name_is_found_out_c031() {
    let place = Place::new();
    let mark = format!("--rename-on-restart={}", place.file("mark").display());
    let first = place.start(&[&mark]);
    let before = first.connection().await.plugin_info(LONG).await.expect("it answers");
    first.kill().await;
    let second = place.start(&[&mark]);
    let now = second.connection().await.plugin_info(LONG).await.expect("it answers");
    assert_eq!(check_same_provider(&before, &now).expect_err("renamed").rule, "C031");
}

#[tokio::test]
async fn a_plugin_crashes_when_told_to_and_the_next_takes_its_dead_sockets_place_sec_02() {
    let place = Place::new();
    let plugin = place.start(&["--exit-after=600ms", "--exit-code=3"]);
    let connection = plugin.connection().await;
    let born = plugin.born;
    assert_eq!(plugin.end().await.code(), Some(3));
    assert!(born.elapsed() >= Duration::from_millis(600));
    assert_eq!(error_of(&connection, Rpc::Probe).await.class(), Class::Disconnected);
    assert_eq!(place.dial().await.expect_err("dead").class(), Class::Refused, "its socket is left behind");
    assert_eq!(place.start(&[]).connection().await.probe(LONG).await, Ok(Readiness::Ready));
}

#[tokio::test]
async fn a_plugin_killed_during_a_call_is_disconnected_at_once_and_then_refused() {
    let place = Place::new();
    let plugin = place.start(&["--hang=Probe"]);
    let connection = plugin.connection().await;
    connection.plugin_info(LONG).await.expect("it answers");
    let call = tokio::spawn({
        let connection = connection.clone();
        async move { connection.probe(LONG * 2).await }
    });
    assert_eq!(error_within(&connection, Duration::from_millis(200)).await, Class::DeadlineExceeded);
    let began = Instant::now();
    plugin.kill().await;
    assert_eq!(call.await.expect("no panic").expect_err("killed").class(), Class::Disconnected);
    assert!(began.elapsed() < LONG);
    assert_eq!(place.dial().await.expect_err("dead").class(), Class::Refused);
}

#[tokio::test]
async fn sigterm_ends_it_in_order_and_takes_its_socket_away() {
    let place = Place::new();
    let plugin = place.start(&[]);
    plugin.connection().await.probe(LONG).await.expect("ready");
    plugin.signal(Signal::TERM);
    assert_eq!(plugin.end().await.code(), Some(0));
    assert_eq!(place.dial().await.expect_err("gone").class(), Class::Absent);
}

#[tokio::test]
async fn sigint_ends_it_even_when_a_call_hangs() {
    let place = Place::new();
    let plugin = place.start(&["--hang=Probe"]);
    let connection = plugin.connection().await;
    let call = tokio::spawn({
        let connection = connection.clone();
        async move { connection.probe(LONG * 2).await }
    });
    assert_eq!(error_within(&connection, Duration::from_millis(200)).await, Class::DeadlineExceeded);
    plugin.signal(Signal::INT);
    assert_eq!(plugin.end().await.code(), Some(0));
    assert_eq!(call.await.expect("no panic").expect_err("cut off").class(), Class::Disconnected);
    assert_eq!(place.dial().await.expect_err("gone").class(), Class::Absent);
}

#[tokio::test]
async fn a_plugin_that_ignores_sigterm_goes_on_until_it_is_killed() {
    let place = Place::new();
    let plugin = place.start(&["--ignore-sigterm"]);
    let connection = plugin.connection().await;
    plugin.signal(Signal::TERM);
    plugin.says("signal ignored").await;
    assert_eq!(connection.probe(LONG).await, Ok(Readiness::Ready));
    plugin.kill().await;
}

#[tokio::test]
async fn a_plugin_that_listens_late_is_absent_until_then_and_can_be_stopped_before() {
    let place = Place::new();
    let late = place.start(&["--listen-after=600ms"]);
    let connection = late.connection().await;
    assert!(late.born.elapsed() >= Duration::from_millis(600));
    assert_eq!(connection.probe(LONG).await, Ok(Readiness::Ready));

    let place = Place::new();
    let never = place.start(&["--listen-after=10h"]);
    never.says("listening later").await;
    never.signal(Signal::TERM);
    assert_eq!(never.end().await.code(), Some(0));
    assert_eq!(place.dial().await.expect_err("it never listened").class(), Class::Absent);
}

#[tokio::test]
async fn a_live_socket_is_refused_and_left_to_its_owner_sec_02() {
    let place = Place::new();
    let owner = place.start(&[]);
    let connection = owner.connection().await;
    let second = place.start(&[]);
    second.says("another process listens there").await;
    assert_eq!(second.end().await.code(), Some(1));
    assert_eq!(connection.probe(LONG).await, Ok(Readiness::Ready));
    assert!(place.dial().await.is_ok());
}

#[tokio::test]
async fn what_is_no_socket_is_never_removed() {
    let place = Place::new();
    fs::write(place.socket.as_path(), "precious").expect("writable");
    let plugin = place.start(&[]);
    plugin.says("it exists and is not a socket").await;
    assert_eq!(plugin.end().await.code(), Some(1));
    assert_eq!(fs::read_to_string(place.socket.as_path()).expect("still there"), "precious");
}

#[tokio::test]
async fn it_never_writes_to_standard_output() {
    let place = Place::new();
    drop(UnixListener::bind(place.socket.as_path()).expect("free"));
    let plugin = place.start(&[]);
    plugin.connection().await.probe(LONG).await.expect("ready");
    plugin.signal(Signal::TERM);
    plugin.end().await;
    assert_eq!(fs::read_to_string(place.file("stdout")).expect("written by the plugin"), "");
    assert!(fs::read_to_string(place.file("stderr")).expect("written by the plugin").contains("stopped"));
}

#[test]
fn arguments_that_make_no_sense_are_refused_with_what_was_expected() {
    for (arguments, wrong) in [
        (["--endpoint=tcp://host:1", ""], "is no Unix socket"),
        (["--endpoint=csi.sock", ""], "is relative"),
        (["--endpoint=/tmp/a.sock", "--role=all"], "controller, node, monolith"),
        (["--endpoint=/tmp/a.sock", "--hang=Sleep"], "GetPluginInfo, GetPluginCapabilities, Probe"),
        (["--endpoint=/tmp/a.sock", "--fail=Probe=BAD"], "FAILED_PRECONDITION"),
        (["--endpoint=/tmp/a.sock", "--ready-after=5"], "1500ms, 2s, 5m or 1h"),
        (["--endpoint=/tmp/a.sock", "--topology=rack"], "expected KEY=VALUE"),
        (["--endpoint=/tmp/a.sock", "--exit-code=3"], "--exit-after"),
    ] {
        let given = arguments.into_iter().filter(|argument| !argument.is_empty());
        let output = Command::new(env!("CARGO_BIN_EXE_callboard"))
            .args(["plugin", "hostpath"])
            .args(given)
            .output()
            .expect("it starts");
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains(wrong), "{told}");
    }
}

#[tokio::test]
async fn the_plugin_in_forty_lines_is_a_plugin() {
    let place = Place::new();
    let endpoint = place.socket.to_endpoint();
    tokio::spawn(async move { csi_plugin::serve(&endpoint).await.expect("it serves") });
    let connection = place.connection().await;
    let identity = connection.plugin_info(LONG).await.expect("it answers");
    assert_eq!(&*identity.provider, "forty-lines.callboard.example");
    assert_eq!(connection.probe(LONG).await, Ok(Readiness::Ready));
    assert_eq!(connection.node_capabilities(LONG).await, Ok(vec![]));
    assert_eq!(error_of(&connection, Rpc::NodeInfo).await.class(), Class::Unimplemented);
}

async fn error_of(connection: &Connection, rpc: Rpc) -> CallError {
    connection.call(rpc, LONG).await.expect_err("the plugin says no")
}

/// Probes a plugin that hangs, until the deadline. Then the calls made before this one have reached the plugin.
async fn error_within(connection: &Connection, deadline: Duration) -> Class {
    connection.probe(deadline).await.expect_err("it hangs").class()
}

/// A directory for plugins, one at a time.
struct Place {
    directory: TempDir,
    socket: SocketPath,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("csi.sock");
        Self { socket: SocketPath::new(path.to_str().expect("readable")).expect("short"), directory }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn start(&self, arguments: &[&str]) -> Process<'_> {
        let output = |name| Stdio::from(File::create(self.file(name)).expect("writable"));
        let born = Instant::now();
        let child = Command::new(env!("CARGO_BIN_EXE_callboard"))
            .args(["plugin", "hostpath"])
            .args(arguments)
            .env("CSI_ENDPOINT", self.socket.to_endpoint())
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .stdout(output("stdout"))
            .stderr(output("stderr"))
            .spawn()
            .expect("it starts");
        Process { child, place: self, born }
    }

    async fn dial(&self) -> Result<Connection, CallError> {
        Connection::dial(&self.socket, Limits::default()).await
    }

    /// Dials until there is a listener.
    async fn connection(&self) -> Connection {
        let began = Instant::now();
        loop {
            match self.dial().await {
                Ok(connection) => return connection,
                Err(error) => assert!(error.is_transient() && began.elapsed() < LONG, "{error}"),
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// A plugin process; it is killed when it is dropped.
struct Process<'a> {
    child: Child,
    place: &'a Place,
    /// The time just before it was started: no clock of its own started earlier.
    born: Instant,
}

impl Process<'_> {
    async fn connection(&self) -> Connection {
        self.place.connection().await
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it is ours");
    }

    async fn kill(self) {
        self.signal(Signal::KILL);
        self.end().await;
    }

    /// Waits for its end.
    async fn end(mut self) -> ExitStatus {
        loop {
            if let Some(status) = self.child.try_wait().expect("it is ours") {
                return status;
            }
            assert!(self.born.elapsed() < LONG * 2, "it does not end");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Waits until its standard error contains these words.
    async fn says(&self, words: &str) {
        while !fs::read_to_string(self.place.file("stderr")).expect("readable").contains(words) {
            assert!(self.born.elapsed() < LONG, "it never says {words:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

impl Drop for Process<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
