//! Connections as they come to the admin socket: so many at once and no more, so that no client that forgets to leave takes
//! the host's descriptors.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::Stream;
use futures_util::stream::unfold;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;
use tonic::transport::server::{Connected, UdsConnectInfo};

/// How many connections there may be at once; more wait in the kernel's queue.
pub(super) const CONNECTIONS_MAX: usize = 64;
/// How long to wait when no connection can be taken, for want of descriptors for instance.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A connection, counted until it is dropped.
#[derive(Debug)]
pub(super) struct Counted {
    stream: UnixStream,
    _permit: OwnedSemaphorePermit,
}

/// Connections as they come. One that cannot be taken ends nothing.
pub(super) fn connections(listener: UnixListener) -> impl Stream<Item = io::Result<Counted>> {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    unfold((listener, places), |(listener, places)| async {
        let permit = Arc::clone(&places).acquire_owned().await.ok()?;
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    return Some((Ok(Counted { stream, _permit: permit }), (listener, places)));
                }
                Err(error) => {
                    tracing::warn!(error = %error, "cannot take a connection on the admin socket");
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    })
}

impl Connected for Counted {
    type ConnectInfo = UdsConnectInfo;

    fn connect_info(&self) -> UdsConnectInfo {
        self.stream.connect_info()
    }
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Counted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
