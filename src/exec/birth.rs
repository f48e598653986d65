//! Starts a task, or makes sure that it is not started.
//!
//! ```text
//!  spawn ──► input ──► answer ── started: from now on the supervisor is independent
//!                         │
//!                         └ failed, timeout, or a malformed answer:
//!                             stop the supervisor ─► kill its descendants ─► kill it, reap it ─► kill what has the tag
//! ```
//!
//! A stopped supervisor starts nothing more, and everything that it has started is its descendant, even a process that dropped the tag. It
//! is the driver's own child and not reaped, so its process id cannot be reused.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

use super::faults::SupervisorHang;
use super::hidden::{self, Since};
use super::place::TaskPlace;
use super::processes;
use super::record::{NotStarted, OrderAnswer, SupervisorInput, TaskOrder, TaskRecord};
use crate::plugin::{Refusal, random};

/// The timeout for a supervisor to stop, and for the processes that it started to die.
const ENDING_TIMEOUT: Duration = Duration::from_secs(5);
/// The polling interval meanwhile.
const ENDING_PAUSE: Duration = Duration::from_millis(5);

/// The settings for the start of tasks.
#[derive(Debug, Clone, Copy)]
pub(super) struct StartTerms {
    /// The timeout of a supervisor.
    pub(super) timeout: Duration,
    /// Whether a task is killed when it exceeds its memory limit.
    pub(super) limits_memory: bool,
    /// Where it hangs, in tests.
    pub(super) hang: Option<SupervisorHang>,
}

/// Starts a supervisor, which starts the task. After an error no process of it runs or will run, unless the error reports otherwise.
pub(super) async fn supervise(
    order: &TaskOrder,
    groups: &[PathBuf],
    place: &TaskPlace,
    lock: File,
    task_id: &str,
    terms: StartTerms,
) -> Result<TaskRecord, Refusal> {
    let failed = |reason: String| Refusal::failed(format!("cannot start task {task_id:?}: {reason}"));
    let not_born =
        |error: io::Error| failed(format!("its supervisor did not start: {error}")).recoverable(true);
    let tag = random::hex::<16>().map_err(not_born)?;
    let supervisor_input =
        SupervisorInput { order: order.clone(), tag, groups: groups.to_owned(), hang: terms.hang };
    let mut supervisor = spawn(place, lock).map_err(not_born)?;
    let answer = timeout(terms.timeout, speak(&mut supervisor, &supervisor_input)).await;
    let (reason, recoverable) = match answer {
        Ok(Ok(OrderAnswer::Started(record))) => {
            // It outlives this call, and is reaped when it ends.
            tokio::spawn(async move { supervisor.wait().await });
            return Ok(*record);
        }
        Ok(Ok(OrderAnswer::Failed(NotStarted { reason, recoverable }))) => (reason, recoverable),
        Ok(Err(error)) => (format!("its supervisor did not start: {error}"), true),
        Err(_) => (format!("its supervisor did not answer within {:?}", terms.timeout), true),
    };
    if let Err(left) = end(supervisor, &supervisor_input).await {
        return Err(failed(format!("{reason}; and {left}")).recoverable(true));
    }
    if let Err(error) = place.remove() {
        tracing::warn!(task = task_id, error = %error, "cannot remove the state of a task that did not start");
    }
    Err(failed(reason).recoverable(recoverable))
}

fn spawn(place: &TaskPlace, lock: File) -> io::Result<Child> {
    Command::new("/proc/self/exe")
        .args(["plugin", "exec-task", "--place"])
        .arg(place.path())
        // It inherits nothing of the driver: neither its host's marks, nor its output, nor its directory.
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(lock)
        .spawn()
}

/// Sends a supervisor its input and reads its answer.
async fn speak(supervisor: &mut Child, supervisor_input: &SupervisorInput) -> io::Result<OrderAnswer> {
    let missing = || io::Error::other("it has no pipe");
    let mut input = supervisor.stdin.take().ok_or_else(missing)?;
    let output = supervisor.stdout.take().ok_or_else(missing)?;
    let mut line = serde_json::to_vec(supervisor_input)?;
    line.push(b'\n');
    input.write_all(&line).await?;
    let mut answer = String::new();
    BufReader::new(output).read_line(&mut answer).await?;
    if answer.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(serde_json::from_str(&answer)?)
}

/// Ends a supervisor and everything that it may have begun.
///
/// # Errors
/// When some of it is left, or may be.
async fn end(mut supervisor: Child, supervisor_input: &SupervisorInput) -> Result<(), String> {
    // It is not reaped yet, so its process id cannot be reused.
    let identity = supervisor.id().and_then(|pid| processes::identity(pid.cast_signed()));
    if let Some(pid) = supervisor.id().map(u32::cast_signed) {
        // A supervisor that does not stop is killed anyway; the tag finds its processes.
        let _ = timeout(ENDING_TIMEOUT, end_descendants(pid)).await;
    }
    // Fails only if it has ended.
    let _ = supervisor.start_kill();
    let gone = async {
        // An error means that it is no longer our child, and therefore has ended.
        let _ = supervisor.wait().await;
        processes::end_tagged(&supervisor_input.tag).await;
    };
    let late = |_| format!("its processes did not end within {ENDING_TIMEOUT:?} although killed");
    timeout(ENDING_TIMEOUT, gone).await.map_err(late)?;
    let begun = identity.map_or(0, |identity| identity.start_ticks);
    hidden::left(Since::new(begun, Some(&supervisor_input.order.context))).await.map_or(Ok(()), Err)
}

/// Stops a child and kills its descendants.
async fn end_descendants(pid: i32) {
    if let Some(pid) = Pid::from_raw(pid) {
        // It is not reaped, so this fails only if it has ended.
        let _ = kill_process(pid, Signal::STOP);
    }
    while processes::stat(pid).is_some_and(|stat| !stat.is_stopped && !stat.is_zombie) {
        sleep(ENDING_PAUSE).await;
    }
    while processes::kill_descendants(pid, None) > 0 {
        sleep(ENDING_PAUSE).await;
    }
}
