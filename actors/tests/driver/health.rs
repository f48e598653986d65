//! Tests the way of a driver to healthy, and back to healthy after every failure.

use std::sync::Arc;
use std::time::Duration;

use callboard_actors::driver::{DriverHealth, DriverReport, DriverSpec, DriverStage, process_name};
use callboard_actors::drivers::*;
use callboard_actors::process::{ProcessSpec, Reach};
use callboard_actors::shell::StopMode;
use callboard_actors::vocabulary::DriverName;
use callboard_proto::drivers as wire;
use tokio::time::Instant;
use tonic::Status;

use super::fixture::{Fixture, Stage, name, spec, story};

fn is(health: DriverHealth) -> impl Fn(&DriversNews) -> bool {
    move |news| match news {
        DriversNews::Reported(report) => {
            report.health == health && matches!(report.stage, DriverStage::Watching | DriverStage::Pausing)
        }
        DriversNews::Left(_) | DriversNews::DeadLetters { .. } | DriversNews::EventsInterrupted { .. } => {
            false
        }
    }
}

async fn healthy(stage: &mut Stage) -> DriverReport {
    match stage.until(is(DriverHealth::Healthy)).await {
        DriversNews::Reported(report) => report,
        other => unreachable!("{other:?}"),
    }
}

async fn add(stage: &Stage) {
    let added = stage.drivers.ask(AddDriver { spec: spec() }).await.unwrap();
    assert_eq!(added, Ok(Added::New));
}

#[test]
fn a_driver_is_launched_configured_and_watched() {
    story(|| async {
        let mut stage = Stage::new();
        add(&stage).await;
        let report = healthy(&mut stage).await;
        assert_eq!((report.version.as_deref(), report.pid, report.launches), (Some("1.2.3"), Some(1_002), 1));
        assert!(report.capabilities.is_some_and(|capabilities| capabilities.exec));
        assert_eq!(stage.fixture.plugin.book().configs[0].msgpack_config, [0x80]);
        let summary = stage.drivers.ask(AwaitDrivers { within: Duration::from_secs(50) }).await.unwrap();
        assert_eq!(summary.healthy, [name()]);
        // A second caller that adds it gets the same driver.
        assert_eq!(stage.drivers.ask(AddDriver { spec: spec() }).await.unwrap(), Ok(Added::Unchanged));
        stage.running.request_stop(StopMode::Stop);
        stage.running.ended().await;
        assert!(!stage.fixture.is_running() && stage.fixture.plugin.book().shutdown_requests == 1);
    });
}

#[test]
fn drivers_that_are_expected_are_waited_for_until_they_are_known_or_given_up_n2() {
    story(|| async {
        let missing = DriverName::new("missing").unwrap();
        let expected = [name(), missing.clone()].into();
        let stage = Stage::with(Fixture::new(), DriversOptions { expected, ..DriversOptions::default() });
        let within = Duration::from_secs(50);
        let began = Instant::now();
        let summary = stage.drivers.ask(AwaitDrivers { within }).await.unwrap();
        assert_eq!(began.elapsed().as_secs(), 50, "they are not reported");
        assert_eq!(summary.no_answer, [name(), missing.clone()]);
        // One driver is added, the other is given up: now both are known.
        add(&stage).await;
        let waiting = stage.drivers.ask(AwaitDrivers { within });
        let reason = "its configuration does not fit".to_owned();
        stage.drivers.ask(GiveUpDriver { name: missing.clone(), reason: reason.clone() }).await.unwrap();
        let began = Instant::now();
        let summary = waiting.await.unwrap();
        assert_eq!((summary.healthy, summary.unhealthy), (vec![name()], vec![(missing, reason)]));
        assert!(began.elapsed() < within);
        stage.running.request_stop(StopMode::Stop);
        stage.running.ended().await;
    });
}

#[test]
fn whichever_attempt_is_the_first_to_succeed_readiness_is_told_then_hlt_04() {
    for failures in 1..=10 {
        story(|| async move {
            let mut stage = Stage::new();
            stage.fixture.failures.set(failures);
            add(&stage).await;
            // A failure is an answer: the caller does not wait until a launch succeeds.
            let began = Instant::now();
            let summary = stage.drivers.ask(AwaitDrivers { within: Duration::from_secs(50) }).await.unwrap();
            assert_eq!((summary.unhealthy.len(), began.elapsed().as_secs()), (1, 0), "{summary:?}");
            healthy(&mut stage).await;
            assert_eq!(stage.fixture.launches.borrow().len() as u32, failures + 1);
            stage.running.request_stop(StopMode::Stop);
            stage.running.ended().await;
            assert!(!stage.fixture.is_running());
        });
    }
}

#[test]
fn a_stop_while_every_attempt_fails_is_clean_hlt_04() {
    story(|| async {
        let mut stage = Stage::new();
        stage.fixture.failures.set(u32::MAX);
        add(&stage).await;
        stage.until(is(DriverHealth::Unhealthy)).await;
        let began = Instant::now();
        stage.running.request_stop(StopMode::Stop);
        stage.running.ended().await;
        assert!(began.elapsed() < Duration::from_secs(1));
    });
}

/// Ends a driver a hundred times in one way, and checks that it is healthy again each time within the longest pause.
fn a_hundred_ends(end: impl Fn(&Fixture) + Copy + 'static) -> Vec<Instant> {
    let launches = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let seen = launches.clone();
    story(|| async move {
        let mut stage = Stage::new();
        add(&stage).await;
        healthy(&mut stage).await;
        for round in 0..100 {
            end(&stage.fixture);
            stage.until(is(DriverHealth::Unhealthy)).await;
            let began = Instant::now();
            healthy(&mut stage).await;
            assert!(began.elapsed() <= Duration::from_secs(140), "round {round}: {:?}", began.elapsed());
        }
        seen.replace(stage.fixture.launches.borrow().clone());
        stage.running.request_stop(StopMode::Stop);
        stage.running.ended().await;
    });
    launches.take()
}

#[test]
fn a_hundred_errors_of_the_stream_are_a_hundred_resubscriptions_and_one_launch_hlt_05() {
    let launches =
        a_hundred_ends(|fixture| fixture.plugin.fingerprint(Err(Status::unknown("docker is away"))));
    assert_eq!(launches.len(), 1);
}

#[test]
fn a_hundred_polite_ends_of_the_stream_are_a_hundred_resubscriptions_and_one_launch_hlt_05() {
    let launches = a_hundred_ends(|fixture| fixture.plugin.end_fingerprints());
    assert_eq!(launches.len(), 1);
}

#[test]
fn a_hundred_crashes_are_a_hundred_launches_never_more_than_twelve_a_minute_hlt_05() {
    let launches = a_hundred_ends(|fixture| fixture.kill("signal 9"));
    assert_eq!(launches.len(), 101);
    let minute = Duration::from_secs(60);
    for (at, first) in launches.iter().enumerate() {
        let within = launches[at..].iter().take_while(|other| **other - *first < minute).count();
        assert!(within <= 13, "{within} launches within a minute");
    }
}

#[test]
fn a_dead_process_is_told_of_within_an_instant_and_another_comes_after_the_pause_prc_05() {
    story(|| async {
        let mut stage = Stage::new();
        add(&stage).await;
        healthy(&mut stage).await;
        let began = Instant::now();
        stage.fixture.kill("signal 9 (SIGKILL)");
        let is_told = |news: &DriversNews| matches!(news, DriversNews::Reported(report) if report.reason.contains("signal 9 (SIGKILL)"));
        stage.until(is_told).await;
        assert!(began.elapsed() < Duration::from_millis(100), "{:?}", began.elapsed());
        let dispense = DispenseDriver { name: name(), wanted: Wanted::Healthy, within: Duration::ZERO };
        let refused = stage.drivers.ask(dispense).await.unwrap().unwrap_err();
        assert!(refused.is_transient(), "{refused}");
        let client = stage.leases.lease(&name(), Wanted::Healthy, Duration::from_secs(60)).await;
        let client = client.expect("after the pause");
        assert_eq!((client.generation().get(), client.is_gone()), (2, false));
        assert!((4..=6).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
    });
}

#[test]
fn its_health_is_its_own_word_and_equal_fingerprints_are_told_once() {
    story(|| async {
        let mut stage = Stage::new();
        let undetected = wire::FingerprintResponse {
            health: 0,
            health_description: "no cgroups".to_owned(),
            ..Default::default()
        };
        stage.fixture.plugin.book().fingerprint = undetected.clone();
        add(&stage).await;
        let news = stage.until(is(DriverHealth::Undetected)).await;
        assert!(matches!(news, DriversNews::Reported(report) if report.reason == "no cgroups"));
        let summary = stage.drivers.ask(AwaitDrivers { within: Duration::from_secs(50) }).await.unwrap();
        assert_eq!(summary.undetected, [name()]);
        // It can be reached for its tasks, and gets no new ones.
        let dispense = |wanted| DispenseDriver { name: name(), wanted, within: Duration::ZERO };
        assert!(stage.drivers.ask(dispense(Wanted::Reachable)).await.unwrap().is_ok());
        assert!(stage.drivers.ask(dispense(Wanted::Healthy)).await.unwrap().is_err());
        (0..50).for_each(|_| stage.fixture.plugin.fingerprint(Ok(undetected.clone())));
        stage.fixture.plugin.fingerprint(Ok(super::plugin::healthy()));
        let news = stage.until(|news| matches!(news, DriversNews::Reported(_))).await;
        assert!(is(DriverHealth::Healthy)(&news), "{news:?}");
    });
}

#[test]
fn a_fingerprint_that_breaks_the_protocol_is_a_failure_and_never_a_default() {
    story(|| async {
        let mut stage = Stage::new();
        stage.fixture.plugin.book().fingerprint =
            wire::FingerprintResponse { health: 9, ..Default::default() };
        add(&stage).await;
        let news = stage.until(is(DriverHealth::Unhealthy)).await;
        assert!(matches!(news, DriversNews::Reported(report) if report.reason.contains("health is 9")));
    });
}

#[test]
fn a_process_of_an_earlier_run_is_found_again_and_left_again() {
    story(|| async {
        let fixture = Fixture::new();
        fixture.spawn(process_name(&name()).unwrap());
        let mut stage = Stage::with(fixture, DriversOptions::default());
        add(&stage).await;
        let report = healthy(&mut stage).await;
        assert_eq!((report.launches, report.pid), (0, Some(1_001)));
        stage.running.request_stop(StopMode::Detach);
        stage.running.ended().await;
        assert!(stage.fixture.is_running() && stage.fixture.plugin.book().shutdown_requests == 0);
    });
}

/// Adds a driver whose process has this argument. A stop of the process also ends everything that it started.
async fn add_with(stage: &Stage, argument: &str) {
    let mut process = ProcessSpec::clone(&spec().process);
    (process.arguments, process.reach) = (vec![argument.to_owned()], Reach::Everything);
    let changed = DriverSpec { process: Arc::new(process), ..spec() };
    assert_eq!(stage.drivers.ask(AddDriver { spec: changed }).await.unwrap(), Ok(Added::New));
}

/// The host detaches from the surviving process, and another run begins.
async fn next_run(stage: Stage) -> Stage {
    stage.running.request_stop(StopMode::Detach);
    stage.running.ended().await;
    Stage::with(stage.fixture.clone(), DriversOptions::default())
}

#[test]
fn a_process_that_an_earlier_run_started_with_another_configuration_is_replaced_prc_04() {
    story(|| async {
        let mut stage = Stage::new();
        add_with(&stage, "old").await;
        let first = healthy(&mut stage).await;
        stage = next_run(stage).await;
        add_with(&stage, "old").await;
        let again = healthy(&mut stage).await;
        assert_eq!((again.pid, again.launches), (first.pid, 0), "the same configuration: it goes on");
        stage = next_run(stage).await;
        add_with(&stage, "new").await;
        let other = healthy(&mut stage).await;
        assert!(other.pid != first.pid && other.launches == 1, "{other:?}");
        let status = stage.drivers.ask(DescribeDriver { name: name() }).await.unwrap().unwrap();
        let told: Vec<String> = status.troubles.iter().map(ToString::to_string).collect();
        assert!(told.len() == 1 && told[0].contains("another configuration"), "{told:?}");
    });
}

#[test]
fn a_restart_right_behind_its_addition_ends_what_an_earlier_run_left() {
    story(|| async {
        let mut stage = Stage::new();
        add(&stage).await;
        let first = healthy(&mut stage).await;
        stage = next_run(stage).await;
        let added = stage.drivers.ask(AddDriver { spec: spec() });
        let restarted = stage.drivers.ask(RestartDriver { name: name() });
        assert_eq!((added.await.unwrap(), restarted.await.unwrap()), (Ok(Added::New), Ok(())));
        let other = healthy(&mut stage).await;
        assert!(other.pid != first.pid && other.launches == 1, "{other:?}");
        assert_eq!(stage.fixture.launches.borrow().len(), 2, "it was launched once more, and not twice");
    });
}

#[test]
fn a_blocked_driver_that_still_runs_is_proven_then_ended() {
    story(|| async {
        let fixture = Fixture::new();
        fixture.spawn(process_name(&name()).unwrap());
        let options = DriversOptions { blocked: [name()].into(), ..DriversOptions::default() };
        let stage = Stage::with(fixture, options);
        let refused = stage.drivers.ask(AddDriver { spec: spec() }).await.unwrap().unwrap_err();
        assert_eq!(refused, AddDriverError::Blocked { driver: name() });
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(!stage.fixture.is_running());
        assert_eq!(stage.drivers.ask(ListDrivers).await.unwrap(), [], "it is no driver of this host");
    });
}

#[test]
fn one_that_this_run_was_never_told_of_can_be_removed() {
    story(|| async {
        let fixture = Fixture::new();
        fixture.spawn(process_name(&name()).unwrap());
        let stage = Stage::with(fixture, DriversOptions::default());
        let removed = stage.drivers.ask(RemoveDriver { name: name() }).await.unwrap();
        assert_eq!(removed, Ok(Removed::Ended { ending: "signal 15".to_owned() }));
        let removed = stage.drivers.ask(RemoveDriver { name: name() }).await.unwrap();
        assert_eq!(removed, Ok(Removed::NothingRan));
    });
}

#[test]
fn a_driver_that_is_removed_leaves_once_and_one_that_is_changed_comes_anew() {
    story(|| async {
        let mut stage = Stage::new();
        add(&stage).await;
        healthy(&mut stage).await;
        let changed = DriverSpec { config: vec![0x81], ..spec() };
        assert_eq!(stage.drivers.ask(AddDriver { spec: changed }).await.unwrap(), Ok(Added::Replacing));
        healthy(&mut stage).await;
        assert_eq!(stage.fixture.plugin.book().configs.last().unwrap().msgpack_config, [0x81]);
        let removed = stage.drivers.ask(RemoveDriver { name: name() }).await.unwrap();
        assert_eq!(removed, Ok(Removed::Ended { ending: "exit code 0".to_owned() }));
        stage.until(|news| matches!(news, DriversNews::Left(_))).await;
        let dispense =
            DispenseDriver { name: name(), wanted: Wanted::Healthy, within: Duration::from_secs(9) };
        let refused = stage.drivers.ask(dispense).await.unwrap().unwrap_err();
        assert_eq!(refused, NotDispensed::Unknown { driver: name() });
    });
}

#[test]
fn each_plugin_has_the_grace_it_was_given_shd_07() {
    for (grace, needs, is_forced) in [(30, 20, false), (5, 20, true)] {
        story(|| async move {
            let mut stage = Stage::new();
            stage.fixture.plugin.book().is_polite = false;
            stage.fixture.is_stubborn.set(true);
            let patient = DriverSpec { stop_grace: Duration::from_secs(grace), ..spec() };
            stage.drivers.ask(AddDriver { spec: patient }).await.unwrap().unwrap();
            healthy(&mut stage).await;
            let began = Instant::now();
            let fixture = stage.fixture.clone();
            actix_rt::spawn(async move {
                tokio::time::sleep(Duration::from_secs(needs)).await;
                fixture.kill("exit code 0");
            });
            stage.running.request_stop(StopMode::Stop);
            stage.running.ended().await;
            let took = began.elapsed().as_secs();
            assert_eq!(
                (stage.fixture.forced.get() > 0, took),
                (is_forced, grace.min(needs)),
                "grace {grace}"
            );
        });
    }
}

#[test]
fn a_restart_brings_another_process_at_once() {
    story(|| async {
        let mut stage = Stage::new();
        add(&stage).await;
        healthy(&mut stage).await;
        let began = Instant::now();
        stage.drivers.ask(RestartDriver { name: name() }).await.unwrap().unwrap();
        let report = healthy(&mut stage).await;
        assert!(began.elapsed() < Duration::from_secs(1));
        assert_eq!((report.generation.get(), report.stage), (2, DriverStage::Watching));
        let status = stage.drivers.ask(DescribeDriver { name: name() }).await.unwrap().unwrap();
        assert_eq!((status.restarts, status.troubles), (0, vec![]));
    });
}
