//! Simulated plugins: their good and bad answers.

use std::collections::BTreeMap;
use std::time::Duration;

use callboard_actors::csi::{Answer, CallError, Cause, Code, Fault, Problem, Readiness, Rpc, Step};
use callboard_actors::instance::{InstanceCall, InstanceConfig, Reached};
use callboard_actors::shell::CallLost;
use callboard_actors::vocabulary::{
    Attempt, ControllerCapability, GroupControllerCapability, Identity, NodeCapability, NodeInfo,
    PluginCapability,
};

/// An instance has one connection.
pub(super) const CONNECTION: Attempt = Attempt::new(1);

/// The behaviour of a plugin in one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Behaviour {
    /// As required.
    Well,
    /// It answers that it is not ready, where a call can ask that.
    NotReady,
    /// It does not implement this call.
    Declines,
    /// It answers with an error.
    Fails,
    /// It dies: the connection breaks.
    Dies,
    /// It does not answer before the deadline.
    Hangs,
    /// Its answer breaks a rule.
    Babbles,
    /// It reports another name than it is registered under.
    Lies,
    /// It answers a different question.
    Mistakes,
}

impl Behaviour {
    /// All behaviours.
    pub const ALL: [Self; 9] = [
        Self::Well,
        Self::NotReady,
        Self::Declines,
        Self::Fails,
        Self::Dies,
        Self::Hangs,
        Self::Babbles,
        Self::Lies,
        Self::Mistakes,
    ];

    /// Its name in scripts and summaries.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Well => "well",
            Self::NotReady => "not-ready",
            Self::Declines => "declines",
            Self::Fails => "fails",
            Self::Dies => "dies",
            Self::Hangs => "hangs",
            Self::Babbles => "babbles",
            Self::Lies => "lies",
            Self::Mistakes => "mistakes",
        }
    }
}

/// The result of a call to a plugin with this behaviour.
pub(super) fn answer_of(
    config: &InstanceConfig,
    call: InstanceCall,
    behaviour: Behaviour,
) -> Result<Result<Reached, CallError>, CallLost> {
    let failed = |step, cause| {
        let deadline = Duration::from_secs(10);
        Ok(Err(CallError::new(step, config.socket.clone(), deadline, cause)))
    };
    let hangs = || Err(CallLost::DeadlineExceeded(Duration::from_secs(12)));
    let babbles = || Cause::Fault(Fault { rule: "C011", field: "answer", problem: Problem::Empty });
    match call {
        InstanceCall::Dial => match behaviour {
            Behaviour::Well | Behaviour::NotReady | Behaviour::Lies => {
                Ok(Ok(Reached::Connected { connection: CONNECTION }))
            }
            Behaviour::Mistakes => Ok(Ok(Reached::Answered(Answer::Probe(Readiness::Ready), Vec::new()))),
            Behaviour::Dies => failed(Step::Dial, Cause::Refused),
            Behaviour::Fails | Behaviour::Declines => failed(Step::Dial, Cause::Absent),
            Behaviour::Babbles => failed(Step::Dial, babbles()),
            Behaviour::Hangs => hangs(),
        },
        InstanceCall::Ask(rpc) => {
            let failed = |cause| failed(Step::Call(rpc), cause);
            let status = |code| failed(Cause::Status { code, message: "as it is told to".into() });
            match (behaviour, rpc) {
                (Behaviour::NotReady, Rpc::Probe) => {
                    Ok(Ok(Reached::Answered(Answer::Probe(Readiness::NotReady), Vec::new())))
                }
                (Behaviour::Lies, Rpc::PluginInfo) => {
                    Ok(Ok(Reached::Answered(Answer::PluginInfo(identity("liar.example")), Vec::new())))
                }
                (Behaviour::Well | Behaviour::NotReady | Behaviour::Lies, rpc) => {
                    Ok(Ok(Reached::Answered(well(config, rpc), Vec::new())))
                }
                (Behaviour::Mistakes, _) => Ok(Ok(Reached::Connected { connection: CONNECTION })),
                (Behaviour::Dies, _) => failed(Cause::Disconnected { detail: "reset".into() }),
                (Behaviour::Fails, _) => status(Code::Unavailable),
                (Behaviour::Declines, _) => status(Code::Unimplemented),
                (Behaviour::Babbles, _) => failed(babbles()),
                (Behaviour::Hangs, _) => hangs(),
            }
        }
        // A plugin that hangs or violates the protocol leaves calls in flight; the others end them somehow.
        InstanceCall::Drain(_) => match behaviour {
            Behaviour::Hangs | Behaviour::Mistakes => {
                Err(CallLost::DeadlineExceeded(config.limits.retire_deadline))
            }
            Behaviour::Well
            | Behaviour::NotReady
            | Behaviour::Declines
            | Behaviour::Fails
            | Behaviour::Dies
            | Behaviour::Babbles
            | Behaviour::Lies => Ok(Ok(Reached::Drained)),
        },
    }
}

fn identity(provider: &str) -> Identity {
    Identity { provider: provider.into(), version: "1.0".into(), manifest: BTreeMap::new() }
}

fn well(config: &InstanceConfig, rpc: Rpc) -> Answer {
    match rpc {
        Rpc::PluginInfo => Answer::PluginInfo(identity(&format!("{}.example", config.plugin.name))),
        Rpc::PluginCapabilities => Answer::PluginCapabilities {
            capabilities: vec![PluginCapability::ControllerService, PluginCapability::GroupControllerService],
            expansion: Vec::new(),
        },
        Rpc::Probe => Answer::Probe(Readiness::Ready),
        Rpc::ControllerCapabilities => {
            Answer::ControllerCapabilities(vec![ControllerCapability::CreateDeleteVolume])
        }
        Rpc::GroupControllerCapabilities => Answer::GroupControllerCapabilities(vec![
            GroupControllerCapability::CreateDeleteGetVolumeGroupSnapshot,
        ]),
        Rpc::NodeCapabilities => Answer::NodeCapabilities(vec![NodeCapability::StageUnstageVolume]),
        Rpc::NodeInfo => {
            Answer::NodeInfo(NodeInfo { node_id: "node-1".into(), max_volumes: None, topology: None })
        }
    }
}
