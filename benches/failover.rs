//! From the kill of an active plugin with a warm standby to the first answered call of the standby, against a bare dial with a
//! first call to the same plugin. All plugins are real processes.

mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use callboard_actors::csi::{Connection, Limits};
use callboard_actors::registry::{Register, RegistryNews, RegistryView};
use callboard_actors::shell::{FeedItem, Subscription};
use callboard_actors::vocabulary::{AllocationId, PluginKey, PluginName, PluginType, SocketPath};
use callboard_proto::csi::v1::ProbeRequest;

use support::Pace;
use support::clients::departure;
use support::disk::directory;
use support::figures::Samples;
use support::hostpath::HostPath;
use support::stage::{Stage, TIMEOUT};

type News = Subscription<RegistryNews, RegistryView>;

fn main() {
    support::run(
        "failover: from the kill of an active plugin to the first call of its warm standby",
        measure,
    );
}

async fn measure(pace: Pace) {
    let place = directory();
    let standby = socket(place.path(), "standby");
    let process = HostPath::serve(&standby).await;
    let stage = Stage::start();
    let mut news = stage.registry.subscribe("bench", 64).expect("it runs");
    register(&stage, "standby", &standby).await;
    active(&mut news, "standby").await;
    let (mut bare, mut ended, mut failover) = (Samples::default(), Samples::default(), Samples::default());
    for round in 0..pace.choose(300, 2) {
        let name = format!("active-{round}");
        let newest = socket(place.path(), &name);
        let victim = HostPath::serve(&newest).await;
        let registration = register(&stage, &name, &newest).await;
        active(&mut news, &name).await;
        stage.leases.lease(&plugin(), TIMEOUT).await.expect("it is healthy");
        bare.push(bare_call(&standby).await);
        let (process, call) = kill(&stage, victim).await;
        ended.push(process);
        failover.push(call);
        active(&mut news, "standby").await;
        stage.registry.ask(departure(&registration)).await.expect("it runs");
    }
    println!(
        "bare median ms | bare p99 | end of the process median ms | p99 | failover median ms | failover p99 | times bare, median | \
         times bare, p99"
    );
    println!(
        "{} | {:.2} | {} | {:.2} | {} | {:.2} | {} | {:.1}",
        bare.spread(2),
        bare.percentile(99.0),
        ended.spread(2),
        ended.percentile(99.0),
        failover.spread(2),
        failover.percentile(99.0),
        failover.over(&bare).spread(1),
        failover.percentile(99.0) / bare.percentile(99.0)
    );
    stage.end();
    drop(process);
}

/// Kills the active plugin, and returns the milliseconds until the kernel has ended it, and until a call has an answer. A lease of the
/// dead process is given back, and another one is requested, as a host program does.
async fn kill(stage: &Stage, victim: HostPath) -> (f64, f64) {
    let begun = Instant::now();
    drop(victim);
    let ended = begun.elapsed().as_secs_f64() * 1e3;
    loop {
        let lease = stage.leases.lease(&plugin(), TIMEOUT).await.expect("a standby takes over");
        if lease.identity().probe(ProbeRequest {}).await.is_ok() {
            return (ended, begun.elapsed().as_secs_f64() * 1e3);
        }
    }
}

/// The milliseconds of a dial and a first call, without a host.
async fn bare_call(socket: &SocketPath) -> f64 {
    let begun = Instant::now();
    let connection = Connection::dial(socket, Limits::default()).await.expect("it listens");
    connection.probe(TIMEOUT).await.expect("it answers");
    begun.elapsed().as_secs_f64() * 1e3
}

/// Waits until this allocation is active.
async fn active(news: &mut News, name: &str) {
    loop {
        match news.next().await.expect("it runs") {
            FeedItem::Change { news: RegistryNews::ActiveChanged { to: Some(active), .. }, .. }
                if active.registration.allocation == allocation(name) =>
            {
                return;
            }
            FeedItem::Change { .. } | FeedItem::Snapshot { .. } => {}
            FeedItem::Lagged { missed } => panic!("{missed} notifications were missed"),
        }
    }
}

async fn register(stage: &Stage, name: &str, socket: &SocketPath) -> Register {
    let registration = Register {
        policy: None,
        plugins: vec![plugin()],
        allocation: allocation(name),
        socket: socket.clone(),
        provider: None,
        version: None,
        options: Arc::new(BTreeMap::new()),
    };
    stage.registry.ask(registration.clone()).await.expect("it runs").expect("it is well formed");
    registration
}

fn plugin() -> PluginKey {
    PluginKey::new(PluginType::CsiNode, PluginName::new("plugin").expect("it is a name"))
}

fn allocation(name: &str) -> AllocationId {
    AllocationId::new(name).expect("it is an id")
}

fn socket(place: &Path, name: &str) -> SocketPath {
    SocketPath::new(place.join(format!("{name}.sock")).display().to_string()).expect("it is short")
}
