//! Restart of a host: from the opening of its database to the first answer of its registry, against a bare redb that reads the
//! same rows.

mod support;

use std::path::Path;
use std::time::{Duration, Instant};

use callboard_actors::registry::{Describe, DurableStore, RegistryOptions, start};
use callboard_actors::shell::{Address, Database, IN_FLIGHT_MAX, Notices, Settings, StopMode};

use support::Pace;
use support::clients::{apart, closed_loop};
use support::disk::{directory, read_through};
use support::figures::Samples;
use support::rig::{NoAnswer, Rig, held_plugin, open};

fn main() {
    support::run("restart: from opening the database to the registry's first answer, ms", measure);
}

async fn measure(pace: Pace) {
    println!(
        "registrations | bare redb opens and reads | restart | times bare | us per registration | file, MiB"
    );
    for held in pace.choose([1_000, 10_000, 100_000], [10, 100, 1_000]) {
        let place = directory();
        let rig = Rig::on_disk(place.path(), held).await;
        closed_loop(&rig.registry, &apart(1), 1).await;
        rig.end().await;
        let (mut bare, mut ours) = (Samples::default(), Samples::default());
        for _ in 0..pace.choose(9, 1) {
            bare.push(millis(read_through(&database(place.path()), held)));
            ours.push(millis(restart(place.path(), held).await));
        }
        let bytes = std::fs::metadata(database(place.path())).expect("it is there").len();
        println!(
            "{held} | {} | {} | {} | {:.2} | {:.1}",
            bare.spread(2),
            ours.spread(2),
            ours.over(&bare).spread(1),
            ours.median() * 1_000.0 / held as f64,
            bytes as f64 / 1_048_576.0
        );
    }
}

fn database(place: &Path) -> std::path::PathBuf {
    place.join("callboard.redb")
}

fn millis(took: Duration) -> f64 {
    took.as_secs_f64() * 1_000.0
}

/// Starts a registry on the existing files, as a host does, and sends it one request.
async fn restart(place: &Path, held: u64) -> Duration {
    let begun = Instant::now();
    let persister = open(place).await;
    let store = DurableStore::new(&Database::opened(persister.clone(), Notices::default()));
    let registry = Address::vacant("registry", IN_FLIGHT_MAX);
    let running = start(&registry, RegistryOptions::default(), NoAnswer, store, Settings::default());
    let question = Describe { plugin: held_plugin(held - 1) };
    let answer = registry.ask(question).await.expect("the registry runs");
    let took = begun.elapsed();
    assert_eq!(answer.provisional.len(), 1, "everything was restored");
    running.request_stop(StopMode::Stop);
    running.ended().await;
    persister.close().await.expect("the persister runs");
    took
}
