//! What the calls of an instance came to.

use callboard_actors::csi::Rpc;
use callboard_actors::instance::{Instance, InstanceCall};
use callboard_actors::shell::{Effect, Input};
use callboard_actors::vocabulary::Health;

use super::child::InstanceLaws;

/// Whether a call came to nothing. That a node plugin declines what it may decline is no failure (I7).
pub(super) fn is_failure(laws: &InstanceLaws, input: &Input<Instance>) -> bool {
    match input {
        Input::Returned { call: InstanceCall::Ask(rpc), outcome: Ok(Err(error)), .. } => {
            !laws.may_decline(*rpc, error)
        }
        Input::Returned { outcome, .. } => !matches!(outcome, Ok(Ok(_))),
        Input::Resumed | Input::Asked { .. } | Input::Elapsed(_) | Input::StopRequested(_) => false,
    }
}

/// Whether a call came back that a node plugin need not have.
pub(super) fn is_declined(laws: &InstanceLaws, input: &Input<Instance>) -> bool {
    match input {
        Input::Returned { call: InstanceCall::Ask(rpc), outcome: Ok(Err(error)), .. } => {
            laws.may_decline(*rpc, error)
        }
        Input::Returned { .. }
        | Input::Resumed
        | Input::Asked { .. }
        | Input::Elapsed(_)
        | Input::StopRequested(_) => false,
    }
}

pub(super) fn publishes_unhealthy(effects: &[Effect<Instance>]) -> bool {
    let is_unhealthy = |effect: &Effect<Instance>| matches!(effect, Effect::Publish(report) if matches!(report.health, Health::Unhealthy { .. }));
    effects.iter().any(is_unhealthy)
}

/// Whether only a plugin that has said that it is ready is asked this.
pub(super) const fn needs_readiness(rpc: Rpc) -> bool {
    match rpc {
        Rpc::ControllerCapabilities
        | Rpc::GroupControllerCapabilities
        | Rpc::NodeCapabilities
        | Rpc::NodeInfo => true,
        Rpc::PluginInfo | Rpc::PluginCapabilities | Rpc::Probe => false,
    }
}
