//! The status and every change of it, as a stream.
//!
//! It is made as fast as it is read: changes that come while nobody reads are told together, and where an actor's own queue
//! overflowed meanwhile, the reader is told so and gets a new snapshot (R6). A slow reader costs nobody anything (SCL-01).

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use callboard_actors::allocations::Allocations;
use callboard_actors::drivers::Drivers;
use callboard_actors::instances::Instances;
use callboard_actors::inventory::Inventory;
use callboard_actors::logmon::LogsView;
use callboard_actors::registry::Registry;
use callboard_actors::shell::{Address, FeedItem, Machine, Subscription};
use callboard_proto::admin::v1 as wire;
use futures_util::Stream;
use futures_util::stream::unfold;
use tokio::sync::watch;
use tonic::Status;
use wire::watch_response::News;

use super::convert::{milliseconds, unanswered};
use super::server::Sources;
use super::service::gather;
use crate::agent::Agent;
use crate::tasks::Tasks;

/// How many changes of one actor may wait to be looked at.
const QUEUE: usize = 256;

type Feed<M> = Subscription<<M as Machine>::News, <M as Machine>::View>;

/// One reader's state.
pub(super) struct Watching {
    sources: Arc<Sources>,
    registry: Feed<Registry>,
    instances: Feed<Instances>,
    inventory: Feed<Inventory>,
    allocations: Feed<Allocations>,
    agent: Feed<Agent>,
    drivers: Feed<Drivers>,
    tasks: Feed<Tasks>,
    logs: watch::Receiver<LogsView>,
    shown: Option<wire::GetStatusResponse>,
    ready: VecDeque<News>,
    number: u64,
}

fn follow<M: Machine>(address: &Address<M>) -> Result<Feed<M>, Status> {
    address.subscribe("callboard watch", QUEUE).map_err(|error| unanswered(&error))
}

/// What came from one feed: whether it goes on, and how much of it was missed.
fn missed<N, V>(item: Option<FeedItem<N, V>>, feed: &mut Subscription<N, V>) -> Result<u64, Status> {
    let mut missed = 0;
    let mut next = Some(item.ok_or_else(|| Status::unavailable("an actor of the host has ended"))?);
    while let Some(item) = next {
        if let FeedItem::Lagged { missed: some } = item {
            missed += some;
        }
        next = feed.try_next();
    }
    Ok(missed)
}

impl Watching {
    /// Begins to listen to everyone.
    pub(super) fn begin(sources: Arc<Sources>) -> Result<Self, Status> {
        Ok(Self {
            registry: follow(sources.host.registry())?,
            instances: follow(sources.host.instances())?,
            inventory: follow(sources.host.inventory())?,
            allocations: follow(sources.host.allocations())?,
            agent: follow(&sources.agent)?,
            drivers: follow(sources.host.drivers())?,
            tasks: follow(&sources.tasks)?,
            logs: sources.logs.clone(),
            sources,
            shown: None,
            ready: VecDeque::new(),
            number: 0,
        })
    }

    /// The answers, one by one. An error ends them.
    pub(super) fn into_stream(self) -> impl Stream<Item = Result<wire::WatchResponse, Status>> + Send {
        unfold(Some(self), |watching| async {
            let mut watching = watching?;
            match watching.next().await {
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
            self.look().await?;
        }
        self.number += 1;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let at_unix_ms = milliseconds(now);
        Ok(wire::WatchResponse { number: self.number, at_unix_ms, news: self.ready.pop_front() })
    }

    /// Waits until an actor says something, and counts what was missed of what it said.
    async fn something_new(&mut self) -> Result<u64, Status> {
        tokio::select! {
            item = self.registry.next() => missed(item, &mut self.registry),
            item = self.instances.next() => missed(item, &mut self.instances),
            item = self.inventory.next() => missed(item, &mut self.inventory),
            item = self.allocations.next() => missed(item, &mut self.allocations),
            item = self.agent.next() => missed(item, &mut self.agent),
            item = self.drivers.next() => missed(item, &mut self.drivers),
            item = self.tasks.next() => missed(item, &mut self.tasks),
            // A channel of the latest view misses nothing; its end is that of the host.
            Ok(()) = self.logs.changed() => Ok(0),
        }
    }

    /// Looks at everything and notes what differs from what was shown.
    async fn look(&mut self) -> Result<(), Status> {
        let status = gather(&self.sources).await;
        if let Some(gone) = status.gone.first() {
            // What it knows has not changed only because it cannot be asked.
            return Err(Status::unavailable(gone.reason.clone()));
        }
        match self.shown.replace(status.clone()) {
            None => self.ready.push_back(News::Snapshot(status)),
            Some(before) => self.ready.extend(differences(&before, &status)),
        }
        Ok(())
    }
}

/// What is to be told so that one who knows `before` knows `after`.
fn differences(before: &wire::GetStatusResponse, after: &wire::GetStatusResponse) -> Vec<News> {
    let has = |plugins: &[wire::PluginStatus], plugin: &wire::PluginStatus| {
        plugins.iter().any(|other| other.r#type == plugin.r#type && other.name == plugin.name)
    };
    let left = before.plugins.iter().filter(|plugin| !has(&after.plugins, plugin));
    let left = left.map(|plugin| {
        News::PluginLeft(wire::PluginLeft { r#type: plugin.r#type.clone(), name: plugin.name.clone() })
    });
    let plugins = after.plugins.iter().filter(|plugin| !before.plugins.contains(plugin));
    let plugins = plugins.cloned().map(News::PluginChanged);
    let allocations = after.allocations.iter().filter(|allocation| !before.allocations.contains(allocation));
    let allocations = allocations.cloned().map(News::AllocationChanged);
    allocations.chain(plugins).chain(left).chain(differences_of_drivers(before, after)).collect()
}

fn differences_of_drivers(before: &wire::GetStatusResponse, after: &wire::GetStatusResponse) -> Vec<News> {
    let drivers = after.drivers.iter().filter(|driver| !before.drivers.contains(driver));
    let drivers = drivers.cloned().map(News::DriverChanged);
    let tasks = after.tasks.iter().filter(|task| !before.tasks.iter().any(|other| are_equal(other, task)));
    let tasks = tasks.cloned().map(News::TaskChanged);
    let has_left = |name: &str| !after.drivers.iter().any(|driver| driver.name == name);
    let drivers_left = before.drivers.iter().map(|driver| driver.name.clone()).filter(|name| has_left(name));
    let is_gone = |name: &str| !after.tasks.iter().any(|task| task.name == name);
    let tasks_left = before.tasks.iter().map(|task| task.name.clone()).filter(|name| is_gone(name));
    let left = drivers_left.map(News::DriverLeft).chain(tasks_left.map(News::TaskLeft));
    drivers.chain(tasks).chain(left).collect()
}

/// Whether nothing about a task has changed but what it uses, which changes all the time.
fn are_equal(before: &wire::TaskStatus, after: &wire::TaskStatus) -> bool {
    let without_usage = |task: &wire::TaskStatus| wire::TaskStatus { usage: None, ..task.clone() };
    before.name == after.name && without_usage(before) == without_usage(after)
}

#[cfg(test)]
mod tests {
    use super::*;

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
