//! The active allocation leaves and returns.

use super::{Parts, changed, in_order};
use crate::demo::error::DemoError;
use crate::demo::stage::{Scene, Stage};
use crate::demo::workspace::PLUGIN;

pub(super) async fn play(stage: &mut Stage, parts: Parts) -> Result<(), DemoError> {
    let Parts { newer, older } = parts;
    stage.chapter(
        "Takeover, both ways",
        &format!(
            "{newer} is stopped: {older} takes over in the very step in which {newer} leaves, and only then {newer}'s\n\
             process is ended. Then {newer} is started again: the newest registration is active."
        ),
    )?;
    let before = stage.scene.status.generations(PLUGIN);
    stage.step();
    stage.stop(newer).await?;
    let expected = format!("{older} is active and healthy, in another generation; none stands by");
    let taken_over = |scene: &Scene| {
        scene.status.serves(PLUGIN, older, &[]).and(changed(before, scene.status.generations(PLUGIN)))
    };
    stage.until(&expected, taken_over).await?;
    let allocation = format!("allocation {newer}");
    let process = format!("process {newer}");
    let takeover = format!("active: {newer} → {older}");
    let left_first = [
        (allocation.as_str(), "registry", "Deregister"),
        ("registry", "everyone", &takeover),
        ("agent", &process, "ending process"),
        (&process, "agent", "stopped"),
    ];
    let expected = format!("{newer} left the registry before its process was ended");
    stage.until(&expected, |scene| in_order(&scene.said, &left_first)).await?;

    stage.step();
    stage.start(newer).await?;
    let expected = format!("{newer} is active again, {older} stands by");
    stage.until(&expected, |scene| scene.status.serves(PLUGIN, newer, &[older])).await
}
