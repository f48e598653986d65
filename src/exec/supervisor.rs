//! The supervisor: the parent process of each task, and the only process that receives the task's exit.
//!
//! It reads its order from standard input, answers with one line on standard output, and lives until the task has ended and
//! that is on disk. Its standard error is the lock file of the task's place, from its start to its end.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use callboard_actors::process::boot_id;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, getpid, kill_process, kill_process_group, set_child_subreaper,
    setsid, waitid,
};

use super::config;
use super::directory::TaskDirectory;
use super::enter;
use super::faults::SupervisorHang;
use super::out_of_memory::KillCount;
use super::place::{Order, TaskPlace};
use super::processes::{self, TAG};
use super::record::{
    EndStatus, NotStarted, OrderAnswer, ProcessIdentity, SupervisorInput, TaskContext, TaskEnd, TaskOrder,
    TaskRecord,
};

const ORDER_BYTES_MAX: u64 = 16 * 1_024 * 1_024;
/// The timeout for remaining processes of a task to die.
const ENDING_TIMEOUT: Duration = Duration::from_secs(5);
/// The polling interval meanwhile.
const ENDING_PAUSE: Duration = Duration::from_millis(5);
/// The number of attempts to write the end of a task, and the pause between them: space on a full disk may be freed.
const WRITES_MAX: usize = 600;
const WRITE_PAUSE: Duration = Duration::from_secs(1);

/// Why the task was not started, or its end not recorded.
#[derive(Debug, thiserror::Error)]
pub enum SupervisorError {
    /// No order arrived; only the driver starts supervisors.
    #[error("missing task request on standard input; `callboard plugin exec` starts this itself")]
    NoOrder,
    /// The system refused a call that a supervisor needs.
    #[error("cannot supervise a task in {place}: {source}")]
    System {
        /// The place of the task.
        place: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// The task until it is reaped: signals can reach no other process.
type Supervised = Arc<Mutex<Option<Pid>>>;

/// Supervises one task with its state at `place`, from its order on standard input to its end. A command that cannot be started is not an
/// error: the driver gets the reason in the answer, and returns it to its host.
///
/// # Errors
/// [`SupervisorError`].
pub fn supervise(place: &Path) -> Result<(), SupervisorError> {
    let refused = |source| SupervisorError::System { place: place.to_owned(), source };
    let mut text = String::new();
    io::stdin().lock().take(ORDER_BYTES_MAX).read_line(&mut text).map_err(refused)?;
    let SupervisorInput { order, tag, groups, hang } = match text.ends_with('\n') {
        true => serde_json::from_str(&text).map_err(|_| SupervisorError::NoOrder)?,
        // A truncated order: the driver died while it wrote, and the task must not start.
        false => return Err(SupervisorError::NoOrder),
    };
    drop(text);
    setsid().map_err(|error| refused(error.into()))?;
    set_child_subreaper(Some(getpid())).map_err(|error| refused(error.into()))?;
    let place = TaskPlace::at(place.to_owned());
    hangs(hang, SupervisorHang::BeforeStart);
    let kills = KillCount::begin(&groups);
    match begin(&order, tag, &groups, &place) {
        Ok((child, record, control)) => {
            hangs(hang, SupervisorHang::AfterStart);
            answer(&OrderAnswer::Started(Box::new(record.clone())));
            drop(order);
            live(child, record, control, &place, kills).map_err(refused)
        }
        Err(failed) => {
            answer(&OrderAnswer::Failed(failed));
            Ok(())
        }
    }
}

/// Hangs forever, if that was requested for this point.
fn hangs(asked: Option<SupervisorHang>, here: SupervisorHang) {
    while asked == Some(here) {
        thread::park();
    }
}

fn begin(
    order: &TaskOrder,
    tag: String,
    groups: &[PathBuf],
    place: &TaskPlace,
) -> Result<(Child, TaskRecord, File), NotStarted> {
    let failed = |what: String, error: &io::Error| NotStarted {
        reason: format!("{what}: {error}"),
        recoverable: !matches!(
            error.kind(),
            io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied | io::ErrorKind::InvalidInput
        ),
    };
    let stdout = output(&order.stdout)
        .map_err(|error| failed(format!("standard output {:?}", order.stdout), &error))?;
    let stderr = output(&order.stderr)
        .map_err(|error| failed(format!("standard error {:?}", order.stderr), &error))?;
    let state = |error: io::Error| failed(format!("the state of the task in {:?}", place.path()), &error);
    let control = place.listen().map_err(state)?;
    let TaskContext { directory: path, user, .. } = &order.context;
    let directory = TaskDirectory::open(&order.context)
        .map_err(|error| failed(format!("its directory {path:?} cannot be used"), &error))?;
    let mut child = spawn(order, &tag, groups, &directory, stdout, stderr).map_err(|error| {
        let user = user.as_ref().map(|user| format!(" as user {}", user.uid)).unwrap_or_default();
        failed(format!("cannot run {:?}{user} in the directory {path:?}", order.command), &error)
    })?;
    let written = record(&child, tag, groups, order).and_then(|record| place.write(&record).map(|()| record));
    match written {
        Ok(record) => {
            // If there is no space for it now, there may be some later.
            let _ = place.reserve(&record);
            Ok((child, record, control))
        }
        Err(error) => {
            // It is an unreaped child, so these fail only if it has ended.
            let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
            let _ = child.wait();
            Err(state(error))
        }
    }
}

/// Opens a file for output in append mode. A FIFO is opened so that it does not block without a reader, and does not end the
/// task when the reader closes it (PRC-07).
fn output(path: &Path) -> io::Result<File> {
    let is_fifo = std::fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo());
    let mut options = OpenOptions::new();
    if is_fifo {
        options.read(true).write(true)
    } else {
        options.append(true).create(true).mode(0o600)
    };
    options.open(path)
}

fn spawn(
    order: &TaskOrder,
    tag: &str,
    groups: &[PathBuf],
    directory: &TaskDirectory,
    stdout: File,
    stderr: File,
) -> io::Result<Child> {
    let (told, telling) = io::pipe()?;
    let mut child = enter::command(&order.context, groups)
        .args(["--reports", "--"])
        .arg(&order.command)
        .args(&order.arguments)
        .envs(enter::wrapped(&order.environment))
        .env(TAG, tag)
        .current_dir(directory.path())
        .process_group(0)
        .stdin(telling)
        .stdout(stdout)
        .stderr(stderr)
        .spawn()?;
    // Returns when the process has become the command, or has reported an error.
    enter::outcome(told).map_err(|error| {
        // It ends by itself.
        let _ = child.wait();
        io::Error::new(error.kind(), error)
    })?;
    Ok(child)
}

fn record(child: &Child, tag: String, groups: &[PathBuf], order: &TaskOrder) -> io::Result<TaskRecord> {
    let identity = |pid: u32| -> io::Result<ProcessIdentity> {
        let missing = || io::Error::other(format!("/proc does not show process {pid}"));
        processes::identity(pid.cast_signed()).ok_or_else(missing)
    };
    Ok(TaskRecord {
        boot_id: boot_id()?,
        supervisor: identity(std::process::id())?,
        task: identity(child.id())?,
        tag,
        digest: config::digest(order),
        context: Some(order.context.clone()),
        groups: groups.to_owned(),
        started_at: now(),
        ended: None,
    })
}

fn now() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

/// Answers the driver, and closes the pipe. If the driver has died, the next one reads the state from disk.
fn answer(answer: &OrderAnswer) {
    let mut line = serde_json::to_vec(answer).expect("it holds nothing that cannot be written");
    line.push(b'\n');
    let mut output = io::stdout().lock();
    let _ = output.write_all(&line).and_then(|()| output.flush());
    if let Ok(nowhere) = OpenOptions::new().write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(&nowhere);
    }
}

/// Supervises the task until it has ended, and records its end.
fn live(
    child: Child,
    mut record: TaskRecord,
    control: File,
    place: &TaskPlace,
    kills: Option<KillCount>,
) -> io::Result<()> {
    let by_us = Arc::new(AtomicBool::new(false));
    let status = match attend(child, control, &by_us) {
        Ok(status) => end_status(status),
        Err(error) => {
            EndStatus::Unknown(format!("its supervisor could not stay with it and killed it: {error}"))
        }
    };
    let by_us = by_us.load(Ordering::Relaxed);
    let oom_killed = kills.is_some_and(|kills| kills.explains(&status, by_us));
    record.ended = Some(TaskEnd { status, oom_killed, at: now() });
    for _ in 1..WRITES_MAX {
        match place.write(&record) {
            Ok(()) => return Ok(()),
            // The place was removed, so the result is no longer needed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(error),
            Err(_) => thread::sleep(WRITE_PAUSE),
        }
    }
    place.write(&record)
}

/// Serves requests until the task has ended, and kills its remaining processes. A task that cannot be supervised is killed.
fn attend(mut child: Child, control: File, by_us: &Arc<AtomicBool>) -> io::Result<ExitStatus> {
    let task = Pid::from_child(&child);
    let supervised: Supervised = Arc::new(Mutex::new(Some(task)));
    let (listening, by_us) = (supervised.clone(), by_us.clone());
    let orders = thread::Builder::new().name("orders".to_owned());
    let attended =
        orders.spawn(move || carry_out(control, &listening, &by_us)).and_then(|_| until_ended(task));
    // From here on the process id is not signalled, since it may soon be reused.
    *supervised.lock().unwrap_or_else(PoisonError::into_inner) = None;
    end_the_rest(attended.is_ok().then_some(task));
    attended?;
    child.wait()
}

fn end_status(status: ExitStatus) -> EndStatus {
    match (status.code(), status.signal()) {
        (Some(code), _) => EndStatus::Code(code),
        (None, Some(signal)) => EndStatus::Signal(signal),
        (None, None) => EndStatus::Unknown("it has neither a code nor a signal".to_owned()),
    }
}

/// Waits until the task is a zombie, and reaps adopted orphans meanwhile.
fn until_ended(task: Pid) -> io::Result<()> {
    loop {
        match waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        let ended = zombies();
        if ended.contains(&task) {
            return Ok(());
        }
        ended.into_iter().for_each(reap);
    }
}

fn zombies() -> Vec<Pid> {
    let me = getpid().as_raw_nonzero().get();
    let descendants = processes::descendants(me);
    let mine = descendants.values().filter(|process| process.parent == me && process.is_zombie);
    mine.filter_map(|process| Pid::from_raw(process.pid)).collect()
}

fn reap(child: Pid) {
    // It has ended, so this neither blocks nor fails.
    let _ = waitid(WaitId::Pid(child), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
}

/// Kills all descendants except an ended one, in any group or session: orphans of the task have become our children.
fn end_the_rest(except: Option<Pid>) {
    let began = Instant::now();
    while began.elapsed() < ENDING_TIMEOUT {
        if kill_descendants(except) == 0 {
            return;
        }
        thread::sleep(ENDING_PAUSE);
        zombies().into_iter().filter(|child| Some(*child) != except).for_each(reap);
    }
}

fn kill_descendants(except: Option<Pid>) -> usize {
    let number = |pid: Pid| pid.as_raw_nonzero().get();
    processes::kill_descendants(number(getpid()), except.map(number))
}

/// Serves the driver's requests until the task is reaped, and records whether one was to kill it.
fn carry_out(control: File, supervised: &Supervised, by_us: &AtomicBool) {
    for line in BufReader::new(control).lines() {
        let Ok(line) = line else { return };
        let task = supervised.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(task) = *task else { return };
        let order = Order::read(&line);
        if order.as_ref().is_some_and(Order::kills) {
            by_us.store(true, Ordering::Relaxed);
        }
        // A signal fails if the task has ended, or has another user; neither can be handled.
        let _ = match order {
            Some(Order::Signal(number)) => signal(number).map(|signal| kill_process(task, signal)),
            Some(Order::SignalGroup(number)) => signal(number).map(|signal| kill_process_group(task, signal)),
            Some(Order::Kill) => {
                kill_descendants(None);
                None
            }
            None => None,
        };
    }
}

fn signal(number: i32) -> Option<Signal> {
    Signal::from_named_raw(number)
}
