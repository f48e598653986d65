//! Two tasks share a volume, in a user and mount namespace of their own.

use super::volumes::Shared;
use crate::demo::error::DemoError;
use crate::demo::stage::{Scene, Stage};
use crate::demo::workspace::{DATA, LEFT, PLUGIN, RIGHT, STORAGE_1};

/// Plays it; `None` if the system refuses the namespace.
pub(super) async fn play(stage: &mut Stage) -> Result<Option<Shared>, DemoError> {
    stage.chapter(
        "Two tasks share a volume",
        "A third host runs in a mount namespace of its own, without root in a user namespace too: what is mounted there is real,\n\
         seen only there, and gone with it. Version 1.0.0 of hostpath creates a volume. Two tasks have it mounted: left writes a\n\
         page and then line after line, and right writes its lines between those.",
    )?;
    stage.workspace.open_third_part()?;
    if let Err(reason) = stage.enter_namespace().await? {
        stage.print(&format!("  This is not shown, and neither is what follows: {reason}."))?;
        stage.print("    Mounts need root, or a system that lets its users make user namespaces.")?;
        stage.not_shown = Some(format!("volumes were not shown: {reason}"));
        return Ok(None);
    }
    stage.start_host().await?;
    stage.start(STORAGE_1).await?;
    let serves = |scene: &Scene| {
        scene.status.serves(PLUGIN, STORAGE_1, &[]).and(scene.status.version(PLUGIN, "1.0.0"))
    };
    stage.until("storage-1 serves hostpath", serves).await?;
    stage.start_both(LEFT, RIGHT).await?;
    let run = |scene: &Scene| {
        let run = scene.status.task_is(LEFT, "running").and(scene.status.task_is(RIGHT, "running"));
        run.and(scene.status.has_told(LEFT, &["started"])).and(scene.status.has_told(RIGHT, &["started"]))
    };
    stage.until("both tasks run", run).await?;
    let expected = "the kernel has the volume mounted three times: staged once, and published for each task";
    stage.until_seen(expected, |stage| Ok(stage.mounted(DATA)?.is(true, &[LEFT, RIGHT]))).await?;
    let mut shared = Shared::begin(stage)?;
    shared.print_page(stage)?;
    shared.check(stage, "to begin with").await?;
    Ok(Some(shared))
}
