//! The driver service, over the trait that a plugin author implements (D103).

use std::time::Duration;

use callboard_actors::driver::{EVENTS_AFTER_METADATA, EVENTS_STREAM_METADATA};
use callboard_proto::drivers::driver_server::Driver as DriverService;
use callboard_proto::drivers::{
    CapabilitiesRequest, CapabilitiesResponse, CreateNetworkRequest, CreateNetworkResponse,
    DestroyNetworkRequest, DestroyNetworkResponse, DestroyTaskRequest, DestroyTaskResponse, DriverTaskEvent,
    ExecTaskRequest, ExecTaskResponse, ExecTaskStreamingRequest, ExecTaskStreamingResponse,
    FingerprintRequest, FingerprintResponse, InitRequest, InitResponse, InspectTaskRequest,
    InspectTaskResponse, RecoverTaskRequest, RecoverTaskResponse, ShutdownRequest, ShutdownResponse,
    SignalTaskRequest, SignalTaskResponse, StartTaskRequest, StartTaskResponse, StopTaskRequest,
    StopTaskResponse, TaskConfigSchemaRequest, TaskConfigSchemaResponse, TaskEventsRequest, TaskStatsRequest,
    TaskStatsResponse, TaskStatus, WaitTaskRequest, WaitTaskResponse, start_task_response,
};
use futures_util::StreamExt;
use prost_types::Timestamp;
use tonic::{Request, Response, Status, Streaming};

use super::{Outgoing, Served, refused};
use crate::plugin::driver::Driver;
use crate::plugin::events::EventsFrom;
use crate::plugin::refusal::{Refusal, RefusalKind};

type Answer<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl<D: Driver> DriverService for Served<D> {
    async fn init(&self, _: Request<InitRequest>) -> Answer<InitResponse> {
        self.driver.init().await.map_err(refused)?;
        Ok(Response::new(InitResponse {}))
    }

    async fn task_config_schema(
        &self,
        _: Request<TaskConfigSchemaRequest>,
    ) -> Answer<TaskConfigSchemaResponse> {
        Ok(Response::new(TaskConfigSchemaResponse { spec: Some(self.driver.task_config_schema()) }))
    }

    async fn capabilities(&self, _: Request<CapabilitiesRequest>) -> Answer<CapabilitiesResponse> {
        Ok(Response::new(CapabilitiesResponse { capabilities: Some(self.driver.capabilities()) }))
    }

    async fn fingerprint(&self, _: Request<FingerprintRequest>) -> Answer<Outgoing<FingerprintResponse>> {
        let reports = self.driver.fingerprint().await.map_err(refused)?;
        Ok(Response::new(self.outgoing(reports)))
    }

    async fn recover_task(&self, request: Request<RecoverTaskRequest>) -> Answer<RecoverTaskResponse> {
        let handle = request.into_inner().handle.ok_or_else(|| missing("handle"))?;
        self.driver.recover_task(handle).await.map_err(refused)?;
        Ok(Response::new(RecoverTaskResponse {}))
    }

    async fn start_task(&self, request: Request<StartTaskRequest>) -> Answer<StartTaskResponse> {
        let task = request.into_inner().task.ok_or_else(|| missing("task"))?;
        let started = self.driver.start_task(task).await.map_err(refused)?;
        Ok(Response::new(StartTaskResponse {
            result: start_task_response::Result::Success.into(),
            driver_error_msg: String::new(),
            handle: Some(started.handle),
            network_override: started.network,
        }))
    }

    async fn wait_task(&self, request: Request<WaitTaskRequest>) -> Answer<WaitTaskResponse> {
        let task_id = request.into_inner().task_id;
        let stopping = self.stopping.clone();
        let exit = tokio::select! {
            exit = self.driver.wait_task(&task_id) => exit.map_err(refused)?,
            () = stopping.told() => return Err(Status::unavailable("the driver ends; its tasks do not")),
        };
        Ok(Response::new(WaitTaskResponse { result: Some(exit.result), err: exit.error.unwrap_or_default() }))
    }

    async fn stop_task(&self, request: Request<StopTaskRequest>) -> Answer<StopTaskResponse> {
        let StopTaskRequest { task_id, timeout, signal } = request.into_inner();
        self.driver.stop_task(&task_id, span(timeout, "timeout")?, &signal).await.map_err(refused)?;
        Ok(Response::new(StopTaskResponse {}))
    }

    async fn destroy_task(&self, request: Request<DestroyTaskRequest>) -> Answer<DestroyTaskResponse> {
        let DestroyTaskRequest { task_id, force } = request.into_inner();
        self.driver.destroy_task(&task_id, force).await.map_err(refused)?;
        Ok(Response::new(DestroyTaskResponse {}))
    }

    async fn inspect_task(&self, request: Request<InspectTaskRequest>) -> Answer<InspectTaskResponse> {
        let task = self.driver.inspect_task(&request.into_inner().task_id).await.map_err(refused)?;
        Ok(Response::new(InspectTaskResponse {
            task: Some(readable(task.status)),
            driver: Some(task.driver),
            network_override: task.network,
        }))
    }

    async fn task_stats(&self, request: Request<TaskStatsRequest>) -> Answer<Outgoing<TaskStatsResponse>> {
        let TaskStatsRequest { task_id, collection_interval } = request.into_inner();
        let interval = span(collection_interval, "collection_interval")?;
        let stats = self.driver.task_stats(&task_id, interval).await.map_err(refused)?;
        let answers = stats.map(|stats| stats.map(|stats| TaskStatsResponse { stats: Some(stats) }));
        Ok(Response::new(self.outgoing(Box::pin(answers))))
    }

    async fn task_events(&self, request: Request<TaskEventsRequest>) -> Answer<Outgoing<DriverTaskEvent>> {
        let from = from(&request)?;
        // The name is read before the stream is opened: if a new stream begins between the two, it is the later one.
        let stream = self.driver.events().map_err(refused)?.stream();
        let events = self.driver.task_events(from).await.map_err(refused)?;
        let mut response = Response::new(self.outgoing(events));
        let name = stream
            .parse()
            .map_err(|_| Status::internal("the stream of events has a name that cannot travel"))?;
        response.metadata_mut().insert(EVENTS_STREAM_METADATA, name);
        Ok(response)
    }

    async fn shutdown(&self, _: Request<ShutdownRequest>) -> Answer<ShutdownResponse> {
        self.driver.shutdown().await.map_err(refused)?;
        Ok(Response::new(ShutdownResponse {}))
    }

    async fn signal_task(&self, request: Request<SignalTaskRequest>) -> Answer<SignalTaskResponse> {
        let SignalTaskRequest { task_id, signal } = request.into_inner();
        self.driver.signal_task(&task_id, &signal).await.map_err(refused)?;
        Ok(Response::new(SignalTaskResponse {}))
    }

    async fn exec_task(&self, request: Request<ExecTaskRequest>) -> Answer<ExecTaskResponse> {
        let ExecTaskRequest { task_id, command, timeout } = request.into_inner();
        let timeout = span(timeout, "timeout")?;
        let output = self.driver.exec_task(&task_id, &command, timeout).await.map_err(refused)?;
        Ok(Response::new(ExecTaskResponse {
            stdout: output.stdout,
            stderr: output.stderr,
            result: Some(output.result),
        }))
    }

    async fn exec_task_streaming(
        &self,
        request: Request<Streaming<ExecTaskStreamingRequest>>,
    ) -> Answer<Outgoing<ExecTaskStreamingResponse>> {
        let broken = |status: Status| {
            Refusal::new(RefusalKind::Failed, format!("the host's requests broke off: {status}"))
        };
        let requests = request.into_inner().map(move |request| request.map_err(broken));
        let answers = self.driver.exec_task_streaming(Box::pin(requests)).await.map_err(refused)?;
        Ok(Response::new(self.outgoing(answers)))
    }

    async fn create_network(&self, request: Request<CreateNetworkRequest>) -> Answer<CreateNetworkResponse> {
        let CreateNetworkRequest { alloc_id, hostname } = request.into_inner();
        let (network, created) = self.driver.create_network(&alloc_id, &hostname).await.map_err(refused)?;
        Ok(Response::new(CreateNetworkResponse { isolation_spec: Some(network), created }))
    }

    async fn destroy_network(
        &self,
        request: Request<DestroyNetworkRequest>,
    ) -> Answer<DestroyNetworkResponse> {
        let DestroyNetworkRequest { alloc_id, isolation_spec } = request.into_inner();
        self.driver.destroy_network(&alloc_id, isolation_spec).await.map_err(refused)?;
        Ok(Response::new(DestroyNetworkResponse {}))
    }
}

/// Fills in fields whose absence makes hosts built on the Go packages fail or crash: a missing time becomes Go's zero time,
/// the first moment of the year 1; a missing exit becomes an empty one.
fn readable(mut status: TaskStatus) -> TaskStatus {
    const NOT_YET: Timestamp = Timestamp { seconds: -62_135_596_800, nanos: 0 };
    status.started_at.get_or_insert(NOT_YET);
    status.completed_at.get_or_insert(NOT_YET);
    status.result.get_or_insert_default();
    status
}

fn missing(field: &str) -> Status {
    Status::invalid_argument(format!("the request has no {field}"))
}

/// Decodes a duration; a missing one is zero.
fn span(duration: Option<prost_types::Duration>, field: &str) -> Result<Duration, Status> {
    let refused =
        |_| Status::invalid_argument(format!("{field} is no span of time: it is negative or too long"));
    duration.map_or(Ok(Duration::ZERO), |duration| Duration::try_from(duration).map_err(refused))
}

/// Parses the position from which the host wants events.
fn from(request: &Request<TaskEventsRequest>) -> Result<EventsFrom, Status> {
    let said = request.metadata().get(EVENTS_AFTER_METADATA).map(|value| value.to_str().unwrap_or_default());
    EventsFrom::read(said)
        .map_err(|error| Status::invalid_argument(format!("{EVENTS_AFTER_METADATA}: {error}")))
}
