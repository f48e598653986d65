//! Notifies readers when a file has grown, by inotify: files without writes cost nothing (SCL-06).

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::rc::{Rc, Weak};
use std::time::Duration;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use tokio::io::unix::AsyncFd;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::readiness::watch;

/// The polling interval if the kernel has no free inotify watch.
const FALLBACK_PAUSE: Duration = Duration::from_millis(200);
const BUFFER_BYTES: usize = 4_096;

/// Watches files for all readers on this arbiter, with one inotify instance: the system limits them per user.
#[derive(Debug)]
pub struct Watcher {
    held: Option<Held>,
}

#[derive(Debug)]
struct Held {
    descriptor: Rc<AsyncFd<OwnedFd>>,
    watched: Watched,
    task: AbortHandle,
}

type Watched = Rc<RefCell<HashMap<i32, Weak<Notify>>>>;

impl Watcher {
    /// Starts to watch. Without a free inotify instance, files are polled instead.
    ///
    /// # Panics
    /// Outside of an arbiter.
    #[must_use]
    pub fn start() -> Rc<Self> {
        let held = begin().inspect_err(|error| {
            tracing::warn!(error = %error, "cannot watch files; polling the outputs of plugins");
        });
        Rc::new(Self { held: held.ok() })
    }

    pub(super) fn watch(self: &Rc<Self>, path: &Path) -> Watch {
        let grown = Rc::new(Notify::new());
        let number = self.held.as_ref().and_then(|held| {
            let added = inotify::add_watch(&*held.descriptor, path, WatchFlags::MODIFY);
            let number = added.inspect_err(|error| {
                tracing::warn!(path = %path.display(), error = %error, "cannot watch a file");
            });
            let number = number.ok()?;
            held.watched.borrow_mut().insert(number, Rc::downgrade(&grown));
            Some(number)
        });
        Watch { watcher: Rc::clone(self), number, grown }
    }
}

fn begin() -> io::Result<Held> {
    let descriptor = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
    let descriptor = Rc::new(watch(descriptor)?);
    let watched = Watched::default();
    let (reading, waking) = (Rc::clone(&descriptor), Rc::clone(&watched));
    let task = actix_rt::spawn(async move {
        while let Ok(mut ready) = reading.readable().await {
            // It is drained, so that the next event wakes us again.
            let _ = ready.try_io(|descriptor| wake(descriptor.get_ref(), &waking));
        }
    });
    Ok(Held { descriptor, watched, task: task.abort_handle() })
}

fn wake(descriptor: &OwnedFd, watched: &Watched) -> io::Result<()> {
    let mut buffer = [MaybeUninit::uninit(); BUFFER_BYTES];
    let mut reader = inotify::Reader::new(descriptor, &mut buffer);
    loop {
        let event = reader.next()?;
        let watched = watched.borrow();
        // After an overflow of the event queue, all readers are woken.
        let is_overflow = event.events().contains(ReadFlags::QUEUE_OVERFLOW);
        let meant = watched.iter().filter(|(number, _)| is_overflow || **number == event.wd());
        meant.filter_map(|(_, grown)| grown.upgrade()).for_each(|grown| grown.notify_one());
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        if let Some(held) = &self.held {
            held.task.abort();
        }
    }
}

#[derive(Debug)]
pub(super) struct Watch {
    watcher: Rc<Watcher>,
    number: Option<i32>,
    grown: Rc<Notify>,
}

impl Watch {
    /// Waits until it may have grown since the last return. May return spuriously.
    pub(super) async fn grown(&self) {
        match self.number {
            Some(_) => self.grown.notified().await,
            None => {
                let _ = tokio::time::timeout(FALLBACK_PAUSE, self.grown.notified()).await;
            }
        }
    }

    pub(super) fn wake(&self) {
        self.grown.notify_one();
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let (Some(number), Some(held)) = (self.number, &self.watcher.held) else { return };
        held.watched.borrow_mut().remove(&number);
        // The kernel has removed it itself if the file is gone.
        let _ = inotify::remove_watch(&*held.descriptor, number);
    }
}
