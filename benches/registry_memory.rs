//! Register and deregister in memory: the path through mailbox, step and outbox, against a bare actix round trip.
//!
//! Both have the same messages from the same clients on one thread; the CPU time of that thread is measured. The registry also
//! decides, keeps the registration, and notifies one subscriber, who reads two notifications per message.

mod support;

use actix::Actor;

use support::Pace;
use support::bare::Bare;
use support::clients::{RegistryClient, apart, asks, closed_loop};
use support::figures::{Goal, Samples, judge, nanos_each};
use support::rig::Rig;

/// How the messages are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asking {
    /// By the main future of the program, the usual way to measure a bare round trip.
    ByTheProgram,
    /// By this many tasks on the arbiter, each with one message in flight.
    ByTasks(usize),
}

/// The measurements of each round.
#[derive(Default)]
struct Rounds {
    bare: Samples,
    few_held: Samples,
    many_held: Samples,
}

fn main() {
    support::run("registry in memory: register and deregister, one subscriber, ns per message", measure);
}

async fn measure(pace: Pace) {
    let (few, many) = (100, pace.choose(100_000, 1_000));
    let bare = Bare.start();
    let few_held = Rig::in_memory(few).await;
    let many_held = Rig::in_memory(many).await;
    println!(
        "asked | bare send | {few} held | {many} held | times bare, {few} held | times bare, {many} held"
    );
    for asking in [Asking::ByTheProgram, Asking::ByTasks(1), Asking::ByTasks(8), Asking::ByTasks(256)] {
        let mut rounds = Rounds::default();
        for _ in 0..pace.choose(41, 1) {
            rounds.bare.push(nanos(pace, asking, &bare).await);
            rounds.few_held.push(nanos(pace, asking, &few_held.registry).await);
            rounds.many_held.push(nanos(pace, asking, &many_held.registry).await);
        }
        report(pace, asking, &rounds);
    }
    few_held.end().await;
    many_held.end().await;
}

/// Nanoseconds per message.
async fn nanos(pace: Pace, asking: Asking, registry: &impl RegistryClient) -> f64 {
    let pairs = pace.choose(20_480, 512);
    let laps = match asking {
        Asking::ByTheProgram => asks(registry, &apart(1)[0], pairs).await,
        Asking::ByTasks(count) => closed_loop(registry, &apart(count), pairs / count as u64).await,
    };
    nanos_each(laps.messages, laps.busy)
}

fn report(pace: Pace, asking: Asking, rounds: &Rounds) {
    let Rounds { bare, few_held, many_held } = rounds;
    let (few, many) = (few_held.over(bare), many_held.over(bare));
    println!(
        "{asking:?} | {} | {} | {} | {} | {}",
        bare.spread(0),
        few_held.spread(0),
        many_held.spread(0),
        few.spread(2),
        many.spread(2)
    );
    if asking == Asking::ByTheProgram {
        let what = "a message to the registry in memory, over a bare send";
        judge(pace, what, few.median(), Goal::AtMost(2.0));
    }
}
