//! One claim after the other: from the message to the proven mount, and back. A second host, whose data directory is in memory, shows
//! what share of that is the disk.

use std::path::Path;
use std::time::Instant;

use crate::bare::Bare;
use crate::site::{Site, volume};
use crate::support::Pace;
use crate::support::curve::nanos;
use crate::support::disk::directory;
use crate::support::figures::{Goal, Samples, judge};

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
    println!("data directory | bare ms | claim ms | times bare | bare undo ms | release ms | times bare");
    let on_disk = with_data_in("on disk", disk.path(), disk.path(), pace).await;
    let in_memory = with_data_in("in memory", memory.path(), disk.path(), pace).await;
    println!("share of the disk in a claim: {:.0} %", (1.0 - in_memory.1 / on_disk.1) * 100.0);
    judge(pace, "a claim on disk, of the bare calls", on_disk.0, Goal::AtMost(1.5));
}

/// How often a claim takes the time of the bare calls, and how long it takes.
async fn with_data_in(shown: &str, data: &Path, plugin: &Path, pace: Pace) -> (f64, f64) {
    let (rounds, each) = (pace.choose(15, 1), pace.choose(40, 3));
    let place = tempfile::tempdir_in(plugin).expect("a directory can be made");
    let mut site = Site::start(&data.join("data"), place.path()).await;
    let socket = site.plugin("p", &[]).await;
    let mut bare = Bare::connect(&socket, data.join("bare")).await;
    let (ours, theirs) = (volume("ours", 0), bare.create("bare".to_owned()).await);
    site.create("p", &ours).await;
    let (mut of_bare, mut of_claim) = (Took::default(), Took::default());
    for _ in 0..rounds {
        let (mut bare_round, mut claim_round) = (Took::default(), Took::default());
        // In turn, so that both meet the same noise.
        for _ in 0..each {
            let begun = Instant::now();
            bare.set_up(&theirs).await;
            bare_round.set_up.push(nanos(begun.elapsed()) / 1e6);
            let begun = Instant::now();
            bare.undo(&theirs).await;
            bare_round.undone.push(nanos(begun.elapsed()) / 1e6);
            let begun = Instant::now();
            site.claim(&ours).await;
            claim_round.set_up.push(nanos(begun.elapsed()) / 1e6);
            let begun = Instant::now();
            site.release(&ours).await;
            claim_round.undone.push(nanos(begun.elapsed()) / 1e6);
        }
        of_bare.add(&bare_round);
        of_claim.add(&claim_round);
    }
    println!(
        "{shown} | {} | {} | {} | {} | {} | {}",
        of_bare.set_up.spread(2),
        of_claim.set_up.spread(2),
        of_claim.set_up.over(&of_bare.set_up).spread(2),
        of_bare.undone.spread(2),
        of_claim.undone.spread(2),
        of_claim.undone.over(&of_bare.undone).spread(2)
    );
    drop(site.stop().await);
    (of_claim.set_up.over(&of_bare.set_up).median(), of_claim.set_up.median())
}

impl Took {
    fn add(&mut self, round: &Self) {
        self.set_up.push(round.set_up.median());
        self.undone.push(round.undone.median());
    }
}
