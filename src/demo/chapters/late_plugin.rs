//! An allocation becomes ready late.

use super::{Parts, position};
use crate::demo::check::Look;
use crate::demo::error::DemoError;
use crate::demo::stage::{Scene, Stage};
use crate::demo::workspace::{LATE, PLUGIN};

/// It is not ready for three seconds; a little less is accepted, for the time before the first probe.
const LATE_AT_LEAST_MS: u64 = 2_500;

pub(super) async fn play(stage: &mut Stage, parts: Parts) -> Result<(), DemoError> {
    let Parts { newer, older } = parts;
    stage.chapter(
        "A plugin is not ready for a while",
        &format!(
            "A third allocation, late, answers \"not ready\" for three seconds. That is normal: nothing is reported, nothing is\n\
             restarted, {newer} serves on. When it is ready it registers, and is active as the newest."
        ),
    )?;
    stage.step();
    stage.start(LATE).await?;
    let started_at_unix_ms = stage.scene.said.first().map_or(0, |line| line.at_unix_ms);
    stage.until("late runs and is asked whether it is ready", is_asked).await?;
    let expected = format!("meanwhile {newer} is active and {older} stands by, as before");
    let look = stage.scene.status.serves(PLUGIN, newer, &[older]);
    stage.check(&expected, look).await?;

    let expected = format!("late is active, {newer} and {older} stand by");
    stage.until(&expected, |scene| scene.status.serves(PLUGIN, LATE, &[newer, older])).await?;
    let expected = "it took its three seconds, and the registry heard of nothing before it was ready";
    stage.until(expected, |scene| undisturbed(scene, started_at_unix_ms)).await
}

fn is_asked(scene: &Scene) -> Look {
    let (task, phase) = scene.status.allocation(LATE);
    Look::new((task, phase) == ("running", "probing"), format!("{LATE} is {task}, its supervisor is {phase}"))
}

/// Checks that the registry's first message was late's own registration, after the expected time.
fn undisturbed(scene: &Scene, started_at_unix_ms: u64) -> Look {
    let said = &scene.said;
    let is_registry =
        |line: &&callboard_proto::admin::v1::Said| line.to == "registry" || line.from == "registry";
    let first = said.iter().find(is_registry);
    let registered = position(said, 0, "allocation late", "registry", "Register").and_then(|at| said.get(at));
    let (Some(first), Some(registered)) = (first, registered) else {
        return Look::new(false, "late did not register");
    };
    let took_ms = registered.at_unix_ms.saturating_sub(started_at_unix_ms);
    let holds = first.number == registered.number && took_ms >= LATE_AT_LEAST_MS;
    let seen =
        format!("the registry first heard \"{}\" of {}, after {took_ms} ms", first.message, first.allocation);
    Look::new(holds, seen)
}
