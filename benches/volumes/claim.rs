//! One claim after the other: from the message to the proven mount, and back. A second host, with a data directory in memory, shows
//! the share of the disk. The bare calls are measured twice: alone, and between two commits to a bare redb. These two commits are the
//! minimum for a crash between the calls: one with the intent before the first call, and one with the outcome after the last.

use std::path::Path;
use std::time::Instant;

use crate::bare::Bare;
use crate::site::{Site, volume};
use crate::support::Pace;
use crate::support::curve::nanos;
use crate::support::disk::{BareRedb, directory};
use crate::support::figures::{Goal, Samples, judge};

/// The approximate size of the rows that a claim or its release writes into the ledger with each commit.
const ROW: usize = 1024;

/// The medians of the rounds, in milliseconds.
#[derive(Default)]
struct Took {
    set_up: Samples,
    undone: Samples,
}

pub(crate) async fn measure(pace: Pace) {
    let (disk, memory) =
        (directory(), tempfile::tempdir_in("/dev/shm").expect("it is a directory in memory"));
    println!("\none claim after the other");
    println!(
        "data directory | | bare ms | bare with 2 commits, ms | ours, ms | times bare | times bare with 2 commits"
    );
    let on_disk = with_data_in("on disk", disk.path(), disk.path(), pace).await;
    let in_memory = with_data_in("in memory", memory.path(), disk.path(), pace).await;
    println!("share of the disk in a claim: {:.0} %", (1.0 - in_memory.took / on_disk.took) * 100.0);
    judge(pace, "a claim on disk, of the bare calls", on_disk.of_bare, Goal::AtMost(1.5));
    judge(pace, "a claim on disk, of the bare calls with two commits", on_disk.of_durable, Goal::AtMost(1.5));
}

/// The time of a claim, in milliseconds, and its ratio to the bare calls.
struct Ratios {
    took: f64,
    of_bare: f64,
    of_durable: f64,
}

async fn with_data_in(shown: &str, data: &Path, plugin: &Path, pace: Pace) -> Ratios {
    let (rounds, each) = (pace.choose(15, 1), pace.choose(40, 3));
    let place = tempfile::tempdir_in(plugin).expect("a directory can be made");
    let mut site = Site::start(&data.join("data"), place.path()).await;
    let socket = site.plugin("p", &[]).await;
    let mut bare = Bare::connect(&socket, data.join("bare")).await;
    let ledger = tempfile::tempdir_in(data).expect("a directory can be made");
    let mut redb = BareRedb::holding(0, vec![7; ROW], ledger.path());
    let (ours, theirs) = (volume("ours", 0), bare.create("bare".to_owned()).await);
    site.create("p", &ours).await;
    let (mut of_bare, mut of_durable, mut of_claim) = (Took::default(), Took::default(), Took::default());
    for _ in 0..rounds {
        let (mut plain, mut durable, mut claim) = (Took::default(), Took::default(), Took::default());
        // In turn, so that all meet the same noise.
        for _ in 0..each {
            plain.set_up.push(timed(bare.set_up(&theirs)).await);
            plain.undone.push(timed(bare.undo(&theirs)).await);
            durable.set_up.push(timed(between_commits(&mut redb, bare.set_up(&theirs))).await);
            durable.undone.push(timed(between_commits(&mut redb, bare.undo(&theirs))).await);
            claim.set_up.push(timed(site.claim(&ours)).await);
            claim.undone.push(timed(site.release(&ours)).await);
        }
        of_bare.add(&plain);
        of_durable.add(&durable);
        of_claim.add(&claim);
    }
    for (what, of) in [("claim", Took::set_up as fn(&Took) -> &Samples), ("release", Took::undone)] {
        let (plain, durable, ours) = (of(&of_bare), of(&of_durable), of(&of_claim));
        println!(
            "{shown} | {what} | {} | {} | {} | {} | {}",
            plain.spread(2),
            durable.spread(2),
            ours.spread(2),
            ours.over(plain).spread(2),
            ours.over(durable).spread(2)
        );
    }
    drop(site.stop().await);
    Ratios {
        took: of_claim.set_up.median(),
        of_bare: of_claim.set_up.over(&of_bare.set_up).median(),
        of_durable: of_claim.set_up.over(&of_durable.set_up).median(),
    }
}

/// The duration in milliseconds.
async fn timed(work: impl Future<Output = ()>) -> f64 {
    let begun = Instant::now();
    work.await;
    nanos(begun.elapsed()) / 1e6
}

/// Runs the calls between the commit of an intent and that of its outcome.
async fn between_commits(redb: &mut BareRedb, calls: impl Future<Output = ()>) {
    redb.insert();
    calls.await;
    redb.remove();
}

impl Took {
    const fn set_up(&self) -> &Samples {
        &self.set_up
    }

    const fn undone(&self) -> &Samples {
        &self.undone
    }

    fn add(&mut self, round: &Self) {
        self.set_up.push(round.set_up.median());
        self.undone.push(round.undone.median());
    }
}
