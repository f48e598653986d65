//! Tests a driver that hangs: its host detects it by its pings, shows it as unhealthy, and waits for it without cutting or ending anything.

mod support;

use std::time::Duration;

use callboard::actors::driver::client::{DriverClient, TaskConfig, TaskEnd, TaskId};
use callboard::actors::driver::{DriverHealth, DriverReport, DriverStage as Stage};
use callboard::actors::drivers::{DescribeDriver, DriverStatus, Wanted};
use callboard::actors::vocabulary::TaskName;
use callboard::host::Host;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use support::drivers::{DriverStage, add, driver_name, remove, until_driver, until_reason};
use support::{LONG, Watch, id, until};

const NAME: &str = "hung";
/// The number of pings in a row without an answer: more than the unanswered requests during a start after which a process is replaced.
const UNANSWERED: u64 = 5;

async fn describe(host: &Host) -> DriverStatus {
    host.drivers().ask(DescribeDriver { name: driver_name(NAME) }).await.unwrap().unwrap()
}

fn signal(report: &DriverReport, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(report.pid.expect("it runs")).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

/// The process, the generation of its connection, and the number of launches.
fn process(report: &DriverReport) -> (Option<u32>, u64, u64) {
    (report.pid, report.generation.get(), report.launches)
}

/// A task that runs until it is stopped.
async fn start_task(stage: &DriverStage, client: &DriverClient) -> TaskId {
    let task = TaskId::new("t").unwrap();
    let command = rmp_serde::to_vec_named(&json!({ "command": "sleep", "args": ["1000"] })).unwrap();
    let mut config = TaskConfig::new(task.clone(), id("a"), TaskName::new("main").unwrap(), command);
    config.allocation_dir = stage.path("allocation");
    client.start_task(&config, LONG).await.unwrap();
    task
}

#[actix::test]
async fn a_driver_that_hangs_is_unhealthy_until_it_answers_and_nothing_of_it_is_cut_hlt_03_d50() {
    let stage = DriverStage::new();
    let builder = stage.builder_with(|options| {
        options.limits.ping_every = Some(Duration::from_millis(300));
        options.limits.step_deadline = Duration::from_secs(1);
    });
    let host = builder.start().await.unwrap();
    let mut watch = Watch::on(host.drivers());
    add(&host, &stage.exec(NAME, &[])).await;
    let healthy = until_driver(&mut watch, NAME, DriverHealth::Healthy).await;
    let client = host.leases().driver(&driver_name(NAME), Wanted::Healthy, LONG).await.unwrap();
    let task = start_task(&stage, &client).await;
    let (waiting, awaited) = (client.clone(), task.clone());
    let end = tokio::task::spawn_local(async move { waiting.wait_task(&awaited, LONG).await });

    signal(&healthy, Signal::STOP);
    let hung = until_reason(&mut watch, NAME, &["it does not answer"]).await;
    assert_eq!((process(&hung), hung.stage), (process(&healthy), Stage::Watching));
    until("pings have no answer again and again", async || {
        let troubles = describe(&host).await.troubles;
        troubles.iter().any(|trouble| trouble.count >= UNANSWERED)
    })
    .await;
    let still = describe(&host).await.report;
    assert_eq!((process(&still), still.health), (process(&healthy), DriverHealth::Unhealthy));

    signal(&healthy, Signal::CONT);
    let back = until_driver(&mut watch, NAME, DriverHealth::Healthy).await;
    assert_eq!((process(&back), &back.reason), (process(&healthy), &healthy.reason));
    // It is the same client, the same task, and the call that has waited for its end since before.
    assert!(!end.is_finished(), "the call was not cut");
    client.stop_task(&task, Duration::from_secs(5), "SIGTERM", LONG).await.unwrap();
    let exit = end.await.unwrap().unwrap();
    assert_eq!(exit.end, TaskEnd::Signalled(15), "{exit:?}");
    client.destroy_task(&task, true, LONG).await.unwrap();
    remove(&host, NAME).await;
    host.stop().await;
}
