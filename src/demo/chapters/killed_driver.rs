//! The driver's process is killed.

use super::{Tasks, driver_serves, in_order, started_once};
use crate::demo::error::DemoError;
use crate::demo::process_watcher::ProcessWatcher;
use crate::demo::stage::{Scene, Stage};
use crate::demo::workspace::{BATCH, DRIVER, WEB};

/// Plays it, and returns the driver's new process id.
pub(super) async fn play(stage: &mut Stage, pid: u32) -> Result<u32, DemoError> {
    stage.chapter(
        "The driver is killed",
        "The process of exec is killed with SIGKILL. The tasks do not depend on it and go on. After a pause of five seconds\n\
         another exec is launched and takes both up again, by what it finds on disk: neither is started a second time.",
    )?;
    stage.step();
    let Tasks { web, batch } = Tasks::seen(&stage.scene)?;
    let driver = format!("driver {DRIVER}");
    stage.you(&driver, &format!("SIGKILL (process {pid})"))?;
    ProcessWatcher::of(&driver, pid)?.kill()?;
    let lost = [("you", driver.as_str(), "SIGKILL"), ("drivers", "everyone", "exec is lost")];
    stage.until("exec is missed, and is to be launched again", |scene| in_order(&scene.said, &lost)).await?;
    let look = stage.go_on(&[web, batch]).await;
    stage.check("both tasks go on without it", look).await?;

    let expected = "another process of exec is healthy";
    stage.until(expected, |scene| driver_serves(scene, |driver| driver.pid != pid)).await?;
    let (started, recovered) = (
        [web, batch].map(|pid| format!("started, process {pid}")),
        [web, batch].map(|pid| format!("recovered, process {pid}")),
    );
    let taken_up = |scene: &Scene| {
        let of = |place: usize, task| {
            let told = scene.status.has_told(task, &[&started[place], &recovered[place]]);
            scene.status.task_is(task, "running").and(told)
        };
        of(0, WEB).and(of(1, BATCH))
    };
    stage
        .until("both run and were recovered as the processes that they were, each told once", taken_up)
        .await?;
    let look = started_once(stage, WEB, web).and(started_once(stage, BATCH, batch));
    stage.check("each has been started once, as it wrote down itself", look).await?;
    stage.scene.status.driver(DRIVER).map(|driver| driver.pid).ok_or(DemoError::StepFailed)
}
