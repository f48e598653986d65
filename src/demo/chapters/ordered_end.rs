//! The host shuts down in order.

use callboard_proto::admin::v1::ChildEnding;

use crate::demo::check::Look;
use crate::demo::error::DemoError;
use crate::demo::stage::Stage;

pub(super) async fn play(stage: &mut Stage) -> Result<(), DemoError> {
    stage.chapter(
        "The ordered end",
        "The host is asked to end. Allocations leave the books before their processes are ended, consumers end before\n\
         what they rest on, and the database is closed last. Everything ends within its deadline and is reported.",
    )?;
    stage.watch_all()?;
    stage.step();
    let report = stage.shut_down().await?;
    stage.show_report(&report)?;
    stage
        .check(
            "the report names every part, processes after their registrations, the database last",
            ordered(&report),
        )
        .await?;

    stage.host_has_ended().await?;
    let look = stage.all_ended().await;
    stage.check("no plugin process is left", look).await?;
    let look = stage.no_socket()?;
    stage.check("no socket is left", look).await
}

/// Checks that the report is complete, and in the required order.
fn ordered(report: &[ChildEnding]) -> Look {
    let position = |name: &str| report.iter().position(|ending| ending.child.ends_with(name));
    let each_in_order = ["blue", "green", "late"].iter().all(|allocation| {
        let books = position(&format!("allocation/{allocation}"));
        let process = position(&format!("process/{allocation}"));
        matches!((books, process), (Some(books), Some(process)) if books < process)
    });
    let is_last = report.last().is_some_and(|ending| ending.child.ends_with("persister"));
    let first = report.first().map_or("nothing", |ending| ending.child.as_str());
    let last = report.last().map_or("nothing", |ending| ending.child.as_str());
    let seen = format!("{} parts, first {first}, last {last}", report.len());
    Look::new(each_in_order && is_last, seen)
}
