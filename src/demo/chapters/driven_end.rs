//! The host with the driver shuts down in order.

use callboard_proto::admin::v1::ChildEnding;

use super::{Tasks, started_once};
use crate::demo::check::Look;
use crate::demo::error::DemoError;
use crate::demo::stage::Stage;
use crate::demo::workspace::WEB;

pub(super) async fn play(stage: &mut Stage) -> Result<(), DemoError> {
    stage.chapter(
        "Tasks first, then their driver",
        "The host is asked to end, and to leave nothing. The driver is needed to stop its tasks, so they are stopped first, then\n\
         the driver is asked to end, and the database is closed last.",
    )?;
    let web = Tasks::seen(&stage.scene)?.web;
    stage.watch_all()?;
    stage.step();
    let report = stage.shut_down().await?;
    stage.show_report(&report)?;
    stage.check("the report names the task, then the drivers, the database last", ordered(&report)).await?;
    stage.host_has_ended().await?;
    let look = stage.all_ended().await;
    stage.check("no process of a plugin or a task is left", look).await?;
    let look = stage.no_socket()?;
    stage.check("no socket is left, not even of the driver that was killed", look).await?;
    let look = started_once(stage, WEB, web);
    stage.check("in all this, web has been started once", look).await
}

/// Checks that the report is complete, and in the required order.
fn ordered(report: &[ChildEnding]) -> Look {
    let position = |name: &str| report.iter().position(|ending| ending.child.ends_with(name));
    let (task, drivers) = (position("task/web"), position("host/drivers"));
    let in_order = matches!((task, drivers), (Some(task), Some(drivers)) if task < drivers);
    let is_last = report.last().is_some_and(|ending| ending.child.ends_with("persister"));
    let last = report.last().map_or("nothing", |ending| ending.child.as_str());
    Look::new(in_order && is_last, format!("{} parts, last {last}", report.len()))
}
