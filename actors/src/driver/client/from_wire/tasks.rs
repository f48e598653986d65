//! Reads the answers of a driver about its tasks.

use std::collections::BTreeMap;
use std::time::Duration;

use callboard_proto::drivers as wire;

use super::{Fault, MESSAGE_BYTES_MAX, network_mode, sorted, timestamp, unknown};
use crate::driver::client::handle::TaskHandle;
use crate::driver::client::{
    CreatedNetwork, ExecOutcome, NetworkIsolation, NetworkOverride, StartOutcome, TaskEnd, TaskExit, TaskId,
    TaskState, TaskStatus,
};
use crate::driver::{CpuUsage, MemoryUsage, TaskStats, Usage};
use crate::vocabulary::text::{bounded, quoted};

pub(in crate::driver::client) fn started(answer: wire::StartTaskResponse) -> Result<StartOutcome, Fault> {
    use wire::start_task_response::Result as Started;
    let reason = bounded(&answer.driver_error_msg, MESSAGE_BYTES_MAX);
    match Started::try_from(answer.result) {
        Ok(Started::Success) => {
            let handle = answer.handle.ok_or("it started a task and gives no handle of it")?;
            let network = answer.network_override.map(network_override).transpose()?;
            Ok(StartOutcome::Started { handle: TaskHandle::from_wire(handle)?, network })
        }
        Ok(Started::Retry) => Ok(StartOutcome::Retry { reason }),
        Ok(Started::Fatal) => Ok(StartOutcome::Fatal { reason }),
        Err(_) => unknown("result", answer.result),
    }
}

fn network_override(told: wire::NetworkOverride) -> Result<NetworkOverride, Fault> {
    let mut ports = BTreeMap::new();
    for (label, port) in told.port_map {
        let number = u16::try_from(port).map_err(|_| format!("port \"{}\" is {port}", quoted(&label)))?;
        ports.insert(label, number);
    }
    Ok(NetworkOverride { ports, address: told.addr, auto_advertise: told.auto_advertise })
}

fn exit(result: &wire::ExitResult) -> TaskExit {
    let end = match (result.signal, result.exit_code) {
        (0, code) => TaskEnd::Exited(code),
        (signal, _) => TaskEnd::Signalled(signal),
    };
    TaskExit { end, oom_killed: result.oom_killed }
}

fn unknown_exit(reason: &str) -> TaskExit {
    TaskExit { end: TaskEnd::Unknown(reason.to_owned()), oom_killed: false }
}

/// An answer without a result, or with an error, is not a success: it is unknown how the task ended (EVT-05).
pub(in crate::driver::client) fn waited(answer: wire::WaitTaskResponse) -> Result<TaskExit, Fault> {
    match answer.result {
        _ if !answer.err.is_empty() => Ok(unknown_exit(&bounded(&answer.err, MESSAGE_BYTES_MAX))),
        Some(result) => Ok(exit(&result)),
        None => Ok(unknown_exit("the driver reports no result")),
    }
}

fn task_state(state: i32) -> Result<TaskState, Fault> {
    match wire::TaskState::try_from(state) {
        Ok(wire::TaskState::Unknown) => Ok(TaskState::Unknown),
        Ok(wire::TaskState::Running) => Ok(TaskState::Running),
        Ok(wire::TaskState::Exited) => Ok(TaskState::Exited),
        Err(_) => unknown("state", state),
    }
}

pub(in crate::driver::client) fn inspected(answer: wire::InspectTaskResponse) -> Result<TaskStatus, Fault> {
    let task = answer.task.ok_or("there is no task in it")?;
    let state = task_state(task.state)?;
    // A result of a running task is the zero value of its driver, and is ignored.
    let exit = match state {
        TaskState::Exited => {
            Some(task.result.as_ref().map_or_else(|| unknown_exit("the driver reports no result"), exit))
        }
        TaskState::Running | TaskState::Unknown => None,
    };
    Ok(TaskStatus {
        id: TaskId::new(&task.id).map_err(|error| error.to_string())?,
        name: task.name,
        state,
        started_at: timestamp("started_at", task.started_at)?,
        completed_at: timestamp("completed_at", task.completed_at)?,
        exit,
        attributes: sorted(answer.driver.unwrap_or_default().attributes),
        network: answer.network_override.map(network_override).transpose()?,
    })
}

pub(in crate::driver::client) fn stats(answer: wire::TaskStatsResponse) -> Result<TaskStats, Fault> {
    let stats = answer.stats.ok_or("there are no figures in it")?;
    Ok(TaskStats {
        id: stats.id,
        at: timestamp("timestamp", stats.timestamp)?,
        total: usage(stats.agg_resource_usage.unwrap_or_default()),
        by_pid: stats.resource_usage_by_pid.into_iter().map(|(pid, used)| (pid, usage(used))).collect(),
    })
}

fn usage(used: wire::TaskResourceUsage) -> Usage {
    Usage { cpu: used.cpu.map(cpu).unwrap_or_default(), memory: used.memory.map(memory).unwrap_or_default() }
}

fn cpu(used: wire::CpuUsage) -> CpuUsage {
    use wire::cpu_usage::Fields;
    let has = |field: Fields| used.measured_fields.contains(&i32::from(field));
    // A driver that divides by zero reports NaN or infinity, and one whose counters went back a negative number: both are ignored.
    let number =
        |field, value: f64| has(field).then_some(value).filter(|value| value.is_finite() && *value >= 0.0);
    CpuUsage {
        system_percent: number(Fields::SystemMode, used.system_mode),
        user_percent: number(Fields::UserMode, used.user_mode),
        total_ticks: number(Fields::TotalTicks, used.total_ticks),
        throttled_periods: has(Fields::ThrottledPeriods).then_some(used.throttled_periods),
        throttled: has(Fields::ThrottledTime).then_some(Duration::from_nanos(used.throttled_time)),
        percent: number(Fields::Percent, used.percent),
    }
}

fn memory(used: wire::MemoryUsage) -> MemoryUsage {
    use wire::memory_usage::Fields;
    let has = |field: Fields| used.measured_fields.contains(&i32::from(field));
    MemoryUsage {
        rss: has(Fields::Rss).then_some(used.rss),
        cache: has(Fields::Cache).then_some(used.cache),
        swap: has(Fields::Swap).then_some(used.swap),
        usage: has(Fields::Usage).then_some(used.usage),
        max_usage: has(Fields::MaxUsage).then_some(used.max_usage),
        kernel_usage: has(Fields::KernelUsage).then_some(used.kernel_usage),
        kernel_max_usage: has(Fields::KernelMaxUsage).then_some(used.kernel_max_usage),
    }
}

pub(in crate::driver::client) fn executed(answer: wire::ExecTaskResponse) -> Result<ExecOutcome, Fault> {
    let exit = answer.result.as_ref().map_or_else(|| unknown_exit("the driver reports no result"), exit);
    Ok(ExecOutcome { stdout: answer.stdout, stderr: answer.stderr, exit })
}

/// The exit of a command with streamed output.
pub(in crate::driver::client) fn exec_exit(result: Option<&wire::ExitResult>) -> TaskExit {
    result.map_or_else(|| unknown_exit("the driver reports no result"), exit)
}

pub(in crate::driver::client) fn created_network(
    answer: wire::CreateNetworkResponse,
) -> Result<CreatedNetwork, Fault> {
    let network = answer.isolation_spec.map(|spec| {
        Ok::<_, Fault>(NetworkIsolation {
            mode: network_mode(spec.mode)?,
            path: spec.path,
            labels: sorted(spec.labels),
            hosts_entry: spec.hosts_config.map(|hosts| (hosts.hostname, hosts.address)),
        })
    });
    Ok(CreatedNetwork { network: network.transpose()?, is_new: answer.created })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::driver::NetworkMode;
    use crate::vocabulary::Timestamp;

    #[test]
    fn what_is_not_known_of_a_tasks_end_is_never_success_evt_05() {
        let result = |exit_code, signal| Some(wire::ExitResult { exit_code, signal, oom_killed: false });
        let waited = |result, err: &str| waited(wire::WaitTaskResponse { result, err: err.to_owned() });
        assert!(waited(result(0, 0), "").unwrap().is_success());
        for (result, err) in [
            (None, ""),
            (None, "lost"),
            (result(0, 0), "executor died"),
            (result(0, 9), ""),
            (result(1, 0), ""),
        ] {
            assert!(!waited(result, err).unwrap().is_success(), "{err}");
        }
    }

    #[test]
    fn a_task_that_runs_has_no_result_whatever_its_driver_sends_evt_05() {
        let task = wire::TaskStatus {
            id: "t".to_owned(),
            state: 1,
            result: Some(Default::default()),
            ..Default::default()
        };
        let answer = wire::InspectTaskResponse { task: Some(task), ..Default::default() };
        assert_eq!(inspected(answer).unwrap().exit, None);
    }

    #[test]
    fn the_network_that_a_task_was_given_is_read_or_refused() {
        let told = |port| wire::NetworkOverride {
            port_map: [("http".to_owned(), port)].into(),
            addr: "10.0.0.2".to_owned(),
            auto_advertise: true,
        };
        let read = NetworkOverride {
            ports: [("http".to_owned(), 65_535)].into(),
            address: "10.0.0.2".to_owned(),
            auto_advertise: true,
        };
        assert_eq!(network_override(told(65_535)), Ok(read));
        assert!(network_override(told(65_536)).is_err());
        assert!(network_override(told(-1)).is_err());
        let spec = wire::NetworkIsolationSpec {
            mode: 1,
            path: "/run/netns/a".to_owned(),
            labels: [("id".to_owned(), "a".to_owned())].into(),
            hosts_config: Some(wire::HostsConfig {
                hostname: "web".to_owned(),
                address: "10.0.0.2".to_owned(),
            }),
        };
        let answer = wire::CreateNetworkResponse { isolation_spec: Some(spec.clone()), created: true };
        let network = NetworkIsolation {
            mode: NetworkMode::Group,
            path: "/run/netns/a".to_owned(),
            labels: [("id".to_owned(), "a".to_owned())].into(),
            hosts_entry: Some(("web".to_owned(), "10.0.0.2".to_owned())),
        };
        let created = CreatedNetwork { network: Some(network), is_new: true };
        assert_eq!(created_network(answer), Ok(created));
        let spec = wire::NetworkIsolationSpec { mode: 9, ..spec };
        assert!(
            created_network(wire::CreateNetworkResponse { isolation_spec: Some(spec), created: true })
                .is_err()
        );
    }

    #[test]
    fn how_a_task_does_is_read_as_it_is_told() {
        let at = |seconds| Some(prost_types::Timestamp { seconds, nanos: 0 });
        let told = |state| wire::InspectTaskResponse {
            task: Some(wire::TaskStatus {
                id: "t".to_owned(),
                name: "web".to_owned(),
                state,
                started_at: at(1),
                completed_at: at(2),
                result: Some(wire::ExitResult { exit_code: 3, signal: 0, oom_killed: true }),
            }),
            driver: Some(wire::TaskDriverStatus {
                attributes: [("image".to_owned(), "a".to_owned())].into(),
            }),
            network_override: Some(wire::NetworkOverride::default()),
        };
        let at = |seconds| Some(Timestamp::from_epoch(Duration::from_secs(seconds)));
        let exit = TaskExit { end: TaskEnd::Exited(3), oom_killed: true };
        for (number, state) in [(0, TaskState::Unknown), (1, TaskState::Running), (2, TaskState::Exited)] {
            let read = TaskStatus {
                id: TaskId::new("t").unwrap(),
                name: "web".to_owned(),
                state,
                started_at: at(1),
                completed_at: at(2),
                exit: (state == TaskState::Exited).then(|| exit.clone()),
                attributes: [("image".to_owned(), "a".to_owned())].into(),
                network: Some(NetworkOverride {
                    ports: BTreeMap::new(),
                    address: String::new(),
                    auto_advertise: false,
                }),
            };
            assert_eq!(inspected(told(number)), Ok(read));
        }
        assert!(inspected(told(9)).is_err());
    }

    #[test]
    fn a_figure_that_is_no_number_or_negative_is_not_known_th081_t022() {
        let (not_a_number, infinite) = (f64::NAN, f64::INFINITY);
        for odd in [not_a_number, infinite, -infinite, -0.5] {
            let told = wire::CpuUsage {
                system_mode: odd,
                user_mode: odd,
                total_ticks: odd,
                percent: odd,
                measured_fields: (0..6).collect(),
                ..Default::default()
            };
            let read = cpu(told);
            assert_eq!(
                (read.system_percent, read.user_percent, read.total_ticks, read.percent),
                (None, None, None, None),
                "{odd}"
            );
        }
        let idle = wire::CpuUsage { measured_fields: (0..6).collect(), ..Default::default() };
        assert_eq!(cpu(idle).percent, Some(0.0), "nothing used is a figure too");
    }

    #[test]
    fn figures_are_read_where_they_were_measured() {
        let cpu = wire::CpuUsage {
            system_mode: 1.0,
            user_mode: 2.0,
            total_ticks: 3.0,
            throttled_periods: 4,
            throttled_time: 5,
            percent: 6.0,
            measured_fields: (0..6).collect(),
        };
        let memory = wire::MemoryUsage {
            rss: 1,
            cache: 2,
            max_usage: 3,
            kernel_usage: 4,
            kernel_max_usage: 5,
            usage: 6,
            swap: 7,
            measured_fields: (0..7).collect(),
        };
        let told = |cpu: &wire::CpuUsage, memory: &wire::MemoryUsage| wire::TaskResourceUsage {
            cpu: Some(cpu.clone()),
            memory: Some(memory.clone()),
        };
        let read = Usage {
            cpu: CpuUsage {
                system_percent: Some(1.0),
                user_percent: Some(2.0),
                total_ticks: Some(3.0),
                throttled_periods: Some(4),
                throttled: Some(Duration::from_nanos(5)),
                percent: Some(6.0),
            },
            memory: MemoryUsage {
                rss: Some(1),
                cache: Some(2),
                swap: Some(7),
                usage: Some(6),
                max_usage: Some(3),
                kernel_usage: Some(4),
                kernel_max_usage: Some(5),
            },
        };
        let answer = wire::TaskStatsResponse {
            stats: Some(wire::TaskStats {
                id: "t".to_owned(),
                timestamp: Some(prost_types::Timestamp { seconds: 9, nanos: 0 }),
                agg_resource_usage: Some(told(&cpu, &memory)),
                resource_usage_by_pid: [("7".to_owned(), told(&cpu, &memory))].into(),
            }),
        };
        let stats_read = TaskStats {
            id: "t".to_owned(),
            at: Some(Timestamp::from_epoch(Duration::from_secs(9))),
            total: read.clone(),
            by_pid: [("7".to_owned(), read)].into(),
        };
        assert_eq!(stats(answer), Ok(stats_read));
        let unmeasured = (
            wire::CpuUsage { measured_fields: vec![], ..cpu },
            wire::MemoryUsage { measured_fields: vec![], ..memory },
        );
        assert_eq!(usage(told(&unmeasured.0, &unmeasured.1)), Usage::default());
        assert!(stats(wire::TaskStatsResponse::default()).is_err());
    }

    #[test]
    fn how_a_command_ended_is_read_with_what_it_printed() {
        let result = wire::ExitResult { exit_code: 0, signal: 9, oom_killed: false };
        let told =
            wire::ExecTaskResponse { stdout: b"out".to_vec(), stderr: b"err".to_vec(), result: Some(result) };
        let exit = TaskExit { end: TaskEnd::Signalled(9), oom_killed: false };
        let read = ExecOutcome { stdout: b"out".to_vec(), stderr: b"err".to_vec(), exit };
        assert_eq!(executed(told), Ok(read));
        assert_eq!(exec_exit(None).end, TaskEnd::Unknown("the driver reports no result".to_owned()));
        assert_eq!(exec_exit(Some(&wire::ExitResult::default())).end, TaskEnd::Exited(0));
    }

    #[test]
    fn a_task_that_started_has_a_handle() {
        assert!(started(wire::StartTaskResponse::default()).is_err());
        let retry =
            wire::StartTaskResponse { result: 1, driver_error_msg: "pull".to_owned(), ..Default::default() };
        assert_eq!(started(retry), Ok(StartOutcome::Retry { reason: "pull".to_owned() }));
        assert!(started(wire::StartTaskResponse { result: 3, ..Default::default() }).is_err());
    }

    #[test]
    fn an_error_is_short_however_long_the_label_of_a_port() {
        let port_map = HashMap::from([("\u{1b}".repeat(1 << 16), 70_000)]);
        let fault = network_override(wire::NetworkOverride { port_map, ..Default::default() });
        assert!(fault.expect_err("it is no port").len() < 4_096);
    }
}
