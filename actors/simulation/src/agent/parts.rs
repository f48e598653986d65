//! The processes and the configuration of the small world.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use callboard_actors::agent::{AgentOutcome, AllocationConfig};
use callboard_actors::allocations::{AllocationsNews, RestartWhen, TaskContext};
use callboard_actors::instances::AwaitHealthy;
use callboard_actors::shell::FeedItem;
use callboard_actors::vocabulary::{
    AllocationId, Attempt, PluginName, Probing, Role, SocketPath, TaskName, Timestamp,
};

use super::event::Who;
use crate::{Law, Violation};

#[derive(Debug, Clone, Hash)]
pub(super) struct Process {
    pub(super) attempt: Attempt,
    pub(super) pid: u32,
    /// The time at which it is killed, if it was asked to end.
    pub(super) killed_at: Option<Timestamp>,
    /// Whether it survives that kill.
    pub(super) hangs: bool,
}

impl Process {
    pub(super) const fn new(attempt: Attempt, pid: u32) -> Self {
        Self { attempt, pid, killed_at: None, hangs: false }
    }

    /// The time at which it ends without a further event.
    pub(super) fn ends_at(&self) -> Option<Timestamp> {
        self.killed_at.filter(|_| !self.hangs)
    }
}

/// A question about health.
#[derive(Debug, Clone, Hash)]
pub(super) struct Question {
    pub(super) call: u64,
    pub(super) awaited: AwaitHealthy,
    pub(super) until: Timestamp,
}

/// `old` starts with the host.
pub(super) fn allocation(who: Who) -> AllocationConfig {
    AllocationConfig {
        name: who.id(),
        plugin: PluginName::new("zfs").expect("it is a name"),
        role: Role::Node,
        program: PathBuf::from("/bin/zfs-csi"),
        arguments: Vec::new(),
        environment: BTreeMap::new(),
        health_timeout: Duration::from_secs(30),
        restart_when: RestartWhen::Never,
        probing: Probing::default(),
        failover: None,
        volumes: Vec::new(),
        start: who == Who::Old,
        survives: false,
        stop_grace: Duration::from_secs(5),
    }
}

pub(super) fn violation(law: Law, what: impl Into<String>) -> Result<(), Violation> {
    Err(Violation { law, what: what.into() })
}

pub(super) fn context(allocation: &AllocationId) -> TaskContext {
    let socket = SocketPath::new(format!("/{allocation}.sock")).expect("it is short and absolute");
    TaskContext { environment: BTreeMap::new(), mounts: Vec::new(), socket }
}

/// The allocations' request to restart an allocation's process.
pub(super) fn restart_requested(who: Who) -> AgentOutcome {
    let task = TaskName::new("plugin").expect("it is a name");
    let news =
        AllocationsNews::RestartRequested { allocation: who.id(), task, reason: "it fails".to_owned() };
    AgentOutcome::Followed(Ok(vec![FeedItem::Change { number: 1, news }]))
}
