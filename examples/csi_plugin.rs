//! A CSI plugin in 40 lines. Run it with `CSI_ENDPOINT=unix:///tmp/csi.sock cargo run --example csi_plugin`.

use std::error::Error;

use callboard_proto::csi::v1::identity_server::{Identity, IdentityServer};
use callboard_proto::csi::v1::node_server::{Node, NodeServer};
use callboard_proto::csi::v1::*;
use tokio::net::UnixListener;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::{Request, Response, Status, transport::Server};

type Answer<T> = Result<Response<T>, Status>;

struct Plugin;

#[tonic::async_trait]
impl Identity for Plugin {
    async fn get_plugin_info(&self, _: Request<GetPluginInfoRequest>) -> Answer<GetPluginInfoResponse> {
        let (name, vendor_version) = ("forty-lines.callboard.example".to_owned(), "1.0.0".to_owned());
        Ok(Response::new(GetPluginInfoResponse { name, vendor_version, ..Default::default() }))
    }

    async fn get_plugin_capabilities(
        &self,
        _: Request<GetPluginCapabilitiesRequest>,
    ) -> Answer<GetPluginCapabilitiesResponse> {
        Ok(Response::new(GetPluginCapabilitiesResponse::default()))
    }

    async fn probe(&self, _: Request<ProbeRequest>) -> Answer<ProbeResponse> {
        Ok(Response::new(ProbeResponse { ready: Some(true) }))
    }
}

#[tonic::async_trait]
impl Node for Plugin {
    async fn node_get_capabilities(
        &self,
        _: Request<NodeGetCapabilitiesRequest>,
    ) -> Answer<NodeGetCapabilitiesResponse> {
        Ok(Response::new(NodeGetCapabilitiesResponse::default()))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    serve(&std::env::var("CSI_ENDPOINT")?).await
}

pub(crate) async fn serve(endpoint: &str) -> Result<(), Box<dyn Error>> {
    let listener = UnixListener::bind(endpoint.trim_start_matches("unix://"))?;
    let plugin =
        Server::builder().add_service(IdentityServer::new(Plugin)).add_service(NodeServer::new(Plugin));
    Ok(plugin.serve_with_incoming(UnixListenerStream::new(listener)).await?)
}
