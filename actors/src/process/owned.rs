//! A process that is ours: watched, signalled and killed through file descriptors, which rules out PID reuse, and reaped.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitIdStatus, kill_process_group, pidfd_open,
    pidfd_send_signal, test_kill_process_group, waitid,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::{sleep, timeout};

use super::control_group::ControlGroup;
use super::look::{self, Members};
use super::readiness::watch;
use super::{Exit, Identity, ProcessTag, Reach, Seen};

/// The limit of search-and-kill rounds in one go.
const ROUNDS_MAX: u32 = 100;
/// The timeout for the end of a killed process before the next search.
const DEATH_TIMEOUT: Duration = Duration::from_millis(250);
/// The pause between two checks if there is no file descriptor to wait for.
const PAUSE: Duration = Duration::from_millis(2);

/// A process that we own since its spawn, or since it was proven to be ours.
#[derive(Debug)]
pub(super) struct Owned {
    pid: Pid,
    tag: ProcessTag,
    reach: Reach,
    descriptor: Rc<AsyncFd<OwnedFd>>,
    group: Option<ControlGroup>,
    /// Whether it is our child, so that the kernel keeps its exit status until we reap it.
    is_child: bool,
    /// Whether dropping this kills it. That holds for an unfinished launch (PRC-02); a ready one is found by its record.
    is_ended_on_loss: bool,
    /// Whether it has ended and, if it was a child, was reaped: its PID may be reused from then on.
    is_over: bool,
}

impl Owned {
    /// Takes over a child that was just spawned and is not reaped.
    ///
    /// # Errors
    /// When the system cannot open a file descriptor. The process has been killed and reaped then.
    pub(super) fn child(pid: Pid, tag: ProcessTag, reach: Reach) -> io::Result<Self> {
        let watched = pidfd_open(pid, PidfdFlags::empty()).map_err(io::Error::from).and_then(watch);
        let descriptor = watched.inspect_err(|_| end_unwatched(pid))?;
        let descriptor = Rc::new(descriptor);
        let (is_child, is_ended_on_loss, is_over) = (true, true, false);
        Ok(Self { pid, tag, reach, descriptor, group: None, is_child, is_ended_on_loss, is_over })
    }

    /// Opens the process that has this PID now, to verify it afterwards. It must not be signalled before it is proven ours.
    pub(super) fn candidate(pid: u32, tag: ProcessTag, reach: Reach) -> Option<Self> {
        let pid = look::number(pid)?;
        let descriptor = Rc::new(watch(pidfd_open(pid, PidfdFlags::empty()).ok()?).ok()?);
        let is_child = waitid(WaitId::PidFd(descriptor.get_ref().as_fd()), look_only()).is_ok();
        let (is_ended_on_loss, is_over) = (false, false);
        Some(Self { pid, tag, reach, descriptor, group: None, is_child, is_ended_on_loss, is_over })
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    pub(super) const fn is_child(&self) -> bool {
        self.is_child
    }

    pub(super) fn contain(&mut self, group: Option<ControlGroup>) {
        self.group = group;
    }

    /// Its identity. The program is included only if it is `settled`: the started program may be a wrapper.
    pub(super) fn identify(&self, settled: bool) -> io::Result<Identity> {
        let identity = look::identify(self.pid())?;
        Ok(Identity { executable: identity.executable.filter(|_| settled), ..identity })
    }

    /// From now on dropping this does not kill it: its record finds it.
    pub(super) const fn leave_on_loss(&mut self) {
        self.is_ended_on_loss = false;
    }

    /// A future of its exit. A child stays a zombie until it is cleared, so that its PID cannot be reused.
    pub(super) fn ended(&self) -> impl Future<Output = Exit> + 'static {
        let (descriptor, is_child) = (Rc::clone(&self.descriptor), self.is_child);
        async move {
            // A pidfd becomes readable when the process ends, and stays so.
            let readable = descriptor.ready(Interest::READABLE).await.map(drop);
            match readable {
                Ok(()) if is_child => read_exit(&descriptor),
                Ok(()) => Exit::Unknown { reason: "an earlier run of the host started it".to_owned() },
                Err(error) => Exit::Unknown { reason: format!("it cannot be watched: {error}") },
            }
        }
    }

    /// Sends a signal to its process group: for a child at once, for an adopted one to its members in the future.
    pub(super) fn signal(&self, signal: Signal) -> impl Future<Output = ()> + use<> {
        let (pid, tag, is_known_to_kernel) = (self.pid(), self.tag, self.signal_itself(signal));
        async move {
            let members =
                if is_known_to_kernel { Members::default() } else { marked_members(pid, tag).await };
            for member in members.tagged.iter().filter(|member| member.pid != pid) {
                look::signal(member, signal);
            }
        }
    }

    /// Sends a signal to it, and to its process group if that is surely ours. Returns whether the group was included.
    fn signal_itself(&self, signal: Signal) -> bool {
        if self.is_child && !self.is_over {
            // The process group is ours as long as its leader is not reaped.
            if let Err(error) = kill_process_group(self.pid, signal) {
                tracing::debug!(pid = self.pid(), signal = signal.as_raw(), error = %error, "cannot signal a process group");
            }
            return true;
        }
        // It may have ended already.
        let _ = pidfd_send_signal(&*self.descriptor, signal);
        false
    }

    /// Kills everything that must end with it; for an adopted process, its members in the returned future.
    pub(super) fn kill(&self) -> impl Future<Output = ()> + use<> {
        self.kill_contained();
        self.signal(Signal::KILL)
    }

    fn kill_contained(&self) {
        if let (Reach::Everything, Some(group)) = (self.reach, &self.group)
            && let Err(error) = group.kill()
        {
            tracing::warn!(path = %group.path().display(), error = %error, "cannot kill a control group");
        }
    }

    /// Ends the leftovers of an ended process, reaps it, and repeats until nothing is left. Returns how many do not end.
    pub(super) async fn clear(&mut self) -> usize {
        // The rounds find the members of its group.
        self.signal_itself(Signal::KILL);
        self.kill_contained();
        self.reap();
        for _ in 0..ROUNDS_MAX {
            let left = self.left().await;
            if left.is_empty() {
                if let Some(group) = self.group.take() {
                    removed(&group).await;
                }
                return 0;
            }
            await_deaths(&left).await;
        }
        self.left().await.len()
    }

    fn reap(&mut self) {
        if !self.is_child || self.is_over {
            self.is_over = true;
            return;
        }
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
        if let Err(error) = waitid(WaitId::PidFd(self.descriptor.get_ref().as_fd()), options)
            && error != Errno::CHILD
        {
            tracing::error!(pid = self.pid(), error = %error, "cannot reap a process");
        }
        self.is_over = true;
    }

    /// Kills the leftovers once more, and returns them.
    async fn left(&self) -> Vec<Seen> {
        let Members { tagged: mut left, unknown } = if test_kill_process_group(self.pid) == Err(Errno::SRCH) {
            Members::default()
        } else {
            marked_members(self.pid(), self.tag).await
        };
        if self.reach == Reach::Everything {
            left.extend(tagged(self.tag).await.into_iter().filter(|seen| seen.pid != self.pid()));
            let contained = self.group.as_ref().and_then(|group| group.members().ok()).unwrap_or_default();
            left.extend(contained.into_iter().filter_map(look::look_at).filter(|seen| !seen.is_zombie));
        }
        for seen in &left {
            look::signal(seen, Signal::KILL);
        }
        left.extend(unknown);
        left
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        if self.is_over || !self.is_ended_on_loss {
            return;
        }
        // It is a child, so no search is needed.
        self.signal_itself(Signal::KILL);
        self.kill_contained();
        // Its owner is being dropped, so only a blocking wait is possible.
        if let Ok(descriptor) = self.descriptor.get_ref().try_clone() {
            let (reaper, group) =
                (std::thread::Builder::new().name("process reaper".to_owned()), self.group.take());
            let _ = reaper.spawn(move || {
                let _ = waitid(WaitId::PidFd(descriptor.as_fd()), WaitIdOptions::EXITED);
                // The cgroup is removed after its members.
                drop(group);
            });
        }
    }
}

/// Ends the leftovers of a process that has ended or was never owned: those that are `proven` to be ours; the members of its
/// former group that have its tag; and with [`Reach::Everything`], all processes with the tag. Processes of another owner
/// are left alone. Returns the number of those that do not end.
pub(super) async fn end_left(
    proven: &[Seen],
    (tag, owner): (ProcessTag, &str),
    group: Option<u32>,
    reach: Reach,
    contained: Option<ControlGroup>,
) -> usize {
    let mut left = Vec::new();
    for _ in 0..ROUNDS_MAX {
        if let Some(Err(error)) = contained.as_ref().map(ControlGroup::kill) {
            tracing::debug!(error = %error, "cannot kill a control group of an earlier run");
        }
        left = proven.iter().filter(|seen| is_alive(seen)).cloned().collect();
        let mut unknown = Vec::new();
        if let Some(group) = group {
            let members = marked_members(group, tag).await;
            left.extend(members.tagged);
            unknown = members.unknown;
        }
        if reach == Reach::Everything {
            left.extend(tagged(tag).await);
        }
        left.retain(|seen| seen.may_be_of(owner));
        // Only waits for these processes: nothing proves yet that they are ours.
        let killed = left.len();
        left.extend(unknown);
        if left.is_empty() {
            if let Some(group) = &contained {
                removed(group).await;
            }
            proven.iter().for_each(reap_if_child);
            return 0;
        }
        for seen in &left[..killed] {
            look::signal(seen, Signal::KILL);
        }
        await_deaths(&left).await;
    }
    left.len()
}

/// Removes a cgroup without living processes. The kernel may need a moment to release it; otherwise the next run removes it.
async fn removed(group: &ControlGroup) {
    for _ in 0..ROUNDS_MAX {
        if group.remove() {
            return;
        }
        sleep(PAUSE).await;
    }
    tracing::debug!(path = %group.path().display(), "cannot remove a control group");
}

fn reap_if_child(seen: &Seen) {
    let is_it = look::look_at(seen.pid).is_some_and(|now| now.started_ticks == seen.started_ticks);
    if let Some(pid) = look::number(seen.pid).filter(|_| is_it) {
        // Fails if it is not a child of ours.
        let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
    }
}

/// The living members of a process group that have a tag, since the group id alone does not prove that they are ours, and
/// the members whose tag is not known yet.
async fn marked_members(group: u32, tag: ProcessTag) -> Members {
    look::beside(move || look::members_of(group, tag)).await.unwrap_or_else(|error| {
        tracing::warn!(group, error = %error, "cannot read the members of a process group");
        Members::default()
    })
}

async fn tagged(tag: ProcessTag) -> Vec<Seen> {
    let tagged = look::beside(move || look::search(|seen| seen.tag == Some(tag))).await;
    tagged.unwrap_or_else(|error| {
        tracing::warn!(%tag, %error, "cannot search for the processes of a launch");
        Vec::new()
    })
}

fn is_alive(seen: &Seen) -> bool {
    look::look_at(seen.pid).is_some_and(|now| now.started_ticks == seen.started_ticks && !now.is_zombie)
}

/// Waits, with a timeout, until one of these ends.
async fn await_deaths(dying: &[Seen]) {
    let Some(first) = dying.first().and_then(|seen| look::number(seen.pid)) else { return };
    let watched = pidfd_open(first, PidfdFlags::empty()).map_err(io::Error::from).and_then(watch);
    match watched {
        Ok(descriptor) => {
            let _ = timeout(DEATH_TIMEOUT, descriptor.ready(Interest::READABLE)).await;
        }
        // It has ended, or cannot be watched.
        Err(_) => sleep(PAUSE).await,
    }
    // The next search shows a process that has ended and is not reaped by its parent as a zombie.
}

const fn look_only() -> WaitIdOptions {
    WaitIdOptions::EXITED.union(WaitIdOptions::NOHANG).union(WaitIdOptions::NOWAIT)
}

fn read_exit(descriptor: &AsyncFd<OwnedFd>) -> Exit {
    match waitid(WaitId::PidFd(descriptor.get_ref().as_fd()), look_only()) {
        Ok(Some(status)) => exit_of(&status),
        Ok(None) => Exit::Unknown { reason: "it still runs, although its end was reported".to_owned() },
        Err(error) => Exit::Unknown { reason: format!("the system does not report it: {error}") },
    }
}

fn exit_of(status: &WaitIdStatus) -> Exit {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Unknown { reason: "it was neither ended nor killed".to_owned() },
    }
}

/// Kills and reaps a child that cannot be watched.
fn end_unwatched(pid: Pid) {
    let _ = kill_process_group(pid, Signal::KILL);
    let reaper = std::thread::Builder::new().name("process reaper".to_owned());
    let _ = reaper.spawn(move || waitid(WaitId::Pid(pid), WaitIdOptions::EXITED));
}
