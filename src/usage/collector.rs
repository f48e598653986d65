//! Reads the usage of tasks from their drivers, as the plan decides.

use std::collections::BTreeMap;
use std::time::Duration;

use callboard_actors::drivers::Wanted;
use callboard_actors::shell::{Address, AskError, Clock, FeedItem, Subscription};
use callboard_actors::vocabulary::{AllocationId, Moment};
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use tokio::time::sleep;

use super::plan::{Heard, Order, Plan, Source, UsageView};
use crate::host::Leases;
use crate::tasks::{Tasks, TasksNews, TasksView};

/// The interval of reports that drivers are asked for.
const INTERVAL: Duration = Duration::from_secs(5);
/// The pause of a reader after each report: backpressure for a driver that reports more often.
const PAUSE: Duration = Duration::from_secs(1);
/// The timeout to wait for a driver that is starting.
const DISPENSE_TIMEOUT: Duration = Duration::from_secs(5);
/// The capacity of the queue of task changes.
const FEED: usize = 256;
/// The name of this subscriber.
const SUBSCRIBER: &str = "usage";
/// The capacity of the queue of reports; readers block when it is full.
const QUEUE: usize = 256;

/// Reads the usage of all running tasks until it is dropped.
#[derive(Debug)]
pub struct UsageCollector {
    task: AbortHandle,
}

impl UsageCollector {
    /// Starts for these tasks on the current arbiter, and publishes the results in `view`.
    ///
    /// # Errors
    /// If the tasks have ended.
    pub fn start(
        tasks: &Address<Tasks>,
        leases: Leases,
        view: watch::Sender<UsageView>,
    ) -> Result<Self, AskError> {
        let feed = tasks.subscribe(SUBSCRIBER, FEED)?;
        let (tell, told) = mpsc::channel(QUEUE);
        let plan = Plan::new();
        let (clock, readers, tasks) = (Clock::system(), BTreeMap::new(), tasks.clone());
        let collecting = Collecting { plan, clock, readers, tasks, leases, tell, view };
        Ok(Self { task: actix_rt::spawn(collecting.run(feed, told)).abort_handle() })
    }

    /// Stops all readers.
    pub fn stop(&self) {
        self.task.abort();
    }
}

impl Drop for UsageCollector {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A reader; drop ends it.
struct Reading(AbortHandle);

impl Drop for Reading {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A reader's message: the task, the reader's number, and the content.
type Telling = (AllocationId, u64, Heard);

struct Collecting {
    plan: Plan,
    clock: Clock,
    readers: BTreeMap<AllocationId, Reading>,
    tasks: Address<Tasks>,
    leases: Leases,
    tell: mpsc::Sender<Telling>,
    view: watch::Sender<UsageView>,
}

impl Collecting {
    async fn run(mut self, mut feed: Subscription<TasksNews, TasksView>, mut told: mpsc::Receiver<Telling>) {
        loop {
            let orders = tokio::select! {
                item = feed.next() => match item {
                    Some(FeedItem::Snapshot { view, .. }) => self.plan.sees_all(&view.tasks),
                    Some(FeedItem::Change { news, .. }) => self.hears_news(&news),
                    // A snapshot follows.
                    Some(FeedItem::Lagged { .. }) => vec![],
                    None => {
                        feed = self.subscribed_again().await;
                        vec![]
                    }
                },
                Some((name, number, heard)) = told.recv() => self.plan.hears(self.moment(), &name, number, heard),
            };
            orders.into_iter().for_each(|order| self.carry_out(order));
        }
    }

    /// The feed of the tasks, which are being restarted.
    async fn subscribed_again(&self) -> Subscription<TasksNews, TasksView> {
        loop {
            sleep(PAUSE).await;
            if let Ok(feed) = self.tasks.subscribe(SUBSCRIBER, FEED) {
                return feed;
            }
        }
    }

    fn moment(&self) -> Moment {
        let now = self.clock.now();
        // The randomness only spreads pauses, so a clock suffices: no two readers fail in the same nanosecond.
        Moment { now, random: u64::from(now.since_epoch().subsec_nanos()) }
    }

    fn hears_news(&mut self, news: &TasksNews) -> Vec<Order> {
        match news {
            TasksNews::TaskChanged(report) => self.plan.sees(report),
            TasksNews::TaskForgotten(name) => self.plan.forgets(name),
            TasksNews::DriverChanged(_) | TasksNews::DriverForgotten(_) => vec![],
        }
    }

    fn carry_out(&mut self, order: Order) {
        match order {
            Order::Open { name, number, source, pause } => {
                let reading =
                    read(self.leases.clone(), source, pause, (name.clone(), number, self.tell.clone()));
                self.readers.insert(name, Reading(actix_rt::spawn(reading).abort_handle()));
            }
            Order::Close(name) => drop(self.readers.remove(&name)),
            Order::Show(name, usage) => self.view.send_modify(|view| {
                match usage {
                    Some(usage) => view.insert(name, usage),
                    None => view.remove(&name),
                };
            }),
            Order::Log { name, driver, reason, left_out } => {
                tracing::warn!(task = %name, %driver, error = reason, left_out, "resource usage of a task unknown");
            }
            Order::LogLeftOut { driver, left_out } => {
                tracing::warn!(%driver, left_out, "resource usage of more tasks unknown, not logged individually");
            }
        }
    }
}

/// Reads a stream to its end, and reports that end.
async fn read(
    leases: Leases,
    source: Source,
    pause: Duration,
    (name, number, tell): (AllocationId, u64, mpsc::Sender<Telling>),
) {
    // The receiver is gone only at shutdown.
    let tell = async |heard| drop(tell.send((name.clone(), number, heard)).await);
    sleep(pause).await;
    let Source { driver, id } = source;
    let client = match leases.driver(&driver, Wanted::Reachable, DISPENSE_TIMEOUT).await {
        Ok(client) => client,
        Err(error) => return tell(Heard::NotHad(error.to_string())).await,
    };
    let mut stream = client.task_stats(&id, INTERVAL);
    loop {
        match stream.next().await {
            Some(Ok(stats)) => {
                tell(Heard::Told(Box::new(stats))).await;
                sleep(PAUSE).await;
            }
            Some(Err(error)) => return tell(Heard::Broken(error)).await,
            None => return tell(Heard::Ended).await,
        }
    }
}
