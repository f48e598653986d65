//! Creates an allocation's directories, and removes them. It follows no symlink. Another file in the place of a socket is renamed. If a
//! disk hangs, this work may resume after its deadline; then it removes nothing, since the socket may be that of the next task by now
//! (REG-08).

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;
use tokio::net::UnixStream;
use tokio::sync::{Mutex, OwnedMutexGuard};

use super::removal::take_away;
use super::{Access, Listener, Place, Plan, PrepareError, Step};
use crate::datadir::{self, reach};
use crate::vocabulary::{AllocationId, SocketPath};

/// The connect timeout for a process that may listen on the socket.
const KNOCK_DEADLINE: Duration = Duration::from_secs(1);
/// The limit of attempts to create directories whose parent is removed meanwhile.
const MAKES_MAX: u32 = 100;
/// The limit of files beside a socket that were moved out of its place.
const SET_ASIDE_MAX: u32 = 16;

/// The files of an allocation. Operations run in the order of their calls: a removal waits for a creation that is still
/// running, so that nothing is created after it (A4).
pub(super) struct Files {
    plan: Plan,
    turn: Arc<Mutex<()>>,
}

/// The turn of one operation. It lasts until its thread is done: an operation that hangs keeps its turn after its caller has given up,
/// so that the next one waits and does not block another thread.
type Turn = Arc<OwnedMutexGuard<()>>;

impl Files {
    pub(super) fn new(plan: Plan) -> Self {
        Self { plan, turn: Arc::default() }
    }

    pub(super) const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Creates the directories of an allocation and removes a dead socket of a former run. Idempotent.
    ///
    /// # Errors
    /// [`PrepareError::SocketInUse`] when a process listens already and is not welcome (SEC-02), and
    /// [`PrepareError::Directory`] when a directory cannot be created, or is not ours.
    pub(super) fn make_ready(
        &self,
        allocation: AllocationId,
        listener: Listener,
    ) -> impl Future<Output = Result<(), PrepareError>> + use<> {
        let (turn, plan) = (Arc::clone(&self.turn), self.plan.clone());
        async move {
            let turn = Arc::new(turn.lock_owned().await);
            make_ready(&turn, allocation, plan, listener).await
        }
    }

    /// Removes an allocation's socket and its directory. Returns what could not be cleaned up.
    pub(super) fn remove(&self) -> impl Future<Output = Vec<String>> + use<> {
        let (turn, plan) = (Arc::clone(&self.turn), self.plan.clone());
        async move {
            let turn = Arc::new(turn.lock_owned().await);
            remove(&turn, plan).await
        }
    }
}

#[derive(Debug)]
pub(super) struct Trouble {
    path: PathBuf,
    reason: String,
    /// Something on the way is missing: another allocation may have removed it meanwhile.
    is_missing: bool,
    /// The disk is full or fails, and may be sound again.
    is_of_disk: bool,
}

impl Trouble {
    pub(super) fn new(path: impl Into<PathBuf>, reason: impl Into<String>) -> Self {
        Self { path: path.into(), reason: reason.into(), is_missing: false, is_of_disk: false }
    }

    pub(super) fn of(path: impl Into<PathBuf>, error: Errno) -> Self {
        let is_of_disk = matches!(error, Errno::NOSPC | Errno::DQUOT | Errno::ROFS | Errno::IO);
        Self { is_missing: error == Errno::NOENT, is_of_disk, ..Self::new(path, error.to_string()) }
    }

    pub(super) fn left(self) -> String {
        format!("{} was left: {}", self.path.display(), self.reason)
    }
}

async fn make_ready(
    turn: &Turn,
    allocation: AllocationId,
    plan: Plan,
    listener: Listener,
) -> Result<(), PrepareError> {
    let said = |Trouble { path, reason, is_of_disk, .. }| {
        let allocation = allocation.clone();
        match is_of_disk {
            true => PrepareError::Disk { allocation, path, reason },
            false => PrepareError::Directory { allocation, path, reason },
        }
    };
    let socket = plan.context.socket.clone();
    let Plan { socket_place, volume_place, socket_file, .. } = plan;
    let place = socket_place.clone();
    let made = in_turn(turn, move |_| make(&volume_place).and_then(|_| make(&place).map(drop)));
    made.await.map_err(said)?;
    if listener == Listener::Welcome {
        return Ok(());
    }
    if is_listened_on(&socket).await.map_err(said)? {
        return Err(PrepareError::SocketInUse { socket });
    }
    match socket_file {
        Some(file) => {
            in_turn(turn, move |asker| clear_place(&socket_place, &file, asker)).await.map_err(said)
        }
        None => Ok(()),
    }
}

async fn remove(turn: &Turn, plan: Plan) -> Vec<String> {
    let Plan { socket_place, socket_file, .. } = plan;
    let removed = in_turn(turn, move |asker| take_away(&socket_place, socket_file.as_deref(), asker));
    match removed.await {
        Ok(()) => Vec::new(),
        Err(trouble) => vec![trouble.left()],
    }
}

#[derive(Clone, Default)]
pub(super) struct Asker {
    has_left: Arc<AtomicBool>,
}

impl Asker {
    pub(super) fn check(&self, path: &Path) -> Result<(), Trouble> {
        if self.has_left.load(Ordering::Acquire) {
            return Err(Trouble::new(path, "its removal took too long and was given up"));
        }
        Ok(())
    }
}

/// Held by the caller; dropped at the end of its wait.
struct CallerWaits(Asker);

impl Drop for CallerWaits {
    fn drop(&mut self) {
        self.0.has_left.store(true, Ordering::Release);
    }
}

/// Runs file work of an allocation on a blocking thread, which holds the turn until it is done.
async fn in_turn<T: Send + 'static>(
    turn: &Turn,
    work: impl FnOnce(&Asker) -> Result<T, Trouble> + Send + 'static,
) -> Result<T, Trouble> {
    let turn = Arc::clone(turn);
    blocking(move |asker| {
        let outcome = work(asker);
        drop(turn);
        outcome
    })
    .await
}

/// Runs file work on a blocking thread: a disk that hangs must not block others.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce(&Asker) -> Result<T, Trouble> + Send + 'static,
) -> Result<T, Trouble> {
    let asker = Asker::default();
    let _waits = CallerWaits(asker.clone());
    match tokio::task::spawn_blocking(move || work(&asker)).await {
        Ok(outcome) => outcome,
        Err(crash) => match crash.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_cancelled) => Err(Trouble::new("/", "the runtime is shutting down")),
        },
    }
}

pub(super) async fn is_listened_on(socket: &SocketPath) -> Result<bool, Trouble> {
    let connected = tokio::time::timeout(KNOCK_DEADLINE, UnixStream::connect(socket.as_path())).await;
    let Ok(connected) = connected else { return Ok(true) };
    let Err(error) = connected else { return Ok(true) };
    match Errno::from_io_error(&error) {
        Some(Errno::NOENT | Errno::CONNREFUSED | Errno::NOTDIR | Errno::NOTSOCK | Errno::LOOP) => Ok(false),
        // Its queue is full, or it is a datagram socket: it is alive.
        Some(Errno::AGAIN | Errno::PROTOTYPE) => Ok(true),
        _ => Err(Trouble::new(
            socket.as_path(),
            format!("cannot find out whether a process listens there ({error}); remove it if none does"),
        )),
    }
}

// === Creation ===

const DIRECTORY: OFlags =
    OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC).union(OFlags::RDONLY);

/// Creates all missing directories of a place, and opens the last. Retries if the last other allocation in one of them removes it
/// at the same moment.
fn make(place: &Place) -> Result<OwnedFd, Trouble> {
    let mut made = make_once(place);
    for _ in 1..MAKES_MAX {
        if !made.as_ref().is_err_and(|trouble| trouble.is_missing) {
            break;
        }
        made = make_once(place);
    }
    made
}

fn make_once(place: &Place) -> Result<OwnedFd, Trouble> {
    let mut path = place.base.clone();
    datadir::check(&path)
        .map_err(|lost| Trouble { is_of_disk: true, ..Trouble::new(&path, lost.to_string()) })?;
    let mut at = reach(&path).map_err(|error| Trouble::new(&path, error.to_string()))?;
    for (number, step) in place.steps.iter().enumerate() {
        path.push(&step.name);
        let is_last = number + 1 == place.steps.len();
        at = make_step(&at, step, is_last, &path)?;
    }
    Ok(at)
}

fn make_step(at: &OwnedFd, step: &Step, is_last: bool, path: &Path) -> Result<OwnedFd, Trouble> {
    let mode = mode(step.access);
    let is_new = match rustix::fs::mkdirat(at, &*step.name, mode) {
        Ok(()) => true,
        Err(Errno::EXIST) => false,
        Err(error) => return Err(Trouble::of(path, error)),
    };
    let made = enter(at, &step.name, path)?;
    let found = rustix::fs::fstat(&made).map_err(|error| Trouble::of(path, error))?;
    check_owner(&found, path)?;
    // A plugin may have changed the mode of its own directory, and the umask that of a new one.
    if is_new || (is_last && step.access == Access::Private) {
        rustix::fs::fchmod(&made, mode).map_err(|error| Trouble::of(path, error))?;
        return Ok(made);
    }
    check_mode(&found, step.access, path)?;
    Ok(made)
}

fn mode(access: Access) -> Mode {
    match access {
        Access::Private => Mode::RWXU,
        Access::Passage => Mode::RWXU | Mode::XGRP | Mode::XOTH,
    }
}

pub(super) fn enter(at: &OwnedFd, name: &str, path: &Path) -> Result<OwnedFd, Trouble> {
    rustix::fs::openat(at, name, DIRECTORY, Mode::empty()).map_err(|error| match error {
        Errno::LOOP | Errno::NOTDIR => {
            Trouble::new(path, "it is a link or not a directory; look what it is and remove it")
        }
        error => Trouble::of(path, error),
    })
}

pub(super) fn check_owner(found: &Stat, path: &Path) -> Result<(), Trouble> {
    let us = rustix::process::geteuid().as_raw();
    if found.st_uid == us {
        return Ok(());
    }
    Err(Trouble::new(
        path,
        format!("it belongs to user {} and we are user {us}; give it to us or remove it", found.st_uid),
    ))
}

fn check_mode(found: &Stat, access: Access, path: &Path) -> Result<(), Trouble> {
    let (forbidden, right) = match access {
        Access::Private => (0o077, "0700"),
        Access::Passage => (0o022, "0711"),
    };
    if found.st_mode & forbidden == 0 {
        return Ok(());
    }
    let mode = found.st_mode & 0o7777;
    Err(Trouble::new(path, format!("its mode {mode:04o} lets others in; set it to {right}")))
}

/// Removes a dead socket, and moves any other file out of its place, since a plugin could not listen there.
fn clear_place(place: &Place, file: &str, asker: &Asker) -> Result<(), Trouble> {
    let path = place.path().join(file);
    let directory = make(place)?;
    match kind(&directory, file) {
        Err(Errno::NOENT) => Ok(()),
        Ok(FileType::Socket) => unlink(&directory, file, &path, asker),
        Ok(other) => set_aside(&directory, file, &path, called(other), asker),
        Err(error) => Err(Trouble::of(path, error)),
    }
}

const fn called(kind: FileType) -> &'static str {
    match kind {
        FileType::Symlink => "a link",
        FileType::Directory => "a directory",
        FileType::RegularFile => "a regular file",
        _ => "a special file",
    }
}

/// Renames a file within its directory: it may be user data.
fn set_aside(directory: &OwnedFd, file: &str, path: &Path, what: &str, asker: &Asker) -> Result<(), Trouble> {
    for number in 1..=SET_ASIDE_MAX {
        asker.check(path)?;
        let name = format!("{file}.aside-{number}");
        match rustix::fs::renameat_with(directory, file, directory, &*name, RenameFlags::NOREPLACE) {
            Ok(()) => {
                tracing::warn!(path = %path.display(), what, name, "moved a file out of the way of a socket");
                return Ok(());
            }
            Err(Errno::EXIST) => {}
            Err(error) => return Err(Trouble::new(path, in_the_place(what, &error.to_string()))),
        }
    }
    Err(Trouble::new(path, in_the_place(what, &format!("{SET_ASIDE_MAX} others were already moved aside"))))
}

fn in_the_place(what: &str, reason: &str) -> String {
    format!("{what} is at the path of the socket and cannot be moved away ({reason}); remove it")
}

/// The type of a file; a symlink is not followed.
pub(super) fn kind(directory: &OwnedFd, name: &str) -> Result<FileType, Errno> {
    let found = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(found.st_mode))
}

pub(super) fn unlink(directory: &OwnedFd, name: &str, path: &Path, asker: &Asker) -> Result<(), Trouble> {
    asker.check(path)?;
    match rustix::fs::unlinkat(directory, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(Trouble::of(path, error)),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use futures_util::future::join;

    use super::*;
    use crate::allocation::{AllocationSpec, Layout};
    use crate::vocabulary::{PluginName, Role, TaskName};

    #[test]
    fn a_removal_waits_for_what_is_still_being_made_a4() {
        let base = tempfile::tempdir().unwrap();
        let allocation = AllocationId::new("a1").unwrap();
        let (task, plugin) = (TaskName::new("plugin").unwrap(), PluginName::new("zfs").unwrap());
        let spec = AllocationSpec::new(allocation.clone(), task, plugin, Role::Node);
        let plan = Plan::new(&Layout::new(base.path(), base.path()).unwrap(), &spec).unwrap();
        let directory = plan.socket_place.path();
        let files = Files::new(plan);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        for _ in 0..100 {
            let made = files.make_ready(allocation.clone(), Listener::Refused);
            let (made, left) = runtime.block_on(join(made, files.remove()));
            assert_eq!((made, left), (Ok(()), vec![]));
            assert!(!directory.exists(), "{} came to be behind its removal", directory.display());
        }
    }

    #[test]
    fn work_that_was_given_up_keeps_its_turn_until_its_thread_is_done_so_that_no_other_hangs_beside_it_p3() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (go, held) = std::sync::mpsc::channel::<()>();
            let files = Arc::new(Mutex::new(()));
            let turn = Arc::new(Arc::clone(&files).lock_owned().await);
            let work = in_turn(&turn, move |_| {
                held.recv().expect("the disk is sound again");
                Ok(())
            });
            assert!(tokio::time::timeout(Duration::from_millis(10), work).await.is_err());
            drop(turn);
            assert!(files.try_lock().is_err(), "its thread still works");
            go.send(()).expect("its thread waits");
            drop(files.lock().await);
        });
    }

    #[test]
    fn a_removal_that_was_given_up_leaves_the_socket_of_the_next_task_alone_reg_08() {
        let base = tempfile::tempdir().unwrap();
        let step = Step { name: "a1".to_owned(), access: Access::Private };
        let place = Place { base: base.path().to_owned(), steps: vec![step] };
        make(&place).unwrap();
        let socket = place.path().join("csi.sock");
        let _plugin = UnixListener::bind(&socket).unwrap();

        let asker = Asker::default();
        drop(CallerWaits(asker.clone()));
        for late in [take_away(&place, Some("csi.sock"), &asker), clear_place(&place, "csi.sock", &asker)] {
            assert!(late.unwrap_err().reason.contains("given up"));
            assert!(socket.exists());
        }

        take_away(&place, Some("csi.sock"), &Asker::default()).unwrap();
        assert!(!place.path().exists());
    }
}
