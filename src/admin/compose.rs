//! Puts a status together from what each actor shows. Pure: equal views give equal statuses.

use std::collections::BTreeMap;

use callboard_actors::allocations::{AllocationPhase, AllocationStatus, AllocationsView};
use callboard_actors::drivers::DriversView;
use callboard_actors::instances::{InstanceReport, InstancesView};
use callboard_actors::inventory::{InventoryView, Offer};
use callboard_actors::logmon::LogsView;
use callboard_actors::processes::ProcessesView;
use callboard_actors::registry::{Active, Entry, RegistryView, Standing};
use callboard_actors::vocabulary::{CsiFingerprint, Health, PluginKey, Timestamp};
use callboard_proto::admin::v1 as wire;

use super::convert::unix_ms;
use crate::agent::TaskReport;
use crate::tasks::TasksView;
use crate::usage::UsageView;

/// What every actor showed.
#[derive(Debug, Default)]
pub(super) struct Views {
    pub(super) registry: RegistryView,
    pub(super) instances: InstancesView,
    pub(super) inventory: InventoryView,
    pub(super) allocations: AllocationsView,
    pub(super) tasks: Vec<TaskReport>,
    pub(super) drivers: DriversView,
    /// The processes of those drivers.
    pub(super) processes: ProcessesView,
    /// The drivers of the configuration, and the tasks that they run.
    pub(super) driven: TasksView,
    /// The logs of those tasks.
    pub(super) logs: LogsView,
    /// What they use.
    pub(super) usage: UsageView,
}

/// All that is known of one plugin.
#[derive(Default)]
struct Known<'v> {
    /// Oldest first.
    entries: Vec<&'v Entry>,
    active: Option<&'v Active>,
    report: Option<&'v InstanceReport>,
    offer: Option<&'v Offer>,
}

/// Every plugin that is registered, has an instance or is offered, in order of type and name.
pub(super) fn plugins(views: &Views) -> Vec<wire::PluginStatus> {
    let mut known: BTreeMap<&PluginKey, Known<'_>> = BTreeMap::new();
    for entry in &views.registry.entries {
        known.entry(&entry.registration.plugin).or_default().entries.push(entry);
    }
    for active in &views.registry.active {
        known.entry(&active.registration.plugin).or_default().active = Some(active);
    }
    for report in &views.instances.reports {
        known.entry(&report.plugin).or_default().report = Some(report);
    }
    for offer in &views.inventory.offers {
        known.entry(&offer.plugin).or_default().offer = Some(offer);
    }
    known.into_iter().map(|(plugin, known)| known.of_the_active_one().status(plugin)).collect()
}

/// Every allocation of the configuration, in its order.
pub(super) fn allocations(views: &Views) -> Vec<wire::AllocationStatus> {
    let books: BTreeMap<_, _> = views.allocations.allocations.iter().map(|a| (&a.allocation, a)).collect();
    let one = |task: &TaskReport| {
        let book = books.get(&task.allocation);
        wire::AllocationStatus {
            name: task.allocation.to_string(),
            plugin: task.plugin.to_string(),
            role: task.role.to_string(),
            state: book.map_or_else(String::new, |book| book.phase.as_str().to_owned()),
            health: book.map_or_else(String::new, |book| book.health.as_str().to_owned()),
            task_state: task.phase.to_string(),
            pid: task.pid.unwrap_or_default(),
            restarts: task.restarts,
            last_event: task.last_event.clone(),
            socket: book.map_or_else(String::new, |book| book.socket.to_string()),
            reason: book.and_then(|book| reason(book)).unwrap_or_default().to_owned(),
        }
    };
    views.tasks.iter().map(one).collect()
}

/// Why an allocation is unhealthy, or what keeps it from being ready (LOG-05).
fn reason(book: &AllocationStatus) -> Option<&str> {
    match book.phase {
        AllocationPhase::AwaitingSocket | AllocationPhase::Probing => Some(&book.last_event),
        AllocationPhase::Prepared
        | AllocationPhase::Registering
        | AllocationPhase::Registered
        | AllocationPhase::AwaitingRestart
        | AllocationPhase::Stopping => book.health.reason(),
    }
}

impl Known<'_> {
    fn status(&self, plugin: &PluginKey) -> wire::PluginStatus {
        let (health, since) = self.health();
        let mut status = wire::PluginStatus {
            r#type: plugin.plugin_type.to_string(),
            name: plugin.name.to_string(),
            health: health.as_str().to_owned(),
            reason: health.reason().map_or_else(|| self.awaited(), str::to_owned),
            since_unix_ms: unix_ms(since),
            generation: self.generation(),
            active_allocation: self
                .active
                .map_or_else(String::new, |a| a.registration.allocation.to_string()),
            standby_allocations: self.names(Standing::Confirmed),
            provisional_allocations: self.names(Standing::Provisional),
            restarting: self.offer.is_some_and(|offer| offer.restarting),
            remarks: self.remarks(),
            ..wire::PluginStatus::default()
        };
        if let Some(registration) = self.active.map(|active| &active.registration) {
            status.provider = registration.provider.as_deref().unwrap_or_default().to_owned();
            status.version = registration.version.as_deref().unwrap_or_default().to_owned();
        }
        if let Some(fingerprint) = self.fingerprint() {
            describe(fingerprint, &mut status);
        }
        status
    }

    /// Without what the instances and the inventory still know of another generation than the active one: a row never mixes two
    /// processes.
    fn of_the_active_one(mut self) -> Self {
        if let Some(active) = self.active {
            self.report = self.report.filter(|report| report.generation == active.generation);
            self.offer = self.offer.filter(|offer| offer.generation == active.generation);
        }
        self
    }

    /// What the instance says is what routes, so it is what is shown (HLT-03).
    fn health(&self) -> (Health, Timestamp) {
        if let Some(report) = self.report {
            return (report.health.clone(), report.since);
        }
        match (self.active, self.offer, self.entries.last()) {
            // Its instance is about to begin.
            (Some(active), _, _) => (Health::Starting, active.since),
            (None, Some(offer), _) => (offer.health.clone(), offer.since),
            (None, None, Some(entry)) => (Health::Starting, entry.since),
            (None, None, None) => (Health::Gone, Timestamp::default()),
        }
    }

    /// What is waited for where nothing is known to be wrong.
    fn awaited(&self) -> String {
        if self.report.is_some() || self.active.is_some() || self.entries.is_empty() {
            return String::new();
        }
        format!("restored; waits for {} to register again", self.names(Standing::Provisional).join(", "))
    }

    fn generation(&self) -> u64 {
        let shown = self.report.map(|report| report.generation);
        let routed = self.active.map(|active| active.generation);
        let offered = self.offer.map(|offer| offer.generation);
        shown.or(routed).or(offered).map_or(0, |generation| generation.get())
    }

    fn fingerprint(&self) -> Option<&CsiFingerprint> {
        let shown = self.report.and_then(|report| report.fingerprint.as_deref());
        shown.or_else(|| self.offer.and_then(|offer| offer.fingerprint.as_deref()))
    }

    fn remarks(&self) -> Vec<String> {
        let shown = self.report.map(|report| &report.remarks);
        shown.or_else(|| self.offer.map(|offer| &offer.remarks)).cloned().unwrap_or_default()
    }

    /// The allocations of this standing other than the active one, newest first.
    fn names(&self, standing: Standing) -> Vec<String> {
        let active = self.active.map(|active| &active.registration.allocation);
        let others = self.entries.iter().rev().filter(|entry| entry.standing == standing);
        let names = others.map(|entry| &entry.registration.allocation).filter(|name| Some(*name) != active);
        names.map(ToString::to_string).collect()
    }
}

fn describe(fingerprint: &CsiFingerprint, status: &mut wire::PluginStatus) {
    fn names<C: ToString>(capabilities: &[C]) -> Vec<String> {
        capabilities.iter().map(ToString::to_string).collect()
    }
    status.provider = fingerprint.identity.provider.to_string();
    status.version = fingerprint.identity.version.to_string();
    status.plugin_capabilities = names(&fingerprint.plugin);
    status.controller_capabilities = names(fingerprint.controller.as_deref().unwrap_or_default());
    status.node_capabilities = names(fingerprint.node.as_deref().unwrap_or_default());
    status.expansion = names(&fingerprint.expansion);
    status.requires_controller = fingerprint.requires_controller();
    status.requires_topology = fingerprint.requires_topology();
    if let Some(info) = &fingerprint.node_info {
        status.node_id = info.node_id.clone();
        status.max_volumes = info.max_volumes.unwrap_or_default();
        status.topology = info.topology.clone().unwrap_or_default().into_iter().collect();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use callboard_actors::vocabulary::{
        AllocationId, Fitness, Generation, Identity, NodeInfo, PluginCapability, PluginName, PluginType,
        Registration, RegistrationNumber, Role, SocketPath, TaskName,
    };

    use super::*;
    use crate::agent::TaskPhase;

    fn key(name: &str) -> PluginKey {
        PluginKey::new(PluginType::CsiNode, PluginName::new(name).expect("a good name"))
    }

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_epoch(Duration::from_secs(seconds))
    }

    fn entry(plugin: &str, allocation: &str, number: u64, standing: Standing) -> Entry {
        let registration = Arc::new(Registration {
            plugin: key(plugin),
            allocation: AllocationId::new(allocation).expect("a good name"),
            socket: SocketPath::new("/s.sock").expect("a good path"),
            provider: Some("zfs.example".into()),
            version: None,
            options: Arc::default(),
        });
        Entry {
            number: RegistrationNumber::new(number),
            registration,
            generation: Generation::new(number),
            standing,
            since: at(number),
        }
    }

    fn active(entry: &Entry, generation: u64) -> Active {
        let registration = Arc::clone(&entry.registration);
        Active { generation: Generation::new(generation), registration, since: entry.since }
    }

    fn report(entry: &Entry, generation: u64, health: Health) -> InstanceReport {
        InstanceReport {
            plugin: entry.registration.plugin.clone(),
            allocation: entry.registration.allocation.clone(),
            socket: entry.registration.socket.clone(),
            generation: Generation::new(generation),
            health,
            fitness: Fitness::Unproven,
            since: at(50),
            fingerprint: None,
            remarks: vec!["odd".to_owned()],
        }
    }

    #[test]
    fn standby_comes_newest_first_and_what_is_not_confirmed_stands_apart_r1_r8() {
        let entries = vec![
            entry("zfs", "a", 1, Standing::Provisional),
            entry("zfs", "b", 2, Standing::Confirmed),
            entry("zfs", "c", 3, Standing::Provisional),
            entry("zfs", "d", 4, Standing::Confirmed),
            entry("zfs", "e", 5, Standing::Confirmed),
        ];
        let registry = RegistryView { active: vec![active(&entries[4], 9)], entries };
        let plugins = plugins(&Views { registry, ..Views::default() });
        let [zfs] = &plugins[..] else { panic!("one plugin") };
        assert_eq!(zfs.active_allocation, "e");
        assert_eq!(zfs.standby_allocations, ["d", "b"]);
        assert_eq!(zfs.provisional_allocations, ["c", "a"]);
        assert_eq!((&*zfs.health, zfs.generation, &*zfs.provider), ("starting", 9, "zfs.example"));
        assert_eq!(zfs.reason, "", "its instance is about to begin");
    }

    #[test]
    fn what_the_instance_says_is_what_is_shown_hlt_03() {
        let entry = entry("zfs", "a", 1, Standing::Confirmed);
        let unhealthy = Health::Unhealthy { reason: "no pool".to_owned() };
        let views = Views {
            registry: RegistryView { active: vec![active(&entry, 9)], entries: vec![entry.clone()] },
            instances: InstancesView {
                reports: vec![report(&entry, 9, unhealthy)],
                ..InstancesView::default()
            },
            ..Views::default()
        };
        let plugins = plugins(&views);
        let [zfs] = &plugins[..] else { panic!("one plugin") };
        assert_eq!((&*zfs.health, &*zfs.reason), ("unhealthy", "no pool"));
        assert_eq!((zfs.since_unix_ms, &zfs.remarks[..]), (50_000, &["odd".to_owned()][..]));
    }

    #[test]
    fn an_allocation_shows_its_process_and_its_books_and_the_reason_of_its_trouble_log_05() {
        let id = |name: &str| AllocationId::new(name).expect("a good name");
        let task = |name: &str, pid| TaskReport {
            allocation: id(name),
            plugin: PluginName::new("zfs").expect("a good name"),
            role: Role::Monolith,
            phase: TaskPhase::Running,
            since: at(1),
            pid,
            restarts: 2,
            last_event: "process runs".to_owned(),
        };
        let book = |name: &str, phase, health| AllocationStatus {
            allocation: id(name),
            task: TaskName::new("plugin").expect("a good name"),
            plugin: PluginName::new("zfs").expect("a good name"),
            role: Role::Monolith,
            socket: SocketPath::new("/s.sock").expect("a good path"),
            phase,
            health,
            since: at(1),
            last_event: "cannot connect: no such file".to_owned(),
        };
        let unhealthy = Health::Unhealthy { reason: "no pool".to_owned() };
        let books = vec![
            book("b", AllocationPhase::Registered, unhealthy),
            book("c", AllocationPhase::Probing, Health::Starting),
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
            with(whole("c", 0), ["probing", "starting", "cannot connect: no such file"]),
            with(whole("b", 7), ["registered", "unhealthy", "no pool"]),
            whole("a", 0),
        ];
        assert_eq!(allocations(&views), expected, "in the order of the configuration");
    }

    #[test]
    fn a_plugin_shows_who_it_said_it_is_also_from_the_books_hlt_08() {
        let entry = entry("zfs", "a", 1, Standing::Confirmed);
        let fingerprint = Arc::new(CsiFingerprint {
            identity: Identity {
                provider: "zfs.example".into(),
                version: "3".into(),
                manifest: BTreeMap::new(),
            },
            plugin: vec![PluginCapability::ControllerService],
            controller: None,
            node: None,
            expansion: vec![],
            node_info: Some(NodeInfo { node_id: "n1".to_owned(), max_volumes: Some(8), topology: None }),
        });
        let offer = Offer {
            plugin: key("zfs"),
            allocation: entry.registration.allocation.clone(),
            generation: Generation::new(9),
            health: Health::Healthy,
            since: at(60),
            fingerprint: Some(fingerprint),
            restarting: false,
            remarks: vec!["odd".to_owned()],
        };
        let inventory = InventoryView { offers: vec![offer], first: None };
        let expected = wire::PluginStatus {
            r#type: "csi-node".to_owned(),
            name: "zfs".to_owned(),
            health: "healthy".to_owned(),
            since_unix_ms: 60_000,
            generation: 9,
            remarks: vec!["odd".to_owned()],
            provider: "zfs.example".to_owned(),
            version: "3".to_owned(),
            plugin_capabilities: vec!["CONTROLLER_SERVICE".to_owned()],
            requires_controller: true,
            node_id: "n1".to_owned(),
            max_volumes: 8,
            ..wire::PluginStatus::default()
        };
        assert_eq!(plugins(&Views { inventory, ..Views::default() }), [expected]);
    }

    #[test]
    fn a_row_never_mixes_the_active_allocation_with_the_one_before_it() {
        let entries =
            vec![entry("zfs", "a", 1, Standing::Confirmed), entry("zfs", "b", 2, Standing::Confirmed)];
        let registration = Arc::clone(&entries[1].registration);
        let active = Active { generation: Generation::new(10), registration, since: at(70) };
        let offer = Offer {
            plugin: key("zfs"),
            allocation: entries[0].registration.allocation.clone(),
            generation: Generation::new(9),
            health: Health::Healthy,
            since: at(60),
            fingerprint: None,
            restarting: false,
            remarks: vec!["odd".to_owned()],
        };
        let registry = RegistryView { entries, active: vec![active] };
        let inventory = InventoryView { offers: vec![offer], first: None };
        let plugins = plugins(&Views { registry, inventory, ..Views::default() });
        let [zfs] = &plugins[..] else { panic!("one plugin") };
        assert_eq!((&*zfs.active_allocation, &*zfs.health, zfs.generation), ("b", "starting", 10));
        assert_eq!((zfs.since_unix_ms, zfs.remarks.len()), (70_000, 0));
    }

    #[test]
    fn what_waits_to_be_confirmed_says_for_whom_r8() {
        let entries = vec![entry("zfs", "a", 1, Standing::Provisional)];
        let registry = RegistryView { entries, active: vec![] };
        let plugins = plugins(&Views { registry, ..Views::default() });
        let [zfs] = &plugins[..] else { panic!("one plugin") };
        assert_eq!((&*zfs.health, &*zfs.reason), ("starting", "restored; waits for a to register again"));
    }

    #[test]
    fn a_plugin_whose_successor_is_awaited_is_shown_from_the_books_hlt_08() {
        let entry = entry("zfs", "a", 1, Standing::Confirmed);
        let offer = Offer {
            plugin: key("zfs"),
            allocation: entry.registration.allocation.clone(),
            generation: Generation::new(9),
            health: Health::Gone,
            since: at(60),
            fingerprint: None,
            restarting: true,
            remarks: vec![],
        };
        let inventory = InventoryView { offers: vec![offer], first: None };
        let plugins = plugins(&Views { inventory, ..Views::default() });
        let [zfs] = &plugins[..] else { panic!("one plugin") };
        assert_eq!((&*zfs.health, zfs.restarting, zfs.generation), ("gone", true, 9));
        assert_eq!((&*zfs.active_allocation, &*zfs.reason), ("", ""));
    }
}
