//! The channel of a lease: each call is counted, and can be cut.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body as HttpBody, Bytes, Frame, Incoming, SizeHint};
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::codegen::http::{Request, Response};

use super::clients::Token;
use super::connections::Leased;
use super::error::LeaseError;
use super::gate::{ConnectionEnd, NotAdmitted, Pass};
use crate::rpc::ChannelError;
use crate::sync::Arc;

/// A channel to one generation of a plugin, for any generated tonic client. Cheap to clone; clones belong to the same lease.
#[derive(Debug, Clone)]
pub struct LeasedChannel {
    token: Arc<Token>,
}

impl LeasedChannel {
    pub(super) const fn new(token: Arc<Token>) -> Self {
        Self { token }
    }
}

impl Service<Request<Body>> for LeasedChannel {
    type Response = Response<LeasedBody>;
    type Error = LeaseError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    /// Always ready: each call itself reports a full or closed connection.
    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), LeaseError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let leased = Arc::clone(&self.token.leased);
        Box::pin(async move {
            let pass = leased.gate.enter().map_err(|refused| not_admitted(&leased, refused))?;
            let mut sent = leased.channel.clone().call(request);
            let response = poll_fn(|context| {
                if let Poll::Ready(end) = pass.poll_cut(context) {
                    return Poll::Ready(Err(cut(&leased, end)));
                }
                sent.as_mut().poll(context).map_err(|error| broken(&leased, error))
            });
            Ok(response.await?.map(|body| LeasedBody { body, pass, leased }))
        })
    }
}

/// The body of an answer. Its call is in flight until the body has been read or dropped.
#[derive(Debug)]
pub struct LeasedBody {
    body: Incoming,
    pass: Pass<ConnectionEnd>,
    leased: Arc<Leased>,
}

impl HttpBody for LeasedBody {
    type Data = Bytes;
    type Error = LeaseError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, LeaseError>>> {
        // Polled first, since a stream may always have more data.
        if let Poll::Ready(end) = self.pass.poll_cut(context) {
            return Poll::Ready(Some(Err(cut(&self.leased, end))));
        }
        let frame = Pin::new(&mut self.body).poll_frame(context);
        let failed = |error| broken_off(&self.leased, ChannelError::from(error));
        frame.map(|frame| frame.map(|frame| frame.map_err(failed)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

fn ended(leased: &Leased, end: ConnectionEnd) -> LeaseError {
    let Leased { plugin, allocation, generation, .. } = leased;
    let end = leased.end(end);
    LeaseError::Ended { plugin: plugin.clone(), allocation: allocation.clone(), generation: *generation, end }
}

fn cut(leased: &Leased, end: ConnectionEnd) -> LeaseError {
    let Leased { plugin, allocation, generation, .. } = leased;
    let end = leased.end(end);
    LeaseError::Cut { plugin: plugin.clone(), allocation: allocation.clone(), generation: *generation, end }
}

fn broken_off(leased: &Leased, error: ChannelError) -> LeaseError {
    // A connection that was closed before ended for that reason, and its plugin may be gone meanwhile.
    let end = leased.end(leased.gate.end().unwrap_or(ConnectionEnd::Lost));
    LeaseError::Broken { error, end }
}

fn not_admitted(leased: &Leased, refused: NotAdmitted<ConnectionEnd>) -> LeaseError {
    match refused {
        NotAdmitted::Closed(end) => ended(leased, end),
        NotAdmitted::Full(in_flight) => LeaseError::TooMany { plugin: leased.plugin.clone(), in_flight },
    }
}

/// The connection had ended before the call, which the first call notices, or broke during it.
fn broken(leased: &Leased, error: ChannelError) -> LeaseError {
    match error {
        ChannelError::Ended => ended(leased, ConnectionEnd::Lost),
        broken @ ChannelError::Broken(_) => broken_off(leased, broken),
    }
}
