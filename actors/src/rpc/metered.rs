//! A stream to a plugin that counts the plugin's frames.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use super::Cause;
use super::flood::{Budget, Flood};

/// The state that the stream of a connection and its channel share.
#[derive(Debug, Clone)]
pub(super) struct Meter(Arc<Mutex<Metering>>);

#[derive(Debug)]
struct Metering {
    budget: Budget,
    began: Instant,
    flood: Option<Flood>,
}

impl Meter {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(Metering { budget: Budget::default(), began: Instant::now(), flood: None })))
    }

    fn metering(&self) -> MutexGuard<'_, Metering> {
        // Nothing panics while it is locked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the growth for a request that is about to be sent.
    pub(super) fn asked(&self) {
        self.metering().budget.asked();
    }

    /// Why the plugin was cut off, if it was.
    pub(super) fn flood(&self) -> Option<Flood> {
        self.metering().flood
    }

    /// The same reason, as the cause of a failed call.
    pub(super) fn cut_off(&self) -> Option<Cause> {
        self.flood().map(|flood| Cause::CutOff { detail: flood.to_string() })
    }

    fn received(&self, bytes: &[u8]) -> io::Result<()> {
        let mut metering = self.metering();
        let age = metering.began.elapsed();
        metering.budget.received(bytes, age).map_err(|flood| {
            metering.flood = Some(flood);
            io::Error::other(flood)
        })
    }
}

/// The stream: reading from it fails once the plugin has exceeded its budget.
#[derive(Debug)]
pub(super) struct Metered<S> {
    stream: S,
    meter: Meter,
}

impl<S> Metered<S> {
    pub(super) const fn new(stream: S, meter: Meter) -> Self {
        Self { stream, meter }
    }

    /// Counts the first `length` of these bytes as sent.
    fn sent<'a>(&self, mut length: usize, slices: impl Iterator<Item = &'a [u8]>) {
        let mut metering = self.meter.metering();
        for slice in slices {
            let sent = length.min(slice.len());
            metering.budget.sent(&slice[..sent]);
            length -= sent;
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        Poll::Ready(self.meter.received(&buffer.filled()[before..]))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(context, bytes))?;
        self.sent(written, [bytes].into_iter());
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(context, slices))?;
        self.sent(written, slices.iter().map(|slice| &**slice));
        Poll::Ready(Ok(written))
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
