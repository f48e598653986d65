//! Calls the allocations of a host for the agent in production.

use callboard_actors::agent::Answered;
use callboard_actors::allocations::{
    AdoptAllocation, AllocationSpec, AllocationStopped, Allocations, AllocationsNews, AllocationsView,
    PrepareAllocation, PrepareError, StopAllocation, StopAllocationError, TaskContext, TaskExited,
    TaskStarted, UnknownAllocation,
};
use callboard_actors::instances::{AwaitHealthy, AwaitHealthyError, Instances};
use callboard_actors::shell::{Address, FeedItem, Follower};
use callboard_actors::vocabulary::AllocationId;
use futures_util::future::LocalBoxFuture;

use super::actor::AllocationService;

/// Calls the allocations and the instances of a host.
#[derive(Debug)]
pub struct HostAllocations {
    address: Address<Allocations>,
    follower: Follower<Allocations>,
    instances: Address<Instances>,
}

impl HostAllocations {
    /// Calls the allocations and the instances at these addresses.
    #[must_use]
    pub fn new(address: Address<Allocations>, instances: Address<Instances>) -> Self {
        Self { follower: Follower::new("agent", address.clone()), address, instances }
    }
}

impl AllocationService for HostAllocations {
    fn prepare(
        &self,
        spec: AllocationSpec,
    ) -> LocalBoxFuture<'static, Answered<Result<TaskContext, PrepareError>>> {
        Box::pin(self.address.ask(PrepareAllocation { spec }))
    }

    fn adopt(
        &self,
        spec: AllocationSpec,
    ) -> LocalBoxFuture<'static, Answered<Result<TaskContext, PrepareError>>> {
        Box::pin(self.address.ask(AdoptAllocation { spec }))
    }

    fn started(
        &self,
        allocation: AllocationId,
    ) -> LocalBoxFuture<'static, Answered<Result<(), UnknownAllocation>>> {
        Box::pin(self.address.ask(TaskStarted { allocation }))
    }

    fn exited(
        &self,
        allocation: AllocationId,
        how: String,
    ) -> LocalBoxFuture<'static, Answered<Result<(), UnknownAllocation>>> {
        Box::pin(self.address.ask(TaskExited { allocation, how }))
    }

    fn stop(
        &self,
        allocation: AllocationId,
        even_if_used: bool,
    ) -> LocalBoxFuture<'static, Answered<Result<AllocationStopped, StopAllocationError>>> {
        Box::pin(self.address.ask(StopAllocation { allocation, even_if_used }))
    }

    fn healthy(
        &self,
        awaited: AwaitHealthy,
    ) -> LocalBoxFuture<'static, Answered<Result<(), AwaitHealthyError>>> {
        Box::pin(self.instances.ask(awaited))
    }

    fn follow(
        &mut self,
        afresh: bool,
    ) -> LocalBoxFuture<'static, Answered<Vec<FeedItem<AllocationsNews, AllocationsView>>>> {
        self.follower.follow(afresh)
    }
}
