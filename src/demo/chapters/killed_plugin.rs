//! The active allocation's process is killed.

use super::{Parts, in_order};
use crate::demo::check::Look;
use crate::demo::error::DemoError;
use crate::demo::process_watcher::ProcessWatcher;
use crate::demo::stage::{Scene, Stage};
use crate::demo::workspace::PLUGIN;

pub(super) async fn play(stage: &mut Stage, parts: Parts) -> Result<(), DemoError> {
    let Parts { newer, older } = parts;
    stage.chapter(
        "A plugin is killed",
        &format!(
            "The process of {newer} is killed with SIGKILL: {older} takes over. {newer} is restarted after a pause of a second,\n\
             and is active again when it has registered."
        ),
    )?;
    stage.step();
    let pid = stage.scene.status.pid(newer).ok_or(DemoError::StepFailed)?;
    let restarts = stage.scene.status.restarts(newer);
    stage.you(&format!("process {newer}"), &format!("SIGKILL (process {pid})"))?;
    ProcessWatcher::of(newer, pid)?.kill()?;

    let takeover = format!("active: {newer} → {older}");
    let process = format!("process {newer}");
    // The kernel decides whether its process or its connection is missed first.
    let killed = ("you", process.as_str(), "SIGKILL");
    let ended = [killed, (process.as_str(), "agent", "process ended: signal 9")];
    let taken_over = [killed, ("registry", "everyone", &takeover)];
    let expected = format!("{newer}'s process has ended, and {older} takes over");
    let look = |scene: &Scene| in_order(&scene.said, &ended).and(in_order(&scene.said, &taken_over));
    stage.until(&expected, look).await?;

    let expected = format!("{newer} was restarted and is active again, {older} stands by");
    let is_back = |scene: &Scene| {
        let status = &scene.status;
        let (now, count) = (status.pid(newer), status.restarts(newer));
        let is_new = now.is_some_and(|now| now != pid) && count == restarts + 1;
        let process = now.map_or("no process".to_owned(), |now| format!("process {now}"));
        status.serves(PLUGIN, newer, &[older]).and(Look::new(is_new, format!("{process}, restarts {count}")))
    };
    stage.until(&expected, is_back).await
}
