//! Takeover in memory: from `Deregister` of the active allocation to the subscriber's `ActiveChanged`, against a bare round
//! trip. That subscriber is the only one.

mod support;

use std::time::Instant;

use actix::{Actor, Addr};
use callboard_actors::registry::Register;

use support::Pace;
use support::bare::{Bare, Carried};
use support::clients::{RegistryClient, departure, registration};
use support::figures::Samples;
use support::rig::{Actives, Held, Rig, held_plugin};

fn main() {
    support::run("takeover in memory: from Deregister to the subscriber's ActiveChanged", measure);
}

async fn measure(pace: Pace) {
    println!(
        "held | bare median ns | bare p99 | takeover median ns | takeover p99 | times bare, median | times bare, p99"
    );
    for held in [100, pace.choose(100_000, 1_000)] {
        let bare = Bare.start();
        let rig = Rig::in_memory_with(Held::apart(held), false).await;
        let mut actives = Actives::of(&rig.registry).await;
        let (mut bare_median, mut bare_p99) = (Samples::default(), Samples::default());
        let (mut median, mut p99) = (Samples::default(), Samples::default());
        for round in 0..pace.choose(15, 1) {
            let active = registration(held_plugin(round), "newcomer");
            let times = pace.choose(20_000, 100);
            let trips = bare_trips(&bare, &active, times).await;
            bare_median.push(trips.median());
            bare_p99.push(trips.percentile(99.0));
            let takeovers = takeovers(&rig, &mut actives, &active, times).await;
            median.push(takeovers.median());
            p99.push(takeovers.percentile(99.0));
        }
        println!(
            "{held} | {} | {} | {} | {} | {} | {}",
            bare_median.spread(0),
            bare_p99.spread(0),
            median.spread(0),
            p99.spread(0),
            median.over(&bare_median).spread(2),
            p99.over(&bare_p99).spread(2)
        );
        rig.end().await;
    }
}

/// The latency of each bare round trip, in nanoseconds.
async fn bare_trips(bare: &Addr<Bare>, register: &Register, times: u32) -> Samples {
    let mut trips = Samples::default();
    for _ in 0..times {
        let message = departure(register);
        let begun = Instant::now();
        bare.send(Carried(message)).await.expect("the actor runs");
        trips.push(begun.elapsed().as_nanos() as f64);
    }
    trips
}

/// The latency of each takeover until the subscriber is notified, in nanoseconds. The successor is registered before.
async fn takeovers(rig: &Rig, actives: &mut Actives, active: &Register, times: u32) -> Samples {
    let mut takeovers = Samples::default();
    for _ in 0..times {
        rig.registry.register(active.clone()).await;
        actives.changed().await;
        let message = departure(active);
        let begun = Instant::now();
        let answer = rig.registry.ask(message);
        let successor = actives.changed().await;
        takeovers.push(begun.elapsed().as_nanos() as f64);
        assert!(successor.as_str().starts_with("held-"), "the one that stood by takes over");
        answer.await.expect("the registry runs");
    }
    takeovers
}
