//! Determines what of a host is well and what is not: for `callboard health`, `callboard status --check`, and the order and the summary of
//! the tables.

use callboard_proto::admin::v1 as wire;
use serde_json::{Value, json};

use super::disk::unwritten;
use crate::output::{Palette, Tone, harmless};

/// Something that is not in its intended state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trouble {
    /// `host`, `actor`, `plugin`, `allocation`, `driver`, `task` or `volume`.
    pub(super) kind: &'static str,
    pub(super) name: String,
    /// Its state and the reason.
    pub(super) what: String,
}

/// A state with its reason.
fn told(state: &str, reason: &str) -> String {
    if reason.is_empty() { state.to_owned() } else { format!("{state}: {reason}") }
}

/// The trouble of a plugin. A plugin that is not expected may be gone.
pub(super) fn plugin(plugin: &wire::PluginStatus) -> Option<Trouble> {
    let is_meant = plugin.expected > 0 || plugin.registered > 0;
    (is_meant && plugin.health != "healthy").then(|| Trouble {
        kind: "plugin",
        name: format!("{}/{}", plugin.r#type, plugin.name),
        what: told(&plugin.health, &plugin.reason),
    })
}

/// The trouble of an allocation. An allocation that was stopped by hand is well.
pub(super) fn allocation(allocation: &wire::AllocationStatus) -> Option<Trouble> {
    let state = match (&*allocation.task_state, &*allocation.state, &*allocation.health) {
        ("stopped", _, _) | ("running", "registered", "healthy") => return None,
        ("running", "registered", health) => told(health, &allocation.reason),
        ("running", state, _) => told(state, &allocation.reason),
        (state, _, _) => told(state, &allocation.last_event),
    };
    Some(Trouble { kind: "allocation", name: allocation.name.clone(), what: state })
}

/// The trouble of a driver. A driver that found nothing to drive does what it can.
pub(super) fn driver(driver: &wire::DriverStatus) -> Option<Trouble> {
    let is_well = matches!(&*driver.health, "healthy" | "undetected");
    (!is_well).then(|| Trouble {
        kind: "driver",
        name: driver.name.clone(),
        what: told(&driver.health, &driver.reason),
    })
}

/// The trouble of a task. A task that has ended by itself and is not restarted, or was stopped, is well, unless its output is lost.
pub(super) fn task(task: &wire::TaskStatus) -> Option<Trouble> {
    let is_well = matches!(&*task.state, "running" | "ended" | "stopped");
    let what = if is_well { logs(task.logs.as_ref()?)? } else { told(&task.state, &task.last_event) };
    Some(Trouble { kind: "task", name: task.name.clone(), what })
}

/// The trouble of a task's logs.
fn logs(logs: &wire::TaskLogs) -> Option<String> {
    let is_lost = matches!(&*logs.state, "failing" | "broken");
    is_lost.then(|| told(&format!("its logs are {}", logs.state), &logs.reason))
}

fn sick_disk(disk: &wire::DiskStatus) -> String {
    let sick = told(&disk.health, &disk.reason);
    match unwritten(disk) {
        names if names.is_empty() => sick,
        names => format!("{sick}; not on disk: {names}"),
    }
}

/// The troubles of the host itself: its disk, its data directory, and that it is stopping.
fn host(host: &wire::HostStatus) -> Vec<Trouble> {
    let trouble = |name: &str, what: String| Trouble { kind: "host", name: name.to_owned(), what };
    let mut found = Vec::new();
    found.extend(host.stopping.as_ref().map(|_| trouble("host", "stopping".to_owned())));
    let sick = host.disk.as_ref().filter(|disk| disk.health != "sound");
    found.extend(sick.map(|disk| trouble("disk", sick_disk(disk))));
    if !host.data_dir_problem.is_empty() {
        found.push(trouble("data directory", host.data_dir_problem.clone()));
    }
    found
}

/// All troubles of a host, or of the objects of this name.
pub(super) fn troubles(status: &wire::GetStatusResponse, name: Option<&str>) -> Vec<Trouble> {
    let is_meant = |other: &str| name.is_none_or(|name| name == other);
    let mut found = Vec::new();
    if name.is_none() {
        found.extend(status.host.iter().flat_map(host));
        let gone = status.gone.iter().filter(|gone| !gone.ended);
        found.extend(gone.map(|gone| Trouble {
            kind: "actor",
            name: gone.name.clone(),
            what: told("does not answer", &gone.reason),
        }));
    }
    found.extend(status.plugins.iter().filter(|one| is_meant(&one.name)).filter_map(plugin));
    found.extend(status.allocations.iter().filter(|one| is_meant(&one.name)).filter_map(allocation));
    found.extend(status.drivers.iter().filter(|one| is_meant(&one.name)).filter_map(driver));
    found.extend(status.tasks.iter().filter(|one| is_meant(&one.name)).filter_map(task));
    found
}

/// The objects of this name, and what belongs to them: the allocations of a plugin, and the tasks of a driver. `None` if there is none.
pub(super) fn of_name(status: &wire::GetStatusResponse, name: &str) -> Option<wire::GetStatusResponse> {
    let mut of_it = wire::GetStatusResponse { host: status.host.clone(), ..Default::default() };
    of_it.plugins = status.plugins.iter().filter(|one| one.name == name).cloned().collect();
    let allocations = status.allocations.iter().filter(|one| one.name == name || one.plugin == name);
    of_it.allocations = allocations.cloned().collect();
    of_it.drivers = status.drivers.iter().filter(|one| one.name == name).cloned().collect();
    of_it.tasks = status.tasks.iter().filter(|one| one.name == name || one.driver == name).cloned().collect();
    let is_empty = of_it.plugins.is_empty()
        && of_it.allocations.is_empty()
        && of_it.drivers.is_empty()
        && of_it.tasks.is_empty();
    (!is_empty).then_some(of_it)
}

/// A summary in one line.
pub(super) fn summary(troubles: &[Trouble], palette: Palette) -> String {
    if troubles.is_empty() {
        return format!("{}\n", palette.paint(Tone::Good, "all is well"));
    }
    let names: Vec<_> =
        troubles.iter().map(|trouble| format!("{} {}", trouble.kind, harmless(&trouble.name))).collect();
    let count = palette.paint(Tone::Bad, &format!("{} not well", troubles.len()));
    format!("{count}: {}\n", names.join(", "))
}

/// The output of `health`, for everything or for the objects of this name.
pub(super) fn lines(troubles: &[Trouble], name: Option<&str>, palette: Palette) -> String {
    let mut text = String::new();
    for Trouble { kind, name, what } in troubles {
        text.push_str(&format!("{kind} {}  {}\n", harmless(name), palette.paint(Tone::Bad, &harmless(what))));
    }
    match name {
        Some(name) if troubles.is_empty() => {
            format!("{}\n", palette.paint(Tone::Good, &format!("{} is well", harmless(name))))
        }
        _ if troubles.is_empty() => summary(troubles, palette),
        _ => text,
    }
}

/// The output of `health --json`.
pub(super) fn json(troubles: &[Trouble]) -> Value {
    let one = |Trouble { kind, name, what }: &Trouble| json!({ "kind": kind, "name": name, "reason": what });
    json!({ "well": troubles.is_empty(), "not_well": troubles.iter().map(one).collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allocation_in(task: &str, state: &str, health: &str) -> wire::AllocationStatus {
        wire::AllocationStatus {
            name: "a".to_owned(),
            plugin: "zfs".to_owned(),
            task_state: task.to_owned(),
            state: state.to_owned(),
            health: health.to_owned(),
            ..Default::default()
        }
    }

    #[test]
    fn what_is_stopped_or_not_expected_is_well_and_what_is_on_its_way_is_not() {
        for (task, state, health, is_well) in [
            ("running", "registered", "healthy", true),
            ("stopped", "", "", true),
            ("running", "registered", "unhealthy", false),
            ("running", "probing", "starting", false),
            ("waiting", "prepared", "gone", false),
            ("failed", "", "", false),
        ] {
            let found = allocation(&allocation_in(task, state, health));
            assert_eq!(found.is_none(), is_well, "{task} {state} {health}: {found:?}");
        }
        let gone =
            |expected| wire::PluginStatus { health: "gone".to_owned(), expected, ..Default::default() };
        assert_eq!((plugin(&gone(0)).is_none(), plugin(&gone(1)).is_none()), (true, false));
    }

    fn whats(status: &wire::GetStatusResponse, name: Option<&str>) -> Vec<String> {
        let told = |Trouble { kind, name, what }| format!("{kind} {name}: {what}");
        troubles(status, name).into_iter().map(told).collect()
    }

    #[test]
    fn a_sick_disk_and_a_lost_data_directory_are_troubles_of_the_host_and_of_nothing_else() {
        let disk = |health: &str, reason: &str| wire::DiskStatus {
            health: health.to_owned(),
            reason: reason.to_owned(),
            ..Default::default()
        };
        let status = |disk, problem: &str| wire::GetStatusResponse {
            host: Some(wire::HostStatus {
                disk: Some(disk),
                data_dir_problem: problem.to_owned(),
                ..Default::default()
            }),
            ..Default::default()
        };
        let sick = status(disk("sick", "no space left"), "it was removed");
        let expected = ["host disk: sick: no space left", "host data directory: it was removed"];
        assert_eq!(whats(&sick, None), expected);
        let told = summary(&troubles(&sick, None), Palette::plain());
        assert_eq!(told, "2 not well: host disk, host data directory\n");
        assert_eq!(whats(&sick, Some("web")), [""; 0]);
        let unwritten = wire::DiskStatus {
            unwritten_names: vec!["registration csi-node/zfs of red".to_owned(), "task web".to_owned()],
            unwritten_more: 3,
            ..disk("sick", "no space left")
        };
        let told = "sick: no space left; not on disk: registration csi-node/zfs of red, task web and 3 more";
        assert_eq!(sick_disk(&unwritten), told);
        assert_eq!(whats(&status(disk("sound", ""), ""), None), [""; 0]);
    }

    #[test]
    fn a_task_whose_logs_are_broken_or_failing_is_not_well() {
        let task = |state: &str, logs: &str| wire::TaskStatus {
            name: "web".to_owned(),
            state: state.to_owned(),
            logs: Some(wire::TaskLogs {
                state: logs.to_owned(),
                reason: "no space left".to_owned(),
                ..Default::default()
            }),
            ..Default::default()
        };
        let status = |tasks| wire::GetStatusResponse { tasks, ..Default::default() };
        for (logs, expected) in [
            ("broken", &["task web: its logs are broken: no space left"][..]),
            ("failing", &["task web: its logs are failing: no space left"]),
            ("opening", &[]),
            ("collected", &[]),
            ("discarded", &[]),
        ] {
            assert_eq!(whats(&status(vec![task("running", logs)]), Some("web")), expected, "{logs}");
        }
        assert_eq!(whats(&status(vec![task("failed", "broken")]), None), ["task web: failed"]);
    }

    #[test]
    fn a_name_selects_its_things_and_what_belongs_to_them() {
        let zfs = wire::PluginStatus {
            name: "zfs".to_owned(),
            health: "gone".to_owned(),
            expected: 1,
            ..Default::default()
        };
        let status = wire::GetStatusResponse {
            plugins: vec![zfs],
            allocations: vec![allocation_in("failed", "", "")],
            ..Default::default()
        };
        let of_it = of_name(&status, "zfs").expect("it is there");
        assert_eq!((of_it.plugins.len(), of_it.allocations.len()), (1, 1));
        assert_eq!(of_name(&status, "unknown"), None);
        assert_eq!(troubles(&status, Some("a")).len(), 1);
        let told = summary(&troubles(&status, None), Palette::plain());
        assert_eq!(told, "2 not well: plugin /zfs, allocation a\n");
        assert_eq!(summary(&[], Palette::plain()), "all is well\n");
        assert_eq!(lines(&[], Some("zfs"), Palette::plain()), "zfs is well\n");
        assert_eq!(lines(&[], None, Palette::plain()), "all is well\n");
    }
}
