//! The process of an allocation: bound to the host, or surviving it (PRC-04). A bound process is a child of the agent. A surviving process
//! belongs to the owner of processes, which records, proves and adopts it; the agent finds it by its name.

use std::rc::Weak;
use std::sync::Arc;
use std::time::Duration;

use callboard_actors::agent::{LaunchOrder, LaunchTrouble, RETRY_PAUSE};
use callboard_actors::process::{
    EndedBy, Executable, Exit, LaunchError, Launched, Lifetime, ProcessName, ProcessSpec, ProcessTag,
    STOP_GRACE,
};
use callboard_actors::processes::{
    AwaitEnd, LaunchProcess, ListProcesses, NoSuchProcess, Processes, RecallProcess, Recalled, StopProcess,
};
use callboard_actors::shell::Address;
use callboard_actors::vocabulary::AllocationId;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::config::{PROCESS_PREFIX, process_name};
use crate::process::{Process, ProcessEnding, ProcessExit};

/// The end of a process.
#[derive(Debug, Clone)]
pub(super) struct End {
    /// `None` if it was not observed, because the process was not a child of this host.
    pub(super) exit: Option<ProcessExit>,
    pub(super) by: EndedBy,
    pub(super) last_words: Option<String>,
    /// The end in words.
    pub(super) how: String,
}

impl From<ProcessEnding> for End {
    fn from(ending: ProcessEnding) -> Self {
        let how = ending.to_string();
        Self { exit: Some(ending.exit), by: ending.by, last_words: ending.last_words, how }
    }
}

impl From<callboard_actors::process::ProcessEnding> for End {
    fn from(ending: callboard_actors::process::ProcessEnding) -> Self {
        let exit = match ending.exit {
            Exit::Code(code) => Some(ProcessExit::Code(code)),
            Exit::Signal(signal) => Some(ProcessExit::Signal(signal)),
            Exit::Unknown { .. } => None,
        };
        Self { exit, by: ending.by, last_words: ending.last_words(), how: ending.to_string() }
    }
}

/// A process that runs, or has just ended.
#[derive(Debug, Clone)]
pub(super) enum Held {
    /// It is killed when the last handle is dropped.
    Bound(Process),
    /// It continues without handles.
    Surviving(Surviving),
}

impl Held {
    pub(super) const fn pid(&self) -> u32 {
        match self {
            Self::Bound(process) => process.pid(),
            Self::Surviving(process) => process.pid,
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        match self {
            Self::Bound(process) => process.has_ended(),
            Self::Surviving(process) => process.ended.borrow().is_some(),
        }
    }

    /// Stops it: SIGTERM to its group now, and SIGKILL after the grace period.
    pub(super) fn stop(&self, grace: Duration) {
        match self {
            Self::Bound(process) => process.stop(grace),
            Self::Surviving(process) => process.stop(grace),
        }
    }

    /// Waits for its end. `None` if it is gone and its exit is unknown.
    pub(super) async fn ended(self) -> Option<End> {
        match self {
            Self::Bound(process) => {
                let ended = process.ended();
                drop(process);
                Some(ended.await.into())
            }
            Self::Surviving(Surviving { mut ended, .. }) => {
                let ended = ended.wait_for(Option::is_some).await;
                ended.ok().and_then(|end| end.clone().flatten())
            }
        }
    }
}

/// A process of the owner of processes.
#[derive(Debug, Clone)]
pub(super) struct Surviving {
    owner: Address<Processes>,
    name: ProcessName,
    tag: ProcessTag,
    pid: u32,
    ended: watch::Receiver<Option<Option<End>>>,
}

impl Surviving {
    /// Watches a process as long as the agent's memory exists.
    pub(super) fn of<T: 'static>(owner: Address<Processes>, launched: Launched, memory: Weak<T>) -> Self {
        let Launched { name, tag, pid, .. } = launched;
        let (tell, ended) = watch::channel(None);
        let process = Self { owner, name, tag, pid, ended };
        let awaited = process.clone();
        actix_rt::spawn(async move {
            while memory.strong_count() > 0 {
                let order = AwaitEnd { name: awaited.name.clone(), tag: awaited.tag };
                match awaited.owner.ask(order).await {
                    Ok(Ok(ending)) => return drop(tell.send(Some(Some(ending.into())))),
                    Ok(Err(NoSuchProcess::Unknown { .. })) => return drop(tell.send(Some(None))),
                    Ok(Err(NoSuchProcess::TooMany { .. })) | Err(_) => sleep(RETRY_PAUSE).await,
                }
            }
        });
        process
    }

    fn stop(&self, grace: Duration) {
        let Self { owner, name, tag, ended, .. } = self.clone();
        actix_rt::spawn(async move {
            let order = StopProcess { name, tag: Some(tag), grace };
            // A process that has ended needs no order; an owner that does not answer gets the order again.
            while ended.borrow().is_none() && owner.ask(order.clone()).await.is_err() {
                sleep(RETRY_PAUSE).await;
            }
        });
    }
}

/// Finds the process of this name that an earlier run of the host, or an earlier incarnation of the agent, has left.
pub(super) async fn recall(owner: &Address<Processes>, name: &ProcessName) -> Option<Launched> {
    loop {
        match owner.ask(RecallProcess { name: name.clone() }).await {
            Ok(Ok(Recalled::Proven(launched))) => return Some(launched),
            Ok(Ok(Recalled::Ended { .. } | Recalled::Unknown)) => return None,
            // Nothing may start before the answer is known.
            Ok(Err(_)) | Err(_) => sleep(RETRY_PAUSE).await,
        }
    }
}

/// Ends the processes of allocations that are no longer in the configuration. Returns the allocations whose process has ended.
pub async fn end_departed(owner: &Address<Processes>, configured: &[AllocationId]) -> Vec<AllocationId> {
    let mut ended = Vec::new();
    let configured: Vec<_> = configured.iter().filter_map(|name| process_name(name).ok()).collect();
    let is_departed =
        |name: &ProcessName| name.as_str().starts_with(PROCESS_PREFIX) && !configured.contains(name);
    let reports = owner.ask(ListProcesses).await.unwrap_or_default();
    for report in reports.into_iter().filter(|report| is_departed(&report.name)) {
        let process = report.name.to_string();
        let order = StopProcess { name: report.name, tag: Some(report.tag), grace: STOP_GRACE };
        if let Ok(Ok(ending)) = owner.ask(order).await {
            let how = ending.to_string();
            tracing::info!(
                process,
                how,
                "ended the process of an allocation that is not in the configuration"
            );
            let name = process.strip_prefix(PROCESS_PREFIX).map(AllocationId::new);
            ended.extend(name.and_then(Result::ok));
        }
    }
    ended
}

/// Launches a process that survives the host. In every case at most one process of this name runs; a process that could not be reported is
/// stopped.
///
/// # Errors
/// Why no process is known to run, and whether one may live nevertheless.
pub(super) async fn launch(
    owner: Address<Processes>,
    name: ProcessName,
    order: LaunchOrder,
) -> Result<Launched, LaunchTrouble> {
    let spec = Arc::new(ProcessSpec {
        arguments: order.arguments,
        environment: order.environment,
        inherit: Vec::new(),
        lifetime: Lifetime::Surviving,
        stop_grace: order.stop_grace,
        joins_output: true,
        ..ProcessSpec::new(Executable::at(order.program))
    });
    let stop = StopProcess { name: name.clone(), tag: None, grace: order.stop_grace };
    let mut unknown = EndUnlessKnown(Some((owner.clone(), stop.clone())));
    let launch = LaunchProcess { name, spec };
    let mut launched = owner.ask(launch.clone()).await;
    if let Ok(Err(LaunchError::Occupied { .. })) = launched {
        // An earlier launch had no answer.
        let _ = owner.ask(stop).await;
        // Without an answer it is unknown whether that process has ended.
        if let Ok(answer) = owner.ask(launch).await {
            launched = Ok(answer);
        }
    }
    let launched = launched?.map_err(LaunchTrouble::from);
    if !matches!(launched, Err(LaunchTrouble { may_live: true, .. })) {
        unknown.0 = None;
    }
    launched
}

/// Ends a process if its launch has no answer.
struct EndUnlessKnown(Option<(Address<Processes>, StopProcess)>);

impl Drop for EndUnlessKnown {
    fn drop(&mut self) {
        if let Some((owner, stop)) = self.0.take() {
            // The request is in the mailbox now; its answer is not awaited.
            drop(owner.ask(stop));
        }
    }
}
