//! A connection that a plugin has accepted.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::{Stream, StreamExt};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{UnixListener, UnixStream};
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::server::{Connected, UdsConnectInfo};

use super::authority::AuthorityRewriter;

/// A connection whose client may send any `:authority` (D115), and the information that its calls get about it.
#[derive(Debug)]
pub(crate) struct Accepted<Info = UdsConnectInfo> {
    stream: UnixStream,
    mender: AuthorityRewriter,
    info: Info,
}

impl<Info> Accepted<Info> {
    /// Serves this stream.
    pub(crate) fn new(stream: UnixStream, info: Info) -> Self {
        Self { stream, mender: AuthorityRewriter::default(), info }
    }
}

/// Accepts connections; `on_connection` receives each of them first.
pub(crate) fn accepted(
    listener: UnixListener,
    on_connection: Option<fn(&UnixStream)>,
) -> impl Stream<Item = io::Result<Accepted>> {
    let begin = move |stream: UnixStream| {
        if let Some(see) = on_connection {
            see(&stream);
        }
        let info = stream.connect_info();
        Accepted::new(stream, info)
    };
    UnixListenerStream::new(listener).map(move |stream| stream.map(begin))
}

impl<Info: Clone + Send + Sync + 'static> Connected for Accepted<Info> {
    type ConnectInfo = Info;

    fn connect_info(&self) -> Info {
        self.info.clone()
    }
}

impl<Info: Unpin> AsyncRead for Accepted<Info> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buffer.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(context, buffer);
        this.mender.mend(&mut buffer.filled_mut()[before..]);
        read
    }
}

impl<Info: Unpin> AsyncWrite for Accepted<Info> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
