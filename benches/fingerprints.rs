//! Rounds of fingerprints of all plugins, through their instances and the supervisor of the instances, against bare probes
//! over bare connections to the same process.

mod support;

use std::time::Instant;

use callboard_actors::instances::{CheckNow, Dispense};
use callboard_actors::vocabulary::{PluginKey, SocketPath};
use callboard_proto::csi::v1::ProbeRequest;
use callboard_proto::csi::v1::identity_client::IdentityClient;
use futures_util::StreamExt;
use futures_util::stream::iter;
use tonic::transport::Channel;

use support::Pace;
use support::clients::{plugin, registration};
use support::curve::{Curve, Rows, Stretch, nanos};
use support::disk::directory;
use support::drivers::dial;
use support::figures::Samples;
use support::hostpath::HostPath;
use support::stage::{Stage, TIMEOUT};

/// The numbers of plugins in a round.
const PLUGINS: [u64; 5] = [1, 10, 100, 1_000, 10_000];
/// The number of concurrent requests.
const AT_ONCE: usize = 64;
/// The most bare connections: a process has a limit of file descriptors.
const CONNECTIONS_MAX: usize = 1_000;

fn main() {
    support::run("rounds of fingerprints, beside bare tonic", measure);
}

async fn measure(pace: Pace) {
    let mut rows = Rows::begin();
    let place = directory();
    let socket = SocketPath::new(place.path().join("csi.sock").display().to_string()).expect("it is short");
    let process = HostPath::serve(&socket).await;
    let mut connections = Vec::new();
    let mut stages = Vec::new();
    for plugins in PLUGINS.into_iter().take(pace.choose(PLUGINS.len(), 2)) {
        while connections.len() < CONNECTIONS_MAX.min(plugins as usize) {
            connections.push(dial(socket.as_path()).await);
        }
        stages.push((plugins, Served::start(plugins, &socket).await));
    }
    let curve = Curve { operation: "fingerprint", store: "none", along: "plugins" };
    rows.draw(curve, pace.choose(7, 1), &mut stages, async |plugins, served| {
        let rounds = pace.choose((4_000 / plugins).max(1), 2);
        (served.rounds(rounds).await, bare_rounds(&connections, plugins, rounds).await)
    })
    .await;
    for (_, served) in stages {
        served.stage.end();
    }
    drop(process);
}

/// Some plugins, with their instances.
struct Served {
    stage: Stage,
    plugins: Vec<PluginKey>,
}

impl Served {
    async fn start(count: u64, socket: &SocketPath) -> Self {
        let stage = Stage::start();
        let plugins: Vec<_> = (0..count).map(|n| plugin(format!("plugin-{n}"))).collect();
        for (n, plugin) in plugins.iter().enumerate() {
            let mut register = registration(plugin.clone(), &format!("allocation-{n}"));
            (register.socket, register.provider, register.version) = (socket.clone(), None, None);
            stage.registry.ask(register).await.expect("it runs").expect("it is well formed");
        }
        for plugin in &plugins {
            let dispense = Dispense { plugin: plugin.clone(), within: TIMEOUT };
            stage.instances.ask(dispense).await.expect("it runs").expect("it becomes healthy");
        }
        Self { stage, plugins }
    }

    async fn rounds(&self, rounds: u64) -> Stretch {
        timed(&self.plugins, rounds, async |plugin| {
            let report =
                self.stage.instances.ask(CheckNow { plugin: plugin.clone() }).await.expect("it runs");
            assert!(report.is_ok(), "it is served");
        })
        .await
    }
}

async fn bare_rounds(connections: &[Channel], plugins: u64, rounds: u64) -> Stretch {
    let channels: Vec<_> = connections.iter().cycle().take(plugins as usize).collect();
    timed(&channels, rounds, async |channel| {
        let mut client = IdentityClient::new((*channel).clone());
        let answer = client.probe(ProbeRequest {}).await.expect("it answers").into_inner();
        assert_ne!(answer.ready, Some(false));
    })
    .await
}

/// Asks each plugin in every round, with limited concurrency, and measures each request.
async fn timed<T>(all: &[T], rounds: u64, ask: impl AsyncFn(&T)) -> Stretch {
    let (begun, mut latencies) = (Instant::now(), Samples::default());
    for _ in 0..rounds {
        let asking = iter(all).map(|one| async {
            let asked = Instant::now();
            ask(one).await;
            nanos(asked.elapsed())
        });
        latencies.extend(asking.buffer_unordered(AT_ONCE).collect::<Vec<_>>().await);
    }
    Stretch::new(rounds * all.len() as u64, begun.elapsed(), latencies)
}
