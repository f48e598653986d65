//! The services of a scripted driver: go-plugin's, the base service, and the driver's own.

use callboard_proto::base::base_plugin_server::BasePlugin;
use callboard_proto::drivers::driver_server::Driver;
use callboard_proto::goplugin::grpc_controller_server::GrpcController;
use callboard_proto::{base, drivers as wire, goplugin};
use tonic::{Request, Response, Status};

use super::acting::{Act, answered};
use super::driver::{DriverPlugin, fingerprint, stream};
use super::driver_tasks::{echo, figures, waited};
use crate::plugin::schema;

/// The type of a driver plugin on the wire.
const DRIVER_TYPE: i32 = 2;

#[tonic::async_trait]
impl BasePlugin for DriverPlugin {
    async fn plugin_info(
        &self,
        _: Request<base::PluginInfoRequest>,
    ) -> Result<Response<base::PluginInfoResponse>, Status> {
        let act = self.play("PluginInfo").await?;
        let book = self.book();
        let info = base::PluginInfoResponse {
            r#type: DRIVER_TYPE,
            plugin_api_versions: vec!["v0.1.0".to_owned()],
            plugin_version: book.version.clone(),
            name: book.name.clone(),
        };
        answered(act, info)
    }

    async fn config_schema(
        &self,
        _: Request<base::ConfigSchemaRequest>,
    ) -> Result<Response<base::ConfigSchemaResponse>, Status> {
        Ok(Response::new(base::ConfigSchemaResponse::default()))
    }

    async fn set_config(
        &self,
        _: Request<base::SetConfigRequest>,
    ) -> Result<Response<base::SetConfigResponse>, Status> {
        answered(self.play("SetConfig").await?, base::SetConfigResponse::default())
    }
}

#[tonic::async_trait]
impl GrpcController for DriverPlugin {
    async fn shutdown(&self, _: Request<goplugin::Empty>) -> Result<Response<goplugin::Empty>, Status> {
        self.play("Shutdown").await?;
        self.leaves.notify_one();
        Ok(Response::new(goplugin::Empty::default()))
    }
}

type Boxed<T> = tonic::codegen::BoxStream<T>;

#[tonic::async_trait]
impl Driver for DriverPlugin {
    async fn task_config_schema(
        &self,
        _: Request<wire::TaskConfigSchemaRequest>,
    ) -> Result<Response<wire::TaskConfigSchemaResponse>, Status> {
        let act = self.play("TaskConfigSchema").await?;
        let spec = schema::object([
            ("command", schema::required("command", "string")),
            ("arguments", schema::optional("arguments", "list(string)")),
            ("memory", schema::with_default(schema::optional("memory", "number"), "64")),
        ]);
        answered(act, wire::TaskConfigSchemaResponse { spec: Some(spec) })
    }

    async fn capabilities(
        &self,
        _: Request<wire::CapabilitiesRequest>,
    ) -> Result<Response<wire::CapabilitiesResponse>, Status> {
        let act = self.play("Capabilities").await?;
        let able = wire::DriverCapabilities { send_signals: true, exec: true, ..Default::default() };
        answered(act, wire::CapabilitiesResponse { capabilities: Some(able) })
    }

    async fn fingerprint(
        &self,
        _: Request<wire::FingerprintRequest>,
    ) -> Result<Response<Boxed<wire::FingerprintResponse>>, Status> {
        let act = self.play("Fingerprint").await?;
        let mut book = self.book();
        let first = if act == Act::Empty { Default::default() } else { fingerprint(&book) };
        let (says, said) = stream([first]);
        book.fingerprints = Some(says);
        Ok(Response::new(said))
    }

    async fn task_events(
        &self,
        request: Request<wire::TaskEventsRequest>,
    ) -> Result<Response<Boxed<wire::DriverTaskEvent>>, Status> {
        self.play("TaskEvents").await?;
        let after = request.metadata().get("callboard-events-after").and_then(|value| value.to_str().ok());
        let mut book = self.book();
        let had = match after.and_then(|after| after.rsplit_once(':')) {
            Some((stream, sequence)) if stream == book.name => sequence.parse().unwrap_or_default(),
            Some(_) | None => 0,
        };
        let (says, said) = stream(book.journal.iter().skip(had).cloned());
        book.events = Some(says);
        let mut response = Response::new(said);
        if book.keeps_positions {
            let stream = book.name.parse().map_err(|_| Status::internal("its name is no stream"))?;
            response.metadata_mut().insert("callboard-events-stream", stream);
        }
        Ok(response)
    }

    async fn start_task(
        &self,
        request: Request<wire::StartTaskRequest>,
    ) -> Result<Response<wire::StartTaskResponse>, Status> {
        let act = self.play("StartTask").await?;
        if act == Act::NotReady {
            let result = wire::start_task_response::Result::Retry.into();
            let driver_error_msg = "as the script wants it".to_owned();
            return Ok(Response::new(wire::StartTaskResponse {
                result,
                driver_error_msg,
                ..Default::default()
            }));
        }
        let config = request.into_inner().task.unwrap_or_default();
        answered(act, self.book().tasks.start(config)?)
    }

    async fn recover_task(
        &self,
        request: Request<wire::RecoverTaskRequest>,
    ) -> Result<Response<wire::RecoverTaskResponse>, Status> {
        let act = self.play("RecoverTask").await?;
        self.book().tasks.recover(request.into_inner().handle.as_ref())?;
        answered(act, wire::RecoverTaskResponse::default())
    }

    async fn wait_task(
        &self,
        request: Request<wire::WaitTaskRequest>,
    ) -> Result<Response<wire::WaitTaskResponse>, Status> {
        let act = self.play("WaitTask").await?;
        let ends = self.book().tasks.ends(&request.into_inner().task_id)?;
        // An empty answer does not wait for the end.
        let answer = if act == Act::Empty { Default::default() } else { waited(ends).await? };
        Ok(Response::new(answer))
    }

    async fn stop_task(
        &self,
        request: Request<wire::StopTaskRequest>,
    ) -> Result<Response<wire::StopTaskResponse>, Status> {
        let act = self.play("StopTask").await?;
        let wire::StopTaskRequest { task_id, signal, .. } = request.into_inner();
        // An empty answer has no effect.
        if act != Act::Empty {
            self.book().tasks.stop(&task_id, &signal)?;
        }
        Ok(Response::new(wire::StopTaskResponse::default()))
    }

    async fn destroy_task(
        &self,
        request: Request<wire::DestroyTaskRequest>,
    ) -> Result<Response<wire::DestroyTaskResponse>, Status> {
        let act = self.play("DestroyTask").await?;
        let wire::DestroyTaskRequest { task_id, force } = request.into_inner();
        if act != Act::Empty {
            self.book().tasks.destroy(&task_id, force)?;
        }
        Ok(Response::new(wire::DestroyTaskResponse::default()))
    }

    async fn inspect_task(
        &self,
        request: Request<wire::InspectTaskRequest>,
    ) -> Result<Response<wire::InspectTaskResponse>, Status> {
        let act = self.play("InspectTask").await?;
        answered(act, self.book().tasks.inspect(&request.into_inner().task_id)?)
    }

    async fn signal_task(
        &self,
        request: Request<wire::SignalTaskRequest>,
    ) -> Result<Response<wire::SignalTaskResponse>, Status> {
        let act = self.play("SignalTask").await?;
        let wire::SignalTaskRequest { task_id, signal } = request.into_inner();
        self.book().tasks.signal(&task_id, &signal)?;
        answered(act, wire::SignalTaskResponse::default())
    }

    async fn exec_task(
        &self,
        request: Request<wire::ExecTaskRequest>,
    ) -> Result<Response<wire::ExecTaskResponse>, Status> {
        let act = self.play("ExecTask").await?;
        let wire::ExecTaskRequest { task_id, command, .. } = request.into_inner();
        // It must know the task, but does not wait for its end.
        self.book().tasks.ends(&task_id)?;
        let stdout = command.join(" ").into_bytes();
        answered(
            act,
            wire::ExecTaskResponse { stdout, result: Some(Default::default()), ..Default::default() },
        )
    }

    async fn task_stats(
        &self,
        request: Request<wire::TaskStatsRequest>,
    ) -> Result<Response<Boxed<wire::TaskStatsResponse>>, Status> {
        let id = request.into_inner().task_id;
        self.book().tasks.ends(&id)?;
        Ok(Response::new(Box::pin(tokio_stream::once(Ok(figures(&id))))))
    }

    async fn exec_task_streaming(
        &self,
        request: Request<tonic::Streaming<wire::ExecTaskStreamingRequest>>,
    ) -> Result<Response<Boxed<wire::ExecTaskStreamingResponse>>, Status> {
        let act = self.play("ExecTaskStreaming").await?;
        let mut asked = request.into_inner();
        let setup = asked.message().await?.and_then(|first| first.setup).unwrap_or_default();
        self.book().tasks.ends(&setup.task_id)?;
        // An empty answer ends at once, without a result.
        let ended = wire::ExecTaskStreamingResponse { exited: true, ..Default::default() };
        let (says, said) = stream((act == Act::Empty).then_some(ended));
        if act != Act::Empty {
            tokio::spawn(echo(asked, says));
        }
        Ok(Response::new(said))
    }

    async fn create_network(
        &self,
        request: Request<wire::CreateNetworkRequest>,
    ) -> Result<Response<wire::CreateNetworkResponse>, Status> {
        let act = self.play("CreateNetwork").await?;
        // An empty answer creates no network.
        if act == Act::Empty {
            return Ok(Response::new(wire::CreateNetworkResponse::default()));
        }
        Ok(Response::new(self.book().networks.create(request.into_inner())))
    }

    async fn destroy_network(
        &self,
        request: Request<wire::DestroyNetworkRequest>,
    ) -> Result<Response<wire::DestroyNetworkResponse>, Status> {
        self.play("DestroyNetwork").await?;
        self.book().networks.destroy(&request.into_inner().alloc_id)?;
        Ok(Response::new(wire::DestroyNetworkResponse::default()))
    }
}
