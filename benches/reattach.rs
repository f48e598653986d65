//! Reattach: restart of a host that left its drivers running, from the opening of its database until each driver is proven,
//! adopted and healthy. Against as many bare dials, each with a first call, to the same processes.

mod support;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use callboard::host::Host;
use callboard_actors::driver::DriverReport;
use futures_util::future::join_all;

use support::Pace;
use support::disk::directory;
use support::drivers::{DriversFeed, add, dial_and_ask, host, millis, reference, sockets};
use support::figures::Samples;

fn main() {
    support::run("reattach of surviving drivers after a restart of the host, ms", measure);
}

async fn measure(pace: Pace) {
    println!("drivers | bare dials and first calls | reattach | times bare | ms per driver");
    for drivers in pace.choose([1, 10, 100], [1, 2, 3]) {
        let place = directory();
        leave_running(place.path(), drivers).await;
        let listening = listening(place.path(), drivers);
        let (mut bare, mut ours) = (Samples::default(), Samples::default());
        for _ in 0..pace.choose(9, 1) {
            bare.push(millis(bare_dials(&listening).await));
            ours.push(millis(reattach(place.path(), drivers).await));
        }
        let each = ours.median() / drivers as f64;
        println!(
            "{drivers} | {} | {} | {} | {each:.2}",
            bare.spread(1),
            ours.spread(1),
            ours.over(&bare).spread(1)
        );
        end_all(place.path(), drivers).await;
    }
}

fn driver_names(drivers: usize) -> impl Iterator<Item = String> {
    (0..drivers).map(|number| format!("exec-{number}"))
}

/// A host with all drivers healthy, and their reports.
async fn serving(place: &Path, drivers: usize) -> (Host, Vec<DriverReport>) {
    let host = host(place).await;
    let mut feed = DriversFeed::of(host.drivers());
    join_all(driver_names(drivers).map(|name| add(host.drivers(), reference(place, &name)))).await;
    let mut reports = Vec::new();
    while reports.len() < drivers {
        reports.push(feed.healthy().await);
    }
    (host, reports)
}

/// Launches the drivers in a host, and detaches it.
async fn leave_running(place: &Path, drivers: usize) {
    let (host, _) = serving(place, drivers).await;
    host.detach().await;
}

fn listening(place: &Path, drivers: usize) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(sockets(place)).expect("it is there");
    let found: Vec<_> = entries.map(|entry| entry.expect("it is there").path()).collect();
    assert_eq!(found.len(), drivers, "each has its socket");
    found
}

async fn bare_dials(sockets: &[PathBuf]) -> Duration {
    let begun = Instant::now();
    let channels = join_all(sockets.iter().map(|socket| dial_and_ask(socket))).await;
    let took = begun.elapsed();
    drop(channels);
    took
}

/// Starts a host, waits until all drivers are reattached, and detaches it.
async fn reattach(place: &Path, drivers: usize) -> Duration {
    let begun = Instant::now();
    let (host, reports) = serving(place, drivers).await;
    let took = begun.elapsed();
    for report in reports {
        assert!(report.is_adopted && report.launches == 0, "{} was found again", report.name);
    }
    host.detach().await;
    took
}

async fn end_all(place: &Path, drivers: usize) {
    let (host, _) = serving(place, drivers).await;
    host.stop().await;
    let left = std::fs::read_dir(sockets(place)).expect("it is there").count();
    assert_eq!(left, 0, "every driver took its socket with it");
}
