//! The plugin is killed in the middle of a stage.

use super::volumes::Shared;
use crate::demo::check::Look;
use crate::demo::error::DemoError;
use crate::demo::lines::{self, View};
use crate::demo::process_watcher::ProcessWatcher;
use crate::demo::stage::{Scene, Stage};
use crate::demo::workspace::{COPIER, COPY, DATA, FileObserver, Hold, PAGE_FILE, PLUGIN, STORAGE_2};

pub(super) async fn play(stage: &mut Stage, shared: &mut Shared) -> Result<(), DemoError> {
    stage.chapter(
        "The plugin is killed in the middle of a stage",
        "A third task, copier, needs a second volume too. The plugin has mounted it in NodeStageVolume and has not answered when it is\n\
         killed with SIGKILL. Whether the volume is staged is unknown: the same call goes to the next process.",
    )?;
    let old = stage.scene.status.pid(STORAGE_2).ok_or(DemoError::StepFailed)?;
    stage.workspace.hold(Hold::Stage, true)?;
    stage.step();
    stage.start(COPIER).await?;
    let in_the_middle = |stage: &Stage| {
        let told = stage.scene.status.volume_is(COPY, "going-up", &[COPIER]);
        Ok(stage.mounted(COPY)?.is(true, &[]).and(told))
    };
    stage
        .until_seen("the second volume is mounted, and the call that did it is in flight", in_the_middle)
        .await?;
    // The call in flight stays held; the next one must not be.
    stage.workspace.hold(Hold::Stage, false)?;
    let process = format!("process {STORAGE_2}");
    stage.you(&process, &format!("SIGKILL (process {old})"))?;
    ProcessWatcher::of(&process, old)?.kill()?;
    let look = stage.has_ended(old).await;
    stage.check("the plugin has ended in its call", look).await?;
    shared.check(stage, "without a plugin, or with the next one").await?;

    let is_another = |scene: &Scene| {
        let another = scene.status.pid(STORAGE_2).is_some_and(|pid| pid != old);
        let seen = format!("process {}", scene.status.pid(STORAGE_2).unwrap_or_default());
        scene.status.serves(PLUGIN, STORAGE_2, &[]).and(Look::new(another, seen))
    };
    stage.until("another process of storage-2 serves hostpath", is_another).await?;
    let runs = |scene: &Scene| {
        scene.status.task_is(COPIER, "running").and(scene.status.volume_is(COPY, "up", &[COPIER]))
    };
    stage.until("copier runs: what was begun was completed, without being asked for again", runs).await?;
    let once = |stage: &Stage| Ok(stage.mounted(COPY)?.is(true, &[COPIER]));
    stage
        .until_seen("the second volume is staged once and published once, and not mounted twice", once)
        .await?;
    let copied = |stage: &Stage| Ok(lines::is_page(&copies(stage)));
    stage.until_seen("copier finds the page in the one volume, and has copied it to the other", copied).await
}

/// The page as copier finds it in both volumes.
fn copies(stage: &Stage) -> [View; 2] {
    let process = stage.scene.status.task_process(COPIER).unwrap_or_default();
    [DATA, COPY].map(|volume| {
        let view = stage.workspace.view(FileObserver::Task(COPIER, process, volume), PAGE_FILE);
        View { by: volume, ..view }
    })
}
