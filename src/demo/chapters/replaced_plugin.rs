//! The plugin is replaced by a newer version while tasks use its volume.

use super::volumes::Shared;
use crate::demo::error::DemoError;
use crate::demo::stage::{Scene, Stage};
use crate::demo::workspace::{PLUGIN, STORAGE_1, STORAGE_2};

pub(super) async fn play(stage: &mut Stage, shared: &mut Shared) -> Result<(), DemoError> {
    stage.chapter(
        "A newer version of the plugin replaces it under them",
        "storage-2 with version 2.0.0 starts beside storage-1, and when it has been healthy for a while storage-1 is stopped. The\n\
         tasks are not touched, and the volume is not mounted again: mounts are the kernel's.",
    )?;
    let old = stage.scene.status.pid(STORAGE_1).ok_or(DemoError::StepFailed)?;
    stage.step();
    stage.replace(STORAGE_1, STORAGE_2).await?;
    let serves = |scene: &Scene| {
        scene.status.serves(PLUGIN, STORAGE_2, &[]).and(scene.status.version(PLUGIN, "2.0.0"))
    };
    stage.until("storage-2 serves hostpath in storage-1's place", serves).await?;
    let look = stage.has_ended(old).await;
    stage.check("the process of storage-1 has ended", look).await?;
    shared.check(stage, "with the new version").await
}
