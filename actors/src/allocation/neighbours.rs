//! The actors that an allocation's supervisor sends to: the registry and the supervisor of instances.

use std::time::Duration;

use futures_util::future::{LocalBoxFuture, try_join, try_join_all};

use super::{RegisterOutcome, RetiredOutcome, healths};
use crate::csi::ListenerCheck;
use crate::instances::{AwaitRetired, HealthOf, InstanceReport, Instances, InstancesNews, InstancesView};
use crate::registry::{Deregister, Deregistered, Describe, Register, Registry};
use crate::shell::{Address, AskError, Database, FeedItem, Follower};
use crate::vocabulary::{AllocationId, Health, PluginKey};
use crate::volumes::{AwaitUnused, AwaitUnusedError, Volumes};

/// The pause before the supervisor of instances is followed again after it has ended.
const FOLLOW_PAUSE: Duration = Duration::from_secs(1);

/// The number of allocations that are notified at once, and the pause before the next ones.
const NOTIFIED_AT_ONCE: usize = 256;
const NOTIFY_PAUSE: Duration = Duration::from_millis(20);

/// The answer of the owner of the volumes, or the reason why there is none.
type UnusedOutcome = Result<Result<(), AwaitUnusedError>, AskError>;

/// The neighbours of an allocation's supervisor. Messages are sent in the order of calls, before the futures are returned.
pub trait Neighbours: 'static {
    /// Registers the plugins of an allocation.
    fn register(&self, message: Register) -> LocalBoxFuture<'static, RegisterOutcome>;

    /// Deregisters them.
    fn deregister(&self, message: Deregister) -> LocalBoxFuture<'static, Result<Deregistered, AskError>>;

    /// The health of each plugin of an allocation whose instance calls it, or will; empty if another allocation is active.
    fn health_of(
        &self,
        allocation: AllocationId,
        plugins: Vec<PluginKey>,
    ) -> LocalBoxFuture<'static, Result<Vec<Health>, AskError>>;

    /// Waits until no instance calls an allocation.
    fn await_retired(&self, message: AwaitRetired) -> LocalBoxFuture<'static, RetiredOutcome>;

    /// Waits until the volumes of a plugin are unused (V13). Returns at once, unless an implementation knows volumes.
    fn await_unused(&self, _message: AwaitUnused) -> LocalBoxFuture<'static, UnusedOutcome> {
        Box::pin(std::future::ready(Ok(Ok(()))))
    }

    /// Calls this for each allocation when the instances report a change of its plugin, while the future is polled. It is never
    /// called, unless an implementation follows the instances.
    fn follow_instances(&self, _notify: Box<dyn Fn(&AllocationId)>) -> LocalBoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Calls this each time a sick disk takes writes again, while the future is polled. It is never called, unless an implementation
    /// knows a disk.
    fn follow_disk(&self, _notify: Box<dyn Fn()>) -> LocalBoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Which process may listen at the socket of an allocation. Any process, unless an implementation checks it.
    fn listeners(&self) -> ListenerCheck {
        ListenerCheck::default()
    }
}

/// The neighbours in a host: the actors at these addresses.
#[derive(Debug, Clone)]
pub struct Addresses {
    /// Registers ready plugins.
    pub registry: Address<Registry>,
    /// Knows their health.
    pub instances: Address<Instances>,
    /// Knows the volumes that its plugin serves; `None` if the host has no volumes.
    pub volumes: Option<Address<Volumes>>,
    /// Knows which process may listen at a socket.
    pub listeners: ListenerCheck,
    /// The database of registrations; `None` if its disk is never sick.
    pub database: Option<Database>,
}

impl Neighbours for Addresses {
    fn register(&self, message: Register) -> LocalBoxFuture<'static, RegisterOutcome> {
        Box::pin(self.registry.ask(message))
    }

    fn deregister(&self, message: Deregister) -> LocalBoxFuture<'static, Result<Deregistered, AskError>> {
        Box::pin(self.registry.ask(message))
    }

    fn health_of(
        &self,
        allocation: AllocationId,
        plugins: Vec<PluginKey>,
    ) -> LocalBoxFuture<'static, Result<Vec<Health>, AskError>> {
        let describe = |plugin: &PluginKey| self.registry.ask(Describe { plugin: plugin.clone() });
        let described = try_join_all(plugins.iter().map(describe).collect::<Vec<_>>());
        let reported = self.instances.ask(HealthOf { allocation: allocation.clone() });
        Box::pin(async move {
            let (described, reports) = try_join(described, reported).await?;
            Ok(healths(&allocation, described.iter().map(AsRef::as_ref), &reports))
        })
    }

    fn await_retired(&self, message: AwaitRetired) -> LocalBoxFuture<'static, RetiredOutcome> {
        Box::pin(self.instances.ask(message))
    }

    fn await_unused(&self, message: AwaitUnused) -> LocalBoxFuture<'static, UnusedOutcome> {
        match &self.volumes {
            Some(volumes) => Box::pin(volumes.ask(message)),
            None => Box::pin(std::future::ready(Ok(Ok(())))),
        }
    }

    fn follow_instances(&self, notify: Box<dyn Fn(&AllocationId)>) -> LocalBoxFuture<'static, ()> {
        let mut follower = Follower::new("allocations", self.instances.clone());
        Box::pin(async move {
            loop {
                match follower.follow(false).await {
                    Ok(items) => {
                        let reports: Vec<_> = items.iter().flat_map(reports).collect();
                        by_and_by(&reports, |report| notify(&report.allocation)).await;
                    }
                    // The supervisors ask in their rounds until the supervisor of instances runs again.
                    Err(_) => tokio::time::sleep(FOLLOW_PAUSE).await,
                }
            }
        })
    }

    fn follow_disk(&self, notify: Box<dyn Fn()>) -> LocalBoxFuture<'static, ()> {
        let Some(database) = &self.database else { return Box::pin(std::future::ready(())) };
        let mut disk = database.disk().watch();
        Box::pin(async move {
            // It ends with the host.
            while disk.wait_for(|health| health.reason().is_some()).await.is_ok()
                && disk.wait_for(|health| health.reason().is_none()).await.is_ok()
            {
                notify();
            }
        })
    }

    fn listeners(&self) -> ListenerCheck {
        self.listeners.clone()
    }
}

/// Does this for all, with pauses: each notified allocation asks the registry and the instances, which accept a bounded number of
/// messages.
async fn by_and_by<T>(all: &[T], act: impl Fn(&T)) {
    for (number, some) in all.chunks(NOTIFIED_AT_ONCE).enumerate() {
        if number > 0 {
            tokio::time::sleep(NOTIFY_PAUSE).await;
        }
        some.iter().for_each(&act);
    }
}

/// The reports in an item of the feed of the supervisor of instances.
fn reports(item: &FeedItem<InstancesNews, InstancesView>) -> Vec<&InstanceReport> {
    match item {
        FeedItem::Snapshot { view, .. } => view.reports.iter().chain(&view.standby).collect(),
        FeedItem::Change { news, .. } => match news {
            InstancesNews::Reported(report)
            | InstancesNews::Standby(report)
            | InstancesNews::Left(report) => vec![report],
            InstancesNews::Expected(_) | InstancesNews::Settled => vec![],
        },
        FeedItem::Lagged { .. } => vec![],
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn so_many_are_notified_at_once_and_no_more() {
        let (begun, notified) = (tokio::time::Instant::now(), Cell::new(0));
        let all = vec![(); 2 * NOTIFIED_AT_ONCE + 1];
        by_and_by(&all, |()| {
            let at_most =
                NOTIFIED_AT_ONCE * (1 + (begun.elapsed().as_millis() / NOTIFY_PAUSE.as_millis()) as usize);
            notified.set(notified.get() + 1);
            assert!(notified.get() <= at_most, "{} by now", notified.get());
        })
        .await;
        assert_eq!((notified.get(), begun.elapsed()), (all.len(), 2 * NOTIFY_PAUSE));
    }
}
