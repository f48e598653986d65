//! The instances as a part of a host: one node of the tree for each.

use std::time::Duration;

use callboard_actors::instances::{self, DescribeInstances, InstanceStatus, Instances, InstancesOptions};
use callboard_actors::lease::LeasedCalls;
use callboard_actors::supervisor::TreeNode;
use callboard_actors::vocabulary::Health;

use super::options::Options;
use super::part::Part;
use crate::host::Host;

/// How much longer than its instances the part may take to end: an instance that has not retired by then is killed at once.
const STOP_MARGIN: Duration = Duration::from_secs(5);

pub(super) fn part(host: &Host, options: &Options) -> Part<Instances> {
    let probings = options.probings.clone();
    let options = InstancesOptions { probings, ..options.instances.clone() };
    let retire_bound = options.retire_bound();
    Part::new(host.instances(), move |address, context| {
        let host = context.host();
        let (registry, connections) = (host.registry().clone(), host.connections().clone());
        let listeners = host.listeners();
        instances::start(address, registry, options.clone(), connections, listeners, context.settings())
    })
    .after("registry")
    .described_by(|| DescribeInstances, |instances| instances.into_iter().map(instance_node).collect())
    .stops_within(retire_bound.saturating_add(STOP_MARGIN))
}

fn instance_node(status: InstanceStatus) -> TreeNode {
    let InstanceStatus { report, is_active, state, restarts, vitals, calls } = status;
    let mut message = match &report.health {
        Health::Unhealthy { reason } => reason.clone(),
        Health::Starting | Health::Healthy | Health::Gone => {
            format!("{}, generation {}", report.allocation, report.generation)
        }
    };
    if !is_active {
        message.push_str(", stands by");
    }
    if calls != LeasedCalls::default() {
        message.push_str(&format!(", {calls}"));
    }
    TreeNode {
        name: report.plugin.to_string(),
        kind: "instance".to_owned(),
        state: format!("{}, {}", state.as_str(), report.health.as_str()),
        restarts,
        crashes: vitals.map(|vitals| vitals.crashes),
        mailbox_depth: vitals.map(|vitals| vitals.mailbox_depth),
        message,
        ..TreeNode::default()
    }
}
