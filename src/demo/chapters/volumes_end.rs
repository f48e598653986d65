//! The host with volumes shuts down in order.

use super::volumes::Shared;
use crate::demo::check::Look;
use crate::demo::error::DemoError;
use crate::demo::stage::Stage;
use crate::demo::workspace::{COPY, DATA, LEFT, RIGHT};

pub(super) async fn play(stage: &mut Stage, shared: &Shared) -> Result<(), DemoError> {
    stage.chapter(
        "Tasks first, then their volumes, then the plugin",
        "The host is asked to end, and to leave nothing: the tasks are stopped, the volume is unpublished and unstaged by the plugin,\n\
         and only then the plugin is stopped. The files stay where the plugin keeps them.",
    )?;
    stage.watch_all()?;
    stage.step();
    let report = stage.shut_down().await?;
    stage.show_report(&report)?;
    let look = |task: &str| {
        let named = report.iter().any(|ending| ending.child.ends_with(&format!("task/{task}")));
        Look::new(named, format!("{task} {}", if named { "is named" } else { "is missing" }))
    };
    stage.check("the report names both tasks", look(LEFT).and(look(RIGHT))).await?;
    stage.host_has_ended().await?;
    let look = stage.all_ended().await;
    stage.check("no process of a plugin or a task is left", look).await?;
    let look = stage.mounted(DATA)?.is(false, &[]).and(stage.mounted(COPY)?.is(false, &[]));
    stage.check("nothing of either volume is mounted", look).await?;
    let left = stage.workspace.left_of_volumes()?;
    let seen = left.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
    let look = Look::new(left.is_empty(), if left.is_empty() { "none".to_owned() } else { seen });
    stage.check("no directory for a mount is left, and no file outside of the volumes", look).await?;
    let look = shared.kept(stage);
    stage.check("the files are there, with every line that the tasks wrote", look).await?;
    shared.print_page(stage)
}
