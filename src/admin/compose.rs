//! Composes a status from the views of all actors. Pure: equal views give equal statuses.

use std::collections::BTreeMap;

use callboard_actors::allocations::{AllocationPhase, AllocationStatus, AllocationsView};
use callboard_actors::drivers::DriversView;
use callboard_actors::goplugin::PluginEndpoint;
use callboard_actors::instance::InstanceLimits;
use callboard_actors::instances::{InstanceReport, InstancesView};
use callboard_actors::inventory::{InventoryOptions, InventoryView};
use callboard_actors::lease::LeasedCalls;
use callboard_actors::logmon::LogsView;
use callboard_actors::processes::ProcessesView;
use callboard_actors::registry::{Description, Entry, RegistryView, Standing};
use callboard_actors::vocabulary::{
    AllocationId, DriverName, Generation, Health, PluginKey, Probing, Timestamp, milliseconds,
};
use callboard_actors::volumes::VolumesView;
use callboard_proto::admin::v1 as wire;

use super::convert::unix_ms;
use super::volumes::{self, ConfiguredVolume};
use crate::agent::{LastExit, TaskPhase, TaskReport};
use crate::process::ProcessExit;
use crate::tasks::TasksView;
use crate::usage::UsageView;

/// The views of all actors.
#[derive(Debug, Default)]
pub(super) struct Views {
    pub(super) registry: RegistryView,
    /// For each registered plugin, why the active registration is active, and what each of the others lacks.
    pub(super) elections: Vec<Description>,
    pub(super) instances: InstancesView,
    pub(super) inventory: InventoryView,
    pub(super) allocations: AllocationsView,
    pub(super) tasks: Vec<TaskReport>,
    pub(super) drivers: DriversView,
    /// The processes of those drivers.
    pub(super) processes: ProcessesView,
    /// The drivers of the configuration, and the tasks that they run.
    pub(super) driven: TasksView,
    /// The volumes that are known or in use.
    pub(super) volumes: VolumesView,
    /// The volumes of the configuration.
    pub(super) configured: Vec<ConfiguredVolume>,
    /// The logs of those tasks.
    pub(super) logs: LogsView,
    /// The resource usage of those tasks.
    pub(super) usage: UsageView,
    /// The connections to plugins and drivers.
    pub(super) connected: Connected,
    /// When this run of the host began.
    pub(super) started_at: Timestamp,
    /// The watch limits of a plugin if its allocation does not set them.
    pub(super) limits: InstanceLimits,
    /// How long the offers of such an allocation are kept.
    pub(super) inventory_options: InventoryOptions,
    /// Whether the host is being stopped; then nothing is expected to return.
    pub(super) is_stopping: bool,
}

/// The sockets of drivers, and the leases and calls in flight of all connections.
#[derive(Debug, Default)]
pub(super) struct Connected {
    /// For the reported generation of each plugin.
    pub(super) plugins: BTreeMap<(PluginKey, Generation), LeasedCalls>,
    /// For each allocation, also over connections that are being retired.
    pub(super) allocations: BTreeMap<AllocationId, LeasedCalls>,
    pub(super) drivers: BTreeMap<DriverName, (PluginEndpoint, LeasedCalls)>,
}

/// A count in its wire type.
pub(super) fn count(of: usize) -> u32 {
    u32::try_from(of).unwrap_or(u32::MAX)
}

/// Every allocation of the configuration, in its order.
pub(super) fn allocations(views: &Views) -> Vec<wire::AllocationStatus> {
    let books: BTreeMap<_, _> = views.allocations.allocations.iter().map(|a| (&a.allocation, a)).collect();
    let awaited = volumes::awaited(views);
    let one = |task: &TaskReport| {
        let awaited = awaited.get(&task.allocation).map_or("", String::as_str);
        let book = books.get(&task.allocation).copied();
        let registered = registered_health(&task.allocation, views).filter(|_| !is_out(task, book));
        let shown = shown_health(task, book, registered);
        let calls = views.connected.allocations.get(&task.allocation).copied().unwrap_or_default();
        wire::AllocationStatus {
            name: task.allocation.to_string(),
            plugin: task.plugin.to_string(),
            role: task.role.to_string(),
            state: book.map_or_else(String::new, |book| book.phase.as_str().to_owned()),
            health: shown.to_owned(),
            task_state: task.phase.to_string(),
            pid: task.pid.unwrap_or_default(),
            restarts: task.restarts,
            last_event: format!("{}{awaited}", task.last_event),
            socket: book.map_or_else(String::new, |book| book.socket.to_string()),
            reason: shown_reason(task, book, registered, shown).to_owned(),
            since_unix_ms: unix_ms(task.since),
            due_unix_ms: task.due.map_or(0, unix_ms),
            exit: task.exit.as_ref().map(exit),
            watching: Some(watching(task, views)),
            survives: task.survives,
            // Events are added for requests that want them.
            events: Vec::new(),
            leases: count(calls.leases),
            calls_in_flight: count(calls.in_flight),
        }
    };
    views.tasks.iter().map(one).collect()
}

fn watching(task: &TaskReport, views: &Views) -> wire::Watching {
    let Views { limits, inventory_options: inventory, .. } = views;
    let Probing { interval, call_deadline, failures_until_unhealthy, restart_grace, strict, listener } =
        task.probing;
    wire::Watching {
        probe_interval_ms: milliseconds(interval.unwrap_or(limits.round)),
        call_deadline_ms: milliseconds(call_deadline.unwrap_or(limits.call_deadline)),
        failures_until_unhealthy: failures_until_unhealthy.unwrap_or(limits.failures_until_unhealthy),
        restart_grace_ms: milliseconds(restart_grace.unwrap_or(inventory.restart_grace)),
        restart_when: task.restart_when.to_string(),
        strict: strict.unwrap_or(limits.connection.strict),
        listener: listener.to_string(),
    }
}

fn exit(last: &LastExit) -> wire::TaskExit {
    let told = wire::TaskExit { at_unix_ms: unix_ms(last.at), ..Default::default() };
    match last.exit {
        Some(ProcessExit::Code(code)) => wire::TaskExit { how: "exited".to_owned(), code, ..told },
        Some(ProcessExit::Signal(signal)) => wire::TaskExit { how: "signalled".to_owned(), signal, ..told },
        None => wire::TaskExit { how: "unknown".to_owned(), reason: last.how.clone(), ..told },
    }
}

/// The health of a registered allocation as its instances report it, as for its plugins; the worse of two. `None` if it is not in the
/// registry. It makes no difference whether its registration is on disk yet: work is routed to it.
fn registered_health<'v>(allocation: &AllocationId, views: &'v Views) -> Option<&'v Health> {
    let (entries, instances) = (&views.registry.entries, &views.instances);
    let is_of_it = |entry: &&Entry| {
        entry.standing == Standing::Confirmed && entry.registration.allocation == *allocation
    };
    let health_of = |entry: &Entry| {
        let mut reports = instances.reports.iter().chain(&instances.standby);
        let is_meant = |report: &&InstanceReport| {
            report.generation == entry.generation && report.plugin == entry.registration.plugin
        };
        // Without a report its instance is about to start.
        reports.find(is_meant).map_or(&Health::Starting, |report| &report.health)
    };
    let rank = |health: &&Health| match health {
        Health::Healthy => 0,
        Health::Starting => 1,
        Health::Unhealthy { .. } => 2,
        Health::Gone => 3,
    };
    entries.iter().filter(is_of_it).map(health_of).max_by_key(rank)
}

/// Whether no process of an allocation serves: it has ended, or is being stopped. Its deregistration is about to follow.
pub(super) fn is_out(task: &TaskReport, book: Option<&AllocationStatus>) -> bool {
    match task.phase {
        TaskPhase::Stopped | TaskPhase::Waiting | TaskPhase::Failed | TaskPhase::Starting => true,
        TaskPhase::Running => book.is_some_and(|book| book.phase == AllocationPhase::Stopping),
        TaskPhase::Stopping => book.is_none_or(|book| book.phase == AllocationPhase::Stopping),
    }
}

/// The health of an allocation in one word. It agrees with the health of its plugin if no other allocation serves the plugin.
fn shown_health(
    task: &TaskReport,
    book: Option<&AllocationStatus>,
    registered: Option<&Health>,
) -> &'static str {
    let absent = task.health_without_process();
    let is_known = book.is_some() || task.exit.is_some();
    match (task.phase, book) {
        (TaskPhase::Waiting | TaskPhase::Starting, _) if task.is_expected() => absent,
        (TaskPhase::Running | TaskPhase::Stopping, _) if is_out(task, book) => Health::Gone.as_str(),
        (TaskPhase::Running | TaskPhase::Stopping, book) => match (registered, book) {
            (Some(health), _) => health.as_str(),
            (None, Some(book)) if book.phase == AllocationPhase::Registered => book.health.as_str(),
            (None, Some(_)) => absent,
            (None, None) => "",
        },
        (TaskPhase::Waiting | TaskPhase::Starting | TaskPhase::Stopped | TaskPhase::Failed, _) => {
            if is_known { absent } else { "" }
        }
    }
}

/// Why an allocation is not healthy, or what it waits for (LOG-05). For a process that does not serve this is its last event, since the
/// reason of its health was that of an earlier process.
fn shown_reason<'v>(
    task: &'v TaskReport,
    book: Option<&'v AllocationStatus>,
    registered: Option<&'v Health>,
    shown: &str,
) -> &'v str {
    let (is_present, is_out) = (has_process(task.phase), is_out(task, book));
    let of_health =
        |book: &'v AllocationStatus| reason(book, registered.unwrap_or(&book.health)).unwrap_or_default();
    match book.filter(|_| is_present) {
        Some(book) if is_out => &book.last_event,
        Some(book) if is_healthy_or_unknown(shown) || !of_health(book).is_empty() => of_health(book),
        Some(_) | None if is_healthy_or_unknown(shown) => "",
        Some(_) | None => &task.last_event,
    }
}

/// Whether no reason is needed.
fn is_healthy_or_unknown(shown: &str) -> bool {
    shown.is_empty() || shown == Health::Healthy.as_str()
}

const fn has_process(phase: TaskPhase) -> bool {
    match phase {
        TaskPhase::Running | TaskPhase::Stopping => true,
        TaskPhase::Stopped | TaskPhase::Waiting | TaskPhase::Failed | TaskPhase::Starting => false,
    }
}

/// Why an allocation is unhealthy, or what keeps it from being ready (LOG-05).
pub(super) fn reason<'v>(book: &'v AllocationStatus, health: &'v Health) -> Option<&'v str> {
    match book.phase {
        AllocationPhase::AwaitingSocket | AllocationPhase::Probing | AllocationPhase::Registering => {
            Some(&book.last_event)
        }
        AllocationPhase::Prepared
        | AllocationPhase::Registered
        | AllocationPhase::AwaitingRestart
        | AllocationPhase::Stopping => health.reason(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use callboard_actors::allocations::RestartWhen;
    use callboard_actors::registry::Active;
    use callboard_actors::vocabulary::{
        Attempt, Fitness, ListenerRule, PluginName, PluginType, Registration, RegistrationNumber, Role,
        SocketPath, TaskName,
    };

    use super::*;
    use crate::agent::RESTARTING;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_epoch(Duration::from_secs(seconds))
    }

    fn id(name: &str) -> AllocationId {
        AllocationId::new(name).expect("a good name")
    }

    fn task(name: &str, pid: Option<u32>) -> TaskReport {
        TaskReport {
            allocation: id(name),
            plugin: PluginName::new("zfs").expect("a good name"),
            role: Role::Monolith,
            phase: TaskPhase::Running,
            since: at(1),
            pid,
            restarts: 2,
            last_event: "process runs".to_owned(),
            is_wanted: true,
            attempt: Attempt::new(3),
            restart_when: RestartWhen::UnhealthyFor(Duration::from_secs(120)),
            probing: Probing {
                interval: Some(Duration::from_secs(5)),
                strict: Some(true),
                listener: ListenerRule::Any,
                ..Probing::default()
            },
            survives: true,
            exit: Some(LastExit {
                exit: Some(ProcessExit::Signal(9)),
                how: "signal 9".to_owned(),
                at: at(1),
            }),
            due: None,
            stopping: None,
            ended: vec![],
        }
    }

    fn book_of(name: &str, phase: AllocationPhase, health: Health) -> AllocationStatus {
        AllocationStatus {
            allocation: id(name),
            task: TaskName::new("plugin").expect("a good name"),
            plugin: PluginName::new("zfs").expect("a good name"),
            role: Role::Monolith,
            socket: SocketPath::new("/s.sock").expect("a good path"),
            phase,
            health,
            since: at(1),
            last_event: "cannot connect: no such file".to_owned(),
        }
    }

    #[test]
    fn an_allocation_shows_its_process_and_its_books_and_the_reason_of_its_trouble_log_05() {
        let unhealthy = Health::Unhealthy { reason: "no pool".to_owned() };
        let books = vec![
            book_of("b", AllocationPhase::Registered, unhealthy),
            book_of("c", AllocationPhase::Probing, Health::Starting),
        ];
        let tasks = vec![task("c", None), task("b", Some(7)), task("a", None)];
        let views = Views { tasks, allocations: AllocationsView { allocations: books }, ..Views::default() };
        let whole = |name: &str, pid| wire::AllocationStatus {
            name: name.to_owned(),
            plugin: "zfs".to_owned(),
            role: "monolith".to_owned(),
            task_state: "running".to_owned(),
            pid,
            restarts: 2,
            last_event: "process runs".to_owned(),
            since_unix_ms: 1_000,
            exit: Some(wire::TaskExit {
                how: "signalled".to_owned(),
                signal: 9,
                at_unix_ms: 1_000,
                ..Default::default()
            }),
            watching: Some(wire::Watching {
                probe_interval_ms: 5_000,
                call_deadline_ms: 10_000,
                failures_until_unhealthy: 1,
                restart_grace_ms: 15_000,
                restart_when: "unhealthy-for 120s".to_owned(),
                strict: true,
                listener: "any".to_owned(),
            }),
            survives: true,
            ..wire::AllocationStatus::default()
        };
        let with = |status, [state, health, reason]: [&str; 3]| wire::AllocationStatus {
            state: state.to_owned(),
            health: health.to_owned(),
            socket: "/s.sock".to_owned(),
            reason: reason.to_owned(),
            ..status
        };
        let expected = [
            with(whole("c", 0), ["probing", "restarting", "cannot connect: no such file"]),
            with(whole("b", 7), ["registered", "unhealthy", "no pool"]),
            whole("a", 0),
        ];
        assert_eq!(allocations(&views), expected, "in the order of the configuration");
    }

    /// Views of an allocation: the state that its owner reports, its phase in the books, and its health there.
    fn views_of(phase: TaskPhase, has_exited: bool, book: Option<(AllocationPhase, Health)>) -> Views {
        let exit = has_exited.then(|| LastExit { exit: None, how: "killed".to_owned(), at: at(1) });
        let task = TaskReport { phase, is_wanted: phase != TaskPhase::Stopped, exit, ..task("b", None) };
        let books = book.map(|(phase, health)| book_of("b", phase, health)).into_iter().collect();
        let allocations = AllocationsView { allocations: books };
        Views { tasks: vec![task], allocations, ..Views::default() }
    }

    #[test]
    fn an_allocation_and_its_plugin_say_the_same_in_every_phase_of_a_start() {
        use AllocationPhase::{AwaitingRestart, AwaitingSocket, Prepared, Probing, Registering};
        use TaskPhase::{Failed, Running, Starting, Stopped, Stopping, Waiting};
        let unhealthy = || Health::Unhealthy { reason: "it was not ready in time".to_owned() };
        for (phase, has_exited, book, expected) in [
            (Starting, false, (Prepared, Health::Starting), "starting"),
            (Waiting, false, (Prepared, Health::Starting), "starting"),
            (Running, false, (AwaitingSocket, Health::Starting), "starting"),
            (Waiting, true, (AwaitingRestart, Health::Gone), "restarting"),
            (Starting, true, (AwaitingRestart, Health::Gone), "restarting"),
            (Running, true, (AwaitingSocket, Health::Starting), "restarting"),
            (Running, true, (Probing, Health::Starting), "restarting"),
            (Running, true, (Registering, Health::Starting), "restarting"),
            (Running, false, (AwaitingRestart, unhealthy()), "starting"),
            (Stopping, false, (AwaitingRestart, unhealthy()), "starting"),
            (Stopping, true, (AwaitingRestart, unhealthy()), "restarting"),
            (Failed, true, (AwaitingRestart, Health::Gone), "gone"),
            (Stopped, true, (Prepared, Health::Starting), "gone"),
        ] {
            let views = views_of(phase, has_exited, Some(book.clone()));
            let of_plugins = super::super::plugins::plugins(&views);
            let told = (&*allocations(&views)[0].health, &*of_plugins[0].health);
            assert_eq!(told, (expected, expected), "{phase:?} {has_exited} {book:?}");
        }
    }

    /// Adds the registration to the registry, with this report of its instance; neither need be on disk.
    fn registered(views: Views, is_active: bool, report: Option<Health>) -> Views {
        let plugin = PluginKey::new(PluginType::CsiNode, PluginName::new("zfs").expect("a good name"));
        let registration = Arc::new(Registration {
            policy: None,
            plugin: plugin.clone(),
            allocation: id("b"),
            socket: SocketPath::new("/s.sock").expect("a good path"),
            provider: None,
            version: None,
            options: Arc::default(),
        });
        let (generation, since) = (Generation::new(7), at(1));
        let active = Active { generation, registration: Arc::clone(&registration), since };
        let number = RegistrationNumber::new(1);
        let entry = Entry { number, registration, generation, standing: Standing::Confirmed, since };
        let reports = report.map(|health| InstanceReport {
            plugin,
            allocation: id("b"),
            socket: SocketPath::new("/s.sock").expect("a good path"),
            generation,
            health,
            fitness: Fitness::Unproven,
            since,
            fingerprint: None,
            remarks: vec![],
        });
        let registry =
            RegistryView { active: Vec::from_iter(is_active.then_some(active)), entries: vec![entry] };
        let instances = InstancesView { reports: Vec::from_iter(reports), ..InstancesView::default() };
        let tasks = views.tasks.into_iter().map(|task| TaskReport { role: Role::Node, ..task }).collect();
        Views { registry, instances, tasks, ..views }
    }

    #[test]
    fn an_allocation_and_its_plugin_say_the_same_wherever_the_registry_has_it_hlt_03() {
        use AllocationPhase as Book;
        let unhealthy = || Health::Unhealthy { reason: "no pool".to_owned() };
        let reports = [None, Some(Health::Starting), Some(Health::Healthy), Some(unhealthy())];
        let books = [
            Book::Prepared,
            Book::AwaitingSocket,
            Book::Probing,
            Book::Registering,
            Book::Registered,
            Book::AwaitingRestart,
            Book::Stopping,
        ];
        let phases = [
            TaskPhase::Starting,
            TaskPhase::Running,
            TaskPhase::Stopping,
            TaskPhase::Waiting,
            TaskPhase::Stopped,
            TaskPhase::Failed,
        ];
        for (phase, book, has_exited) in
            phases.iter().flat_map(|p| books.iter().flat_map(move |b| [(*p, *b, false), (*p, *b, true)]))
        {
            for (report, known) in
                reports.iter().flat_map(|r| [(r, Health::Starting), (r, Health::Healthy), (r, unhealthy())])
            {
                let views = views_of(phase, has_exited, Some((book, known.clone())));
                let views = registered(views, true, report.clone());
                let of_plugins = super::super::plugins::plugins(&views);
                let (own, plugin) = (&allocations(&views)[0], &of_plugins[0]);
                let what = format!("{phase:?} {book:?} {has_exited} {report:?} {known:?}");
                assert_eq!(own.health, plugin.health, "{what}");
                let is_bad = !["", "healthy"].contains(&&*own.health);
                assert!(!(is_bad && own.reason.is_empty()), "{} without a reason: {what}", own.health);
            }
        }
    }

    #[test]
    fn a_registration_that_is_not_on_disk_yet_has_the_health_of_its_instance_shell_1a() {
        let registering = Some((AllocationPhase::Registering, Health::Starting));
        let views = registered(views_of(TaskPhase::Running, true, registering), true, Some(Health::Healthy));
        let own = &allocations(&views)[0];
        assert_eq!((&*own.health, &*own.state), ("healthy", "registering"));
        assert_eq!(own.reason, "cannot connect: no such file", "what it waits for is said all the same");
    }

    #[test]
    fn an_allocation_that_is_stopped_for_its_health_says_what_is_wrong_with_it() {
        let stopping = Some((AllocationPhase::Registered, Health::Healthy));
        let unhealthy = Health::Unhealthy { reason: "no pool".to_owned() };
        let views = registered(views_of(TaskPhase::Stopping, false, stopping), true, Some(unhealthy));
        let own = &allocations(&views)[0];
        assert_eq!((&*own.health, &*own.reason), ("unhealthy", "no pool"));
    }

    #[test]
    fn an_allocation_says_what_it_waits_for_and_one_that_stops_is_gone() {
        let one = |views: &Views| allocations(views)[0].clone();
        let registering =
            one(&views_of(TaskPhase::Running, false, Some((AllocationPhase::Registering, Health::Starting))));
        assert_eq!(registering.reason, "cannot connect: no such file");
        let unhealthy = Health::Unhealthy { reason: "no pool".to_owned() };
        let waits =
            one(&views_of(TaskPhase::Waiting, true, Some((AllocationPhase::AwaitingRestart, unhealthy))));
        let reason = "process runs";
        assert_eq!((&*waits.health, &*waits.reason), (RESTARTING, reason), "not that of its last process");
        let stops = views_of(TaskPhase::Stopping, false, Some((AllocationPhase::Stopping, Health::Healthy)));
        assert_eq!(one(&stops).health, "gone");
        assert_eq!(one(&views_of(TaskPhase::Stopping, false, None)).health, "gone", "its process ends");
        assert_eq!(one(&views_of(TaskPhase::Stopped, true, None)).health, "gone");
        assert_eq!(one(&views_of(TaskPhase::Stopped, false, None)).health, "", "it was never started");
    }
}
