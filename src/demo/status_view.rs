//! The status of the host, kept up to date by its notifications.

use std::collections::BTreeMap;

use callboard_proto::admin::v1::watch_response::News;
use callboard_proto::admin::v1::{
    AllocationStatus, DriverStatus, GetStatusResponse, HostStatus, PluginStatus, TaskStatus, VolumeClaim,
    VolumeStatus,
};

use super::check::Look;

/// The types under which a monolith registers.
const HALVES: [&str; 2] = ["csi-controller", "csi-node"];

/// The last known status of a host.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct StatusView {
    host: HostStatus,
    plugins: BTreeMap<(String, String), PluginStatus>,
    allocations: BTreeMap<String, AllocationStatus>,
    drivers: BTreeMap<String, DriverStatus>,
    tasks: BTreeMap<String, TaskStatus>,
    volumes: BTreeMap<String, VolumeStatus>,
}

impl StatusView {
    /// Applies a notification.
    pub(super) fn hear(&mut self, news: News) {
        match news {
            News::Snapshot(status) => *self = Self::from(status),
            News::PluginChanged(plugin) => self.put(plugin),
            News::PluginLeft(left) => {
                self.plugins.remove(&(left.r#type, left.name));
            }
            News::AllocationChanged(allocation) => {
                self.allocations.insert(allocation.name.clone(), allocation);
            }
            News::DriverChanged(driver) => {
                self.drivers.insert(driver.name.clone(), driver);
            }
            News::DriverLeft(name) => {
                self.drivers.remove(&name);
            }
            News::TaskChanged(task) => {
                self.tasks.insert(task.name.clone(), task);
            }
            News::TaskLeft(name) => {
                self.tasks.remove(&name);
            }
            // A snapshot follows, and replaces everything.
            News::Lagged(_) => {}
            // Its last known state is kept.
            News::ActorGone(_) | News::ActorBack(_) | News::HostChanged(_) => {}
            News::VolumeChanged(volume) => {
                self.volumes.insert(volume.name.clone(), volume);
            }
            News::VolumeLeft(name) => {
                self.volumes.remove(&name);
            }
        }
    }

    fn put(&mut self, plugin: PluginStatus) {
        self.plugins.insert((plugin.r#type.clone(), plugin.name.clone()), plugin);
    }

    /// The number of starts of a host on this directory.
    pub(super) const fn run(&self) -> u64 {
        self.host.run
    }

    pub(super) fn pid(&self, allocation: &str) -> Option<u32> {
        self.allocations.get(allocation).map(|found| found.pid).filter(|pid| *pid != 0)
    }

    /// All processes of allocations, drivers and tasks, with their names.
    pub(super) fn processes(&self) -> Vec<(String, u32)> {
        let allocations = self.allocations.values().map(|found| (found.name.clone(), found.pid));
        let drivers = self.drivers.values().map(|found| (format!("driver {}", found.name), found.pid));
        let task = |name: &String| Some((format!("task {name}"), self.task_process(name)?));
        let tasks = self.tasks.keys().filter_map(task);
        allocations.chain(drivers).chain(tasks).filter(|(_, pid)| *pid != 0).collect()
    }

    pub(super) fn driver(&self, name: &str) -> Option<&DriverStatus> {
        self.drivers.get(name)
    }

    /// The first process of a task, from its driver's first event.
    pub(super) fn task_process(&self, name: &str) -> Option<u32> {
        let event = self.tasks.get(name)?.events.first()?;
        event.text.strip_prefix("started, process ")?.parse().ok()
    }

    /// Checks that a task is in a state such as `running`.
    pub(super) fn task_is(&self, name: &str, state: &str) -> Look {
        match self.tasks.get(name) {
            Some(task) => Look::new(task.state == state, format!("{name} is {}", task.state)),
            None => Look::new(false, format!("there is no task {name}")),
        }
    }

    /// Checks the events of a task: exactly these, in this order, each once, and none missing. Each is given by its prefix.
    pub(super) fn has_told(&self, name: &str, expected: &[&str]) -> Look {
        let Some(task) = self.tasks.get(name) else {
            return Look::new(false, format!("there is no task {name}"));
        };
        let texts: Vec<_> = task.events.iter().map(|event| event.text.as_str()).collect();
        let fits = texts.len() == expected.len()
            && texts.iter().zip(expected).all(|(text, expected)| text.starts_with(expected))
            && task.events.iter().all(|event| event.count == 1);
        let holds = fits && task.events_told == expected.len() as u64 && task.events_missed == 0;
        let counts = format!("{} told, {} missing", task.events_told, task.events_missed);
        Look::new(holds, format!("{name}: {}; {counts}", texts.join(", then ")))
    }

    /// Checks that a task has ended by itself with this exit code.
    pub(super) fn has_exited(&self, name: &str, code: i32) -> Look {
        let exit = self.tasks.get(name).and_then(|task| task.exit.as_ref());
        let holds = exit.is_some_and(|exit| exit.how == "exited" && exit.code == code);
        let seen = exit.map_or("no exit is known".to_owned(), |exit| format!("{} {}", exit.how, exit.code));
        self.task_is(name, "ended").and(Look::new(holds, seen))
    }

    /// The id of a volume with its plugin, once it is created.
    pub(super) fn volume_id(&self, volume: &str) -> Option<&str> {
        self.volumes.get(volume).map(|found| found.volume_id.as_str()).filter(|id| !id.is_empty())
    }

    /// Checks how far the staging of a volume is, such as `going-up`, and whose claims it has.
    pub(super) fn volume_is(&self, volume: &str, stage: &str, claimed: &[&str]) -> Look {
        let Some(found) = self.volumes.get(volume) else {
            return Look::new(false, format!("there is no volume {volume}"));
        };
        let by: Vec<_> = found.claims.iter().map(|claim| claim.allocation.as_str()).collect();
        let claims =
            if by.is_empty() { "no claim".to_owned() } else { format!("claimed by {}", by.join(", ")) };
        let seen = format!("{volume}: staging {}, {claims}", found.stage);
        Look::new(found.stage == stage && by == claimed, seen)
    }

    /// Checks that the claims of a volume are confirmed and their mounts proven.
    pub(super) fn volume_is_proven(&self, volume: &str) -> Look {
        let claims = self.volumes.get(volume).map(|found| found.claims.as_slice()).unwrap_or_default();
        let is_so = |claim: &&VolumeClaim| claim.proven && !claim.provisional;
        let proven = claims.iter().filter(is_so).count();
        let seen = format!("{proven} of {} claims of {volume} are confirmed and proven", claims.len());
        Look::new(proven == claims.len() && proven > 0, seen)
    }

    pub(super) fn restarts(&self, allocation: &str) -> u64 {
        self.allocations.get(allocation).map_or(0, |found| found.restarts)
    }

    /// The states of an allocation's process and supervisor, such as `running` and `registered`.
    pub(super) fn allocation(&self, allocation: &str) -> (&str, &str) {
        self.allocations.get(allocation).map_or(("", ""), |found| (&found.task_state, &found.state))
    }

    /// The active generations of a plugin, controller first; 0 for none.
    pub(super) fn generations(&self, plugin: &str) -> [u64; 2] {
        HALVES.map(|half| self.half(half, plugin).map_or(0, |found| found.generation))
    }

    /// Checks that both types of a plugin are healthy, with `active` active and exactly these on standby, in this order.
    pub(super) fn serves(&self, plugin: &str, active: &str, standby: &[&str]) -> Look {
        let is_so = |half: &PluginStatus| {
            half.active_allocation == active
                && half.standby_allocations == standby
                && half.health == "healthy"
                && half.provisional_allocations.is_empty()
        };
        let holds = HALVES.iter().all(|half| self.half(half, plugin).is_some_and(is_so));
        Look::new(holds, self.describe(plugin))
    }

    /// Checks which version of a plugin is active.
    pub(super) fn version(&self, plugin: &str, version: &str) -> Look {
        let versions = HALVES.map(|half| self.half(half, plugin).map_or("unknown", |found| &found.version));
        let seen = format!("version {}", if versions[0] == versions[1] { versions[0] } else { "differs" });
        Look::new(versions == [version; 2], seen)
    }

    /// The same as [`serves`](Self::serves), without allocations that are known from before a restart and have not returned.
    pub(super) fn serves_confirmed(&self, plugin: &str, active: &str, standby: &[&str]) -> Look {
        let is_so = |half: &PluginStatus| {
            let is_back = |name: &&String| !half.provisional_allocations.contains(name);
            half.active_allocation == active
                && half.health == "healthy"
                && half.standby_allocations.iter().filter(is_back).eq(standby)
        };
        let holds = HALVES.iter().all(|half| self.half(half, plugin).is_some_and(is_so));
        Look::new(holds, self.describe(plugin))
    }

    /// Checks that both types of a plugin know exactly these allocations from before a restart, and have no active allocation.
    pub(super) fn awaits(&self, plugin: &str, provisional: &[&str]) -> Look {
        let is_so = |half: &PluginStatus| {
            let mut known = half.provisional_allocations.clone();
            known.sort();
            half.active_allocation.is_empty() && known == provisional
        };
        let holds = HALVES.iter().all(|half| self.half(half, plugin).is_some_and(is_so));
        Look::new(holds, self.describe(plugin))
    }

    fn half(&self, half: &str, plugin: &str) -> Option<&PluginStatus> {
        self.plugins.get(&(half.to_owned(), plugin.to_owned()))
    }

    /// A summary of a plugin: once if both types agree, else for each.
    pub(super) fn describe(&self, plugin: &str) -> String {
        let [controller, node] =
            HALVES.map(|half| self.half(half, plugin).map_or("unknown".to_owned(), described));
        if controller == node { controller } else { format!("controller: {controller}; node: {node}") }
    }
}

impl From<GetStatusResponse> for StatusView {
    fn from(response: GetStatusResponse) -> Self {
        let mut status = Self { host: response.host.unwrap_or_default(), ..Self::default() };
        response.plugins.into_iter().for_each(|plugin| status.put(plugin));
        status.allocations =
            response.allocations.into_iter().map(|found| (found.name.clone(), found)).collect();
        status.drivers = response.drivers.into_iter().map(|found| (found.name.clone(), found)).collect();
        status.tasks = response.tasks.into_iter().map(|found| (found.name.clone(), found)).collect();
        status.volumes = response.volumes.into_iter().map(|found| (found.name.clone(), found)).collect();
        status
    }
}

fn described(half: &PluginStatus) -> String {
    let list = |names: &[String]| names.join(", ");
    let mut words = match (half.active_allocation.as_str(), half.reason.as_str()) {
        ("", _) => vec!["none active".to_owned()],
        (active, "") => vec![format!("{active} active"), half.health.clone()],
        (active, reason) => vec![format!("{active} active"), format!("{} ({reason})", half.health)],
    };
    if !half.standby_allocations.is_empty() {
        words.push(format!("standby {}", list(&half.standby_allocations)));
    }
    if !half.provisional_allocations.is_empty() {
        words.push(format!("not confirmed: {}", list(&half.provisional_allocations)));
    }
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use callboard_proto::admin::v1::{Lagged, PluginLeft, TaskEvent, TaskExit};

    use super::*;

    fn half(plugin_type: &str, active: &str, standby: &[&str], generation: u64) -> PluginStatus {
        PluginStatus {
            r#type: plugin_type.to_owned(),
            name: "hostpath".to_owned(),
            health: "healthy".to_owned(),
            active_allocation: active.to_owned(),
            standby_allocations: standby.iter().map(ToString::to_string).collect(),
            generation,
            ..PluginStatus::default()
        }
    }

    fn status() -> StatusView {
        StatusView::from(GetStatusResponse {
            host: Some(HostStatus { run: 7, ..HostStatus::default() }),
            plugins: vec![
                half("csi-controller", "green", &["blue"], 3),
                half("csi-node", "green", &["blue"], 4),
            ],
            allocations: vec![AllocationStatus { name: "blue".to_owned(), pid: 11, ..Default::default() }],
            ..GetStatusResponse::default()
        })
    }

    #[test]
    fn a_plugin_is_served_only_when_both_halves_are() {
        let mut status = status();
        assert_eq!(
            status.serves("hostpath", "green", &["blue"]),
            Look::new(true, "green active, healthy, standby blue")
        );
        assert!(!status.serves("hostpath", "green", &[]).holds);
        status.hear(News::PluginChanged(half("csi-node", "blue", &[], 6)));
        let look = status.serves("hostpath", "green", &["blue"]);
        let seen = "controller: green active, healthy, standby blue; node: blue active, healthy";
        assert_eq!(look, Look::new(false, seen));
        assert_eq!(status.generations("hostpath"), [3, 6]);
    }

    #[test]
    fn who_is_known_from_before_is_awaited_and_serves_nothing() {
        let mut status = status();
        for plugin_type in HALVES {
            let mut restored = half(plugin_type, "", &["green", "blue"], 0);
            restored.provisional_allocations = vec!["green".to_owned(), "blue".to_owned()];
            status.hear(News::PluginChanged(restored));
        }
        assert!(status.awaits("hostpath", &["blue", "green"]).holds);
        assert!(!status.awaits("hostpath", &["blue"]).holds);
        assert!(!status.serves("hostpath", "", &["green", "blue"]).holds);
    }

    #[test]
    fn what_is_told_of_a_task_has_to_be_there_once_in_order_and_without_a_gap_evt_02() {
        let event = |text: &str, count| TaskEvent { text: text.to_owned(), count, ..Default::default() };
        let task = TaskStatus {
            name: "web".to_owned(),
            events: vec![event("started, process 7", 1), event("recovered, process 7", 1)],
            events_told: 2,
            ..TaskStatus::default()
        };
        let told = |change: fn(&mut TaskStatus)| {
            let (mut status, mut task) = (StatusView::default(), task.clone());
            change(&mut task);
            status.hear(News::TaskChanged(task));
            status.has_told("web", &["started, process 7", "recovered"]).holds
        };
        assert!(told(|_| {}));
        assert!(!told(|task| task.events.swap(0, 1)), "another order");
        assert!(!told(|task| task.events.truncate(1)), "not all are shown");
        assert!(!told(|task| task.events[1].count = 2), "told twice");
        assert!(!told(|task| task.events_told = 3), "told and not shown");
        assert!(!told(|task| task.events_missed = 1), "missing");
        assert!(!StatusView::default().has_told("web", &[]).holds, "no such task");
    }

    #[test]
    fn who_is_not_back_does_not_stand_by_and_who_is_not_healthy_does_not_serve() {
        let known = |health: &str, unconfirmed: &[&str]| {
            let mut status = status();
            for plugin_type in HALVES {
                let mut known = half(plugin_type, "green", &["blue", "red"], 3);
                known.health = health.to_owned();
                known.provisional_allocations = unconfirmed.iter().map(ToString::to_string).collect();
                status.hear(News::PluginChanged(known));
            }
            status
        };
        let restored = known("healthy", &["red"]);
        let seen = "green active, healthy, standby blue, red, not confirmed: red";
        assert_eq!(restored.serves_confirmed("hostpath", "green", &["blue"]), Look::new(true, seen));
        let wrong: [(&str, &[&str]); 3] = [("green", &["blue", "red"]), ("green", &[]), ("blue", &["blue"])];
        for (active, standby) in wrong {
            assert!(!restored.serves_confirmed("hostpath", active, standby).holds, "{active} {standby:?}");
        }
        assert!(!restored.serves("hostpath", "green", &["blue", "red"]).holds, "one is not back");
        assert!(!restored.awaits("hostpath", &["red"]).holds, "one is active");
        let confirmed = known("healthy", &[]);
        assert!(confirmed.serves("hostpath", "green", &["blue", "red"]).holds);
        assert!(!confirmed.serves("hostpath", "blue", &["blue", "red"]).holds);
        let unhealthy = known("unhealthy", &[]);
        assert!(!unhealthy.serves("hostpath", "green", &["blue", "red"]).holds);
        assert!(!unhealthy.serves_confirmed("hostpath", "green", &["blue", "red"]).holds);
    }

    #[test]
    fn why_a_plugin_is_not_healthy_and_that_none_is_active_is_described() {
        let mut status = StatusView::default();
        assert_eq!(status.describe("hostpath"), "unknown");
        let reason = "Probe: refused".to_owned();
        let controller = PluginStatus {
            health: "unhealthy".to_owned(),
            reason,
            ..half("csi-controller", "green", &[], 3)
        };
        status.hear(News::PluginChanged(controller));
        status.hear(News::PluginChanged(half("csi-node", "", &[], 0)));
        let seen = "controller: green active, unhealthy (Probe: refused); node: none active";
        assert_eq!(status.describe("hostpath"), seen);
    }

    #[test]
    fn processes_are_those_of_allocations_drivers_and_tasks_that_run() {
        let mut status = status();
        let allocation = |name: &str, pid, restarts| AllocationStatus {
            name: name.to_owned(),
            pid,
            restarts,
            task_state: "running".to_owned(),
            state: "registered".to_owned(),
            ..AllocationStatus::default()
        };
        status.hear(News::AllocationChanged(allocation("green", 12, 3)));
        status.hear(News::AllocationChanged(allocation("red", 0, 0)));
        let driver = |name: &str, pid| DriverStatus { name: name.to_owned(), pid, ..DriverStatus::default() };
        status.hear(News::DriverChanged(driver("exec", 21)));
        status.hear(News::DriverChanged(driver("idle", 0)));
        let task = |name: &str, text: &str| TaskStatus {
            name: name.to_owned(),
            events: vec![TaskEvent { text: text.to_owned(), ..TaskEvent::default() }],
            ..TaskStatus::default()
        };
        status.hear(News::TaskChanged(task("web", "started, process 31")));
        status.hear(News::TaskChanged(task("job", "waits for its driver")));
        let processes = [("blue", 11), ("green", 12), ("driver exec", 21), ("task web", 31)];
        assert_eq!(status.processes(), processes.map(|(name, pid)| (name.to_owned(), pid)));
        assert_eq!((status.restarts("green"), status.restarts("unknown")), (3, 0));
        assert_eq!((status.pid("green"), status.pid("red")), (Some(12), None));
        let known = [status.allocation("green"), status.allocation("unknown")];
        assert_eq!(known, [("running", "registered"), ("", "")]);
        assert_eq!([status.task_process("web"), status.task_process("job")], [Some(31), None]);
        assert_eq!(status.driver("exec"), Some(&driver("exec", 21)));
        status.hear(News::DriverLeft("exec".to_owned()));
        status.hear(News::TaskLeft("web".to_owned()));
        assert_eq!((status.driver("exec"), status.task_process("web")), (None, None));
    }

    #[test]
    fn a_task_has_exited_only_when_it_ended_by_itself_with_this_code() {
        let looks = |state: &str, how: &str, code| {
            let exit = TaskExit { how: how.to_owned(), code, ..TaskExit::default() };
            let (name, state) = ("job".to_owned(), state.to_owned());
            let mut status = StatusView::default();
            status.hear(News::TaskChanged(TaskStatus {
                name,
                state,
                exit: Some(exit),
                ..TaskStatus::default()
            }));
            (status.task_is("job", "ended").holds, status.has_exited("job", 3))
        };
        assert_eq!(looks("ended", "exited", 3), (true, Look::new(true, "job is ended; exited 3")));
        assert_eq!(looks("ended", "exited", 0), (true, Look::new(false, "job is ended; exited 0")));
        assert_eq!(looks("ended", "signal", 3), (true, Look::new(false, "job is ended; signal 3")));
        assert_eq!(looks("running", "exited", 3), (false, Look::new(false, "job is running; exited 3")));
        let nothing = StatusView::default().has_exited("job", 3);
        assert_eq!(nothing, Look::new(false, "there is no task job; no exit is known"));
    }

    #[test]
    fn a_volume_is_as_far_as_it_is_told_and_proven_only_when_all_of_its_claims_are() {
        let claim = |allocation: &str, proven, provisional| VolumeClaim {
            allocation: allocation.to_owned(),
            proven,
            provisional,
            ..VolumeClaim::default()
        };
        let of = |claims: Vec<VolumeClaim>| {
            let mut status = StatusView::default();
            status.hear(News::VolumeChanged(VolumeStatus {
                name: "default/data".to_owned(),
                volume_id: "vol-1".to_owned(),
                stage: "up".to_owned(),
                claims,
                ..VolumeStatus::default()
            }));
            status
        };
        let mut status = of(vec![claim("left", true, false), claim("right", true, false)]);
        let seen = "default/data: staging up, claimed by left, right";
        assert_eq!(status.volume_is("default/data", "up", &["left", "right"]), Look::new(true, seen));
        assert!(!status.volume_is("default/data", "down", &["left", "right"]).holds);
        assert!(!status.volume_is("default/data", "up", &["left"]).holds);
        assert_eq!(status.volume_id("default/data"), Some("vol-1"));
        let proven = |status: &StatusView| status.volume_is_proven("default/data").holds;
        assert!(proven(&status));
        assert!(!proven(&of(vec![claim("left", true, false), claim("right", false, false)])));
        assert!(!proven(&of(vec![claim("left", true, true)])), "it is not confirmed");
        assert!(!proven(&of(vec![])), "nothing is claimed");
        status.hear(News::VolumeLeft("default/data".to_owned()));
        let gone = Look::new(false, "there is no volume default/data");
        assert_eq!(
            (status.volume_is("default/data", "up", &[]), status.volume_id("default/data")),
            (gone, None)
        );
        assert!(!proven(&status));
    }

    #[test]
    fn a_version_is_active_only_when_both_halves_have_it() {
        let mut status = StatusView::default();
        assert!(!status.version("hostpath", "2.0.0").holds);
        for plugin_type in HALVES {
            let of = |version: &str| PluginStatus {
                version: version.to_owned(),
                ..half(plugin_type, "green", &[], 1)
            };
            status.hear(News::PluginChanged(of("1.0.0")));
            assert!(!status.version("hostpath", "2.0.0").holds, "not yet of both");
            status.hear(News::PluginChanged(of("2.0.0")));
        }
        assert_eq!(status.version("hostpath", "2.0.0"), Look::new(true, "version 2.0.0"));
    }

    #[test]
    fn changes_are_heard_and_a_snapshot_replaces_everything() {
        let mut status = status();
        assert_eq!((status.run(), status.pid("blue"), status.pid("green")), (7, Some(11), None));
        status.hear(News::PluginLeft(PluginLeft {
            r#type: "csi-node".to_owned(),
            name: "hostpath".to_owned(),
        }));
        assert_eq!(status.generations("hostpath"), [3, 0]);
        status.hear(News::Lagged(Lagged { missed: 3 }));
        status.hear(News::Snapshot(GetStatusResponse::default()));
        assert_eq!(status, StatusView::default());
    }
}
