//! Claims of a healthy plugin beside a plugin that hangs in all its calls, against the same claims without that plugin.

use std::time::Instant;

use crate::site::{Site, claim, volume};
use crate::support::Pace;
use crate::support::curve::nanos;
use crate::support::disk::directory;
use crate::support::figures::{Goal, Samples, judge};

pub(crate) async fn measure(pace: Pace) {
    let (rounds, each, hanging) = (pace.choose(9, 1), pace.choose(200, 3), pace.choose(200, 5));
    println!("\nclaims beside {hanging} claims of a plugin that hangs");
    let (calm_place, place) = (directory(), directory());
    let mut calm = Site::start(&calm_place.path().join("data"), calm_place.path()).await;
    calm.plugin("p", &[]).await;
    calm.create("p", &volume("v", 0)).await;
    let mut beside = Site::start(&place.path().join("data"), place.path()).await;
    beside.plugin("p", &[]).await;
    beside.create("p", &volume("v", 0)).await;
    beside.plugin("hangs", &["--hang", "NodeStageVolume"]).await;
    let mut waiting = Vec::new();
    for number in 0..hanging {
        let volume = volume("hangs", number);
        beside.create("hangs", &volume).await;
        waiting.push(beside.host.volumes().ask(claim(&volume)));
    }
    let (mut calm_p99, mut beside_p99) = (Samples::default(), Samples::default());
    for _ in 0..rounds {
        let (mut of_calm, mut of_beside) = (Samples::default(), Samples::default());
        // In turn, so that both meet the same noise.
        for _ in 0..each {
            of_calm.push(one(&calm).await);
            of_beside.push(one(&beside).await);
        }
        calm_p99.push(of_calm.percentile(99.0));
        beside_p99.push(of_beside.percentile(99.0));
    }
    println!("p99 ms alone | p99 ms beside the hanging plugin | times");
    let ratio = beside_p99.over(&calm_p99);
    println!("{} | {} | {}", calm_p99.spread(2), beside_p99.spread(2), ratio.spread(2));
    judge(pace, "p99 beside a plugin that hangs", ratio.median(), Goal::AtMost(1.2));
    drop(waiting);
    drop(calm.stop().await);
    drop(beside.stop().await);
}

/// Claims and releases a volume; returns the milliseconds of the claim.
async fn one(site: &Site) -> f64 {
    let volume = volume("v", 0);
    let begun = Instant::now();
    site.claim(&volume).await;
    let took = nanos(begun.elapsed()) / 1e6;
    site.release(&volume).await;
    took
}
