//! Composes the status rows of plugins: their configuration and their present state.

use std::collections::{BTreeMap, BTreeSet};

use callboard_actors::instances::InstanceReport;
use callboard_actors::inventory::Offer;
use callboard_actors::lease::LeasedCalls;
use callboard_actors::registry::{Active, Description, Entry, InactiveBecause, Standby, Standing};
use callboard_actors::vocabulary::{
    AllocationId, CsiFingerprint, Family, Health, PluginKey, Registration, Timestamp,
};
use callboard_proto::admin::v1 as wire;

use super::compose::{Connected, Views, count, is_out, reason};
use super::convert::unix_ms;
use super::volumes;
use crate::agent::{RESTARTING, TaskPhase, TaskReport};
use crate::timeline;

/// All known facts about one plugin.
#[derive(Default)]
struct Known<'v> {
    /// Oldest first.
    entries: Vec<&'v Entry>,
    active: Option<&'v Active>,
    report: Option<&'v InstanceReport>,
    offer: Option<&'v Offer>,
    election: Option<&'v Description>,
    /// The configured allocations that serve it, each with what keeps it from being ready.
    tasks: Vec<(&'v TaskReport, Option<&'v str>)>,
    /// The allocations of these that no longer serve.
    out: BTreeSet<&'v AllocationId>,
    /// How many of its registrations are healthy, active or standby.
    healthy: u32,
    /// How many of its volumes are in use on this node.
    volumes_in_use: u32,
    is_host_stopping: bool,
    /// When this run of the host began.
    started_at: Timestamp,
}

/// The present state of a plugin's health.
struct Condition {
    health: &'static str,
    reason: String,
    since: Timestamp,
}

/// Every plugin that is configured, registered, has an instance or is offered, in order of type and name.
pub(super) fn plugins(views: &Views) -> Vec<wire::PluginStatus> {
    let mut known: BTreeMap<PluginKey, Known<'_>> = BTreeMap::new();
    let books: BTreeMap<_, _> = views.allocations.allocations.iter().map(|b| (&b.allocation, b)).collect();
    for task in &views.tasks {
        let book = books.get(&task.allocation).copied();
        let waits_for = book.and_then(|book| reason(book, &book.health));
        for plugin_type in task.role.plugin_types() {
            let plugin = known.entry(PluginKey::new(*plugin_type, task.plugin.clone())).or_default();
            plugin.tasks.push((task, waits_for));
            plugin.out.extend(is_out(task, book).then_some(&task.allocation));
        }
    }
    for entry in &views.registry.entries {
        known.entry(entry.registration.plugin.clone()).or_default().entries.push(entry);
    }
    for active in &views.registry.active {
        known.entry(active.registration.plugin.clone()).or_default().active = Some(active);
    }
    for election in &views.elections {
        known.entry(election.plugin.clone()).or_default().election = Some(election);
    }
    for report in &views.instances.reports {
        known.entry(report.plugin.clone()).or_default().report = Some(report);
    }
    for report in views.instances.reports.iter().chain(&views.instances.standby) {
        let of = known.entry(report.plugin.clone()).or_default();
        // A standby that has just taken over is warm before its instance reports that it is active (R1d).
        if of.active.is_some_and(|active| active.generation == report.generation) {
            of.report = Some(report);
        }
        let is_of_it = |entry: &&Entry| entry.generation == report.generation;
        if report.health == Health::Healthy
            && of.entries.iter().any(is_of_it)
            && !of.out.contains(&report.allocation)
        {
            of.healthy += 1;
        }
    }
    for offer in views.inventory.family(Family::Csi) {
        known.entry(offer.plugin.clone()).or_default().offer = Some(offer);
    }
    let volumes_in_use = volumes::in_use(views);
    let row = |(plugin, known): (&PluginKey, &mut Known<'_>)| {
        known.is_host_stopping = views.is_stopping;
        known.started_at = views.started_at;
        known.volumes_in_use = volumes_in_use.get(&plugin.name).copied().unwrap_or_default();
        known.of_the_active_one().status(plugin, &views.connected)
    };
    known.iter_mut().map(row).collect()
}

impl Known<'_> {
    fn status(&self, plugin: &PluginKey, connected: &Connected) -> wire::PluginStatus {
        let Condition { health, reason, since } = self.condition();
        let calls = self.calls(plugin, connected);
        let meant = self.tasks.iter().filter(|(task, _)| task.is_wanted).count();
        let mut status = wire::PluginStatus {
            r#type: plugin.plugin_type.to_string(),
            name: plugin.name.to_string(),
            health: health.to_owned(),
            reason,
            since_unix_ms: unix_ms(since),
            generation: self.generation(),
            active_allocation: self
                .active
                .map_or_else(String::new, |a| a.registration.allocation.to_string()),
            standby_allocations: self.names(Standing::Confirmed),
            provisional_allocations: self.names(Standing::Provisional),
            restarting: health == RESTARTING && self.offer.is_some_and(|offer| offer.restarting),
            remarks: self.remarks(),
            expected: count(meant),
            registered: count(self.confirmed().count()),
            healthy: self.healthy,
            volumes_in_use: self.volumes_in_use,
            leases: count(calls.leases),
            calls_in_flight: count(calls.in_flight),
            ..wire::PluginStatus::default()
        };
        if let Some(registration) = self.active.map(|active| &active.registration) {
            status.provider = registration.provider.as_deref().unwrap_or_default().to_owned();
            status.version = registration.version.as_deref().unwrap_or_default().to_owned();
        }
        if let Some(election) = self.election {
            elected(election, &mut status);
        }
        if let Some(fingerprint) = self.fingerprint() {
            describe(fingerprint, &mut status);
        }
        status
    }

    /// Removes what the instances and the inventory still report of a generation other than the active one, or of a process that is not
    /// expected to return: a row never mixes two processes.
    fn of_the_active_one(&mut self) -> &Self {
        if let Some(active) = self.active {
            self.report = self.report.filter(|report| report.generation == active.generation);
            self.offer = self.offer.filter(|offer| offer.generation == active.generation);
            let elected = |election: &&Description| election.active.as_ref().map(|a| a.generation);
            self.election = self.election.filter(|election| elected(election) == Some(active.generation));
        } else if !self.tasks.is_empty() && !self.tasks.iter().any(|(task, _)| self.is_expected(task)) {
            (self.report, self.offer) = (None, None);
        }
        self
    }

    fn confirmed(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().copied().filter(|entry| entry.standing == Standing::Confirmed)
    }

    /// The report of the instance decides routing, so it is also what is shown (HLT-03), unless its process is known to have ended.
    fn condition(&self) -> Condition {
        if let Some(active) = self.active.filter(|active| !self.out.contains(&active.registration.allocation))
        {
            let (health, since) = match self.report {
                // A standby had its health before it became active.
                Some(report) => (&report.health, report.since.max(active.since)),
                // Its instance is about to start.
                None => (&Health::Starting, active.since),
            };
            let reason = health.reason().unwrap_or_default().to_owned();
            return Condition { health: health.as_str(), reason, since };
        }
        let awaited = self.awaited();
        if let Some(entry) = self.entries.last().filter(|_| self.active.is_none() && !awaited.is_empty()) {
            let reason = format!("restored; waits for {} to register again", awaited.join(", "));
            // A registration of an earlier run of the host is awaited since this run began.
            let since = entry.since.max(self.started_at);
            return Condition { health: Health::Starting.as_str(), reason, since };
        }
        self.absent()
    }

    /// The allocations of its restored registrations, except those that are not going to run.
    fn awaited(&self) -> Vec<String> {
        let task = |name: &String| self.tasks.iter().find(|(task, _)| *task.allocation.as_str() == **name);
        let may_come = |name: &String| task(name).is_none_or(|(task, _)| self.is_expected(task));
        self.names(Standing::Provisional).into_iter().filter(may_come).collect()
    }

    /// Whether an allocation of it serves it or is about to: it is meant to run, and is not being stopped.
    fn is_expected(&self, task: &TaskReport) -> bool {
        let is_leaving = matches!(task.phase, TaskPhase::Running | TaskPhase::Stopping)
            && self.out.contains(&task.allocation);
        task.is_expected() && !is_leaving
    }

    /// The state of a plugin that nothing serves: whether that is about to change, and the reason.
    fn absent(&self) -> Condition {
        let expected: Vec<_> = self.tasks.iter().filter(|(task, _)| self.is_expected(task)).collect();
        if self.is_host_stopping && (self.tasks.is_empty() || !expected.is_empty()) {
            let ended = expected.iter().map(|(task, _)| task.since).max();
            let (health, reason) = (Health::Gone.as_str(), "the host is stopping".to_owned());
            return Condition { health, reason, since: ended.max(self.left_at()).unwrap_or(self.started_at) };
        }
        let was_there = self.offer.is_some() || self.tasks.iter().any(|(task, _)| task.exit.is_some());
        let health = match (expected.is_empty(), was_there) {
            (false, false) => Health::Starting.as_str(),
            (false, true) => RESTARTING,
            (true, _) if self.tasks.is_empty() && self.offer.is_some() => RESTARTING,
            (true, _) => Health::Gone.as_str(),
        };
        let shown = if expected.is_empty() { self.tasks.iter().collect() } else { expected };
        let reasons: Vec<_> = shown.iter().map(|(task, waits_for)| why(task, *waits_for)).collect();
        let begun = || shown.iter().map(|(task, _)| task.since).min();
        let since = self.left_at().or_else(begun).unwrap_or_default();
        Condition { health, reason: reasons.join("; "), since }
    }

    /// When it left, if known: at the earliest when its last process ended or its stop began, and when it was last offered.
    fn left_at(&self) -> Option<Timestamp> {
        let exits = self.tasks.iter().filter_map(|(task, _)| task.exit.as_ref().map(|exit| exit.at));
        let stopping = self.tasks.iter().filter(|(task, _)| task.phase == TaskPhase::Stopping);
        let stops = stopping.map(|(task, _)| task.since);
        exits.chain(stops).chain(self.offer.map(|offer| offer.since)).max()
    }

    /// The leases and calls in flight of the generation whose instance is shown.
    fn calls(&self, plugin: &PluginKey, connected: &Connected) -> LeasedCalls {
        let shown = self.report.map(|report| (plugin.clone(), report.generation));
        shown.and_then(|shown| connected.plugins.get(&shown)).copied().unwrap_or_default()
    }

    fn generation(&self) -> u64 {
        let shown = self.report.map(|report| report.generation);
        let routed = self.active.map(|active| active.generation);
        let offered = self.offer.map(|offer| offer.generation);
        shown.or(routed).or(offered).map_or(0, |generation| generation.get())
    }

    fn fingerprint(&self) -> Option<&CsiFingerprint> {
        let shown = self.report.and_then(|report| report.fingerprint.as_deref());
        let offered = || self.offer?.fingerprint.as_ref()?.csi().map(AsRef::as_ref);
        shown.or_else(offered)
    }

    fn remarks(&self) -> Vec<String> {
        let shown = self.report.map(|report| &report.remarks);
        shown.or_else(|| self.offer.map(|offer| &offer.remarks)).cloned().unwrap_or_default()
    }

    /// The allocations of this standing except the active one, newest first.
    fn names(&self, standing: Standing) -> Vec<String> {
        let active = self.active.map(|active| &active.registration.allocation);
        let others = self.entries.iter().rev().filter(|entry| entry.standing == standing);
        let names = others.map(|entry| &entry.registration.allocation).filter(|name| Some(*name) != active);
        names.map(ToString::to_string).collect()
    }
}

/// Why an allocation does not serve its plugin.
fn why(task: &TaskReport, waits_for: Option<&str>) -> String {
    let running = waits_for.filter(|_| task.phase == TaskPhase::Running);
    format!("{}: {}", task.allocation, running.unwrap_or(&task.last_event))
}

/// Why the active registration is active, and what each of the others lacks.
fn elected(election: &Description, status: &mut wire::PluginStatus) {
    let registration =
        |registration: &Registration, standing: &str, since: Timestamp, lacks: Option<&InactiveBecause>| {
            wire::RegistrationStatus {
                allocation: registration.allocation.to_string(),
                standing: standing.to_owned(),
                version: registration.version.as_deref().unwrap_or_default().to_owned(),
                since_unix_ms: unix_ms(since),
                lacks: lacks.map(timeline::lacks).unwrap_or_default(),
                ready: lacks.is_none_or(|inactive_because| {
                    matches!(inactive_because, InactiveBecause::Older | InactiveBecause::NotPinned)
                }),
                calm_until_unix_ms: match lacks {
                    Some(InactiveBecause::Calm { until }) => unix_ms(*until),
                    _ => 0,
                },
            }
        };
    status.policy = election.policy.to_string();
    status.active_reason =
        election.active_because.map(|active_because| active_because.to_string()).unwrap_or_default();
    let active = election.active.iter();
    let active = active.map(|active| registration(&active.registration, "active", active.since, None));
    let standby = election.standby.iter().map(|Standby { entry, inactive_because }| {
        registration(&entry.registration, "standby", entry.since, Some(inactive_because))
    });
    let provisional = election.provisional.iter().map(|entry| {
        let status = registration(&entry.registration, "provisional", entry.since, None);
        let lacks = "it was restored, and has not registered again".to_owned();
        wire::RegistrationStatus { lacks, ready: false, ..status }
    });
    status.registrations = active.chain(standby).chain(provisional).collect();
}

fn describe(fingerprint: &CsiFingerprint, status: &mut wire::PluginStatus) {
    fn names<C: ToString>(capabilities: &[C]) -> Vec<String> {
        capabilities.iter().map(ToString::to_string).collect()
    }
    status.provider = fingerprint.identity.provider.to_string();
    status.version = fingerprint.identity.version.to_string();
    status.manifest = fingerprint.identity.manifest.clone().into_iter().collect();
    status.plugin_capabilities = names(&fingerprint.plugin);
    status.controller_capabilities = names(fingerprint.controller.as_deref().unwrap_or_default());
    let groups = fingerprint.group_controller.as_deref().unwrap_or_default();
    status.group_controller_capabilities = names(groups);
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

    use callboard_actors::allocations::RestartWhen;
    use callboard_actors::instances::InstancesView;
    use callboard_actors::inventory::{Fingerprint, InventoryView};
    use callboard_actors::registry::{ActiveBecause, RegistryView};
    use callboard_actors::vocabulary::{
        Attempt, FailoverPolicy, Fitness, Generation, Identity, NodeInfo, PluginCapability, PluginName,
        PluginType, Probing, RegistrationNumber, Role, SocketPath,
    };

    use super::*;
    use crate::agent::LastExit;

    fn key(name: &str) -> PluginKey {
        PluginKey::new(PluginType::CsiNode, PluginName::new(name).expect("a good name"))
    }

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_epoch(Duration::from_secs(seconds))
    }

    fn entry(plugin: &str, allocation: &str, number: u64, standing: Standing) -> Entry {
        let registration = Arc::new(Registration {
            policy: None,
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
    fn a_row_says_why_the_active_one_is_and_what_each_other_one_lacks_r1b() {
        let [a, b, c] = [("a", 1), ("b", 2), ("c", 3)].map(|(name, number)| {
            let standing = if name == "c" { Standing::Provisional } else { Standing::Confirmed };
            entry("zfs", name, number, standing)
        });
        let inactive_because = InactiveBecause::Unfit { reason: "no pool".into() };
        let election = Description {
            plugin: key("zfs"),
            active: Some(active(&a, 9)),
            active_because: Some(ActiveBecause::NewestFit),
            policy: FailoverPolicy::NewestHealthy,
            standby: vec![Standby { entry: b.clone(), inactive_because }],
            provisional: vec![c.clone()],
        };
        let registry = RegistryView { active: vec![active(&a, 9)], entries: vec![a, b, c] };
        let shown = row(&Views { registry, elections: vec![election], ..Views::default() });
        assert_eq!(shown.policy, "newest-healthy");
        assert_eq!(shown.active_reason, "as the newest that is healthy");
        let told: Vec<_> = shown
            .registrations
            .iter()
            .map(|told| (&*told.allocation, &*told.standing, &*told.lacks, told.ready))
            .collect();
        let expected = [
            ("a", "active", "", true),
            ("b", "standby", "unhealthy: no pool", false),
            ("c", "provisional", "it was restored, and has not registered again", false),
        ];
        assert_eq!(told, expected);
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
    fn a_plugin_shows_who_it_said_it_is_also_from_the_books_hlt_08() {
        let entry = entry("zfs", "a", 1, Standing::Confirmed);
        let fingerprint = Arc::new(CsiFingerprint {
            identity: Identity {
                provider: "zfs.example".into(),
                version: "3".into(),
                manifest: [("commit".to_owned(), "e981e2a".to_owned())].into(),
            },
            plugin: vec![PluginCapability::ControllerService],
            controller: None,
            group_controller: None,
            node: None,
            expansion: vec![],
            node_info: Some(NodeInfo { node_id: "n1".to_owned(), max_volumes: Some(8), topology: None }),
        });
        let offer = Offer {
            plugin: key("zfs"),
            allocation: Some(entry.registration.allocation.clone()),
            generation: Generation::new(9),
            health: Health::Healthy,
            since: at(60),
            fingerprint: Some(Fingerprint::Csi(fingerprint)),
            restarting: false,
            remarks: vec!["odd".to_owned()],
        };
        let inventory = InventoryView { offers: vec![offer], ..InventoryView::default() };
        let expected = wire::PluginStatus {
            r#type: "csi-node".to_owned(),
            name: "zfs".to_owned(),
            health: "restarting".to_owned(),
            since_unix_ms: 60_000,
            generation: 9,
            remarks: vec!["odd".to_owned()],
            provider: "zfs.example".to_owned(),
            version: "3".to_owned(),
            manifest: [("commit".to_owned(), "e981e2a".to_owned())].into(),
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
            allocation: Some(entries[0].registration.allocation.clone()),
            generation: Generation::new(9),
            health: Health::Healthy,
            since: at(60),
            fingerprint: None,
            restarting: false,
            remarks: vec!["odd".to_owned()],
        };
        let registry = RegistryView { entries, active: vec![active] };
        let inventory = InventoryView { offers: vec![offer], ..InventoryView::default() };
        let plugins = plugins(&Views { registry, inventory, ..Views::default() });
        let [zfs] = &plugins[..] else { panic!("one plugin") };
        assert_eq!((&*zfs.active_allocation, &*zfs.health, zfs.generation), ("b", "starting", 10));
        assert_eq!((zfs.since_unix_ms, zfs.remarks.len()), (70_000, 0));
    }

    #[test]
    fn what_an_earlier_run_wrote_down_is_awaited_since_this_one_began_r8() {
        let registry =
            RegistryView { entries: vec![entry("zfs", "a", 1, Standing::Provisional)], active: vec![] };
        let shown = row(&Views { registry, started_at: at(500), ..Views::default() });
        assert_eq!((&*shown.health, shown.since_unix_ms), ("starting", 500_000));
    }

    #[test]
    fn what_restarts_does_so_since_it_left_and_not_since_an_earlier_exit() {
        let entry = entry("zfs", "a", 1, Standing::Confirmed);
        let offer =
            Offer { since: at(90), restarting: true, ..Offer::of(&report(&entry, 1, Health::Healthy)) };
        let exit = Some(LastExit { exit: None, how: "killed".to_owned(), at: at(80) });
        let shown = row(&Views {
            tasks: vec![TaskReport { exit, ..task("a", TaskPhase::Running, "runs") }],
            inventory: InventoryView { offers: vec![offer], ..InventoryView::default() },
            ..Views::default()
        });
        assert_eq!((&*shown.health, shown.since_unix_ms), ("restarting", 90_000));
    }

    #[test]
    fn what_is_stopped_is_gone_since_its_stop_and_not_since_its_last_exit() {
        let exit = Some(LastExit { exit: None, how: "killed".to_owned(), at: at(10) });
        let stops =
            TaskReport { exit, is_wanted: false, ..task("a", TaskPhase::Stopping, "ending process 7") };
        let shown = row(&Views { tasks: vec![stops], ..Views::default() });
        assert_eq!((&*shown.health, shown.since_unix_ms), ("gone", 70_000));
    }

    #[test]
    fn a_plugin_has_its_health_since_its_takeover_and_not_since_its_standby_had_it_r1d() {
        let entry = entry("zfs", "a", 1, Standing::Confirmed);
        let takes_over = Active { since: at(65), ..active(&entry, 9) };
        let views = Views {
            registry: RegistryView { active: vec![takes_over], entries: vec![entry.clone()] },
            instances: InstancesView {
                reports: vec![report(&entry, 9, Health::Healthy)],
                ..InstancesView::default()
            },
            ..Views::default()
        };
        let shown = row(&views);
        assert_eq!((&*shown.health, shown.since_unix_ms), ("healthy", 65_000));
    }

    #[test]
    fn a_standby_that_has_just_taken_over_is_shown_as_it_is_r1d() {
        let [a, b] = [entry("zfs", "a", 1, Standing::Confirmed), entry("zfs", "b", 2, Standing::Confirmed)];
        let shown = row(&Views {
            registry: RegistryView { active: vec![active(&b, 2)], entries: vec![a.clone(), b.clone()] },
            instances: InstancesView {
                reports: vec![report(&a, 1, Health::Starting)],
                standby: vec![report(&b, 2, Health::Healthy)],
                ..InstancesView::default()
            },
            ..Views::default()
        });
        assert_eq!((&*shown.active_allocation, &*shown.health, shown.generation), ("b", "healthy", 2));
    }

    #[test]
    fn a_restored_registration_of_what_is_not_going_to_run_is_not_awaited_r8() {
        let entries = vec![entry("zfs", "a", 1, Standing::Provisional)];
        let registry = RegistryView { entries, active: vec![] };
        let off = task("a", TaskPhase::Stopped, "not started");
        let shown = row(&Views { registry, tasks: vec![off], ..Views::default() });
        assert_eq!((&*shown.health, &*shown.reason), ("gone", "a: not started"));
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
            allocation: Some(entry.registration.allocation.clone()),
            generation: Generation::new(9),
            health: Health::Gone,
            since: at(60),
            fingerprint: None,
            restarting: true,
            remarks: vec![],
        };
        let inventory = InventoryView { offers: vec![offer], ..InventoryView::default() };
        let plugins = plugins(&Views { inventory, ..Views::default() });
        let [zfs] = &plugins[..] else { panic!("one plugin") };
        assert_eq!((&*zfs.health, zfs.restarting, zfs.generation), ("restarting", true, 9));
        assert_eq!((&*zfs.active_allocation, &*zfs.reason), ("", ""));
    }

    fn task(name: &str, phase: TaskPhase, last_event: &str) -> TaskReport {
        TaskReport {
            allocation: AllocationId::new(name).expect("a good name"),
            plugin: PluginName::new("zfs").expect("a good name"),
            role: Role::Node,
            phase,
            since: at(70),
            pid: None,
            restarts: 0,
            last_event: last_event.to_owned(),
            is_wanted: phase != TaskPhase::Stopped,
            attempt: Attempt::new(1),
            restart_when: RestartWhen::Never,
            probing: Probing::default(),
            survives: false,
            exit: None,
            due: None,
            stopping: None,
            ended: vec![],
        }
    }

    fn row(views: &Views) -> wire::PluginStatus {
        let plugins = plugins(views);
        let [zfs] = &plugins[..] else { panic!("one plugin: {plugins:?}") };
        zfs.clone()
    }

    #[test]
    fn a_plugin_that_never_came_is_listed_with_its_reason() {
        let waits = task("a", TaskPhase::Running, "process 7 runs");
        let shown = row(&Views { tasks: vec![waits], ..Views::default() });
        assert_eq!((&*shown.health, &*shown.reason), ("starting", "a: process 7 runs"));
        assert_eq!((shown.expected, shown.registered, shown.healthy), (1, 0, 0));
        let off = task("a", TaskPhase::Stopped, "not started");
        let shown = row(&Views { tasks: vec![off], ..Views::default() });
        assert_eq!((&*shown.health, &*shown.reason, shown.expected), ("gone", "a: not started", 0));
    }

    #[test]
    fn a_plugin_without_a_process_is_never_called_healthy_hlt_08() {
        let entry = entry("zfs", "a", 1, Standing::Confirmed);
        let offer = Offer { restarting: true, ..Offer::of(&report(&entry, 1, Health::Healthy)) };
        let exit = LastExit { exit: None, how: "killed".to_owned(), at: at(80) };
        let ended = |phase, event: &str| TaskReport { exit: Some(exit.clone()), ..task("a", phase, event) };
        let inventory = InventoryView { offers: vec![offer], ..InventoryView::default() };
        let views = |task| Views { tasks: vec![task], inventory: inventory.clone(), ..Views::default() };
        let shown = row(&views(ended(TaskPhase::Waiting, "killed; starts again")));
        assert_eq!((&*shown.health, shown.restarting, shown.since_unix_ms), ("restarting", true, 80_000));
        assert_eq!(shown.reason, "a: killed; starts again");
        for (phase, event) in [(TaskPhase::Stopped, "stopped"), (TaskPhase::Failed, "given up")] {
            let shown = row(&views(ended(phase, event)));
            assert_eq!((&*shown.health, shown.restarting, shown.generation), ("gone", false, 0), "{event}");
            assert_eq!((shown.reason, shown.remarks.len()), (format!("a: {event}"), 0));
        }
    }

    #[test]
    fn a_process_that_has_ended_makes_its_plugin_restart_before_the_registry_knows() {
        let entry = entry("zfs", "a", 1, Standing::Confirmed);
        let views = Views {
            registry: RegistryView { active: vec![active(&entry, 1)], entries: vec![entry.clone()] },
            instances: InstancesView {
                reports: vec![report(&entry, 1, Health::Healthy)],
                ..InstancesView::default()
            },
            tasks: vec![task("a", TaskPhase::Running, "healthy")],
            ..Views::default()
        };
        let shown = row(&views);
        assert_eq!((&*shown.health, shown.expected, shown.registered, shown.healthy), ("healthy", 1, 1, 1));
        let exit = Some(LastExit { exit: None, how: "killed".to_owned(), at: at(80) });
        let ended = TaskReport { exit, ..task("a", TaskPhase::Waiting, "killed") };
        let shown = row(&Views { tasks: vec![ended], ..views });
        assert_eq!((&*shown.health, &*shown.reason), ("restarting", "a: killed"));
        assert_eq!(
            (shown.registered, shown.healthy),
            (1, 0),
            "its last report was of a process that is gone"
        );
    }
}
