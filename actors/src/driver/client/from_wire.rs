//! Reads what a driver answers. What is malformed is refused with a sentence about it, and never becomes a default.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use callboard_proto::drivers as wire;
use callboard_proto::structs;

use super::handle::TaskHandle;
use super::task::{
    CreatedNetwork, ExecOutcome, NetworkIsolation, NetworkOverride, StartOutcome, TaskEnd, TaskExit, TaskId,
    TaskState, TaskStatus,
};
use super::usage::{CpuUsage, MemoryUsage, TaskStats, Usage};
use crate::driver::events::{
    EventPosition, SEQUENCE_ANNOTATION, STREAM_ANNOTATION, TaskEvent, TaskEventItem, TaskKey,
};
use crate::driver::report::{
    Attribute, AttributeValue, Attributes, DriverCapabilities, DriverHealth, FsIsolation, MountSupport,
    NetworkMode,
};
use crate::driver::state::Fingerprint;
use crate::rpc::quoted;
use crate::vocabulary::{AllocationId, TaskName, Timestamp};

/// Most attributes that are read of one fingerprint.
const ATTRIBUTES_MAX: usize = 4_096;
/// Longest message of an event that is kept, in bytes; what is longer is cut.
const MESSAGE_BYTES_MAX: usize = 4_096;
/// Most annotations that an event may have.
const ANNOTATIONS_MAX: usize = 64;

/// What is wrong with an answer.
pub(super) type Fault = String;

fn unknown<T>(field: &str, number: i32) -> Result<T, Fault> {
    Err(format!("{field} is {number}, which the protocol does not know"))
}

fn sorted(map: HashMap<String, String>) -> BTreeMap<String, String> {
    map.into_iter().collect()
}

fn cut(mut text: String, bytes: usize) -> String {
    let end = (0..=text.len().min(bytes)).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    text.truncate(end);
    text
}

fn timestamp(field: &str, at: Option<prost_types::Timestamp>) -> Result<Option<Timestamp>, Fault> {
    let Some(at) = at else { return Ok(None) };
    // Go writes the zero of its own time for a time that is not known, which lies before the epoch.
    let Ok(seconds) = u64::try_from(at.seconds) else { return Ok(None) };
    let nanos = u32::try_from(at.nanos).ok().filter(|nanos| *nanos < 1_000_000_000);
    let nanos = nanos.ok_or_else(|| format!("{field} has {} nanoseconds", at.nanos))?;
    Ok(Some(Timestamp::from_epoch(Duration::new(seconds, nanos))))
}

// === The driver itself ===

pub(in crate::driver) fn fingerprint(answer: wire::FingerprintResponse) -> Result<Fingerprint, Fault> {
    use wire::fingerprint_response::HealthState;
    if !answer.err.is_empty() {
        return Err(format!("the driver says: {}", cut(answer.err, MESSAGE_BYTES_MAX)));
    }
    let health = match HealthState::try_from(answer.health) {
        Ok(HealthState::Undetected) => DriverHealth::Undetected,
        Ok(HealthState::Unhealthy) => DriverHealth::Unhealthy,
        Ok(HealthState::Healthy) => DriverHealth::Healthy,
        Err(_) => return unknown("health", answer.health),
    };
    let attributes = attributes(answer.attributes)?;
    Ok(Fingerprint { health, description: cut(answer.health_description, MESSAGE_BYTES_MAX), attributes })
}

fn attributes(attributes: HashMap<String, structs::Attribute>) -> Result<Attributes, Fault> {
    use structs::attribute::Value;
    if attributes.len() > ATTRIBUTES_MAX {
        return Err(format!("{} attributes; at most {ATTRIBUTES_MAX} are read", attributes.len()));
    }
    let mut read = Attributes::new();
    for (name, attribute) in attributes {
        let value = match attribute.value {
            Some(Value::FloatVal(value)) if value.is_finite() => AttributeValue::Float(value),
            Some(Value::FloatVal(value)) => {
                return Err(format!("attribute \"{}\" is {value}", quoted(&name)));
            }
            Some(Value::IntVal(value)) => AttributeValue::Integer(value),
            Some(Value::StringVal(value)) => AttributeValue::Text(value),
            Some(Value::BoolVal(value)) => AttributeValue::Bool(value),
            None => return Err(format!("attribute \"{}\" has no value", quoted(&name))),
        };
        read.insert(name, Attribute { value, unit: attribute.unit });
    }
    Ok(read)
}

pub(in crate::driver) fn capabilities(
    answer: wire::CapabilitiesResponse,
) -> Result<DriverCapabilities, Fault> {
    use wire::driver_capabilities::{FsIsolation as Fs, MountConfigs};
    let told = answer.capabilities.ok_or("there are no capabilities in it")?;
    let fs_isolation = match Fs::try_from(told.fs_isolation) {
        Ok(Fs::None) => FsIsolation::None,
        Ok(Fs::Chroot) => FsIsolation::Chroot,
        Ok(Fs::Image) => FsIsolation::Image,
        Ok(Fs::Unveil) => FsIsolation::Unveil,
        Err(_) => return unknown("fs_isolation", told.fs_isolation),
    };
    let mounts = match MountConfigs::try_from(told.mount_configs) {
        Ok(MountConfigs::NoMounts) => MountSupport::None,
        Ok(_) => MountSupport::Any,
        Err(_) => return unknown("mount_configs", told.mount_configs),
    };
    let modes: Result<Vec<NetworkMode>, Fault> =
        told.network_isolation_modes.iter().map(|mode| network_mode(*mode)).collect();
    let mut network_modes = modes?;
    network_modes.sort_unstable();
    network_modes.dedup();
    Ok(DriverCapabilities {
        send_signals: told.send_signals,
        exec: told.exec,
        fs_isolation,
        network_modes,
        must_create_network: told.must_create_network,
        mounts,
        disable_log_collection: told.disable_log_collection,
        dynamic_workload_users: told.dynamic_workload_users,
    })
}

fn network_mode(mode: i32) -> Result<NetworkMode, Fault> {
    use wire::network_isolation_spec::NetworkIsolationMode as Mode;
    match Mode::try_from(mode) {
        Ok(Mode::Host) => Ok(NetworkMode::Host),
        Ok(Mode::Group) => Ok(NetworkMode::Group),
        Ok(Mode::Task) => Ok(NetworkMode::Task),
        Ok(Mode::None) => Ok(NetworkMode::None),
        Err(_) => unknown("network isolation mode", mode),
    }
}

// === Tasks ===

pub(super) fn started(answer: wire::StartTaskResponse) -> Result<StartOutcome, Fault> {
    use wire::start_task_response::Result as Started;
    let reason = cut(answer.driver_error_msg, MESSAGE_BYTES_MAX);
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

/// An answer without a result, and one that carries an error, are no success: it is unknown how the task ended (EVT-05).
pub(super) fn waited(answer: wire::WaitTaskResponse) -> Result<TaskExit, Fault> {
    match answer.result {
        _ if !answer.err.is_empty() => Ok(unknown_exit(&cut(answer.err, MESSAGE_BYTES_MAX))),
        Some(result) => Ok(exit(&result)),
        None => Ok(unknown_exit("the driver tells no result")),
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

pub(super) fn inspected(answer: wire::InspectTaskResponse) -> Result<TaskStatus, Fault> {
    let task = answer.task.ok_or("there is no task in it")?;
    let state = task_state(task.state)?;
    // A result beside a task that runs is the zero value of its driver, and no result.
    let exit = match state {
        TaskState::Exited => {
            Some(task.result.as_ref().map_or_else(|| unknown_exit("the driver tells no result"), exit))
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

pub(super) fn stats(answer: wire::TaskStatsResponse) -> Result<TaskStats, Fault> {
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
    CpuUsage {
        system_percent: has(Fields::SystemMode).then_some(used.system_mode),
        user_percent: has(Fields::UserMode).then_some(used.user_mode),
        total_ticks: has(Fields::TotalTicks).then_some(used.total_ticks),
        throttled_periods: has(Fields::ThrottledPeriods).then_some(used.throttled_periods),
        throttled: has(Fields::ThrottledTime).then_some(Duration::from_nanos(used.throttled_time)),
        percent: has(Fields::Percent).then_some(used.percent),
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

pub(super) fn executed(answer: wire::ExecTaskResponse) -> Result<ExecOutcome, Fault> {
    let exit = answer.result.as_ref().map_or_else(|| unknown_exit("the driver tells no result"), exit);
    Ok(ExecOutcome { stdout: answer.stdout, stderr: answer.stderr, exit })
}

/// How a command ended whose streams were told.
pub(super) fn exec_exit(result: Option<&wire::ExitResult>) -> TaskExit {
    result.map_or_else(|| unknown_exit("the driver tells no result"), exit)
}

pub(super) fn created_network(answer: wire::CreateNetworkResponse) -> Result<CreatedNetwork, Fault> {
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

// === Events ===

/// Reads an event with its place. One that names no task properly is refused: it never becomes an event of default values.
/// `stream` is the name of the stream it comes from, if the plugin said it; its events almost always share it.
pub(super) fn event(told: wire::DriverTaskEvent, stream: Option<&Arc<str>>) -> Result<TaskEventItem, Fault> {
    let allocation = AllocationId::new(&told.alloc_id).map_err(|error| error.to_string())?;
    let task = TaskName::new(&told.task_name).map_err(|error| error.to_string())?;
    if told.annotations.len() > ANNOTATIONS_MAX {
        return Err(format!("{} annotations; at most {ANNOTATIONS_MAX} are read", told.annotations.len()));
    }
    let (mut marks, mut annotations) = ((None, None), BTreeMap::new());
    for (key, value) in told.annotations {
        match key.as_str() {
            STREAM_ANNOTATION => marks.0 = Some(value),
            SEQUENCE_ANNOTATION => marks.1 = Some(value),
            _ => {
                annotations.insert(key, value);
            }
        }
    }
    let event = TaskEvent {
        task_id: Arc::from(told.task_id),
        task: TaskKey::new(allocation, task),
        at: timestamp("timestamp", told.timestamp)?,
        message: cut(told.message, MESSAGE_BYTES_MAX),
        annotations,
    };
    Ok(TaskEventItem::Event { event: Arc::new(event), position: position(marks, stream)? })
}

fn position(
    marks: (Option<String>, Option<String>),
    stream: Option<&Arc<str>>,
) -> Result<Option<EventPosition>, Fault> {
    let (name, sequence) = match marks {
        (Some(name), Some(sequence)) => (name, sequence),
        (None, None) => return Ok(None),
        (Some(_), None) | (None, Some(_)) => return Err("it has half a position".to_owned()),
    };
    let sequence = sequence.parse().map_err(|_| format!("its sequence is \"{}\"", quoted(&sequence)))?;
    match stream {
        Some(known) if **known == *name && sequence > 0 => {
            Ok(Some(EventPosition { stream: Arc::clone(known), sequence }))
        }
        Some(_) | None => EventPosition::new(&name, sequence).map(Some).map_err(|error| error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn an_event_of_default_values_is_refused() {
        assert!(event(wire::DriverTaskEvent::default(), None).is_err());
    }

    #[test]
    fn an_event_has_a_whole_position_or_none() {
        let told = |marks: &[(&str, &str)]| wire::DriverTaskEvent {
            alloc_id: "a".to_owned(),
            task_name: "t".to_owned(),
            annotations: marks.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect(),
            ..Default::default()
        };
        let stream: Arc<str> = "s".into();
        let position = |marks: &[(&str, &str)]| match event(told(marks), Some(&stream)) {
            Ok(TaskEventItem::Event { position, event }) => Ok((position, event.annotations.len())),
            Ok(TaskEventItem::Gap { .. }) => unreachable!("an event is no gap"),
            Err(fault) => Err(fault),
        };
        let whole = [(STREAM_ANNOTATION, "s"), (SEQUENCE_ANNOTATION, "7"), ("other", "x")];
        assert_eq!(position(&whole), Ok((EventPosition::new("s", 7).ok(), 1)));
        let shared = position(&whole).unwrap().0.unwrap().stream;
        assert!(Arc::ptr_eq(&shared, &stream), "a name that is known is not written anew");
        let elsewhere = [(STREAM_ANNOTATION, "other"), (SEQUENCE_ANNOTATION, "7")];
        assert_eq!(position(&elsewhere), Ok((EventPosition::new("other", 7).ok(), 0)));
        assert_eq!(position(&whole[2..]), Ok((None, 1)));
        assert!(position(&[(STREAM_ANNOTATION, "s"), (SEQUENCE_ANNOTATION, "0")]).is_err());
        assert!(position(&whole[..1]).is_err());
        assert!(position(&[(STREAM_ANNOTATION, "s"), (SEQUENCE_ANNOTATION, "-1")]).is_err());
    }

    fn attribute(value: structs::attribute::Value) -> structs::Attribute {
        structs::Attribute { value: Some(value), unit: "MiB".to_owned() }
    }

    #[test]
    fn a_fingerprint_is_read_as_it_is_told_or_refused() {
        use structs::attribute::Value;
        let told = [
            ("f", Value::FloatVal(0.5), AttributeValue::Float(0.5)),
            ("i", Value::IntVal(-7), AttributeValue::Integer(-7)),
            ("s", Value::StringVal("x".to_owned()), AttributeValue::Text("x".to_owned())),
            ("b", Value::BoolVal(true), AttributeValue::Bool(true)),
        ];
        let healths =
            [(0, DriverHealth::Undetected), (1, DriverHealth::Unhealthy), (2, DriverHealth::Healthy)];
        for (number, health) in healths {
            let attributes = told.clone().map(|(name, value, _)| (name.to_owned(), attribute(value))).into();
            let answer = wire::FingerprintResponse {
                health: number,
                health_description: "so it is".to_owned(),
                attributes,
                err: String::new(),
            };
            let read = told
                .clone()
                .map(|(name, _, value)| (name.to_owned(), Attribute { value, unit: "MiB".to_owned() }));
            let read = Fingerprint { health, description: "so it is".to_owned(), attributes: read.into() };
            assert_eq!(fingerprint(answer), Ok(read));
        }
        let refused = |change: fn(&mut wire::FingerprintResponse)| {
            let mut answer = wire::FingerprintResponse { health: 2, ..Default::default() };
            change(&mut answer);
            fingerprint(answer).expect_err("it is malformed")
        };
        assert_eq!(refused(|answer| answer.err = "no".to_owned()), "the driver says: no");
        assert_eq!(refused(|answer| answer.health = 9), "health is 9, which the protocol does not know");
        for number in [f64::NAN, f64::INFINITY] {
            let attributes = HashMap::from([("load".to_owned(), attribute(Value::FloatVal(number)))]);
            let answer = wire::FingerprintResponse { health: 2, attributes, ..Default::default() };
            assert_eq!(fingerprint(answer), Err(format!("attribute \"load\" is {number}")));
        }
    }

    #[test]
    fn a_fingerprint_has_so_many_attributes_and_an_event_so_many_annotations_and_no_more() {
        let answer = |count: usize| {
            let one = |number| (format!("{number}"), attribute(structs::attribute::Value::IntVal(1)));
            let attributes = (0..count).map(one).collect();
            fingerprint(wire::FingerprintResponse { health: 2, attributes, ..Default::default() })
        };
        assert_eq!(answer(ATTRIBUTES_MAX).map(|read| read.attributes.len()), Ok(ATTRIBUTES_MAX));
        assert!(answer(ATTRIBUTES_MAX + 1).is_err());
        let told = |count: usize| wire::DriverTaskEvent {
            alloc_id: "a".to_owned(),
            task_name: "t".to_owned(),
            annotations: (0..count).map(|number| (number.to_string(), String::new())).collect(),
            ..Default::default()
        };
        assert!(event(told(ANNOTATIONS_MAX), None).is_ok());
        assert!(event(told(ANNOTATIONS_MAX + 1), None).is_err());
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(cut("aä".to_owned(), 3), "aä");
        assert_eq!(cut("aä".to_owned(), 2), "a");
        assert_eq!(cut("aä".to_owned(), 1), "a");
        assert_eq!(cut("ä".to_owned(), 1), "");
        assert_eq!(cut("abc".to_owned(), 2), "ab");
    }

    #[test]
    fn a_time_is_read_to_the_nanosecond_and_one_before_the_epoch_is_none() {
        let read = |seconds, nanos| timestamp("at", Some(prost_types::Timestamp { seconds, nanos }));
        let at = |seconds, nanos| Some(Timestamp::from_epoch(Duration::new(seconds, nanos)));
        assert_eq!(read(7, 999_999_999), Ok(at(7, 999_999_999)));
        assert_eq!(read(0, 0), Ok(at(0, 0)));
        assert_eq!(read(-62_135_596_800, 0), Ok(None));
        assert_eq!(read(7, 1_000_000_000), Err("at has 1000000000 nanoseconds".to_owned()));
        assert_eq!(read(7, -1), Err("at has -1 nanoseconds".to_owned()));
        assert_eq!(timestamp("at", None), Ok(None));
    }

    #[test]
    fn what_a_driver_can_do_is_read_as_it_is_told_or_refused() {
        let told = |fs_isolation, mount_configs, network_isolation_modes: &[i32]| {
            let told = wire::DriverCapabilities {
                send_signals: true,
                exec: false,
                fs_isolation,
                network_isolation_modes: network_isolation_modes.to_vec(),
                must_create_network: true,
                mount_configs,
                disable_log_collection: false,
                dynamic_workload_users: true,
            };
            capabilities(wire::CapabilitiesResponse { capabilities: Some(told) })
        };
        let read = |fs_isolation, mounts, network_modes: &[NetworkMode]| DriverCapabilities {
            send_signals: true,
            exec: false,
            fs_isolation,
            network_modes: network_modes.to_vec(),
            must_create_network: true,
            mounts,
            disable_log_collection: false,
            dynamic_workload_users: true,
        };
        use {FsIsolation as Fs, MountSupport as Mounts, NetworkMode as Net};
        for (number, fs) in [(0, Fs::None), (1, Fs::Chroot), (2, Fs::Image), (3, Fs::Unveil)] {
            assert_eq!(told(number, 1, &[]), Ok(read(fs, Mounts::None, &[])));
        }
        let all = [Net::Host, Net::Group, Net::Task, Net::None];
        assert_eq!(told(0, 0, &[3, 1, 1, 0, 2]), Ok(read(Fs::None, Mounts::Any, &all)));
        assert!(told(0, 2, &[]).is_err());
        assert!(told(0, 9, &[]).is_err());
        assert!(told(9, 0, &[]).is_err());
        assert!(told(0, 0, &[9]).is_err());
        assert!(capabilities(wire::CapabilitiesResponse::default()).is_err());
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
        assert_eq!(exec_exit(None).end, TaskEnd::Unknown("the driver tells no result".to_owned()));
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
    fn an_error_is_short_however_long_the_names_in_an_answer() {
        let long = "\u{1b}".repeat(1 << 16);
        let attributes = HashMap::from([(long.clone(), structs::Attribute::default())]);
        let fault = fingerprint(wire::FingerprintResponse { attributes, health: 2, ..Default::default() });
        assert!(fault.expect_err("it has no value").len() < 4_096);
        let port_map = HashMap::from([(long.clone(), 70_000)]);
        let fault = network_override(wire::NetworkOverride { port_map, ..Default::default() });
        assert!(fault.expect_err("it is no port").len() < 4_096);
        let marks = [(STREAM_ANNOTATION, "s"), (SEQUENCE_ANNOTATION, &long)];
        let fault = event(
            wire::DriverTaskEvent {
                alloc_id: "a".to_owned(),
                task_name: "t".to_owned(),
                annotations: marks.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
                ..Default::default()
            },
            None,
        );
        assert!(fault.expect_err("it is no number").len() < 4_096);
    }
}
