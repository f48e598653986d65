//! Register and deregister on disk: an answer means synced. Against a bare redb with one commit per message.
//!
//! Both write rows of the same length to the same file system in the same run. The syncs per second of a plain file are
//! measured in each round, too, since all other figures depend on them.

mod support;

use std::time::Duration;

use support::Pace;
use support::clients::{apart, closed_loop};
use support::disk::{BareRedb, directory, syncs_per_second};
use support::figures::{Goal, Samples, judge, per_second};
use support::rig::{Rig, row_of_registry};

/// The requests in flight, the pairs per client, and the goal relative to one commit per message.
const LOADS: [(usize, u64, Option<f64>); 4] =
    [(1, 1_500, None), (8, 1_500, Some(5.0)), (64, 1_000, None), (256, 1_000, Some(50.0))];

/// The measurements of each round.
#[derive(Default)]
struct Rounds {
    syncs: Samples,
    bare: Samples,
    loads: [Samples; LOADS.len()],
    crowded: Samples,
}

fn main() {
    support::run("registry on disk: register and deregister, one subscriber, messages per second", measure);
}

async fn measure(pace: Pace) {
    let (few, many) = (100, pace.choose(100_000, 1_000));
    let (place, crowded_place) = (directory(), directory());
    let row = row_of_registry().await;
    println!("a row has {} bytes with its seal", row.len());
    let mut bare = BareRedb::holding(few, row, crowded_place.path());
    let few_held = Rig::on_disk(place.path(), few).await;
    let many_held = Rig::on_disk(crowded_place.path(), many).await;
    let mut rounds = Rounds::default();
    for _ in 0..pace.choose(9, 1) {
        let lasting = Duration::from_millis(pace.choose(800, 50));
        rounds.syncs.push(syncs_per_second(place.path(), lasting));
        rounds.bare.push(bare.messages_per_second(lasting));
        for ((clients, pairs_each, _), samples) in LOADS.iter().zip(&mut rounds.loads) {
            samples.push(rate(pace, &few_held, *clients, *pairs_each).await);
        }
        let (clients, pairs_each, _) = LOADS[LOADS.len() - 1];
        rounds.crowded.push(rate(pace, &many_held, clients, pairs_each).await);
    }
    few_held.end().await;
    many_held.end().await;
    report(pace, &rounds, few, many);
}

async fn rate(pace: Pace, rig: &Rig, clients: usize, pairs_each: u64) -> f64 {
    let laps = closed_loop(&rig.registry, &apart(clients), pace.choose(pairs_each, pairs_each / 100)).await;
    per_second(laps.messages, laps.took)
}

fn report(pace: Pace, rounds: &Rounds, few: u64, many: u64) {
    let Rounds { syncs, bare, loads, crowded } = rounds;
    println!("fdatasync of 4 KiB appended: {}", syncs.spread(0));
    println!("bare redb, one commit per message: {}", bare.spread(0));
    println!("in flight | {few} held | times bare redb");
    for ((clients, _, goal), samples) in LOADS.iter().zip(loads) {
        let ratio = samples.over(bare);
        println!("{clients} | {} | {}", samples.spread(0), ratio.spread(1));
        if let Some(goal) = goal {
            let what = format!("messages on disk with {clients} in flight, over one commit each");
            judge(pace, &what, ratio.median(), Goal::AtLeast(*goal));
        }
    }
    println!("{} in flight, {many} held: {}", LOADS[LOADS.len() - 1].0, crowded.spread(0));
    let cost = loads[LOADS.len() - 1].over(crowded);
    println!("cost per message with {many} held, over {few} held: {}", cost.spread(2));
    judge(pace, "cost per message with many held, over few held", cost.median(), Goal::AtMost(1.5));
}
