//! The start of a host that holds claims, until it has confirmed them. Reading the mount table once is the baseline.

use std::time::{Duration, Instant};

use callboard::actors::mounts::mounts_of_this_process;
use callboard::actors::volumes::ConfirmClaims;
use callboard::host::Host;

use crate::site::{Site, allocation, claim, sockets, volume};
use crate::support::Pace;
use crate::support::disk::directory;
use crate::support::figures::Samples;

pub(crate) async fn measure(pace: Pace) {
    println!("\nthe start of a host that holds claims");
    println!(
        "claims | start ms without volumes | start and confirmation ms | reading the mount table ms | microseconds each"
    );
    for claims in pace.choose(&[1_000, 2_000, 4_000, 10_000][..], &[5]) {
        with(*claims, pace).await;
    }
}

async fn with(claims: usize, pace: Pace) {
    let place = directory();
    let data = place.path().join("data");
    let mut site = Site::start(&data, place.path()).await;
    site.plugin("p", &[]).await;
    let volumes: Vec<_> = (0..claims).map(|number| volume("v", number)).collect();
    for volume in &volumes {
        site.create("p", volume).await;
    }
    // The limit of requests that a host accepts at once.
    for some in volumes.chunks(1_000) {
        let asked: Vec<_> = some.iter().map(|volume| site.host.volumes().ask(claim(volume))).collect();
        for claimed in asked {
            claimed.await.expect("it runs").expect("the plugin publishes it");
        }
    }
    let (plugins, sockets) = (site.stop().await, sockets());
    let (mut empty, mut full, mut table) = (Samples::default(), Samples::default(), Samples::default());
    for _ in 0..pace.choose(5, 1) {
        let begun = Instant::now();
        let host = Host::builder(place.path().join("empty"))
            .runtime_dir(sockets.path())
            .start()
            .await
            .expect("it starts");
        host.volumes().ask(ConfirmClaims { living: [].into(), unclear: [].into() }).await.expect("it runs");
        empty.push(millis(begun.elapsed()));
        host.stop().await;
        let begun = Instant::now();
        let host = Host::builder(&data).runtime_dir(sockets.path()).start().await.expect("it starts");
        let living = volumes.iter().map(allocation).collect();
        host.volumes().ask(ConfirmClaims { living, unclear: [].into() }).await.expect("it runs");
        full.push(millis(begun.elapsed()));
        host.stop().await;
        let begun = Instant::now();
        mounts_of_this_process().expect("it can be read");
        table.push(millis(begun.elapsed()));
    }
    let each = (full.median() - empty.median() - table.median()) * 1e3 / claims as f64;
    println!("{claims} | {} | {} | {} | {each:.1}", empty.spread(1), full.spread(1), table.spread(1));
    // The mounts are removed with the mount namespace.
    drop(plugins);
}

fn millis(took: Duration) -> f64 {
    took.as_secs_f64() * 1e3
}
