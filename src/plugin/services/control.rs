//! The controller service, by which a host shuts the plugin down (D51).

use callboard_proto::goplugin::Empty;
use callboard_proto::goplugin::grpc_controller_server::GrpcController;
use tonic::{Request, Response, Status};

use crate::plugin::stopping::Stopping;

/// Receives the host's shutdown request.
#[derive(Debug)]
pub(in crate::plugin) struct Control {
    /// Gets the request; `None` in a plugin that ignores it.
    pub(in crate::plugin) stopping: Option<Stopping>,
}

#[tonic::async_trait]
impl GrpcController for Control {
    /// Stops the plugin. The answer may or may not reach the host before the connection ends.
    async fn shutdown(&self, _: Request<Empty>) -> Result<Response<Empty>, Status> {
        match &self.stopping {
            Some(stopping) => stopping.tell("the host shuts it down"),
            None => tracing::warn!("shutdown ignored, as was demanded"),
        }
        Ok(Response::new(Empty {}))
    }
}
