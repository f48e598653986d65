//! The controller service: how a host tells a plugin to end (D51).

use callboard_proto::goplugin::Empty;
use callboard_proto::goplugin::grpc_controller_server::GrpcController;
use tonic::{Request, Response, Status};

use crate::plugin::stopping::Stopping;

/// Hears that the plugin is to end.
#[derive(Debug)]
pub(in crate::plugin) struct Control {
    /// What is told so; nobody is in a plugin that takes no notice.
    pub(in crate::plugin) stopping: Option<Stopping>,
}

#[tonic::async_trait]
impl GrpcController for Control {
    /// Ends the plugin. The answer may or may not reach the host before the connection ends.
    async fn shutdown(&self, _: Request<Empty>) -> Result<Response<Empty>, Status> {
        match &self.stopping {
            Some(stopping) => stopping.tell("the host shuts it down"),
            None => tracing::warn!("shutdown ignored, as was demanded"),
        }
        Ok(Response::new(Empty {}))
    }
}
