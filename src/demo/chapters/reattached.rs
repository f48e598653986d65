//! The host is killed, and the next one reattaches the driver and its tasks.

use super::{Tasks, driver_serves, started_once};
use crate::demo::error::DemoError;
use crate::demo::stage::{Scene, Stage};
use crate::demo::workspace::{BATCH, DRIVER, WEB};

pub(super) async fn play(stage: &mut Stage, driver: u32) -> Result<(), DemoError> {
    stage.chapter(
        "The host is killed, and its driver is not",
        "This time the plugin is meant to outlive its host. While there is no host, batch has its work done and ends: exec has\n\
         no host to notify, and keeps the event. The next host finds the same process of exec, and gets what it missed.",
    )?;
    let tasks @ Tasks { web, batch } = Tasks::seen(&stage.scene)?;
    stage.watch_all()?;
    stage.you("host", "SIGKILL (with a driver and two tasks)")?;
    stage.kill_host().await?;
    let look = stage.go_on(&[driver, web, batch]).await;
    stage.check("the driver and both tasks go on without a host", look).await?;
    stage.workspace.finish_batch()?;
    let look = stage.has_ended(batch).await;
    stage.check("batch has ended while there is no host", look).await?;

    stage.start_host().await?;
    let expected =
        format!("exec is healthy in the same process {driver}, found again, and none was launched");
    let is_same = |scene: &Scene| {
        driver_serves(scene, |found| found.pid == driver && found.adopted && found.launches == 0)
    };
    stage.until(&expected, is_same).await?;
    nothing_is_lost(stage, tasks).await?;
    let look = stage.go_on(&[driver, web]).await;
    stage.check(&format!("{DRIVER} and web are the processes that they were"), look).await?;
    let look = started_once(stage, WEB, web).and(started_once(stage, BATCH, batch));
    stage.check("neither task was started again", look).await
}

/// Checks that the new host has every event, each once.
async fn nothing_is_lost(stage: &mut Stage, tasks: Tasks) -> Result<(), DemoError> {
    let Tasks { web, batch } = tasks;
    let told = |pid: u32| [format!("started, process {pid}"), format!("recovered, process {pid}")];
    let (of_web, of_batch) = (told(web), told(batch));
    let web_runs = |scene: &Scene| {
        let has_told = scene.status.has_told(WEB, &[&of_web[0], &of_web[1]]);
        scene.status.task_is(WEB, "running").and(has_told)
    };
    stage.until("web runs, and no event of it was told twice", web_runs).await?;
    let is_known = |scene: &Scene| {
        let events = [of_batch[0].as_str(), &of_batch[1], "exited with code 0"];
        scene.status.has_exited(BATCH, 0).and(scene.status.has_told(BATCH, &events))
    };
    stage.until("that batch has ended, and how, was not lost", is_known).await
}
