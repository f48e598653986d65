//! Classifies the results of an instance's calls.

use callboard_actors::csi::Rpc;
use callboard_actors::instance::{Instance, InstanceCall};
use callboard_actors::shell::{Effect, Input};
use callboard_actors::vocabulary::Health;

use super::child::InstanceLaws;

/// Whether a call failed. A node plugin that declines an optional call does not fail (I7).
pub(super) fn is_failure(laws: &InstanceLaws, input: &Input<Instance>) -> bool {
    match input {
        Input::Returned { call: InstanceCall::Ask(rpc), outcome: Ok(Err(error)), .. } => {
            !laws.may_decline(*rpc, error)
        }
        Input::Returned { outcome, .. } => !matches!(outcome, Ok(Ok(_))),
        Input::Resumed | Input::Asked { .. } | Input::Elapsed(_) | Input::StopRequested(_) => false,
    }
}

/// Whether a call returned that the plugin declined because it is optional.
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

/// Whether this is only asked of a plugin that has reported that it is ready.
pub(super) const fn needs_readiness(rpc: Rpc) -> bool {
    match rpc {
        Rpc::ControllerCapabilities
        | Rpc::GroupControllerCapabilities
        | Rpc::NodeCapabilities
        | Rpc::NodeInfo => true,
        Rpc::PluginInfo | Rpc::PluginCapabilities | Rpc::Probe => false,
    }
}
