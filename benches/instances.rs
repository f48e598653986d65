//! Memory of an idle instance: an actor that has read its plugin over a connection of its own and waits for its next round.
//! Against bare connections to the same plugin in the same run, each dialled and used once.
//!
//! One real plugin process serves all of them, so only the host's memory is measured.

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;

use callboard_actors::csi::{Connection, Limits};
use callboard_actors::instances::InstancesNews;
use callboard_actors::registry::Register;
use callboard_actors::shell::FeedItem;
use callboard_actors::vocabulary::{AllocationId, Health, PluginKey, PluginName, PluginType, SocketPath};

use support::Pace;
use support::disk::directory;
use support::hostpath::HostPath;
use support::memory::resident_bytes;
use support::stage::{Stage, TIMEOUT};

fn main() {
    support::run("instances: resident memory of the host per idle instance, KiB", measure);
}

async fn measure(pace: Pace) {
    let place = directory();
    let socket = SocketPath::new(place.path().join("csi.sock").display().to_string()).expect("it is short");
    let plugin = HostPath::serve(&socket).await;
    let sizes = pace.choose([1_000, 2_000, 5_000, 10_000], [10, 20, 30, 40]);

    let before = resident_kib();
    let mut connections = Vec::new();
    for _ in 0..sizes[0] {
        let connection = Connection::dial(&socket, Limits::default()).await.expect("it listens");
        connection.probe(TIMEOUT).await.expect("it answers");
        connections.push(connection);
    }
    let each_connection = (resident_kib() - before) / connections.len() as f64;
    println!("a bare connection, used once: {each_connection:.1} KiB");

    println!("instances | KiB per instance | of which beside its connection | KiB for each further one");
    let stage = Stage::start();
    // The bare connections are kept until the end: freed memory would be reused by the first instances.
    let base = resident_kib();
    let (mut held, mut last) = (0, base);
    for size in sizes {
        grow(&stage, &socket, held, size).await;
        let now = resident_kib();
        let each = (now - base) / size as f64;
        let further = (now - last) / (size - held) as f64;
        println!("{size} | {each:.1} | {:.1} | {further:.1}", each - each_connection);
        (held, last) = (size, now);
    }
    drop(connections);
    stage.end();
    drop(plugin);
}

/// Registers more plugins, all served by one process, and waits until each instance is healthy.
async fn grow(stage: &Stage, socket: &SocketPath, from: usize, to: usize) {
    let mut feed = stage.instances.subscribe("bench", 1 << 16).expect("it runs");
    for number in from..to {
        stage.registry.ask(register(number, socket)).await.expect("it runs").expect("it is well formed");
    }
    let mut healthy = 0;
    while healthy < to - from {
        match feed.next().await.expect("it runs") {
            FeedItem::Change { news: InstancesNews::Reported(report), .. } => {
                healthy += usize::from(report.health == Health::Healthy);
                assert!(report.health.reason().is_none(), "{}", report.health);
            }
            FeedItem::Change { .. } | FeedItem::Snapshot { .. } => {}
            FeedItem::Lagged { missed } => panic!("{missed} reports were missed"),
        }
    }
}

fn register(number: usize, socket: &SocketPath) -> Register {
    let name = PluginName::new(format!("plugin-{number}")).expect("it is a name");
    Register {
        policy: None,
        plugins: vec![PluginKey::new(PluginType::CsiNode, name)],
        allocation: AllocationId::new(format!("allocation-{number}")).expect("it is an id"),
        socket: socket.clone(),
        provider: None,
        version: None,
        options: Arc::new(BTreeMap::new()),
    }
}

fn resident_kib() -> f64 {
    resident_bytes() as f64 / 1_024.0
}
