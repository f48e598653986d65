//! Two allocations of one plugin start at once.

use callboard_proto::admin::v1::Said;

use super::Parts;
use crate::demo::check::Look;
use crate::demo::error::DemoError;
use crate::demo::stage::{Scene, Stage};
use crate::demo::workspace::{BLUE, GREEN, PLUGIN};

pub(super) async fn play(stage: &mut Stage) -> Result<Parts, DemoError> {
    stage.chapter(
        "Two allocations register, interleaved",
        "A host starts, and two allocations of the plugin hostpath, blue and green, start at once: real processes.\n\
         The one that registers last is active, the other one stands by.",
    )?;
    stage.start_host().await?;
    stage.step();
    stage.start_both(BLUE, GREEN).await?;
    stage.until("both have registered both halves of the plugin", all_registered).await?;
    let newer = last_registered(&stage.scene.said).unwrap_or_default();
    let parts = Parts::with_newer(&newer).ok_or(DemoError::StepFailed)?;
    let Parts { newer, older } = parts;
    let expected = format!("{newer}, the last to register, is active; {older} stands by");
    stage.until(&expected, |scene| scene.status.serves(PLUGIN, newer, &[older])).await?;
    Ok(parts)
}

fn registrations(said: &[Said]) -> impl DoubleEndedIterator<Item = &Said> {
    said.iter().filter(|line| line.to == "registry" && line.message == "Register")
}

fn all_registered(scene: &Scene) -> Look {
    let count = registrations(&scene.said).count();
    Look::new(count == 4, format!("{count} registrations"))
}

fn last_registered(said: &[Said]) -> Option<String> {
    registrations(said).next_back().map(|line| line.allocation.clone())
}
