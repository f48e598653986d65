//! The host is killed, and restarted on the same directory.

use super::{Parts, grown, position};
use crate::demo::check::Look;
use crate::demo::error::DemoError;
use crate::demo::stage::{Scene, Stage};
use crate::demo::workspace::{LATE, PLUGIN};

pub(super) async fn play(stage: &mut Stage, parts: Parts) -> Result<(), DemoError> {
    let Parts { newer, older } = parts;
    stage.chapter(
        "The host is killed",
        "The host is killed with SIGKILL. The kernel sees to it that no plugin process outlives it.",
    )?;
    let before = stage.scene.status.generations(PLUGIN);
    let run = stage.scene.status.run();
    kill(stage).await?;

    stage.chapter(
        "The host comes back, and its allocations in the wrong order",
        &format!(
            "A new host opens the same directory and knows all three registrations and their order. The allocations start\n\
             in the wrong order: the newest registration, late, first, then {newer}, and the oldest one, {older}, last."
        ),
    )?;
    stage.start_host().await?;
    stage.step();
    let known = [older, newer, LATE];
    let known_before = |scene: &Scene| {
        let mut known = known;
        known.sort_unstable();
        let now = scene.status.run();
        scene.status.awaits(PLUGIN, &known).and(Look::new(now == run + 1, format!("run {now} of the host")))
    };
    stage.until("all three are known from before; none is routed to until it is back", known_before).await?;

    come_back(stage, LATE, &[]).await?;
    come_back(stage, newer, &[newer]).await?;
    come_back(stage, older, &[newer, older]).await?;
    let expected = "late has been active from its return on: a return takes no place from another";
    stage.until(expected, unchanged_since_late_is_back).await?;
    let after = stage.scene.status.generations(PLUGIN);
    stage.check("generations went on growing across the death of the host", grown(before, after)).await
}

/// Kills the host, and checks that all plugin processes end with it.
async fn kill(stage: &mut Stage) -> Result<(), DemoError> {
    stage.watch_all()?;
    let running = stage.scene.status.processes().len();
    stage.you("host", &format!("SIGKILL (with {running} plugin processes)"))?;
    stage.kill_host().await?;
    let look = stage.all_ended().await;
    stage.check("no plugin process is left", look).await
}

/// Starts an allocation, and waits until late serves with exactly these on standby.
async fn come_back(stage: &mut Stage, allocation: &str, standby: &[&str]) -> Result<(), DemoError> {
    stage.start(allocation).await?;
    let expected = match standby {
        [] => "late is back and active".to_owned(),
        standby => format!("{allocation} is back; late is active, then come {}", standby.join(", ")),
    };
    stage.until(&expected, |scene| scene.status.serves_confirmed(PLUGIN, LATE, standby)).await
}

/// Checks that no other allocation became active after late was back.
fn unchanged_since_late_is_back(scene: &Scene) -> Look {
    let said = &scene.said;
    let Some(back) = position(said, 0, "registry", "everyone", "active: none → late") else {
        return Look::new(false, "late did not become active first");
    };
    let other =
        said[back..].iter().find(|line| line.message.starts_with("active: ") && line.allocation != LATE);
    match other {
        None => Look::new(true, "active: none → late, and nothing after it"),
        Some(line) => Look::new(false, line.message.clone()),
    }
}
