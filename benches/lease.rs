//! A call over a lease, against the same call over a channel of tonic to the same plugin process.

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use callboard_actors::lease::LeasedChannel;
use callboard_actors::registry::Register;
use callboard_actors::vocabulary::{AllocationId, PluginKey, PluginName, PluginType, SocketPath};
use callboard_proto::csi::v1::ProbeRequest;
use callboard_proto::csi::v1::identity_client::IdentityClient;
use tonic::transport::{Channel, Endpoint};

use support::Pace;
use support::disk::directory;
use support::figures::Samples;
use support::hostpath::HostPath;
use support::stage::{Stage, TIMEOUT};

fn main() {
    support::run("a call over a lease: Probe of the reference plugin", measure);
}

async fn measure(pace: Pace) {
    let place = directory();
    let socket = SocketPath::new(place.path().join("csi.sock").display().to_string()).expect("it is short");
    let process = HostPath::serve(&socket).await;
    let stage = Stage::start();
    let plugin = PluginKey::new(PluginType::CsiNode, PluginName::new("plugin").expect("it is a name"));
    stage.registry.ask(register(&plugin, &socket)).await.expect("it runs").expect("it is well formed");
    let lease = stage.leases.lease(&plugin, TIMEOUT).await.expect("it is healthy");
    let (mut leased, mut bare) = (lease.identity(), bare_client(&socket).await);
    let (mut leased_median, mut bare_median) = (Samples::default(), Samples::default());
    let (mut leased_p99, mut bare_p99) = (Samples::default(), Samples::default());
    for _ in 0..pace.choose(21, 1) {
        let times = pace.choose(5_000, 50);
        let (mut of_bare, mut of_lease) = (Samples::default(), Samples::default());
        // In turn, so that both meet the same noise.
        for _ in 0..times {
            of_bare.push(bare_call(&mut bare).await);
            of_lease.push(leased_call(&mut leased).await);
        }
        bare_median.push(of_bare.median());
        bare_p99.push(of_bare.percentile(99.0));
        leased_median.push(of_lease.median());
        leased_p99.push(of_lease.percentile(99.0));
    }
    println!("bare median ns | lease median ns | times bare, median | times bare, p99");
    println!(
        "{} | {} | {} | {}",
        bare_median.spread(0),
        leased_median.spread(0),
        leased_median.over(&bare_median).spread(2),
        leased_p99.over(&bare_p99).spread(2)
    );
    drop(lease);
    stage.end();
    drop(process);
}

fn register(plugin: &PluginKey, socket: &SocketPath) -> Register {
    Register {
        policy: None,
        plugins: vec![plugin.clone()],
        allocation: AllocationId::new("allocation").expect("it is an id"),
        socket: socket.clone(),
        provider: None,
        version: None,
        options: Arc::new(BTreeMap::new()),
    }
}

async fn bare_client(socket: &SocketPath) -> IdentityClient<Channel> {
    let endpoint = Endpoint::from_shared(format!("unix:{}", socket.as_path().display()));
    let channel = endpoint.expect("it is an address").connect().await;
    IdentityClient::new(channel.expect("it listens"))
}

async fn bare_call(client: &mut IdentityClient<Channel>) -> f64 {
    let begun = Instant::now();
    client.probe(ProbeRequest {}).await.expect("it answers");
    begun.elapsed().as_nanos() as f64
}

async fn leased_call(client: &mut IdentityClient<LeasedChannel>) -> f64 {
    let begun = Instant::now();
    client.probe(ProbeRequest {}).await.expect("it answers");
    begun.elapsed().as_nanos() as f64
}
