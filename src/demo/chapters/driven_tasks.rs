//! Two tasks run through a driver.

use super::{driver_serves, in_order};
use crate::demo::error::DemoError;
use crate::demo::stage::Stage;
use crate::demo::workspace::{BATCH, DRIVER, WEB};

/// Plays it, and returns the driver's process id.
pub(super) async fn play(stage: &mut Stage) -> Result<u32, DemoError> {
    stage.chapter(
        "Tasks run through a driver",
        "The other family of plugins: drivers, child processes that say one line and then speak gRPC. Another host, on a\n\
         directory of its own, launches the driver exec. Two tasks run through it: web, until it is stopped, and batch, until\n\
         its work is done.",
    )?;
    stage.workspace.open_second_part()?;
    stage.start_host().await?;
    let expected = "exec is healthy, in a process that was launched for it";
    stage.until(expected, |scene| driver_serves(scene, |driver| !driver.adopted)).await?;
    for task in [WEB, BATCH] {
        stage.step();
        stage.start(task).await?;
        let (start, driver, named) =
            (format!("start {task}"), format!("driver {DRIVER}"), format!("task {task}"));
        let lines = [
            ("you", "agent", start.as_str()),
            ("tasks", driver.as_str(), start.as_str()),
            (driver.as_str(), named.as_str(), "event: started"),
        ];
        let expected = format!("exec was told to start {task}, and tells by an event that it did");
        stage.until(&expected, |scene| in_order(&scene.said, &lines)).await?;
        let expected = format!("{task} runs, and has one event");
        let runs = |scene: &crate::demo::stage::Scene| {
            scene.status.task_is(task, "running").and(scene.status.has_told(task, &["started"]))
        };
        stage.until(&expected, runs).await?;
    }
    stage.scene.status.driver(DRIVER).map(|driver| driver.pid).ok_or(DemoError::StepFailed)
}
