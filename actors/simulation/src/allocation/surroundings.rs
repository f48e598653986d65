//! The surroundings of a task that is a plugin, as plain models: its process and its files.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use callboard_actors::allocation::{AllocationCall, AllocationOutcome, PrepareError};
use callboard_actors::csi::{Answer, CallError, Cause, Denial, Readiness, Rpc, SocketFile, Step};
use callboard_actors::instances::AwaitRetiredError;
use callboard_actors::shell::CallLost;
use callboard_actors::vocabulary::{AllocationId, Health, Identity, SocketPath};

use super::event::Reply;

/// The process of one task and its directory.
#[derive(Debug, Clone, Hash)]
pub(in super::super) struct Surroundings {
    allocation: AllocationId,
    socket: SocketPath,
    /// The name that the plugin reports.
    provider: Arc<str>,
    /// How many processes of the plugin there have been. The version that each reports is its number.
    pub(in super::super) process: u64,
    pub(in super::super) has_directory: bool,
}

impl Surroundings {
    pub(in super::super) const fn new(
        allocation: AllocationId,
        socket: SocketPath,
        provider: Arc<str>,
    ) -> Self {
        Self { allocation, socket, provider, process: 0, has_directory: false }
    }

    /// The version of the running plugin.
    pub(in super::super) fn version(&self) -> Arc<str> {
        self.process.to_string().into()
    }

    /// The result of a call that was made while this process ran. `None` if the call is neither to the task or its files, nor to the
    /// instances.
    pub(in super::super) fn meet(
        &mut self,
        call: &AllocationCall,
        process: u64,
        reply: Reply,
    ) -> Option<Result<AllocationOutcome, CallLost>> {
        if reply == Reply::Late {
            return Some(Err(CallLost::DeadlineExceeded(Duration::from_secs(5))));
        }
        let is_good = reply == Reply::Good;
        Some(Ok(match call {
            AllocationCall::MakeDirectories(_) => {
                self.has_directory |= is_good;
                AllocationOutcome::Made(is_good.then_some(()).ok_or_else(|| self.no_directory()))
            }
            AllocationCall::FindSocket => AllocationOutcome::Found(match reply {
                Reply::Good => Ok(SocketFile::numbered(process)),
                Reply::Odd => Err(self.denied()),
                Reply::Bad | Reply::Late => Err(Cause::Absent),
            }),
            AllocationCall::Ask(rpc) => AllocationOutcome::Answered(self.answer(*rpc, process, is_good)),
            AllocationCall::AskHealth => AllocationOutcome::Health(Ok(match reply {
                Reply::Good => vec![Health::Healthy],
                Reply::Odd => Vec::new(),
                Reply::Bad | Reply::Late => vec![Health::Unhealthy { reason: "it fails".to_owned() }],
            })),
            AllocationCall::AwaitRetired => AllocationOutcome::Retired(Ok(match reply {
                Reply::Good => Ok(()),
                Reply::Odd => Err(self.still_serving()),
                Reply::Bad | Reply::Late => Err(AwaitRetiredError::TooMany { waiting: 9 }),
            })),
            AllocationCall::RemoveDirectory => {
                self.has_directory &= !is_good;
                AllocationOutcome::Removed(
                    (!is_good).then(|| "a file was left".to_owned()).into_iter().collect(),
                )
            }
            // These are handled elsewhere.
            AllocationCall::Register(_) | AllocationCall::Deregister(_) => return None,
        }))
    }

    fn answer(&self, rpc: Rpc, process: u64, is_good: bool) -> Result<Answer, CallError> {
        match (rpc, is_good) {
            (Rpc::Probe, true) => Ok(Answer::Probe(Readiness::Ready)),
            (Rpc::Probe, false) => Ok(Answer::Probe(Readiness::NotReady)),
            (_, true) => {
                let (provider, version) = (Arc::clone(&self.provider), process.to_string().into());
                Ok(Answer::PluginInfo(Identity { provider, version, manifest: BTreeMap::new() }))
            }
            (_, false) => {
                let cause = Cause::Disconnected { detail: "broken pipe".to_owned() };
                Err(CallError::new(Step::Call(rpc), self.socket.clone(), Duration::from_secs(5), cause))
            }
        }
    }

    /// The result of directories for a task at whose socket an unexpected process listens.
    pub(in super::super) fn taken(&self) -> AllocationOutcome {
        AllocationOutcome::Made(Err(PrepareError::SocketInUse { socket: self.socket.clone() }))
    }

    fn no_directory(&self) -> PrepareError {
        PrepareError::Disk {
            allocation: self.allocation.clone(),
            path: PathBuf::from("/data"),
            reason: "the disk is full".to_owned(),
        }
    }

    fn denied(&self) -> Cause {
        let path = self.socket.to_string();
        Cause::Denied(Denial {
            path,
            owner_uid: 0,
            owner_gid: 0,
            mode: 0o755,
            our_uid: 1_000,
            our_gid: 1_000,
        })
    }

    fn still_serving(&self) -> AwaitRetiredError {
        AwaitRetiredError::StillServing {
            allocation: self.allocation.clone(),
            waited: Duration::from_secs(10),
        }
    }
}
