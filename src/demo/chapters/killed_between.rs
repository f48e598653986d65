//! The host is killed between unpublish and unstage.

use super::driver_serves;
use super::volumes::Shared;
use crate::demo::error::DemoError;
use crate::demo::lines;
use crate::demo::stage::{Scene, Stage};
use crate::demo::workspace::{
    COPIER, COPY, DATA, FileObserver, Hold, LEFT, PAGE_FILE, PLUGIN, RIGHT, STORAGE_2,
};

pub(super) async fn play(stage: &mut Stage, shared: &mut Shared) -> Result<(), DemoError> {
    stage.chapter(
        "The host is killed between unpublish and unstage",
        "copier is stopped: its volume is unpublished and is about to be unstaged when the host is killed with SIGKILL, and the plugin\n\
         with it. left and right have neither now, and go on. The next host finds in its ledger what is left to do.",
    )?;
    let copy = stage.scene.status.volume_id(COPY).ok_or(DemoError::StepFailed)?.to_owned();
    let driver = stage.scene.status.driver(super::DRIVER).map(|driver| driver.pid).unwrap_or_default();
    kill_between(stage).await?;
    shared.check(stage, "without a host and a plugin").await?;

    stage.start_host().await?;
    let is_known = |scene: &Scene| scene.status.volume_is(COPY, "unknown-down", &[]);
    stage.until("the next host knows that the volume of copier may still be staged", is_known).await?;
    let look = stage.mounted(COPY)?.is(true, &[]);
    stage.check("it is, and no task uses it", look).await?;
    stage.start(STORAGE_2).await?;
    let expected = "storage-2 is back, and the volume of copier is unstaged by itself";
    let undone = |stage: &Stage| {
        let serves = stage.scene.status.serves(PLUGIN, STORAGE_2, &[]);
        Ok(serves.and(stage.mounted(COPY)?.is(false, &[])))
    };
    stage.until_seen(expected, undone).await?;
    let view = [stage.workspace.view(FileObserver::Plugin(&copy), PAGE_FILE)];
    stage.check("its content is kept: only its mounts are gone", lines::is_page(&view)).await?;
    stage
        .until("exec was found again", |scene| {
            driver_serves(scene, |found| found.pid == driver && found.adopted)
        })
        .await?;
    let confirmed = |scene: &Scene| {
        let run = scene.status.task_is(LEFT, "running").and(scene.status.task_is(RIGHT, "running"));
        run.and(scene.status.volume_is_proven(DATA))
    };
    stage.until("left and right run, their claims are confirmed, and their mounts proven", confirmed).await?;
    shared.check(stage, "with the next host").await
}

/// Stops copier, and kills the host when its volume is unpublished and not unstaged.
async fn kill_between(stage: &mut Stage) -> Result<(), DemoError> {
    let plugin = stage.scene.status.pid(STORAGE_2).ok_or(DemoError::StepFailed)?;
    stage.workspace.hold(Hold::Unstage, true)?;
    stage.step();
    stage.begin_stop(COPIER)?;
    let between = |stage: &Stage| {
        let told = stage.scene.status.volume_is(COPY, "going-down", &[]);
        Ok(stage.mounted(COPY)?.is(true, &[]).and(told))
    };
    stage
        .until_seen("copier has ended, its volume is unpublished, and its unstage is in flight", between)
        .await?;
    stage.you("host", "SIGKILL (with a plugin, a driver and two tasks)")?;
    stage.kill_host().await?;
    let look = stage.has_ended(plugin).await;
    stage.check("the plugin has ended with it", look).await?;
    // The next plugin must not hang.
    stage.workspace.hold(Hold::Unstage, false)?;
    let look = stage.mounted(COPY)?.is(true, &[]);
    stage.check("the volume of copier is still staged", look).await
}
