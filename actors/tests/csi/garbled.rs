//! A plugin with an invalid answer to every identity call: a text that is not Unicode.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::pin::Pin;
use std::task::{Context, Poll};

use callboard_proto::csi::v1::GetPluginInfoRequest;
use tokio::net::UnixListener;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::body::Body;
use tonic::codegen::{Service, http};
use tonic::server::{Grpc, NamedService};
use tonic::transport::Server;
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;

/// Looks like an answer to `GetPluginInfo`, except that its name is of bytes.
#[derive(Clone, PartialEq, prost::Message)]
struct Answer {
    #[prost(bytes = "vec", tag = "1")]
    name: Vec<u8>,
}

pub(crate) fn serve(listener: UnixListener) {
    let served =
        Server::builder().add_service(Garbled).serve_with_incoming(UnixListenerStream::new(listener));
    tokio::spawn(served);
}

#[derive(Clone)]
struct Garbled;

impl NamedService for Garbled {
    const NAME: &'static str = "csi.v1.Identity";
}

impl Service<Request<GetPluginInfoRequest>> for Garbled {
    type Response = Response<Answer>;
    type Error = Status;
    type Future = Ready<Result<Response<Answer>, Status>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<GetPluginInfoRequest>) -> Self::Future {
        ready(Ok(Response::new(Answer { name: vec![0xff, 0xfe, 0xfd] })))
    }
}

impl Service<http::Request<Body>> for Garbled {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(async move { Ok(Grpc::new(ProstCodec::default()).unary(Garbled, request).await) })
    }
}
