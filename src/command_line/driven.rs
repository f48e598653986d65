//! What people are shown of drivers and their tasks.

use callboard_proto::admin::v1 as wire;

use super::show::{ago, tone};
use super::table::{Cell, Table};
use crate::output::{Palette, harmless};

/// The tables of a status; nothing where there is neither a driver nor a task.
pub(super) fn tables(status: &wire::GetStatusResponse, palette: Palette, text: &mut String) {
    if !status.drivers.is_empty() {
        text.push('\n');
        text.push_str(&drivers(&status.drivers).lines(palette));
    }
    if !status.tasks.is_empty() {
        text.push('\n');
        text.push_str(&tasks(&status.tasks).lines(palette));
    }
}

fn drivers(drivers: &[wire::DriverStatus]) -> Table {
    let mut table =
        Table::new(&["DRIVER", "HEALTH", "FOR", "STAGE", "PID", "VERSION", "PROCESS", "ATTRIBUTES"]);
    for driver in drivers {
        let since = if driver.since_unix_ms == 0 { String::new() } else { ago(driver.since_unix_ms) };
        let pid = if driver.pid == 0 { String::new() } else { driver.pid.to_string() };
        let cells = vec![
            Cell::plain(&driver.name),
            Cell::toned(tone(&driver.health), &driver.health),
            Cell::plain(since),
            Cell::plain(&driver.stage),
            Cell::plain(pid),
            Cell::plain(&driver.version),
            Cell::plain(process(driver)),
            Cell::plain(attributes(driver)),
        ];
        let reason = (!driver.reason.is_empty()).then(|| driver.reason.clone());
        table.row(cells, reason.into_iter().collect());
    }
    table
}

/// Whether its process was found again, and how many were launched.
fn process(driver: &wire::DriverStatus) -> String {
    match (driver.adopted, driver.launches) {
        (true, 0) => "adopted".to_owned(),
        (true, launches) => format!("adopted, {launches} launched"),
        (false, 0) => String::new(),
        (false, 1) => "launched".to_owned(),
        (false, launches) => format!("launched {launches} times"),
    }
}

fn attributes(driver: &wire::DriverStatus) -> String {
    let mut attributes: Vec<_> =
        driver.attributes.iter().map(|(name, value)| format!("{name}={value}")).collect();
    attributes.sort();
    attributes.join(" ")
}

fn tasks(tasks: &[wire::TaskStatus]) -> Table {
    let mut table =
        Table::new(&["TASK", "DRIVER", "STATE", "FOR", "RESTARTS", "LAST EXIT", "EVENTS", "LAST EVENT"]);
    for task in tasks {
        let exit = task.exit.as_ref().map(exit).unwrap_or_default();
        let cells = vec![
            Cell::plain(&task.name),
            Cell::plain(&task.driver),
            Cell::toned(tone(&task.state), &task.state),
            Cell::plain(ago(task.since_unix_ms)),
            Cell::plain(task.restarts.to_string()),
            Cell::plain(exit),
            Cell::plain(events(task)),
            Cell::plain(&task.last_event),
        ];
        let remarks = task.events.iter().map(event).chain(task.logs.as_ref().and_then(logs));
        table.row(cells, remarks.collect());
    }
    table
}

/// What there is to say of the logs of a task that are not as they should be.
fn logs(logs: &wire::TaskLogs) -> Option<String> {
    let lost = match logs.dropped_bytes {
        0 => String::new(),
        dropped => format!("; {dropped} bytes of its output are lost"),
    };
    match (&*logs.state, &*lost) {
        ("failing" | "broken", _) => Some(format!("its logs are {}: {}{lost}", logs.state, logs.reason)),
        (_, "") => None,
        (state, _) => Some(format!("its logs are {state}{lost}")),
    }
}

fn events(task: &wire::TaskStatus) -> String {
    match task.events_missed {
        0 => task.events_told.to_string(),
        missed => format!("{}, {missed} missing", task.events_told),
    }
}

fn exit(exit: &wire::TaskExit) -> String {
    let how = match &*exit.how {
        "exited" => format!("code {}", exit.code),
        "signalled" => format!("signal {}", exit.signal),
        other => other.to_owned(),
    };
    if exit.oom_killed { format!("{how}, out of memory") } else { how }
}

fn event(event: &wire::TaskEvent) -> String {
    match event.count {
        0 | 1 => event.text.clone(),
        count => format!("{} ({count} times)", event.text),
    }
}

/// A driver in one line of `watch`.
pub(super) fn driver_line(driver: &wire::DriverStatus, palette: Palette) -> String {
    let mut line =
        format!("driver {}  {}", harmless(&driver.name), palette.paint(tone(&driver.health), &driver.health));
    if !driver.stage.is_empty() {
        line.push_str(&format!("  {}", driver.stage));
    }
    if driver.pid != 0 {
        line.push_str(&format!("  pid {}", driver.pid));
    }
    if !driver.reason.is_empty() {
        line.push_str(&format!("  ({})", harmless(&driver.reason)));
    }
    line
}

/// A task in one line of `watch`.
pub(super) fn task_line(task: &wire::TaskStatus, palette: Palette) -> String {
    format!(
        "task {}  {}  events {}  {}",
        harmless(&task.name),
        palette.paint(tone(&task.state), &task.state),
        events(task),
        harmless(&task.last_event)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_shown_with_its_exit_and_its_folded_events_evt_04() {
        let exit = wire::TaskExit { how: "unknown".to_owned(), oom_killed: true, ..Default::default() };
        let event =
            wire::TaskEvent { text: "cannot unmount".to_owned(), count: 10_000, ..Default::default() };
        let task = wire::TaskStatus {
            name: "web".to_owned(),
            state: "failed".to_owned(),
            exit: Some(exit),
            events: vec![event],
            events_told: 10_000,
            events_missed: 3,
            ..Default::default()
        };
        let shown = tasks(&[task]).lines(Palette::plain());
        assert!(shown.contains("unknown, out of memory  10000, 3 missing"), "{shown}");
        assert!(shown.ends_with("  └ cannot unmount (10000 times)\n"), "{shown}");
    }
}
