//! Composes the status of drivers and their tasks. Pure: equal views give equal statuses.

use std::collections::BTreeMap;

use callboard_actors::driver::client::{TaskEnd, TaskExit};
use callboard_actors::driver::{
    DriverCapabilities, DriverReport, Folded, FsIsolation, MountSupport, NetworkMode, process_name,
};
use callboard_actors::logmon::{LogState, TaskLogs};
use callboard_actors::processes::ProcessesView;
use callboard_actors::vocabulary::Timestamp;
use callboard_proto::admin::v1 as wire;

use super::compose::{Views, count};
use super::convert::unix_ms;
use super::volumes;
use crate::tasks::{DriverEntry, DriverProgress, TaskReport};
use crate::usage::TaskUsage;

/// Every driver that is configured or has left something behind, by name.
pub(super) fn drivers(views: &Views) -> Vec<wire::DriverStatus> {
    let mut drivers: BTreeMap<String, wire::DriverStatus> = BTreeMap::new();
    for entry in &views.driven.drivers {
        drivers.insert(entry.name.to_string(), awaited(entry));
    }
    for report in &views.drivers.reports {
        let told = with_losses(driver(report), report, &views.processes);
        drivers.insert(report.name.to_string(), connected(told, report, views));
    }
    drivers.into_values().collect()
}

/// A driver that the host does not have yet, or never will.
fn awaited(entry: &DriverEntry) -> wire::DriverStatus {
    let (health, reason) = match &entry.progress {
        DriverProgress::Asking => ("looked for", ""),
        DriverProgress::Pausing(reason) => ("looked for", reason.as_str()),
        DriverProgress::Refused(reason) => ("refused", reason.as_str()),
        DriverProgress::Leaving => ("being ended", "it is not in the configuration any more"),
        // Its report arrives in a moment.
        DriverProgress::Added => ("no answer yet", ""),
    };
    wire::DriverStatus {
        name: entry.name.to_string(),
        health: health.to_owned(),
        reason: reason.to_owned(),
        ..Default::default()
    }
}

fn driver(report: &DriverReport) -> wire::DriverStatus {
    let attributes = report.attributes.iter();
    wire::DriverStatus {
        name: report.name.to_string(),
        health: report.health.to_string(),
        reason: report.reason.clone(),
        since_unix_ms: unix_ms(report.since),
        stage: report.stage.to_string(),
        generation: report.generation.get(),
        pid: report.pid.unwrap_or_default(),
        adopted: report.is_adopted,
        version: report.version.as_deref().unwrap_or_default().to_owned(),
        attributes: attributes.map(|(name, value)| (name.clone(), value.to_string())).collect(),
        launches: report.launches,
        capabilities: report.capabilities.as_deref().map(capabilities),
        ..Default::default()
    }
}

fn capabilities(offers: &DriverCapabilities) -> wire::DriverCapabilities {
    let fs_isolation = match offers.fs_isolation {
        FsIsolation::None => "none",
        FsIsolation::Chroot => "chroot",
        FsIsolation::Image => "image",
        FsIsolation::Unveil => "unveil",
    };
    let network = |mode: &NetworkMode| match mode {
        NetworkMode::Host => "host",
        NetworkMode::Group => "group",
        NetworkMode::Task => "task",
        NetworkMode::None => "none",
    };
    wire::DriverCapabilities {
        send_signals: offers.send_signals,
        exec: offers.exec,
        fs_isolation: fs_isolation.to_owned(),
        network_modes: offers.network_modes.iter().map(|mode| network(mode).to_owned()).collect(),
        must_create_network: offers.must_create_network,
        mounts: offers.mounts == MountSupport::Any,
        disable_log_collection: offers.disable_log_collection,
        dynamic_workload_users: offers.dynamic_workload_users,
    }
}

/// The state of the connection to it, if it is connected.
fn connected(status: wire::DriverStatus, report: &DriverReport, views: &Views) -> wire::DriverStatus {
    match views.connected.drivers.get(&report.name) {
        Some((endpoint, calls)) => wire::DriverStatus {
            socket: endpoint
                .socket_path()
                .map_or_else(|| endpoint.to_string(), |path| path.display().to_string()),
            leases: count(calls.leases),
            calls_in_flight: count(calls.in_flight),
            ..status
        },
        None => status,
    }
}

/// How much output of its process was not logged (LOG-03).
fn with_losses(
    status: wire::DriverStatus,
    report: &DriverReport,
    processes: &ProcessesView,
) -> wire::DriverStatus {
    let name = process_name(&report.name).ok();
    let process = processes.reports.iter().find(|process| Some(&process.name) == name.as_ref());
    match process {
        Some(process) => wire::DriverStatus {
            lines_dropped: process.lines_dropped,
            bytes_dropped: process.bytes_dropped,
            ..status
        },
        None => status,
    }
}

/// Every task, in the order of the configuration.
pub(super) fn tasks(views: &Views) -> Vec<wire::TaskStatus> {
    let logs = |name: &str| views.logs.tasks.get(name).map(task_logs);
    let awaited = volumes::awaited(views);
    let last_event = |report: &TaskReport| {
        format!("{}{}", report.note, awaited.get(&report.name).map_or("", String::as_str))
    };
    let told = |report: &TaskReport| wire::TaskStatus {
        last_event: last_event(report),
        logs: logs(report.name.as_str()),
        usage: views.usage.get(&report.name).map(usage),
        ..task(report)
    };
    views.driven.tasks.iter().map(told).collect()
}

/// The state of a task's logs (TH021, TH022).
fn task_logs(logs: &TaskLogs) -> wire::TaskLogs {
    let fault = logs.fault().unwrap_or_default();
    let state = match &logs.state {
        LogState::Broken(_) => "broken",
        LogState::Opening => "opening",
        LogState::Collected | LogState::Discarded if !fault.is_empty() => "failing",
        LogState::Collected => "collected",
        LogState::Discarded => "discarded",
    };
    wire::TaskLogs { state: state.to_owned(), reason: fault.to_owned(), dropped_bytes: logs.dropped() }
}

/// The resource usage of a task (TH081).
fn usage(usage: &TaskUsage) -> wire::TaskUsage {
    let in_state = |state: &str| wire::TaskUsage { state: state.to_owned(), ..Default::default() };
    match usage {
        TaskUsage::Awaited => in_state("awaited"),
        TaskUsage::Missing(reason) => wire::TaskUsage { reason: reason.clone(), ..in_state("missing") },
        TaskUsage::Told(figures) => wire::TaskUsage {
            at_unix_ms: unix_ms(figures.at),
            cpu_percent: figures.cpu_percent,
            cpu_mhz: figures.cpu_mhz,
            memory_bytes: figures.memory_bytes,
            memory_max_bytes: figures.memory_max_bytes,
            ..in_state("told")
        },
    }
}

fn task(task: &TaskReport) -> wire::TaskStatus {
    wire::TaskStatus {
        name: task.name.to_string(),
        driver: task.driver.to_string(),
        state: task.phase.to_string(),
        since_unix_ms: unix_ms(task.since),
        due_unix_ms: task.due.map_or(0, unix_ms),
        id: task.id.as_ref().map(ToString::to_string).unwrap_or_default(),
        exit: task.exit.as_ref().map(|(exit, at)| self::exit(exit, *at)),
        restarts: task.restarts,
        last_event: task.note.clone(),
        events: task.events.iter().map(event).collect(),
        events_told: task.events_told,
        events_missed: task.events_missed,
        removed: !task.is_configured,
        logs: None,
        usage: None,
    }
}

fn exit(exit: &TaskExit, at: Timestamp) -> wire::TaskExit {
    let told = wire::TaskExit { oom_killed: exit.oom_killed, at_unix_ms: unix_ms(at), ..Default::default() };
    match &exit.end {
        TaskEnd::Exited(code) => wire::TaskExit { how: "exited".to_owned(), code: *code, ..told },
        TaskEnd::Signalled(signal) => wire::TaskExit { how: "signalled".to_owned(), signal: *signal, ..told },
        TaskEnd::Unknown(reason) => {
            wire::TaskExit { how: "unknown".to_owned(), reason: reason.clone(), ..told }
        }
    }
}

fn event(event: &Folded) -> wire::TaskEvent {
    wire::TaskEvent {
        text: event.text.clone(),
        first_unix_ms: unix_ms(event.first),
        last_unix_ms: unix_ms(event.last),
        count: event.count,
    }
}

#[cfg(test)]
mod tests {
    use callboard_actors::vocabulary::DriverName;

    use super::*;
    use crate::tasks::TasksView;

    #[test]
    fn an_exit_that_was_not_seen_is_shown_as_unknown_and_not_as_a_code_evt_05() {
        let unseen =
            TaskExit { end: TaskEnd::Unknown("its exit was not seen".to_owned()), oom_killed: false };
        let shown = exit(&unseen, Timestamp::default());
        assert_eq!((shown.how.as_str(), shown.reason.as_str()), ("unknown", "its exit was not seen"));
    }

    #[test]
    fn a_driver_that_cannot_be_had_is_shown_with_the_reason() {
        let name = DriverName::new("exec").unwrap();
        let progress = DriverProgress::Refused("its configuration does not fit".to_owned());
        let driven = TasksView { tasks: vec![], drivers: vec![DriverEntry { name, progress }] };
        let shown = drivers(&Views { driven, ..Views::default() });
        assert_eq!(shown.len(), 1);
        assert_eq!((shown[0].health.as_str(), shown[0].pid), ("refused", 0));
        assert_eq!(shown[0].reason, "its configuration does not fit");
    }
}
