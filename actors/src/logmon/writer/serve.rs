//! The event loop of the log writer.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::fs::{fstat, inotify};
use rustix::io::Errno;

use super::host::HostEnd;
use super::{LOCK_FILE, SOCKET_FILE, is_removed};
use crate::logmon::disk::{Disk, Turned};
use crate::logmon::pipes::{HeldDirectory, PipeError};
use crate::logmon::protocol::{OpenLogs, Request, Said, VERSION};
use crate::logmon::sink::Sink;
use crate::logmon::stream::Stream;
use crate::logmon::{Collection, LogStream};
use crate::machine::Locked;

/// Event numbers other than those of streams and hosts, which begin after these.
const LISTENER: u64 = 0;
const TURNED: u64 = 1;
const REMOVED: u64 = 2;
const FIRST: u64 = 16;
const HOSTS_MAX: usize = 8;
const EVENTS_MAX: usize = 256;
/// The interval of checks for delayed streams and for tasks that are being closed.
const TICK: Duration = Duration::from_millis(100);
/// How long it stays without a host and without a pipe.
const IDLE_TIMEOUT: Duration = Duration::from_secs(5);
/// The limit of threads for file systems; further ones share these.
const DISKS_MAX: usize = 16;

#[derive(Debug)]
struct Task {
    open: OpenLogs,
    streams: [u64; 2],
    /// The host that closes it, and the deadline.
    closing: Option<(u64, Duration)>,
}

#[derive(Debug)]
pub(super) struct Writer {
    began: Instant,
    directory: PathBuf,
    lock: Locked,
    /// Wakes the loop when the lock file is unlinked.
    removal: Option<OwnedFd>,
    listener: UnixListener,
    events: OwnedFd,
    nowhere: File,
    hosts: BTreeMap<u64, HostEnd>,
    tasks: BTreeMap<String, Task>,
    streams: BTreeMap<u64, (usize, Stream)>,
    /// By the device of their file system.
    disks: Vec<(u64, Disk)>,
    turned: (Sender<Turned>, Receiver<Turned>),
    wake: Arc<OwnedFd>,
    next: u64,
    idle_since: Option<Duration>,
    is_retiring: bool,
}

impl Writer {
    pub(super) fn new(directory: &Path, lock: Locked, listener: UnixListener) -> io::Result<Self> {
        let events = epoll::create(CreateFlags::CLOEXEC)?;
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        listen(&events, &listener, LISTENER, EventFlags::IN)?;
        listen(&events, &*wake, TURNED, EventFlags::IN)?;
        // Without the watch it ends when it is idle, or when its host asks for it.
        let removal = watch_removal(&directory.join(LOCK_FILE)).ok();
        if let Some(removal) = &removal {
            listen(&events, removal, REMOVED, EventFlags::IN)?;
        }
        Ok(Self {
            began: Instant::now(),
            directory: directory.to_owned(),
            lock,
            removal,
            listener,
            events,
            nowhere: OpenOptions::new().write(true).open("/dev/null")?,
            hosts: BTreeMap::new(),
            tasks: BTreeMap::new(),
            streams: BTreeMap::new(),
            disks: Vec::new(),
            turned: channel(),
            wake,
            next: FIRST,
            idle_since: Some(Duration::ZERO),
            is_retiring: false,
        })
    }

    pub(super) fn run(mut self) -> io::Result<()> {
        let mut events: Vec<Event> = Vec::with_capacity(EVENTS_MAX);
        while !self.is_over() {
            let timeout = self.timeout().and_then(|timeout| Timespec::try_from(timeout).ok());
            match epoll::wait(&self.events, spare_capacity(&mut events), timeout.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            for event in events.drain(..) {
                self.happened(event.data.u64())?;
            }
            self.tick();
        }
        // Under the lock, so it is not the socket of a later one. It may be gone with the directory.
        let _ = std::fs::remove_file(self.directory.join(SOCKET_FILE));
        Ok(())
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    fn is_over(&self) -> bool {
        let is_idle = self.idle_since.is_some_and(|since| self.now() - since >= IDLE_TIMEOUT);
        let is_busy = self.streams.values().any(|(_, stream)| stream.is_hindered());
        is_idle || is_removed(self.lock.file()) || (self.is_retiring && !is_busy)
    }

    fn timeout(&self) -> Option<Duration> {
        let is_hindered = self.streams.values().any(|(_, stream)| stream.is_hindered());
        let is_closing = self.tasks.values().any(|task| task.closing.is_some());
        if is_hindered || is_closing {
            return Some(TICK);
        }
        self.idle_since.map(|since| (since + IDLE_TIMEOUT).saturating_sub(self.now()))
    }

    fn happened(&mut self, number: u64) -> io::Result<()> {
        match number {
            LISTENER => self.accept(),
            TURNED => {
                let mut count = [0; 8];
                // It is a counter: all pending results are handled below.
                let _ = rustix::io::read(&*self.wake, &mut count);
                self.take_turned();
            }
            REMOVED => {
                let mut told = [0; 4_096];
                if let Some(removal) = &self.removal {
                    // Its meaning is checked after each round.
                    let _ = rustix::io::read(removal, &mut told);
                }
            }
            number if self.hosts.contains_key(&number) => self.hear(number),
            number => {
                let now = self.now();
                let Some((disk, stream)) = self.streams.get_mut(&number) else { return Ok(()) };
                let is_free = match self.disks.get(*disk) {
                    Some((_, disk)) => stream.readable(now, disk, &self.nowhere),
                    None => false,
                };
                if is_free {
                    rearm(&self.events, stream.pipe(), number);
                }
            }
        }
        Ok(())
    }

    fn accept(&mut self) {
        while let Ok((stream, _)) = self.listener.accept() {
            let Ok(host) = HostEnd::take(stream) else { continue };
            let number = self.number();
            if self.hosts.len() < HOSTS_MAX
                && listen(
                    &self.events,
                    host.stream(),
                    number,
                    EventFlags::IN | EventFlags::OUT | EventFlags::ET,
                )
                .is_ok()
            {
                self.hosts.insert(number, host);
                self.idle_since = None;
            }
        }
    }

    const fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn hear(&mut self, number: u64) {
        let Some(host) = self.hosts.get_mut(&number) else { return };
        let sent = if host.is_waiting() { host.send() } else { Ok(()) };
        match sent.and_then(|()| host.requests()) {
            Ok(requests) => requests.into_iter().for_each(|request| self.obey(number, request)),
            Err(_) => drop(self.hosts.remove(&number)),
        }
    }

    fn say(&mut self, number: u64, said: &Said) {
        // A host that has disconnected, or does not read, is dropped.
        if self.hosts.get_mut(&number).is_some_and(|host| host.say(said).is_err()) {
            self.hosts.remove(&number);
        }
    }

    fn obey(&mut self, host: u64, request: Request) {
        match request {
            Request::Hello { .. } => {
                let open = self.tasks.keys().cloned().collect();
                self.say(host, &Said::Welcome { version: VERSION, pid: std::process::id(), open });
                let status: Vec<_> = self.streams.values().map(|(_, stream)| stream.told().clone()).collect();
                for status in status.into_iter().filter(|status| status.fault.is_some() || status.dropped > 0)
                {
                    self.say(host, &Said::StreamStatus(status));
                }
            }
            Request::Open(open) => {
                let key = open.spec.key.clone();
                let said = match self.open(open) {
                    Ok(()) => Said::Opened { key },
                    Err(reason) => Said::Refused { key, reason },
                };
                self.say(host, &said);
            }
            Request::Close { key, limit_ms } => {
                let now = self.now();
                let Some(task) = self.tasks.get_mut(&key) else {
                    return self.say(host, &Said::Closed { key, left: [0, 0] });
                };
                task.closing = Some((host, now + Duration::from_millis(limit_ms)));
                for number in task.streams {
                    let Some((disk, stream)) = self.streams.get_mut(&number) else { continue };
                    if let Some((_, disk)) = self.disks.get(*disk) {
                        stream.close(now, disk, &self.nowhere);
                    }
                }
            }
            Request::Retire => self.is_retiring = true,
        }
    }

    fn open(&mut self, open: OpenLogs) -> Result<(), String> {
        open.spec.check().map_err(|error| error.to_string())?;
        let key = open.spec.key.clone();
        match self.tasks.get_mut(&key) {
            // It continues unchanged.
            Some(task) if task.open.pipes == open.pipes => {
                task.closing = None;
                return Ok(());
            }
            // The pipes are others: the former ones have no writers.
            Some(_) => self.let_go(&key),
            None => {}
        }
        let numbers = [self.number(), self.number()];
        for (place, which) in LogStream::ALL.into_iter().enumerate() {
            if let Err(error) = self.open_stream(&open, place, which, numbers[place]) {
                numbers.iter().for_each(|number| drop(self.streams.remove(number)));
                return Err(error.to_string());
            }
        }
        self.tasks.insert(key, Task { open, streams: numbers, closing: None });
        self.idle_since = None;
        Ok(())
    }

    fn open_stream(
        &mut self,
        open: &OpenLogs,
        place: usize,
        which: LogStream,
        number: u64,
    ) -> Result<(), PipeError> {
        let OpenLogs { spec, pipes } = open;
        let directory = HeldDirectory::open(&spec.root, &spec.directory)?;
        let (pipe, _) = directory.open_pipe(&spec.pipe_name(which), Some(pipes[place]))?;
        let pipe = Arc::new(pipe);
        let path = directory.path.clone();
        let failed = |doing| move |source: io::Error| PipeError::System { path, doing, source };
        let device = fstat(&directory.descriptor).map(|seen| seen.st_dev).unwrap_or_default();
        let disk = self.disk(device).map_err(failed("start a thread for"))?;
        let sink = match spec.collection {
            Collection::Keep(retention) => {
                let ours = HeldDirectory::open(&self.directory, Path::new(""))?;
                let (stage, _) = ours.open_pipe(&spec.stage_name(which), None)?;
                Some(Sink::new(Arc::clone(&pipe), stage, directory, spec.file_prefix(which), retention))
            }
            Collection::Discard => None,
        };
        let mut stream = Stream::new(number, &spec.key, which, pipe, sink);
        let path = spec.paths().stdout;
        let failed = |source: io::Error| PipeError::System { path, doing: "listen to", source };
        listen(&self.events, stream.pipe(), number, EventFlags::IN | EventFlags::ONESHOT).map_err(failed)?;
        // The stage may have content, which causes no event.
        stream.begin_turn(self.began.elapsed(), &self.disks[disk].1);
        self.streams.insert(number, (disk, stream));
        Ok(())
    }

    fn disk(&mut self, device: u64) -> io::Result<usize> {
        if let Some(place) = self.disks.iter().position(|(known, _)| *known == device) {
            return Ok(place);
        }
        if self.disks.len() >= DISKS_MAX {
            return Ok(usize::try_from(device % DISKS_MAX as u64).unwrap_or_default());
        }
        let disk = Disk::start(self.began, self.turned.0.clone(), Arc::clone(&self.wake))?;
        self.disks.push((device, disk));
        Ok(self.disks.len() - 1)
    }

    fn take_turned(&mut self) {
        while let Ok(turned) = self.turned.1.try_recv() {
            let (number, now) = (turned.stream, self.now());
            // A late result of a closed stream is ignored.
            let Some((disk, stream)) = self.streams.get_mut(&number) else { continue };
            let Some((_, disk)) = self.disks.get(*disk) else { continue };
            if stream.turned(now, turned, disk) {
                rearm(&self.events, stream.pipe(), number);
            }
        }
    }

    /// Handles what is due: delayed streams, tasks that are being closed, reports for hosts, and whether to end.
    fn tick(&mut self) {
        let now = self.now();
        let mut news = Vec::new();
        for (disk, stream) in self.streams.values_mut() {
            if stream.is_hindered()
                && let Some((_, disk)) = self.disks.get(*disk)
            {
                stream.tick(now, disk, &self.nowhere);
            }
            news.extend(stream.news());
        }
        let hosts: Vec<u64> = self.hosts.keys().copied().collect();
        for status in news {
            let said = Said::StreamStatus(status);
            hosts.iter().for_each(|host| self.say(*host, &said));
        }
        self.close_tasks(now);
        let is_idle = self.hosts.is_empty() && self.tasks.is_empty();
        self.idle_since = is_idle.then(|| self.idle_since.unwrap_or(now));
    }

    fn close_tasks(&mut self, now: Duration) {
        let mut closed = Vec::new();
        for (key, task) in &self.tasks {
            let Some((host, until)) = task.closing else { continue };
            let left =
                |number| self.streams.get(&number).map_or(Some(0), |(_, stream)| stream.closed(now >= until));
            if let [Some(stdout), Some(stderr)] = task.streams.map(left) {
                closed.push((host, key.clone(), [stdout, stderr]));
            }
        }
        for (host, key, left) in closed {
            self.let_go(&key);
            self.say(host, &Said::Closed { key, left });
        }
    }

    /// Closes the pipes of a task. A sink that is with its disk is dropped when that returns it.
    fn let_go(&mut self, key: &str) {
        let Some(task) = self.tasks.remove(key) else { return };
        for number in task.streams {
            if let Some((_, stream)) = self.streams.remove(&number) {
                let _ = epoll::delete(&self.events, stream.pipe());
            }
        }
    }
}

fn listen(events: &OwnedFd, source: impl AsFd, number: u64, flags: EventFlags) -> io::Result<()> {
    Ok(epoll::add(events, source, EventData::new_u64(number), flags)?)
}

/// Polls a pipe again; present content wakes the loop too.
fn rearm(events: &OwnedFd, pipe: &OwnedFd, number: u64) {
    let flags = EventFlags::IN | EventFlags::ONESHOT;
    epoll::modify(events, pipe, EventData::new_u64(number), flags).expect("it was added before");
}

/// An inotify descriptor that becomes readable when the file is unlinked.
fn watch_removal(file: &Path) -> io::Result<OwnedFd> {
    let watch = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)?;
    inotify::add_watch(&watch, file, inotify::WatchFlags::ATTRIB | inotify::WatchFlags::DELETE_SELF)?;
    Ok(watch)
}
