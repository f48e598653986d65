//! Cost of the journal: register and deregister in memory, with a registry without a journal, one with a journal that is not read, and
//! one with a journal that is read, in turn, round by round.

mod support;

use callboard_actors::shell::{Detail, FeedItem, Journal, JournalLine, Settings, Subscription};

use support::Pace;
use support::clients::{apart, closed_loop};
use support::figures::{Goal, Samples, judge, nanos_each};
use support::rig::{Held, Rig};

/// The number of registrations held before.
const HELD: u64 = 100;
/// The number of clients, each with one message in flight.
const CLIENTS: usize = 8;
/// The capacity of the reader's queue.
const UNREAD_MAX: usize = 1_000_000;

/// The measurements of each round.
#[derive(Default)]
struct Rounds {
    without: Samples,
    unread: Samples,
    outcomes: Samples,
    steps: Samples,
}

fn main() {
    support::run("journal: register and deregister in memory, one subscriber, ns per message", measure);
}

async fn measure(pace: Pace) {
    let journal = Journal::default();
    let (without, with) = (rig(None).await, rig(Some(journal.clone())).await);
    let mut rounds = Rounds::default();
    for _ in 0..pace.choose(61, 1) {
        rounds.without.push(nanos(pace, &without).await);
        rounds.unread.push(nanos(pace, &with).await);
        for (detail, samples) in
            [(Detail::Outcomes, &mut rounds.outcomes), (Detail::Steps, &mut rounds.steps)]
        {
            let mut entries = journal.follow("bench", UNREAD_MAX, detail);
            samples.push(nanos(pace, &with).await);
            assert!(read(&mut entries) > 0, "there is something to read");
        }
    }
    report(pace, &rounds);
    without.end().await;
    with.end().await;
}

async fn rig(journal: Option<Journal>) -> Rig {
    Rig::in_memory_as(Held::apart(HELD), Settings { journal, ..Settings::default() }).await
}

/// Nanoseconds per message.
async fn nanos(pace: Pace, rig: &Rig) -> f64 {
    let pairs = pace.choose(20_480, 512);
    let laps = closed_loop(&rig.registry, &apart(CLIENTS), pairs / CLIENTS as u64).await;
    nanos_each(laps.messages, laps.busy)
}

/// The number of entries.
fn read(entries: &mut Subscription<JournalLine, ()>) -> usize {
    let one = |item| match item {
        FeedItem::Change { .. } => 1,
        FeedItem::Snapshot { .. } => 0,
        FeedItem::Lagged { .. } => panic!("there is room for all"),
    };
    std::iter::from_fn(|| entries.try_next()).map(one).sum()
}

fn report(pace: Pace, rounds: &Rounds) {
    let Rounds { without, unread, outcomes, steps } = rounds;
    println!("journal | ns per message | times without a journal");
    println!("none | {} |", without.spread(0));
    for (name, samples) in [("unread", unread), ("read", outcomes), ("read with steps", steps)] {
        println!("{name} | {} | {}", samples.spread(0), samples.over(without).spread(2));
    }
    let ratio = unread.over(without).median();
    judge(pace, "a message with a journal that is not read, over one without", ratio, Goal::AtMost(1.02));
}
