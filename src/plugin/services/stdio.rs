//! The stdio service: the plugin's output as a stream (D55).

use callboard_proto::goplugin::grpc_stdio_server::GrpcStdio;
use callboard_proto::goplugin::{StdioData, stdio_data};
use futures_util::StreamExt;
use futures_util::stream::unfold;
use tonic::{Request, Response, Status};

use super::Outgoing;
use crate::plugin::printed::Printed;
use crate::plugin::stopping::Stopping;

/// Streams the output, each byte once.
#[derive(Debug)]
pub(in crate::plugin) struct Stdio {
    pub(in crate::plugin) printed: Printed,
    pub(in crate::plugin) stopping: Stopping,
}

#[tonic::async_trait]
impl GrpcStdio for Stdio {
    /// Streams the plugin's standard output, from the first unread byte.
    async fn stream_stdio(&self, _: Request<()>) -> Result<Response<Outgoing<StdioData>>, Status> {
        let chunks = unfold(self.printed.clone(), |printed| async move {
            let data = printed.next().await;
            let channel = stdio_data::Channel::Stdout.into();
            Some((Ok(StdioData { channel, data }), printed))
        });
        let stopping = self.stopping.clone();
        let ended = Box::pin(async move { stopping.told().await });
        Ok(Response::new(Box::pin(chunks.take_until(ended))))
    }
}
