//! Accepts connections to the admin socket. There is always room for another connection: at the limit, the connection that has been quiet
//! for longest is closed. So no client that keeps its connection open can lock an operator out or exhaust the host's descriptors.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_util::Stream;
use futures_util::stream::unfold;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tonic::transport::server::{Connected, UdsConnectInfo};
use tonic::{Request, Status};

/// The maximum number of open connections.
pub(super) const CONNECTIONS_MAX: usize = 64;
/// How long a connection may be quiet without a long call.
const QUIET_MAX: Duration = Duration::from_secs(600);
/// The interval at which quiet connections are looked for.
const LOOK_PAUSE: Duration = Duration::from_secs(30);
/// The pause after a failed accept, for example without free descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A connection, as its calls and the limit see it.
#[derive(Debug, Clone)]
pub(super) struct Peer {
    /// The client's identity as the kernel reports it.
    pub(super) credentials: UdsConnectInfo,
    place: Arc<Place>,
}

impl Peer {
    /// The user of the client, if the kernel reports it.
    pub(super) fn user(&self) -> Option<u32> {
        self.credentials.peer_cred.map(|peer| peer.uid())
    }

    /// Begins a call that may take long without output: its connection is not closed for being quiet until the result is dropped.
    pub(super) fn stay(&self) -> Staying {
        self.place.state().staying += 1;
        Staying(Arc::clone(&self.place))
    }
}

/// The user that sends a request, if the kernel reports it.
pub(super) fn user_of<T>(request: &Request<T>) -> Option<u32> {
    request.extensions().get::<Peer>().and_then(Peer::user)
}

/// Admits a client only if the kernel reports it as our own user or as root.
pub(super) fn check_peer(request: Request<()>) -> Result<Request<()>, Status> {
    let ours = rustix::process::geteuid().as_raw();
    match user_of(&request) {
        Some(uid) if uid == ours || uid == 0 => Ok(request),
        Some(uid) => {
            tracing::warn!(uid, "refused a peer on the admin socket");
            let text = format!("this host answers user {ours} and root, not user {uid}");
            Err(Status::permission_denied(text))
        }
        None => Err(Status::permission_denied("the kernel does not say who asks")),
    }
}

/// A long call of a connection.
#[derive(Debug)]
pub(super) struct Staying(Arc<Place>);

impl Drop for Staying {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.staying -= 1;
        state.active = Instant::now();
    }
}

#[derive(Debug)]
struct Place(Mutex<State>);

#[derive(Debug)]
struct State {
    active: Instant,
    staying: usize,
    is_closed: bool,
    reader: Option<Waker>,
}

impl Place {
    fn state(&self) -> MutexGuard<'_, State> {
        // No code panics while it holds this lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When the connection became quiet. `None` for a connection with a long call, and for a closed connection.
    fn quiet_since(&self) -> Option<Instant> {
        let state = self.state();
        (state.staying == 0 && !state.is_closed).then_some(state.active)
    }

    fn close(&self) {
        let reader = {
            let mut state = self.state();
            state.is_closed = true;
            state.reader.take()
        };
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}

/// The connections that are open.
#[derive(Debug, Default)]
struct Places(Vec<Weak<Place>>);

impl Places {
    fn open_ones(&mut self) -> Vec<Arc<Place>> {
        self.0.retain(|place| place.strong_count() > 0);
        self.0.iter().filter_map(Weak::upgrade).filter(|place| !place.state().is_closed).collect()
    }

    /// Makes room for another connection, if necessary by closing the connection that has been quiet for longest.
    fn has_room(&mut self) -> bool {
        let open = self.open_ones();
        if open.len() < CONNECTIONS_MAX {
            return true;
        }
        let quiet = open.iter().filter_map(|place| Some((place.quiet_since()?, place)));
        let Some((_, place)) = quiet.min_by_key(|(since, _)| *since) else { return false };
        tracing::info!(
            connections = open.len(),
            "closing the connection to the admin socket that has been idle for longest"
        );
        place.close();
        true
    }

    fn take(&mut self) -> Arc<Place> {
        let state = State { active: Instant::now(), staying: 0, is_closed: false, reader: None };
        let place = Arc::new(Place(Mutex::new(state)));
        self.0.push(Arc::downgrade(&place));
        place
    }

    fn close_quiet_ones(&mut self) {
        let is_over = |since: Instant| since.elapsed() >= QUIET_MAX;
        self.open_ones()
            .iter()
            .filter(|place| place.quiet_since().is_some_and(is_over))
            .for_each(|place| place.close());
    }
}

/// A connection, counted until it is dropped.
#[derive(Debug)]
pub(super) struct Counted {
    stream: UnixStream,
    place: Arc<Place>,
}

/// Accepts connections. A connection that cannot be accepted ends nothing.
pub(super) fn connections(listener: UnixListener) -> impl Stream<Item = io::Result<Counted>> {
    let mut looks = interval(LOOK_PAUSE);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    unfold((listener, Places::default(), looks), |(listener, mut places, mut looks)| async {
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = looks.tick() => {
                    places.close_quiet_ones();
                    continue;
                }
            };
            match accepted {
                Ok((stream, _)) => {
                    while !places.has_room() {
                        sleep(ACCEPT_PAUSE).await;
                    }
                    let place = places.take();
                    return Some((Ok(Counted { stream, place }), (listener, places, looks)));
                }
                Err(error) => {
                    tracing::warn!(error = %error, "cannot accept a connection on the admin socket");
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    })
}

impl Connected for Counted {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Peer {
        Peer { credentials: self.stream.connect_info(), place: Arc::clone(&self.place) }
    }
}

impl Counted {
    fn moved<T>(&self, result: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if matches!(result, Poll::Ready(Ok(_))) {
            self.place.state().active = Instant::now();
        }
        result
    }
}

impl AsyncRead for Counted {
    /// A closed connection has reached its end.
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        {
            let mut state = self.place.state();
            if state.is_closed {
                return Poll::Ready(Ok(()));
            }
            state.reader = Some(context.waker().clone());
        }
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.moved(read)
    }
}

impl AsyncWrite for Counted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.moved(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.moved(written)
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

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::StreamExt;
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_quiet_connection_makes_room_and_one_with_a_long_call_does_not() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("a.sock");
        let mut connections = pin!(connections(UnixListener::bind(&path).expect("a socket")));
        let mut clients = Vec::new();
        let mut served = Vec::new();
        for _ in 0..CONNECTIONS_MAX {
            clients.push(UnixStream::connect(&path).await.expect("it listens"));
            served.push(connections.next().await.expect("it goes on").expect("a connection"));
            sleep(Duration::from_millis(1)).await;
        }
        let staying = served[0].connect_info().stay();
        clients.push(UnixStream::connect(&path).await.expect("it listens"));
        let _one_more = connections.next().await.expect("it goes on").expect("there is room");
        assert_eq!(served[1].read(&mut [0]).await.expect("it is at its end"), 0);
        assert!(served[0].place.quiet_since().is_none() && served[2].place.quiet_since().is_some());
        drop(staying);
        assert!(served[0].place.quiet_since().is_some_and(|since| since.elapsed() < LOOK_PAUSE));
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_is_quiet_for_ten_minutes_is_closed() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("a.sock");
        let mut connections = pin!(connections(UnixListener::bind(&path).expect("a socket")));
        let _client = UnixStream::connect(&path).await.expect("it listens");
        let mut served = connections.next().await.expect("it goes on").expect("a connection");
        let (began, mut byte) = (Instant::now(), [0]);
        tokio::select! {
            read = served.read(&mut byte) => assert_eq!(read.expect("it is at its end"), 0),
            _ = connections.next() => panic!("there is no other connection"),
        }
        assert!(began.elapsed() >= QUIET_MAX && began.elapsed() < QUIET_MAX + 2 * LOOK_PAUSE);
    }
}
