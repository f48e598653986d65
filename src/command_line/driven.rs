//! Shows drivers and their tasks.

use callboard_proto::admin::v1 as wire;

use super::health;
use super::show::{first, tone};
use super::table::{Cell, Table};
use super::times::{ago, with_due};
use super::usage;
use crate::output::{Palette, harmless};

/// The tables of a status; nothing without drivers and tasks.
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
    for driver in first(drivers, |driver| health::driver(driver).is_some()) {
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
        table.row(cells, reason.into_iter().chain(lost(driver)).collect());
    }
    table
}

/// How much output of a driver was not logged.
fn lost(driver: &wire::DriverStatus) -> Option<String> {
    let of = |count: u64, what: &str| (count > 0).then(|| format!("{count} {what}"));
    let lines = of(driver.lines_dropped, "lines of its log were dropped");
    let bytes = of(driver.bytes_dropped, "bytes of its output were never read");
    let lost: Vec<_> = lines.into_iter().chain(bytes).collect();
    (!lost.is_empty()).then(|| format!("it writes too much: {}", lost.join(", ")))
}

/// Whether its process was reattached, and how many were launched.
fn process(driver: &wire::DriverStatus) -> String {
    match (driver.adopted, driver.launches) {
        (true, 0) => "adopted".to_owned(),
        (true, launches) => format!("adopted, {launches} launched"),
        (false, 0) => String::new(),
        // Its first launch has no result yet.
        (false, 1) if driver.pid == 0 => String::new(),
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
    let mut table = Table::new(&[
        "TASK",
        "DRIVER",
        "STATE",
        "FOR",
        "CPU",
        "MEMORY",
        "RESTARTS",
        "LAST EXIT",
        "EVENTS",
        "LAST EVENT",
    ]);
    for task in first(tasks, |task| health::task(task).is_some()) {
        let exit = task.exit.as_ref().map(exit).unwrap_or_default();
        let cells = vec![
            Cell::plain(&task.name),
            Cell::plain(&task.driver),
            Cell::toned(tone(&task.state), &task.state),
            Cell::plain(ago(task.since_unix_ms)),
            Cell::plain(usage::cpu(task)),
            Cell::plain(usage::memory(task)),
            Cell::plain(task.restarts.to_string()),
            Cell::plain(exit),
            Cell::plain(events(task)),
            Cell::plain(with_due(&task.last_event, task.due_unix_ms)),
        ];
        let remarks = task.events.iter().map(event).chain(task.logs.as_ref().and_then(logs));
        let remarks = remarks.chain(usage::missing(task));
        table.row(cells, remarks.collect());
    }
    table
}

/// The problems of a task's logs.
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
        harmless(&with_due(&task.last_event, task.due_unix_ms))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_lost_of_a_drivers_output_is_shown_log_03() {
        let driver = |lines_dropped, bytes_dropped| wire::DriverStatus {
            name: "noisy".to_owned(),
            lines_dropped,
            bytes_dropped,
            ..Default::default()
        };
        let shown = drivers(&[driver(7, 9)]).lines(Palette::plain());
        let expected =
            "it writes too much: 7 lines of its log were dropped, 9 bytes of its output were never read\n";
        assert!(shown.ends_with(expected), "{shown}");
        assert!(!drivers(&[driver(0, 0)]).lines(Palette::plain()).contains("too much"));
    }

    #[test]
    fn a_driver_is_shown_as_launched_only_with_a_process_or_after_several_launches() {
        for (pid, adopted, launches, expected) in [
            (0, false, 0, ""),
            (0, false, 1, ""),
            (7, false, 1, "launched"),
            (0, false, 2, "launched 2 times"),
            (7, true, 0, "adopted"),
            (7, true, 1, "adopted, 1 launched"),
        ] {
            let driver = wire::DriverStatus { pid, adopted, launches, ..Default::default() };
            assert_eq!(process(&driver), expected, "{driver:?}");
        }
    }

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
