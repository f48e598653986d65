//! The output of `--json`. The keys are stable: they are described in `docs/command-line.md`, and keys are only ever added. An unknown
//! value is `null`, never an empty text or a zero.

use std::collections::BTreeMap;

use callboard_proto::admin::v1 as wire;
use serde_json::{Value, json};
use wire::watch_response::News;
use wire::{Fate, Gate};

fn known(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

/// `status --json`
pub(super) fn status(status: &wire::GetStatusResponse) -> Value {
    json!({
        "host": status.host.as_ref().map(host),
        "plugins": status.plugins.iter().map(plugin).collect::<Vec<_>>(),
        "allocations": status.allocations.iter().map(allocation).collect::<Vec<_>>(),
        "drivers": status.drivers.iter().map(driver).collect::<Vec<_>>(),
        "tasks": status.tasks.iter().map(task).collect::<Vec<_>>(),
        "volumes": status.volumes.iter().map(volume).collect::<Vec<_>>(),
        "gone": status.gone.iter().map(gone).collect::<Vec<_>>(),
    })
}

fn gone(actor: &wire::GoneActor) -> Value {
    json!({ "name": actor.name, "reason": actor.reason, "ended": actor.ended })
}

fn host(host: &wire::HostStatus) -> Value {
    json!({
        "version": host.version,
        "pid": host.pid,
        "data_dir": host.data_dir,
        "run": host.run,
        "started_at_unix_ms": host.started_at_unix_ms,
        "cores": host.cores,
        "cpu_mhz": host.cpu_mhz,
        "cpu_speed_guessed": host.cpu_speed_guessed,
        "control_groups": known(&host.control_groups),
        "data_dir_problem": known(&host.data_dir_problem),
        "disk": host.disk.as_ref().map(disk),
        "stopping": host.stopping.as_ref().map(stopping),
    })
}

fn disk(disk: &wire::DiskStatus) -> Value {
    json!({
        "health": disk.health,
        "reason": known(&disk.reason),
        "since_unix_ms": (disk.since_unix_ms > 0).then_some(disk.since_unix_ms),
        "unwritten": disk.unwritten,
        "unwritten_names": disk.unwritten_names,
        "unwritten_more": disk.unwritten_more,
    })
}

fn stopping(stopping: &wire::Stopping) -> Value {
    let awaited = |awaited: &wire::Awaited| {
        json!({
            "name": awaited.name,
            "message": known(&awaited.message),
            "until_unix_ms": (awaited.until_unix_ms > 0).then_some(awaited.until_unix_ms),
            "kill_unix_ms": (awaited.kill_unix_ms > 0).then_some(awaited.kill_unix_ms),
        })
    };
    json!({
        "since_unix_ms": stopping.since_unix_ms,
        "detach": stopping.detach,
        "ended": stopping.ended.iter().map(ending).collect::<Vec<_>>(),
        "waits_for": stopping.waits_for.iter().map(awaited).collect::<Vec<_>>(),
    })
}

fn ending(child: &wire::ChildEnding) -> Value {
    json!({ "child": child.child, "ending": child.ending, "took_ms": child.took_ms, "left": child.left })
}

fn plugin(plugin: &wire::PluginStatus) -> Value {
    let has_answered = known(&plugin.provider).is_some();
    let has_node = known(&plugin.node_id).is_some();
    let topology: BTreeMap<_, _> = plugin.topology.iter().collect();
    json!({
        "type": plugin.r#type,
        "name": plugin.name,
        "health": plugin.health,
        "reason": known(&plugin.reason),
        "since_unix_ms": plugin.since_unix_ms,
        "generation": (plugin.generation > 0).then_some(plugin.generation),
        "provider": known(&plugin.provider),
        "version": has_answered.then_some(&plugin.version),
        "manifest": plugin.manifest.iter().collect::<BTreeMap<_, _>>(),
        "capabilities": {
            "plugin": plugin.plugin_capabilities,
            "controller": plugin.controller_capabilities,
            "group_controller": plugin.group_controller_capabilities,
            "node": plugin.node_capabilities,
            "expansion": plugin.expansion,
        },
        "node_id": known(&plugin.node_id),
        "max_volumes": has_node.then_some(plugin.max_volumes),
        "topology": has_node.then_some(topology),
        "requires_controller": plugin.requires_controller,
        "requires_topology": plugin.requires_topology,
        "active": known(&plugin.active_allocation),
        "standby": plugin.standby_allocations,
        "provisional": plugin.provisional_allocations,
        "policy": known(&plugin.policy),
        "active_reason": known(&plugin.active_reason),
        "registrations": plugin.registrations.iter().map(registration).collect::<Vec<_>>(),
        "restarting": plugin.restarting,
        "expected": plugin.expected,
        "registered": plugin.registered,
        "healthy": plugin.healthy,
        "volumes_in_use": plugin.volumes_in_use,
        "leases": plugin.leases,
        "calls_in_flight": plugin.calls_in_flight,
        "remarks": plugin.remarks,
        "events": plugin.events.iter().map(event).collect::<Vec<_>>(),
    })
}

fn registration(registration: &wire::RegistrationStatus) -> Value {
    json!({
        "allocation": registration.allocation,
        "standing": registration.standing,
        "version": known(&registration.version),
        "since_unix_ms": registration.since_unix_ms,
        "lacks": known(&registration.lacks),
        "ready": registration.ready,
        "calm_until_unix_ms": (registration.calm_until_unix_ms > 0).then_some(registration.calm_until_unix_ms),
    })
}

fn allocation(allocation: &wire::AllocationStatus) -> Value {
    json!({
        "name": allocation.name,
        "plugin": allocation.plugin,
        "type": allocation.role,
        "task": allocation.task_state,
        "pid": (allocation.pid != 0).then_some(allocation.pid),
        "restarts": allocation.restarts,
        "state": known(&allocation.state),
        "health": known(&allocation.health),
        "reason": known(&allocation.reason),
        "since_unix_ms": (allocation.since_unix_ms > 0).then_some(allocation.since_unix_ms),
        "exit": allocation.exit.as_ref().map(exit),
        "last_event": allocation.last_event,
        "due_unix_ms": (allocation.due_unix_ms > 0).then_some(allocation.due_unix_ms),
        "socket": known(&allocation.socket),
        "watching": allocation.watching.as_ref().map(watching),
        "survives": allocation.survives,
        "leases": allocation.leases,
        "calls_in_flight": allocation.calls_in_flight,
        "events": allocation.events.iter().map(event).collect::<Vec<_>>(),
    })
}

fn watching(watching: &wire::Watching) -> Value {
    json!({
        "probe_interval_ms": watching.probe_interval_ms,
        "call_deadline_ms": watching.call_deadline_ms,
        "failures_until_unhealthy": watching.failures_until_unhealthy,
        "restart_grace_ms": watching.restart_grace_ms,
        "restart_when": watching.restart_when,
        "strict": watching.strict,
        "listener": watching.listener,
    })
}

fn driver(driver: &wire::DriverStatus) -> Value {
    let attributes: BTreeMap<_, _> = driver.attributes.iter().collect();
    json!({
        "name": driver.name,
        "health": driver.health,
        "reason": known(&driver.reason),
        "since_unix_ms": (driver.since_unix_ms > 0).then_some(driver.since_unix_ms),
        "stage": known(&driver.stage),
        "generation": (driver.generation > 0).then_some(driver.generation),
        "pid": (driver.pid != 0).then_some(driver.pid),
        "adopted": driver.adopted,
        "version": known(&driver.version),
        "attributes": attributes,
        "capabilities": driver.capabilities.as_ref().map(driver_capabilities),
        "socket": known(&driver.socket),
        "leases": driver.leases,
        "calls_in_flight": driver.calls_in_flight,
        "launches": driver.launches,
        "lines_dropped": driver.lines_dropped,
        "bytes_dropped": driver.bytes_dropped,
        "events": driver.events.iter().map(event).collect::<Vec<_>>(),
    })
}

fn driver_capabilities(offers: &wire::DriverCapabilities) -> Value {
    json!({
        "send_signals": offers.send_signals,
        "exec": offers.exec,
        "fs_isolation": offers.fs_isolation,
        "network_modes": offers.network_modes,
        "must_create_network": offers.must_create_network,
        "mounts": offers.mounts,
        "disable_log_collection": offers.disable_log_collection,
        "dynamic_workload_users": offers.dynamic_workload_users,
    })
}

fn task(task: &wire::TaskStatus) -> Value {
    json!({
        "name": task.name,
        "driver": task.driver,
        "state": task.state,
        "since_unix_ms": task.since_unix_ms,
        "id": known(&task.id),
        "exit": task.exit.as_ref().map(exit),
        "restarts": task.restarts,
        "last_event": task.last_event,
        "due_unix_ms": (task.due_unix_ms > 0).then_some(task.due_unix_ms),
        "events": task.events.iter().map(event).collect::<Vec<_>>(),
        "events_told": task.events_told,
        "events_missed": task.events_missed,
        "removed": task.removed,
        "logs": task.logs.as_ref().map(logs),
        "usage": task.usage.as_ref().map(usage),
    })
}

fn usage(usage: &wire::TaskUsage) -> Value {
    json!({
        "state": usage.state,
        "reason": known(&usage.reason),
        "at_unix_ms": (usage.at_unix_ms > 0).then_some(usage.at_unix_ms),
        "cpu_percent": usage.cpu_percent,
        "cpu_mhz": usage.cpu_mhz,
        "memory_bytes": usage.memory_bytes,
        "memory_max_bytes": usage.memory_max_bytes,
    })
}

fn volume(volume: &wire::VolumeStatus) -> Value {
    json!({
        "name": volume.name,
        "plugin": volume.plugin,
        "exists": known(&volume.exists),
        "known": volume.known,
        "volume_id": known(&volume.volume_id),
        "context": volume.context.iter().collect::<BTreeMap<_, _>>(),
        "capacity_bytes": (volume.capacity_bytes > 0).then_some(volume.capacity_bytes),
        "topology": topology(&volume.topology),
        "actor": volume.actor,
        "actor_reason": known(&volume.actor_reason),
        "restarts": volume.restarts,
        "attach": known(&volume.attach),
        "stage": known(&volume.stage),
        "claims": volume.claims.iter().map(claim).collect::<Vec<_>>(),
        "abandoned": volume.abandoned.iter().map(|one| json!({ "allocation": one.allocation, "path": one.path, "released": one.released })).collect::<Vec<_>>(),
        "orders": volume.orders.iter().map(order).collect::<Vec<_>>(),
        "doing": known(&volume.doing),
        "pending": volume.pending,
        "error": known(&volume.error),
        "events": volume.events.iter().map(event).collect::<Vec<_>>(),
    })
}

fn topology(places: &[wire::VolumeTopology]) -> Vec<BTreeMap<&String, &String>> {
    places.iter().map(|place| place.segments.iter().collect()).collect()
}

fn claim(claim: &wire::VolumeClaim) -> Value {
    json!({
        "allocation": claim.allocation,
        "usage": known(&claim.usage),
        "desired": claim.desired,
        "provisional": claim.provisional,
        "proven": claim.proven,
        "publish": claim.publish,
        "path": claim.path,
        "error": known(&claim.error),
    })
}

fn order(order: &wire::VolumeOrder) -> Value {
    json!({
        "what": order.what,
        "state": order.state,
        "resting": order.resting,
        "error": known(&order.error),
    })
}

/// `volume create --json`
pub(super) fn volume_created(created: &wire::CreateVolumeResponse) -> Value {
    json!({
        "created": created.name,
        "volume_id": created.volume_id,
        "capacity_bytes": (created.capacity_bytes > 0).then_some(created.capacity_bytes),
        "context": created.context.iter().collect::<BTreeMap<_, _>>(),
        "topology": topology(&created.topology),
    })
}

fn logs(logs: &wire::TaskLogs) -> Value {
    json!({ "state": logs.state, "reason": known(&logs.reason), "dropped_bytes": logs.dropped_bytes })
}

fn exit(exit: &wire::TaskExit) -> Value {
    json!({
        "how": exit.how,
        "code": (exit.how == "exited").then_some(exit.code),
        "signal": (exit.how == "signalled").then_some(exit.signal),
        "reason": known(&exit.reason),
        "success": exit.how == "exited" && exit.code == 0,
        "oom_killed": exit.oom_killed,
        "at_unix_ms": exit.at_unix_ms,
    })
}

fn event(event: &wire::TaskEvent) -> Value {
    json!({
        "text": event.text,
        "first_unix_ms": event.first_unix_ms,
        "last_unix_ms": event.last_unix_ms,
        "count": event.count,
    })
}

/// `tree --json`
pub(super) fn tree(node: &wire::TreeNode) -> Value {
    json!({
        "name": node.name,
        "kind": node.kind,
        "state": node.state,
        "restarts": node.restarts,
        "crashes": node.crashes,
        "mailbox_depth": node.mailbox_depth,
        "message": known(&node.message),
        "stops_within_ms": node.stops_within_ms,
        "kills_within_ms": node.kills_within_ms,
        "ended": node.ended.iter().map(ending).collect::<Vec<_>>(),
        "children": node.children.iter().map(tree).collect::<Vec<_>>(),
    })
}

/// `stop --json` and `shutdown --json`
pub(super) fn report(report: &[wire::ChildEnding]) -> Value {
    json!({ "report": report.iter().map(ending).collect::<Vec<_>>() })
}

/// One line of `watch --json`
pub(super) fn watched(response: &wire::WatchResponse) -> Value {
    let (news, about) = match &response.news {
        Some(News::Snapshot(all)) => ("snapshot", status(all)),
        Some(News::PluginChanged(changed)) => ("plugin_changed", plugin(changed)),
        Some(News::PluginLeft(left)) => ("plugin_left", json!({ "type": left.r#type, "name": left.name })),
        Some(News::AllocationChanged(changed)) => ("allocation_changed", allocation(changed)),
        Some(News::DriverChanged(changed)) => ("driver_changed", driver(changed)),
        Some(News::DriverLeft(name)) => ("driver_left", json!({ "name": name })),
        Some(News::TaskChanged(changed)) => ("task_changed", task(changed)),
        Some(News::TaskLeft(name)) => ("task_left", json!({ "name": name })),
        Some(News::VolumeChanged(changed)) => ("volume_changed", volume(changed)),
        Some(News::VolumeLeft(name)) => ("volume_left", json!({ "name": name })),
        Some(News::ActorGone(actor)) => ("actor_gone", gone(actor)),
        Some(News::ActorBack(name)) => ("actor_back", json!({ "name": name })),
        Some(News::HostChanged(changed)) => ("host_changed", host(changed)),
        Some(News::Lagged(lagged)) => ("lagged", json!({ "missed": lagged.missed })),
        None => ("unknown", Value::Null),
    };
    json!({ "number": response.number, "at_unix_ms": response.at_unix_ms, "news": news, "about": about })
}

/// One line of `watch --timeline --json`
pub(super) fn said(said: &wire::Said) -> Value {
    json!({
        "number": said.number,
        "at_unix_ms": said.at_unix_ms,
        "from": said.from,
        "to": said.to,
        "message": said.message,
        "plugin": known(&said.plugin),
        "allocation": known(&said.allocation),
        "generation": (said.generation > 0).then_some(said.generation),
        "whose_fate": known(&said.whose_fate),
        "fate": match said.fate() {
            Fate::Unspecified => None,
            Fate::Lost => Some("lost"),
            Fate::Alive => Some("alive"),
            Fate::Troubled => Some("troubled"),
        },
        "gate": match said.gate() {
            Gate::Unspecified => None,
            Gate::Closes => Some("closes"),
            Gate::Opens => Some("opens"),
            Gate::Falls => Some("falls"),
        },
        "write": (said.write > 0).then_some(said.write),
    })
}
