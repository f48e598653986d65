//! Launch of a driver: from `AddDriver` to the report that it is healthy, against a bare spawn of the same program with a
//! first call. The launch includes: records on disk before and after the spawn, a handshake that is read from a file, the
//! plugin's health, name, configuration, `Init`, capabilities and first fingerprint.

mod support;

use std::path::Path;
use std::time::{Duration, Instant};

use callboard::host::Host;

use support::Pace;
use support::disk::directory;
use support::drivers::{
    BarePlugin, CALLBOARD, DriversFeed, add, dial_and_ask, host, millis, name, reference, remove, sockets,
};
use support::figures::Samples;

fn main() {
    support::run("launch of a driver: from AddDriver to healthy, ms", measure);
}

async fn measure(pace: Pace) {
    let place = directory();
    let host = host(place.path()).await;
    let (mut bare, mut ours) = (Samples::default(), Samples::default());
    for _ in 0..pace.choose(40, 2) {
        bare.push(millis(bare_launch(place.path()).await));
        ours.push(millis(launch(&host, place.path()).await));
    }
    println!("bare spawn, dial and first call | launch to healthy | times bare");
    println!("{} | {} | {}", bare.spread(2), ours.spread(2), ours.over(&bare).spread(2));
    host.stop().await;
}

async fn bare_launch(place: &Path) -> Duration {
    sockets(place);
    let begun = Instant::now();
    let (plugin, socket) = BarePlugin::spawn(place, CALLBOARD, &["plugin", "exec"]).await;
    dial_and_ask(&socket).await;
    let took = begun.elapsed();
    drop(plugin);
    took
}

async fn launch(host: &Host, place: &Path) -> Duration {
    let mut feed = DriversFeed::of(host.drivers());
    let spec = reference(place, "exec");
    let begun = Instant::now();
    add(host.drivers(), spec).await;
    feed.healthy().await;
    let took = begun.elapsed();
    remove(host.drivers(), name("exec")).await;
    took
}
