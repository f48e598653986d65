//! Answers the requests on the admin socket.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use callboard_actors::shell::{AskError, StopMode};
use callboard_actors::vocabulary::AllocationId;
use callboard_proto::admin::v1 as wire;
use futures_util::{Stream, StreamExt};
use tokio::sync::{Semaphore, oneshot};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use super::connections::{Peer, user_of};
use super::convert::{self, not_replaced, refused, replaced_unheard, task_refused, unanswered};
use super::events::Events;
use super::gather::gather;
use super::long_calls::{LongCall, long_call, while_held};
use super::server::{ShutdownOrder, Sources};
use super::stopping::Stopping;
use super::{disk, drivers, tree, volume_calls, volume_ends, volume_orders, volume_reads, watch};
use crate::agent::{Replace, StartTask, StopTask, TaskError, TaskStopped};
use crate::{tasks, timeline};

/// The longest timeout of a replacement.
const REPLACE_WITHIN_MAX: Duration = Duration::from_secs(30 * 24 * 3_600);
/// How many clients may watch or follow the timeline at once: fewer than the connection limit, so that room for others remains.
const WATCHERS_MAX: usize = 24;
/// How many clients may wait at once for the end of an allocation or task, or for a volume.
const WAITING_MAX: usize = 32;

/// Answers requests for a host.
#[derive(Debug, Clone)]
pub(super) struct Service {
    pub(super) sources: Arc<Sources>,
    events: Events,
    watchers: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
}

/// Whether no allocation has this name; then it is the name of a task, or unknown.
const fn is_unknown<T>(answer: &Result<T, TaskError>) -> bool {
    matches!(answer, Err(TaskError::Unknown { .. }))
}

fn allocation_id(name: &str) -> Result<AllocationId, Status> {
    AllocationId::new(name).map_err(|error| Status::invalid_argument(error.to_string()))
}

impl Service {
    pub(super) fn new(sources: Sources, events: Events) -> Self {
        Self {
            sources: Arc::new(sources),
            events,
            watchers: Arc::new(Semaphore::new(WATCHERS_MAX)),
            waiting: Arc::new(Semaphore::new(WAITING_MAX)),
        }
    }

    fn watcher<T>(&self, request: &Request<T>) -> Result<LongCall, Status> {
        long_call(&self.watchers, request, || {
            format!("limit of {WATCHERS_MAX} watching clients reached; end one of them")
        })
    }

    fn waiter<T>(&self, request: &Request<T>) -> Result<LongCall, Status> {
        long_call(&self.waiting, request, || {
            format!(
                "limit of {WAITING_MAX} clients that wait for an end or a volume reached; try again when one of them is done"
            )
        })
    }

    fn stopping(&self) -> Option<Stopping> {
        self.sources.stopping.borrow().clone()
    }

    /// Stops an allocation, or a task if no allocation has this name.
    async fn stop(
        &self,
        name: &AllocationId,
        even_if_used: bool,
    ) -> Result<Result<TaskStopped, Status>, AskError> {
        let stop = StopTask { allocation: name.clone(), even_if_used };
        let stopped = self.sources.agent.ask(stop).await?;
        if is_unknown(&stopped) {
            let stopped = self.sources.tasks.ask(tasks::StopTask { name: name.clone() }).await?;
            return Ok(stopped.map_err(|error| task_refused(&error)));
        }
        Ok(stopped.map_err(|error| refused(&error)))
    }
}

#[tonic::async_trait]
impl wire::admin_server::Admin for Service {
    async fn get_status(
        &self,
        request: Request<wire::GetStatusRequest>,
    ) -> Result<Response<wire::GetStatusResponse>, Status> {
        let mut status = gather(&self.sources).await;
        self.events.tell(&request.into_inner().name, &mut status);
        Ok(Response::new(status))
    }

    async fn get_tree(
        &self,
        _request: Request<wire::GetTreeRequest>,
    ) -> Result<Response<wire::GetTreeResponse>, Status> {
        let root = Some(convert::tree(tree::tree(&self.sources.host).await));
        Ok(Response::new(wire::GetTreeResponse { root }))
    }

    async fn start_allocation(
        &self,
        request: Request<wire::StartAllocationRequest>,
    ) -> Result<Response<wire::StartAllocationResponse>, Status> {
        let allocation = allocation_id(&request.into_inner().name)?;
        if self.stopping().is_some() {
            let text = format!("{allocation} is not started: the host is stopping");
            return Err(Status::failed_precondition(text));
        }
        let answer = self.sources.agent.ask(StartTask { allocation: allocation.clone() }).await;
        let started = answer.map_err(|error| unanswered(&error))?;
        if is_unknown(&started) {
            let answer = self.sources.tasks.ask(tasks::StartTask { name: allocation }).await;
            answer.map_err(|error| unanswered(&error))?.map_err(|error| task_refused(&error))?;
        } else {
            started.map_err(|error| refused(&error))?;
        }
        Ok(Response::new(wire::StartAllocationResponse {}))
    }

    async fn stop_allocation(
        &self,
        request: Request<wire::StopAllocationRequest>,
    ) -> Result<Response<wire::StopAllocationResponse>, Status> {
        let _place = self.waiter(&request)?;
        let wire::StopAllocationRequest { name, even_if_used } = request.into_inner();
        let allocation = allocation_id(&name)?;
        let answer = self.stop(&allocation, even_if_used).await;
        let report = match answer {
            Ok(stopped) => stopped?.steps.iter().map(convert::step).collect::<Vec<_>>(),
            // An actor that has ended with the host has stopped its processes.
            Err(error) => match Stopping::that_ended(&self.sources.stopping, &error).await {
                Some(stopping) => stopping.stopped(&allocation)?,
                None => return Err(unanswered(&error)),
            },
        };
        let unwritten = disk::unwritten(self.sources.host.database());
        let report = report.into_iter().chain(unwritten).collect();
        Ok(Response::new(wire::StopAllocationResponse { report }))
    }

    async fn replace_allocation(
        &self,
        request: Request<wire::ReplaceAllocationRequest>,
    ) -> Result<Response<wire::ReplaceAllocationResponse>, Status> {
        let _place = self.waiter(&request)?;
        let user = user_of(&request);
        let wire::ReplaceAllocationRequest { name, with, healthy_for_ms, within_ms } = request.into_inner();
        let replace = Replace {
            allocation: allocation_id(&name)?,
            with: allocation_id(&with)?,
            healthy_for: Duration::from_millis(healthy_for_ms),
            within: Duration::from_millis(within_ms).min(REPLACE_WITHIN_MAX),
        };
        tracing::info!(allocation = name, with, user, "an allocation is to be replaced");
        let answer = self.sources.agent.ask(replace).await;
        let replaced = answer.map_err(|error| replaced_unheard(&error))?;
        let error = replaced.as_ref().err().map(tracing::field::display);
        tracing::info!(allocation = name, with, error, "the replacement has ended");
        let stopped = replaced.map_err(|error| not_replaced(&error))?;
        let report = stopped.steps.iter().map(convert::step).collect();
        Ok(Response::new(wire::ReplaceAllocationResponse { report }))
    }

    async fn restart_driver(
        &self,
        request: Request<wire::RestartDriverRequest>,
    ) -> Result<Response<wire::RestartDriverResponse>, Status> {
        let (user, asked) = (user_of(&request), request.into_inner());
        let driver = asked.name.escape_debug().to_string();
        let done = drivers::restart(&self.sources, asked).await;
        let error = done.as_ref().err().map(Status::message);
        tracing::info!(driver, user, error, "a driver is to be restarted");
        done.map(Response::new)
    }

    async fn create_volume(
        &self,
        request: Request<wire::CreateVolumeRequest>,
    ) -> Result<Response<wire::CreateVolumeResponse>, Status> {
        let _place = self.waiter(&request)?;
        let (user, name) = (user_of(&request), request.get_ref().name.clone());
        let done = volume_calls::create(&self.sources, request.into_inner()).await;
        volume_calls::logged("create", &name, user, done)
    }

    async fn delete_volume(
        &self,
        request: Request<wire::DeleteVolumeRequest>,
    ) -> Result<Response<wire::DeleteVolumeResponse>, Status> {
        let _place = self.waiter(&request)?;
        let (user, name) = (user_of(&request), request.get_ref().name.clone());
        let done = volume_ends::delete(&self.sources, request.into_inner()).await;
        volume_calls::logged_if("delete", &name, user, done, |deleted| deleted.did_exist)
    }

    async fn forget_volume(
        &self,
        request: Request<wire::ForgetVolumeRequest>,
    ) -> Result<Response<wire::ForgetVolumeResponse>, Status> {
        let (user, name) = (user_of(&request), request.into_inner().name);
        let done = volume_ends::forget(&self.sources, &name).await;
        volume_calls::logged_if("forget", &name, user, done, |forgot| forgot.was_known)
    }

    async fn expand_volume(
        &self,
        request: Request<wire::ExpandVolumeRequest>,
    ) -> Result<Response<wire::ExpandVolumeResponse>, Status> {
        let _place = self.waiter(&request)?;
        let (user, name) = (user_of(&request), request.get_ref().name.clone());
        let done = volume_orders::expand(&self.sources, request.into_inner()).await;
        volume_calls::logged("expand", &name, user, done)
    }

    async fn get_volume_stats(
        &self,
        request: Request<wire::GetVolumeStatsRequest>,
    ) -> Result<Response<wire::GetVolumeStatsResponse>, Status> {
        let _place = self.waiter(&request)?;
        volume_reads::stats(&self.sources, request.into_inner()).await.map(Response::new)
    }

    async fn create_snapshot(
        &self,
        request: Request<wire::CreateSnapshotRequest>,
    ) -> Result<Response<wire::CreateSnapshotResponse>, Status> {
        let _place = self.waiter(&request)?;
        let (user, name) = (user_of(&request), request.get_ref().name.clone());
        let done = volume_orders::take_snapshot(&self.sources, request.into_inner()).await;
        volume_calls::logged("snapshot-create", &name, user, done)
    }

    async fn delete_snapshot(
        &self,
        request: Request<wire::DeleteSnapshotRequest>,
    ) -> Result<Response<wire::DeleteSnapshotResponse>, Status> {
        let _place = self.waiter(&request)?;
        let (user, name) = (user_of(&request), request.get_ref().name.clone());
        let done = volume_orders::delete_snapshot(&self.sources, request.into_inner()).await;
        volume_calls::logged("snapshot-delete", &name, user, done)
    }

    async fn create_group_snapshot(
        &self,
        request: Request<wire::CreateGroupSnapshotRequest>,
    ) -> Result<Response<wire::CreateGroupSnapshotResponse>, Status> {
        let _place = self.waiter(&request)?;
        let (user, names) = (user_of(&request), request.get_ref().names.join(", "));
        let done = volume_orders::take_group(&self.sources, request.into_inner()).await;
        volume_calls::logged("snapshot-group-create", &names, user, done)
    }

    async fn delete_group_snapshot(
        &self,
        request: Request<wire::DeleteGroupSnapshotRequest>,
    ) -> Result<Response<wire::DeleteGroupSnapshotResponse>, Status> {
        let _place = self.waiter(&request)?;
        let (user, name) = (user_of(&request), request.get_ref().name.clone());
        let done = volume_orders::delete_group(&self.sources, request.into_inner()).await;
        volume_calls::logged_if("snapshot-group-delete", &name, user, done, |deleted| deleted.was_ordered)
    }

    async fn get_group_snapshot(
        &self,
        request: Request<wire::GetGroupSnapshotRequest>,
    ) -> Result<Response<wire::GetGroupSnapshotResponse>, Status> {
        let _place = self.waiter(&request)?;
        volume_reads::group(&self.sources, request.into_inner()).await.map(Response::new)
    }

    async fn list_snapshots(
        &self,
        request: Request<wire::ListSnapshotsRequest>,
    ) -> Result<Response<wire::ListSnapshotsResponse>, Status> {
        let _place = self.waiter(&request)?;
        volume_reads::snapshots(&self.sources, request.into_inner()).await.map(Response::new)
    }

    async fn list_plugin_volumes(
        &self,
        request: Request<wire::ListPluginVolumesRequest>,
    ) -> Result<Response<wire::ListPluginVolumesResponse>, Status> {
        let _place = self.waiter(&request)?;
        volume_reads::volumes(&self.sources, request.into_inner()).await.map(Response::new)
    }

    async fn get_plugin_capacity(
        &self,
        request: Request<wire::GetPluginCapacityRequest>,
    ) -> Result<Response<wire::GetPluginCapacityResponse>, Status> {
        let _place = self.waiter(&request)?;
        volume_reads::capacity(&self.sources, request.into_inner()).await.map(Response::new)
    }

    async fn validate_volume(
        &self,
        request: Request<wire::ValidateVolumeRequest>,
    ) -> Result<Response<wire::ValidateVolumeResponse>, Status> {
        let _place = self.waiter(&request)?;
        volume_reads::validate(&self.sources, request.into_inner()).await.map(Response::new)
    }

    async fn modify_volume(
        &self,
        request: Request<wire::ModifyVolumeRequest>,
    ) -> Result<Response<wire::ModifyVolumeResponse>, Status> {
        let _place = self.waiter(&request)?;
        let (user, name) = (user_of(&request), request.get_ref().name.clone());
        let done = volume_orders::modify(&self.sources, request.into_inner()).await;
        volume_calls::logged("modify", &name, user, done)
    }

    async fn claim_volume(
        &self,
        request: Request<wire::ClaimVolumeRequest>,
    ) -> Result<Response<wire::ClaimVolumeResponse>, Status> {
        let _place = self.waiter(&request)?;
        let (user, name) = (user_of(&request), request.get_ref().name.clone());
        let done = volume_calls::claim(&self.sources, request.into_inner()).await;
        volume_calls::logged("claim", &name, user, done)
    }

    async fn release_volume(
        &self,
        request: Request<wire::ReleaseVolumeRequest>,
    ) -> Result<Response<wire::ReleaseVolumeResponse>, Status> {
        let _place = self.waiter(&request)?;
        let (user, name) = (user_of(&request), request.get_ref().name.clone());
        let done = volume_calls::release(&self.sources, request.into_inner()).await;
        volume_calls::logged_if("release", &name, user, done, |released| released.was_held)
    }

    async fn force_release_volume(
        &self,
        request: Request<wire::ForceReleaseVolumeRequest>,
    ) -> Result<Response<wire::ForceReleaseVolumeResponse>, Status> {
        let _place = self.waiter(&request)?;
        let user = user_of(&request);
        volume_calls::force(&self.sources, user, request.into_inner()).await.map(Response::new)
    }

    async fn shutdown(
        &self,
        request: Request<wire::ShutdownRequest>,
    ) -> Result<Response<wire::ShutdownResponse>, Status> {
        // Every caller gets an answer, whatever their number.
        let _staying = request.extensions().get::<Peer>().map(Peer::stay);
        let mode = if request.into_inner().detach { StopMode::Detach } else { StopMode::Stop };
        let (reply, stopped) = oneshot::channel();
        let ended = |_| Status::unavailable("the host is already stopping");
        self.sources.shutdown.send(ShutdownOrder { mode, reply }).await.map_err(|_| ended(()))?;
        let stopped = stopped.await.map_err(|_| ended(()))?;
        Ok(Response::new(wire::ShutdownResponse { report: convert::stopped(&stopped) }))
    }

    type WatchStream = Pin<Box<dyn Stream<Item = Result<wire::WatchResponse, Status>> + Send>>;

    async fn watch(
        &self,
        request: Request<wire::WatchRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let place = self.watcher(&request)?;
        let watching = watch::Watching::begin(Arc::clone(&self.sources));
        Ok(Response::new(Box::pin(while_held(place, watching.into_stream()))))
    }

    type TimelineStream = Pin<Box<dyn Stream<Item = Result<wire::Said, Status>> + Send>>;

    async fn timeline(
        &self,
        request: Request<wire::TimelineRequest>,
    ) -> Result<Response<Self::TimelineStream>, Status> {
        let place = self.watcher(&request)?;
        let Sources { host, agent, tasks, .. } = &*self.sources;
        let lines = timeline::follow(host.clone(), agent, tasks, request.into_inner().gates);
        Ok(Response::new(Box::pin(while_held(place, ReceiverStream::new(lines).map(Ok)))))
    }
}
