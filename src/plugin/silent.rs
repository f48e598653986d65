//! A health service that never answers, to test the host's reaction.

use std::future::pending;
use std::pin::Pin;

use futures_util::Stream;
use tonic::{Request, Response, Status};
use tonic_health::pb::health_server::{Health, HealthServer};
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

/// Never answers a health check.
#[derive(Debug)]
pub(super) struct SilentHealth;

impl SilentHealth {
    pub(super) fn server() -> HealthServer<Self> {
        HealthServer::new(Self)
    }
}

#[tonic::async_trait]
impl Health for SilentHealth {
    type WatchStream = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

    async fn check(&self, _: Request<HealthCheckRequest>) -> Result<Response<HealthCheckResponse>, Status> {
        pending().await
    }

    async fn watch(&self, _: Request<HealthCheckRequest>) -> Result<Response<Self::WatchStream>, Status> {
        pending().await
    }
}
