//! Task drivers under a host, and plugins without a host.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use callboard::host::Host;
use callboard_actors::driver::{DriverHealth, DriverReport, DriverSpec};
use callboard_actors::drivers::{AddDriver, Added, Drivers, DriversNews, DriversView, RemoveDriver};
use callboard_actors::goplugin::HandshakeTerms;
use callboard_actors::process::{Executable, Lifetime, ProcessSpec};
use callboard_actors::shell::{Address, FeedItem, Subscription};
use callboard_actors::vocabulary::DriverName;
use tonic::transport::{Channel, Endpoint};

/// The program with the reference driver as a subcommand.
pub(crate) const CALLBOARD: &str = env!("CARGO_BIN_EXE_callboard");
/// The capacity of the notification queue.
const UNREAD_MAX: usize = 16_384;
/// A timeout far longer than any step.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(120);

pub(crate) fn sockets(place: &Path) -> PathBuf {
    let sockets = place.join("sockets");
    std::fs::create_dir_all(&sockets).expect("a directory can be made");
    sockets
}

pub(crate) async fn host(place: &Path) -> Host {
    Host::builder(place.join("data")).runtime_dir(place).start().await.expect("the host starts")
}

pub(crate) fn name(name: &str) -> DriverName {
    DriverName::new(name).expect("the benches choose good names")
}

/// A driver that survives its host.
pub(crate) fn driver(
    place: &Path,
    name_of: &str,
    program: impl Into<PathBuf>,
    arguments: &[&str],
) -> DriverSpec {
    let mut process = ProcessSpec::new(Executable::at(program));
    process.arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
    process.environment = [("RUST_LOG".to_owned(), "error".to_owned())].into();
    process.lifetime = Lifetime::Surviving;
    process.handshake = Some(HandshakeTerms::nomad(Some(sockets(place))));
    let mut spec = DriverSpec::new(name(name_of), process);
    // The driver's own name differs from the one used here.
    spec.said_name = None;
    spec.api_version = "v0.1.0".to_owned();
    spec
}

pub(crate) fn reference(place: &Path, name_of: &str) -> DriverSpec {
    driver(place, name_of, CALLBOARD, &["plugin", "exec", "--name", name_of, "--allow-builtin-name"])
}

pub(crate) async fn add(drivers: &Address<Drivers>, spec: DriverSpec) {
    let added = drivers.ask(AddDriver { spec }).await.expect("it runs");
    assert_eq!(added, Ok(Added::New));
}

pub(crate) async fn remove(drivers: &Address<Drivers>, name: DriverName) {
    drivers.ask(RemoveDriver { name }).await.expect("it runs").expect("it is there");
}

/// A subscriber to the drivers.
pub(crate) struct DriversFeed(Subscription<DriversNews, DriversView>);

impl DriversFeed {
    pub(crate) fn of(drivers: &Address<Drivers>) -> Self {
        Self(drivers.subscribe("bench", UNREAD_MAX).expect("it runs"))
    }

    /// Waits until a driver becomes healthy, and returns its report.
    pub(crate) async fn healthy(&mut self) -> DriverReport {
        loop {
            let item = tokio::time::timeout(TIMEOUT, self.0.next()).await.expect("in time");
            let FeedItem::Change { news, .. } = item.expect("the drivers run") else { continue };
            if let DriversNews::Reported(report) = news {
                assert_ne!(report.health, DriverHealth::Unhealthy, "{}: {}", report.name, report.reason);
                if report.health == DriverHealth::Healthy {
                    return report;
                }
            }
        }
    }
}

/// A plugin without a host; killed on drop.
pub(crate) struct BarePlugin(std::process::Child);

impl BarePlugin {
    /// Starts a program as a host does, and reads its address from its first line.
    pub(crate) async fn spawn(place: &Path, program: &str, arguments: &[&str]) -> (Self, PathBuf) {
        let mut child = Command::new(program)
            .args(arguments)
            .env_clear()
            .envs(HandshakeTerms::nomad(Some(sockets(place))).environment())
            .env("RUST_LOG", "error")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let mut output = std::io::BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        std::io::BufRead::read_line(&mut output, &mut line).expect("it says a line");
        let socket = line.split('|').nth(3).expect("it is a handshake").into();
        (Self(child), socket)
    }
}

impl Drop for BarePlugin {
    fn drop(&mut self) {
        // Fails only if it has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Connects to a socket without our code.
pub(crate) async fn dial(socket: &Path) -> Channel {
    let endpoint = Endpoint::from_shared(format!("unix:{}", socket.display())).expect("it is an address");
    endpoint.connect().await.expect("it listens")
}

/// Dials a socket and makes the first call, for the plugin's identity.
pub(crate) async fn dial_and_ask(socket: &Path) -> Channel {
    let channel = dial(socket).await;
    let mut client = callboard_proto::base::base_plugin_client::BasePluginClient::new(channel.clone());
    client.plugin_info(callboard_proto::base::PluginInfoRequest {}).await.expect("it answers");
    channel
}

pub(crate) fn millis(took: Duration) -> f64 {
    took.as_secs_f64() * 1_000.0
}
