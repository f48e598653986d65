//! The cost of warm standbys for an idle host: probes per second and processor time with 1,000 plugins, without standbys and with one
//! for each. Against a bare client that sends as many probes over as many connections in the same time.
//!
//! One process serves all plugins and counts the probes; only the time of the host is measured.

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use callboard_actors::csi::{Connection, Limits};
use callboard_actors::registry::Register;
use callboard_actors::vocabulary::{AllocationId, PluginKey, PluginName, PluginType, SocketPath};

use support::Pace;
use support::counting::{self, Counting};
use support::disk::directory;
use support::memory::processor_time;
use support::stage::{Stage, TIMEOUT};

/// The default pause between two probes of a plugin.
const ROUND: Duration = Duration::from_secs(30);

fn main() {
    if counting::is_asked_to_serve() {
        return counting::serve();
    }
    support::run("standbys: probes per second and processor time of an idle host", measure);
}

async fn measure(pace: Pace) {
    let place = directory();
    let socket = SocketPath::new(place.path().join("csi.sock").display().to_string()).expect("it is short");
    let process = Counting::start(&socket).await;
    let plugins = pace.choose(1_000, 5);
    let round = pace.choose(ROUND, Duration::from_millis(100));
    let bare = [bare(&socket, plugins, round).await, bare(&socket, plugins * 2, round).await];
    println!(
        "registrations | probes per second | processor, % of one | a bare client, % of one | times bare"
    );
    let stage = Stage::probing(round);
    for (bare, standing) in bare.into_iter().zip(["active", "standby"]) {
        for number in 0..plugins {
            let register = register(number, standing, &socket);
            stage.registry.ask(register).await.expect("it runs").expect("it is well formed");
        }
        for number in 0..plugins {
            stage.leases.lease(&plugin(number), TIMEOUT).await.expect("it is healthy");
        }
        // The first probes, which are sent at once, are over after one round.
        tokio::time::sleep(round).await;
        let (probes, host) = idle(&process, round * 2).await;
        let registrations = if standing == "active" { plugins } else { plugins * 2 };
        println!(
            "{registrations} | {probes:.1} | {:.2} | {:.2} | {:.1}",
            host * 100.0,
            bare * 100.0,
            host / bare
        );
    }
    stage.end();
}

/// The probes per second, and the share of a processor, of the idle host.
async fn idle(process: &Counting, time: Duration) -> (f64, f64) {
    let (begun, probes, used) = (Instant::now(), process.probes().await, processor_time());
    tokio::time::sleep(time).await;
    let seconds = begun.elapsed().as_secs_f64();
    let used = (processor_time() - used).as_secs_f64();
    ((process.probes().await - probes) as f64 / seconds, used / seconds)
}

/// The share of a processor that a bare client uses for one probe over each of this many connections in a round, evenly spread.
async fn bare(socket: &SocketPath, connections: usize, round: Duration) -> f64 {
    let mut dialled = Vec::new();
    for _ in 0..connections {
        dialled.push(Connection::dial(socket, Limits::default()).await.expect("it listens"));
    }
    let mut ticks = tokio::time::interval(round / connections as u32);
    let (begun, used) = (Instant::now(), processor_time());
    for connection in &dialled {
        ticks.tick().await;
        connection.probe(TIMEOUT).await.expect("it answers");
    }
    (processor_time() - used).as_secs_f64() / begun.elapsed().as_secs_f64()
}

fn register(number: usize, standing: &str, socket: &SocketPath) -> Register {
    Register {
        policy: None,
        plugins: vec![plugin(number)],
        allocation: AllocationId::new(format!("{standing}-{number}")).expect("it is an id"),
        socket: socket.clone(),
        provider: None,
        version: None,
        options: Arc::new(BTreeMap::new()),
    }
}

fn plugin(number: usize) -> PluginKey {
    PluginKey::new(PluginType::CsiNode, PluginName::new(format!("plugin-{number}")).expect("it is a name"))
}
