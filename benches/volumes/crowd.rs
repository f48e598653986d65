//! Many volumes of one plugin, all claimed at once, and all released at once; and the memory of the host for each volume in use.

use std::sync::Arc;
use std::time::{Duration, Instant};

use callboard::actors::volume::{ObservedEnd, VolumeKey};
use callboard::actors::volumes::AllocationEnded;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::bare::{Bare, Created};
use crate::site::{Site, WITHIN, allocation, claim, volume};
use crate::support::Pace;
use crate::support::disk::directory;
use crate::support::figures::{Goal, Samples, judge, per_second};
use crate::support::memory::resident_bytes;

/// The default limit of calls in flight to each half of a plugin.
const CALLS_MAX: usize = 64;

/// The operation of the bare client on each volume.
#[derive(Clone, Copy)]
enum Way {
    SetUp,
    Undo,
}

pub(crate) async fn measure(pace: Pace) {
    let (rounds, many) = (pace.choose(5, 1), pace.choose(1_000, 10));
    println!("\n{many} volumes of one plugin, claimed at once");
    let place = directory();
    let mut site = Site::start(&place.path().join("data"), place.path()).await;
    let socket = site.plugin("p", &[]).await;
    let mut bare = Bare::connect(&socket, place.path().join("bare")).await;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for number in 0..many {
        theirs.push(bare.create(format!("bare-{number}")).await);
        ours.push(volume("ours", number));
        site.create("p", &ours[number]).await;
    }
    let (mut set_up, mut claims) = (Samples::default(), Samples::default());
    let (mut undone, mut released) = (Samples::default(), Samples::default());
    let mut held = Samples::default();
    let rate = |took| per_second(many as u64, took);
    for _ in 0..rounds {
        set_up.push(rate(all(&bare, &theirs, Way::SetUp).await));
        undone.push(rate(all(&bare, &theirs, Way::Undo).await));
        let before = resident_bytes();
        claims.push(rate(claim_all(&site, &ours).await));
        held.push(resident_bytes().saturating_sub(before) as f64 / many as f64 / 1024.0);
        released.push(rate(release_all(&site, &ours).await));
    }
    println!(
        "bare per second | claims per second | times bare | releases per second | times bare | KiB each, first round"
    );
    println!(
        "{} | {} | {} | {} | {} | {:.1}",
        set_up.spread(0),
        claims.spread(0),
        claims.over(&set_up).spread(2),
        released.spread(0),
        released.over(&undone).spread(2),
        held.percentile(100.0)
    );
    judge(pace, "claims at once, of the bare calls", claims.over(&set_up).median(), Goal::AtLeast(0.8));
    drop(site.stop().await);
}

async fn claim_all(site: &Site, volumes: &[VolumeKey]) -> Duration {
    let begun = Instant::now();
    let asked: Vec<_> = volumes.iter().map(|volume| site.host.volumes().ask(claim(volume))).collect();
    for claimed in asked {
        claimed.await.expect("it runs").expect("the plugin publishes it");
    }
    begun.elapsed()
}

async fn release_all(site: &Site, volumes: &[VolumeKey]) -> Duration {
    let begun = Instant::now();
    let ended = |volume: &VolumeKey| AllocationEnded {
        allocation: allocation(volume),
        observed: ObservedEnd::Exited,
        within: WITHIN,
    };
    let asked: Vec<_> = volumes.iter().map(|volume| site.host.volumes().ask(ended(volume))).collect();
    for released in asked {
        for released in released.await.expect("it runs") {
            released.result.expect("the plugin undoes it");
        }
    }
    begun.elapsed()
}

/// The bare calls for all volumes, with the same concurrency as in the host.
async fn all(bare: &Bare, volumes: &[Created], way: Way) -> Duration {
    let (begun, permits) = (Instant::now(), Arc::new(Semaphore::new(CALLS_MAX)));
    let mut calls = JoinSet::new();
    for volume in volumes {
        let (mut bare, volume, permits) = (bare.clone(), volume.clone(), Arc::clone(&permits));
        calls.spawn_local(async move {
            let _permit = permits.acquire().await.expect("it is never closed");
            match way {
                Way::SetUp => bare.set_up(&volume).await,
                Way::Undo => bare.undo(&volume).await,
            }
        });
    }
    while let Some(done) = calls.join_next().await {
        done.expect("no call fails");
    }
    begun.elapsed()
}
