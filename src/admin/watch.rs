//! The status and every change of it, as a stream.
//!
//! An entry of the host's journal triggers each look. The journal continues when an actor ends, and has an entry when the actor runs again.
//! The stream is produced as fast as it is read, at most once per [`LOOK_PAUSE`]: changes between two looks are sent together, and if the
//! queue of the journal overflowed, the reader gets a new snapshot (R6). A slow reader delays no actor and no other reader (SCL-01).

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use callboard_actors::datadir::Lost;
use callboard_actors::logmon::LogsView;
use callboard_actors::persister::DiskHealth;
use callboard_actors::shell::{Detail, FeedItem, JournalLine, Recorded, Subscription};
use callboard_actors::vocabulary::milliseconds;
use callboard_proto::admin::v1 as wire;
use futures_util::Stream;
use futures_util::stream::unfold;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tonic::Status;
use wire::watch_response::News;

use super::gather::gather;
use super::server::Sources;

/// How many entries of the journal may wait in the queue.
const QUEUE: usize = 4_096;
/// The shortest time between two looks: each asks every actor, and a plugin or a task may change all the time.
const LOOK_PAUSE: Duration = Duration::from_millis(50);
/// How soon an actor that did not answer is asked again.
const GONE_PAUSE: Duration = Duration::from_secs(1);
/// The timeout of the last look at a host that has ended: less than readers have to disconnect.
const LAST_LOOK_TIMEOUT: Duration = Duration::from_millis(500);

/// One reader's state.
pub(super) struct Watching {
    sources: Arc<Sources>,
    journal: Subscription<JournalLine, ()>,
    logs: watch::Receiver<LogsView>,
    disk: watch::Receiver<DiskHealth>,
    data_dir: watch::Receiver<Option<Lost>>,
    shown: Option<wire::GetStatusResponse>,
    looked: Option<Instant>,
    ready: VecDeque<News>,
    number: u64,
    /// Whether the host has ended and the last look is done.
    is_over: bool,
}

/// What the journal reports about a change.
#[derive(Debug, Default, PartialEq, Eq)]
struct Heard {
    missed: u64,
    is_new: bool,
}

impl Heard {
    fn take(&mut self, item: FeedItem<JournalLine, ()>) {
        match item {
            FeedItem::Change { news, .. } => self.is_new |= is_new(&news.entry),
            FeedItem::Lagged { missed } => self.missed += missed,
            // The snapshot has no content.
            FeedItem::Snapshot { .. } => {}
        }
    }
}

/// Whether the view of an actor may change with this entry.
const fn is_new(entry: &Recorded) -> bool {
    match entry {
        Recorded::Published { .. }
        | Recorded::Built { .. }
        | Recorded::OnDisk { .. }
        | Recorded::LoadFailed { .. }
        | Recorded::WriteFailed { .. }
        | Recorded::Crashed { .. }
        | Recorded::Ended { .. } => true,
        Recorded::Holds { .. }
        | Recorded::Stepped { .. }
        | Recorded::Called { .. }
        | Recorded::Writing { .. }
        | Recorded::Lagged { .. }
        | Recorded::Stale => false,
    }
}

fn host_has_ended() -> Status {
    Status::unavailable("the host has ended")
}

impl Watching {
    /// Follows the journal from now on.
    pub(super) fn begin(sources: Arc<Sources>) -> Self {
        Self {
            journal: sources.host.journal().follow("callboard watch", QUEUE, Detail::Outcomes),
            logs: sources.logs.clone(),
            disk: sources.host.database().disk().watch(),
            data_dir: sources.host.watch_data_dir(),
            sources,
            shown: None,
            looked: None,
            ready: VecDeque::new(),
            number: 0,
            is_over: false,
        }
    }

    /// The answers, one by one. They end with the host, after its stop report is sent.
    pub(super) fn into_stream(self) -> impl Stream<Item = Result<wire::WatchResponse, Status>> + Send {
        unfold(Some(self), |watching| async {
            let mut watching = watching?;
            let host = watching.sources.host.clone();
            let next = tokio::select! {
                next = watching.next(), if !watching.is_over => next.ok(),
                _ = host.ended() => None,
            };
            let next = match next {
                Some(next) => Ok(next),
                None => watching.last().await,
            };
            match next {
                Ok(response) => Some((Ok(response), Some(watching))),
                Err(status) => Some((Err(status), None)),
            }
        })
    }

    async fn next(&mut self) -> Result<wire::WatchResponse, Status> {
        while self.ready.is_empty() {
            if self.shown.is_some() {
                let missed = self.something_new().await?;
                if missed > 0 {
                    self.shown = None;
                    self.ready.push_back(News::Lagged(wire::Lagged { missed }));
                }
            }
            if let Some(looked) = self.looked {
                sleep_until(looked + LOOK_PAUSE).await;
            }
            self.look().await;
        }
        self.told().ok_or_else(host_has_ended)
    }

    /// The last changes of a host that has ended: the pause between two looks may have hidden the end of its stop.
    async fn last(&mut self) -> Result<wire::WatchResponse, Status> {
        if !std::mem::replace(&mut self.is_over, true) && self.shown.is_some() {
            // Its actors have ended, and none delays an answer. If one did, its changes are not reported.
            let _ = timeout(LAST_LOOK_TIMEOUT, self.look()).await;
        }
        self.told().ok_or_else(host_has_ended)
    }

    /// The next answer, from the recorded changes.
    fn told(&mut self) -> Option<wire::WatchResponse> {
        let news = self.ready.pop_front()?;
        self.number += 1;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let at_unix_ms = milliseconds(now);
        Some(wire::WatchResponse { number: self.number, at_unix_ms, news: Some(news) })
    }

    /// Waits until something may have changed, and counts the entries of the journal that were missed.
    async fn something_new(&mut self) -> Result<u64, Status> {
        let mut heard = Heard::default();
        // An actor that was only slow may have nothing new when it answers again.
        let is_one_gone = self.shown.as_ref().is_some_and(|shown| !shown.gone.is_empty());
        while heard == Heard::default() {
            tokio::select! {
                () = sleep(GONE_PAUSE), if is_one_gone => heard.is_new = true,
                item = self.journal.next() => heard.take(item.ok_or_else(host_has_ended)?),
                // A watch channel misses nothing; it ends with the host.
                Ok(()) = self.logs.changed() => heard.is_new = true,
                Ok(()) = self.disk.changed() => heard.is_new = true,
                Ok(()) = self.data_dir.changed() => heard.is_new = true,
            }
            while let Some(item) = self.journal.try_next() {
                heard.take(item);
            }
        }
        Ok(heard.missed)
    }

    /// Looks at everything and records what differs from the last view.
    async fn look(&mut self) {
        self.looked = Some(Instant::now());
        let mut status = gather(&self.sources).await;
        match self.shown.take() {
            None => self.ready.push_back(News::Snapshot(status.clone())),
            Some(before) => {
                keep_unknown(&before, &mut status);
                self.ready.extend(differences(&before, &status));
            }
        }
        self.shown = Some(status);
    }
}

/// Keeps the rows of an actor that does not answer: they have not changed only because it cannot be asked.
fn keep_unknown(before: &wire::GetStatusResponse, after: &mut wire::GetStatusResponse) {
    let is_gone = |names: &[&str]| after.gone.iter().any(|gone| names.contains(&gone.name.as_str()));
    let [plugins, allocations, drivers, tasks, volumes] = [
        is_gone(&["registry", "instances", "inventory"]),
        is_gone(&["allocations", "agent"]),
        is_gone(&["drivers", "processes"]),
        is_gone(&["tasks"]),
        is_gone(&["volumes"]),
    ];
    if plugins {
        after.plugins.clone_from(&before.plugins);
    }
    if allocations {
        after.allocations.clone_from(&before.allocations);
    }
    if drivers {
        after.drivers.clone_from(&before.drivers);
    }
    if volumes {
        after.volumes.clone_from(&before.volumes);
        let in_use = |plugin: &wire::PluginStatus| {
            let of_it =
                before.plugins.iter().find(|one| one.r#type == plugin.r#type && one.name == plugin.name);
            of_it.map_or(0, |one| one.volumes_in_use)
        };
        after.plugins.iter_mut().for_each(|plugin| plugin.volumes_in_use = in_use(plugin));
    }
    if tasks {
        after.tasks.clone_from(&before.tasks);
        // Drivers without a process yet are known only to the tasks.
        let is_there = |driver: &&wire::DriverStatus| after.drivers.iter().any(|one| one.name == driver.name);
        let missing: Vec<_> = before.drivers.iter().filter(|driver| !is_there(driver)).cloned().collect();
        after.drivers.extend(missing);
    }
}

/// The changes from `before` to `after`.
fn differences(before: &wire::GetStatusResponse, after: &wire::GetStatusResponse) -> Vec<News> {
    let has = |plugins: &[wire::PluginStatus], plugin: &wire::PluginStatus| {
        plugins.iter().any(|other| other.r#type == plugin.r#type && other.name == plugin.name)
    };
    let left = before.plugins.iter().filter(|plugin| !has(&after.plugins, plugin));
    let left = left.map(|plugin| {
        News::PluginLeft(wire::PluginLeft { r#type: plugin.r#type.clone(), name: plugin.name.clone() })
    });
    let plugins = changed(&before.plugins, &after.plugins, |plugin| {
        (plugin.leases, plugin.calls_in_flight) = (0, 0);
    });
    let plugins = plugins.map(News::PluginChanged);
    let allocations = changed(&before.allocations, &after.allocations, |allocation| {
        (allocation.leases, allocation.calls_in_flight) = (0, 0);
    });
    let allocations = allocations.map(News::AllocationChanged);
    let changes = allocations.chain(plugins).chain(left).chain(differences_of_drivers(before, after));
    let changes = changes.chain(differences_of_volumes(before, after));
    let host =
        after.host.iter().filter(|host| !before.host.as_ref().is_some_and(|other| is_same(other, host)));
    let host = host.cloned().map(News::HostChanged);
    host.chain(differences_of_actors(before, after)).chain(changes).collect()
}

/// Whether nothing changed about a host except how long it still waits for the same, and how much its disk has yet to write.
fn is_same(before: &wire::HostStatus, after: &wire::HostStatus) -> bool {
    let without_times = |host: &wire::HostStatus| {
        let mut host = host.clone();
        let awaited = host.stopping.iter_mut().flat_map(|stopping| &mut stopping.waits_for);
        awaited.for_each(|awaited| (awaited.until_unix_ms, awaited.kill_unix_ms) = (0, 0));
        if let Some(disk) = &mut host.disk {
            (disk.unwritten, disk.unwritten_more) = (0, 0);
            disk.unwritten_names.clear();
        }
        host
    };
    without_times(before) == without_times(after)
}

/// The actors that no longer answer, and the actors that answer again.
fn differences_of_actors(before: &wire::GetStatusResponse, after: &wire::GetStatusResponse) -> Vec<News> {
    let is_among =
        |all: &[wire::GoneActor], name: &str| all.iter().any(|gone: &wire::GoneActor| gone.name == name);
    let gone = after.gone.iter().filter(|gone| !is_among(&before.gone, &gone.name));
    let back = before.gone.iter().filter(|gone| !is_among(&after.gone, &gone.name));
    let gone = gone.cloned().map(News::ActorGone);
    gone.chain(back.map(|gone| News::ActorBack(gone.name.clone()))).collect()
}

fn differences_of_drivers(before: &wire::GetStatusResponse, after: &wire::GetStatusResponse) -> Vec<News> {
    let drivers = changed(&before.drivers, &after.drivers, |driver| {
        (driver.leases, driver.calls_in_flight) = (0, 0);
    });
    let drivers = drivers.map(News::DriverChanged);
    let tasks = changed(&before.tasks, &after.tasks, |task| task.usage = None).map(News::TaskChanged);
    let has_left = |name: &str| !after.drivers.iter().any(|driver| driver.name == name);
    let drivers_left = before.drivers.iter().map(|driver| driver.name.clone()).filter(|name| has_left(name));
    let is_gone = |name: &str| !after.tasks.iter().any(|task| task.name == name);
    let tasks_left = before.tasks.iter().map(|task| task.name.clone()).filter(|name| is_gone(name));
    let left = drivers_left.map(News::DriverLeft).chain(tasks_left.map(News::TaskLeft));
    drivers.chain(tasks).chain(left).collect()
}

fn differences_of_volumes(before: &wire::GetStatusResponse, after: &wire::GetStatusResponse) -> Vec<News> {
    // There may be many volumes.
    fn by_name(status: &wire::GetStatusResponse) -> BTreeMap<&str, &wire::VolumeStatus> {
        status.volumes.iter().map(|volume| (volume.name.as_str(), volume)).collect()
    }
    let (before, after) = (by_name(before), by_name(after));
    let changed = after.iter().filter(|(name, volume)| before.get(*name) != Some(*volume));
    let changed = changed.map(|(_, volume)| News::VolumeChanged(wire::VolumeStatus::clone(volume)));
    let left = before.keys().filter(|name| !after.contains_key(*name));
    changed.chain(left.map(|name| News::VolumeLeft((*name).to_owned()))).collect()
}

/// The entries that changed, ignoring the values that change all the time, which `without` removes.
fn changed<T: Clone + PartialEq>(before: &[T], after: &[T], without: fn(&mut T)) -> impl Iterator<Item = T> {
    let lasting = move |one: &T| {
        let mut one = one.clone();
        without(&mut one);
        one
    };
    let before: Vec<T> = before.iter().map(lasting).collect();
    after.iter().filter(move |one| !before.contains(&lasting(one))).cloned()
}

#[cfg(test)]
mod tests {
    use callboard_actors::instance::InstanceLimits;
    use callboard_actors::inventory::InventoryOptions;
    use callboard_actors::registry::Register;
    use callboard_actors::shell::Address;
    use callboard_actors::topology;
    use callboard_actors::vocabulary::{
        AllocationId, PluginKey, PluginName, PluginType, SocketPath, Timestamp,
    };
    use futures_util::StreamExt;

    use super::*;
    use crate::host::Host;
    use crate::volumes::{Claimer, ConfiguredSecrets};

    fn plugin(name: &str, health: &str) -> wire::PluginStatus {
        wire::PluginStatus { name: name.to_owned(), health: health.to_owned(), ..Default::default() }
    }

    #[test]
    fn what_becomes_of_drivers_and_tasks_is_told_too() {
        let driver =
            |name: &str, pid| wire::DriverStatus { name: name.to_owned(), pid, ..Default::default() };
        let task = |state: &str| wire::TaskStatus {
            name: "web".to_owned(),
            state: state.to_owned(),
            ..Default::default()
        };
        let status = |drivers, tasks| wire::GetStatusResponse { drivers, tasks, ..Default::default() };
        let before = status(vec![driver("exec", 7), driver("raw", 8)], vec![task("running")]);
        let after = status(vec![driver("exec", 9)], vec![task("recovering")]);
        let expected = [
            News::DriverChanged(driver("exec", 9)),
            News::TaskChanged(task("recovering")),
            News::DriverLeft("raw".to_owned()),
        ];
        assert_eq!(differences(&before, &after), expected);
        let gone = [News::DriverLeft("exec".to_owned()), News::TaskLeft("web".to_owned())];
        assert_eq!(differences(&after, &status(vec![], vec![])), gone);
    }

    #[test]
    fn what_becomes_of_volumes_is_told_too() {
        let volume = |name: &str, attach: &str| wire::VolumeStatus {
            name: name.to_owned(),
            attach: attach.to_owned(),
            ..Default::default()
        };
        let status = |volumes| wire::GetStatusResponse { volumes, ..Default::default() };
        let before = status(vec![volume("default/a", "up"), volume("default/b", "up")]);
        let after = status(vec![volume("default/a", "up"), volume("default/c", "down")]);
        let expected =
            [News::VolumeChanged(volume("default/c", "down")), News::VolumeLeft("default/b".to_owned())];
        assert_eq!(differences(&before, &after), expected);
        let changed = status(vec![volume("default/a", "up"), volume("default/c", "going-up")]);
        assert_eq!(differences(&after, &changed), [News::VolumeChanged(volume("default/c", "going-up"))]);
    }

    #[test]
    fn a_plugin_does_not_seem_unused_because_the_volumes_do_not_answer_v13() {
        let used = wire::PluginStatus { volumes_in_use: 2, ..plugin("a", "healthy") };
        let before = status(vec![used.clone()]);
        let gone = vec![wire::GoneActor { name: "volumes".to_owned(), ..Default::default() }];
        let mut after = wire::GetStatusResponse { gone, ..status(vec![plugin("a", "healthy")]) };
        keep_unknown(&before, &mut after);
        assert_eq!(after.plugins, [used]);
    }

    #[test]
    fn what_a_task_uses_is_no_change_of_it() {
        let usage = |memory| wire::TaskUsage { memory_bytes: Some(memory), ..Default::default() };
        let task = |memory, state: &str| wire::TaskStatus {
            name: "web".to_owned(),
            state: state.to_owned(),
            usage: Some(usage(memory)),
            ..Default::default()
        };
        let status = |task| wire::GetStatusResponse { tasks: vec![task], ..Default::default() };
        let before = status(task(1, "running"));
        assert_eq!(differences(&before, &status(task(2, "running"))), []);
        let changed = task(2, "recovering");
        assert_eq!(differences(&before, &status(changed.clone())), [News::TaskChanged(changed)]);
    }

    #[test]
    fn calls_in_flight_are_no_change_of_what_they_reach() {
        let used =
            |leases, health: &str| wire::PluginStatus { leases, calls_in_flight: 1, ..plugin("a", health) };
        let before = status(vec![plugin("a", "healthy")]);
        assert_eq!(differences(&before, &status(vec![used(2, "healthy")])), []);
        let changed = used(3, "unhealthy");
        assert_eq!(differences(&before, &status(vec![changed.clone()])), [News::PluginChanged(changed)]);
    }

    #[test]
    fn an_actor_that_is_gone_is_named_once_and_what_it_knew_stays_as_it_was() {
        let gone = || wire::GoneActor {
            name: "inventory".to_owned(),
            reason: "it ended".to_owned(),
            ..Default::default()
        };
        let before = status(vec![plugin("a", "healthy")]);
        let look = |before: &wire::GetStatusResponse, mut after: wire::GetStatusResponse| {
            keep_unknown(before, &mut after);
            (differences(before, &after), after)
        };
        let task = wire::TaskStatus { name: "web".to_owned(), ..Default::default() };
        let without =
            wire::GetStatusResponse { gone: vec![gone()], tasks: vec![task.clone()], ..status(vec![]) };
        let (told, after) = look(&before, without.clone());
        assert_eq!(told, [News::ActorGone(gone()), News::TaskChanged(task)], "the rest goes on");
        assert_eq!(look(&after, without).0, []);
        let back = wire::GetStatusResponse { gone: vec![], ..status(vec![plugin("a", "unhealthy")]) };
        let after = wire::GetStatusResponse { tasks: vec![], ..after };
        let expected =
            [News::ActorBack("inventory".to_owned()), News::PluginChanged(plugin("a", "unhealthy"))];
        assert_eq!(look(&after, back).0, expected);
    }

    #[test]
    fn each_actor_that_is_gone_keeps_what_is_made_of_its_view() {
        let allocations = vec![wire::AllocationStatus::default()];
        let drivers = vec![wire::DriverStatus::default()];
        let tasks = vec![wire::TaskStatus::default()];
        let plugins = vec![plugin("a", "healthy")];
        let volumes = vec![wire::VolumeStatus::default()];
        let before =
            wire::GetStatusResponse { plugins, allocations, drivers, tasks, volumes, ..Default::default() };
        let kept = |name: &str| {
            let gone = vec![wire::GoneActor { name: name.to_owned(), ..Default::default() }];
            let mut after = wire::GetStatusResponse { gone, ..Default::default() };
            keep_unknown(&before, &mut after);
            let [plugins, allocations] = [after.plugins.len(), after.allocations.len()];
            [plugins, allocations, after.drivers.len(), after.tasks.len(), after.volumes.len()]
        };
        for (names, expected) in [
            (&["registry", "instances", "inventory"][..], [1, 0, 0, 0, 0]),
            (&["allocations", "agent"], [0, 1, 0, 0, 0]),
            (&["drivers", "processes"], [0, 0, 1, 0, 0]),
            (&["tasks"], [0, 0, 1, 1, 0]),
            (&["volumes"], [0, 0, 0, 0, 1]),
        ] {
            assert!(names.iter().all(|name| kept(name) == expected), "{names:?}");
        }
    }

    #[test]
    fn a_watcher_of_a_host_whose_agent_is_gone_is_told_so_and_goes_on() {
        actix_rt::System::new().block_on(async {
            let data_dir = tempfile::tempdir().expect("a temporary directory");
            let host = Host::builder(data_dir.path()).start().await.expect("it starts");
            let sources = Sources {
                limits: InstanceLimits::default(),
                inventory_options: InventoryOptions::default(),
                host: host.clone(),
                agent: Address::vacant("agent", 1),
                tasks: Address::vacant("tasks", 1),
                volumes: Claimer::new(host.volumes().clone(), &[]),
                secrets: Arc::new(ConfiguredSecrets::of(data_dir.path(), &[])),
                volume_users: [].into(),
                controllers: [].into(),
                departed: Vec::new(),
                topology: topology::of_this_machine(),
                control_groups: "none".to_owned(),
                logs: watch::channel(LogsView::default()).1,
                usage: watch::channel(crate::usage::UsageView::default()).1,
                started_at: Timestamp::default(),
                stopping: watch::channel(None).1,
                shutdown: tokio::sync::mpsc::channel(1).0,
            };
            let mut stream = Box::pin(Watching::begin(Arc::new(sources)).into_stream());
            let first = stream.next().await.expect("an answer").expect("a status").news;
            let Some(News::Snapshot(status)) = first else { panic!("{first:?}") };
            let gone: Vec<_> = status.gone.iter().map(|gone| gone.name.as_str()).collect();
            assert_eq!(gone, ["agent", "tasks"]);
            let register = Register {
                policy: None,
                plugins: vec![PluginKey::new(PluginType::CsiNode, PluginName::new("zfs").expect("a name"))],
                allocation: AllocationId::new("red").expect("a name"),
                socket: SocketPath::new("/run/red.sock").expect("a path"),
                provider: None,
                version: None,
                options: Arc::default(),
            };
            host.registry().ask(register).await.expect("it runs").expect("it is valid");
            let next = stream.next().await.expect("an answer").expect("a change").news;
            assert!(matches!(&next, Some(News::PluginChanged(plugin)) if plugin.name == "zfs"), "{next:?}");
            host.stop().await;
            while let Some(Ok(_)) = stream.next().await {}
            assert!(stream.next().await.is_none(), "it ends with its host");
        });
    }

    fn status(plugins: Vec<wire::PluginStatus>) -> wire::GetStatusResponse {
        wire::GetStatusResponse { plugins, ..Default::default() }
    }

    #[test]
    fn only_what_differs_is_told() {
        let before = status(vec![plugin("a", "healthy"), plugin("b", "healthy"), plugin("c", "healthy")]);
        let after = status(vec![plugin("a", "healthy"), plugin("b", "unhealthy"), plugin("d", "starting")]);
        let told = differences(&before, &after);
        let expected = [
            News::PluginChanged(plugin("b", "unhealthy")),
            News::PluginChanged(plugin("d", "starting")),
            News::PluginLeft(wire::PluginLeft { r#type: String::new(), name: "c".to_owned() }),
        ];
        assert_eq!(told, expected);
        assert_eq!(differences(&after, &after), []);
    }
}
