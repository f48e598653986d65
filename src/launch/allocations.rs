//! The allocations as a part of a host: one node of the tree for each. They deregister while registry and instances still run.

use std::rc::Rc;
use std::time::Duration;

use callboard_actors::allocation::{Addresses, Layout};
use callboard_actors::allocations::{
    self, AllocationDescription, Allocations, AllocationsMemory, AllocationsOptions, DescribeAllocations,
};
use callboard_actors::supervisor::TreeNode;

use super::options::Options;
use super::part::Part;
use crate::host::Host;

/// How much longer than its allocations the part may take to end.
const STOP_MARGIN: Duration = Duration::from_secs(5);

pub(super) fn part(host: &Host, options: &Options, layout: Layout) -> Part<Allocations> {
    let options = AllocationsOptions {
        each: options.allocation,
        probings: options.probings.clone(),
        ..AllocationsOptions::new(layout)
    };
    let stop_deadline = options.shutdown_deadline().saturating_add(STOP_MARGIN);
    Part::remembering(host.allocations(), move |address, context| {
        let (address, options, settings) = (address.clone(), options.clone(), context.settings());
        let (registry, instances) = (context.host().registry().clone(), context.host().instances().clone());
        let volumes = Some(context.host().volumes().clone());
        let listeners = context.host().listeners();
        let database = Some(context.host().database().clone());
        let neighbours = Rc::new(Addresses { registry, instances, volumes, listeners, database });
        let memory = AllocationsMemory::default();
        move || {
            let (options, neighbours) = (options.clone(), neighbours.clone());
            Ok(allocations::start(&address, options, neighbours, memory.clone(), settings.clone()))
        }
    })
    .after("registry")
    .after("instances")
    .described_by(
        || DescribeAllocations,
        |allocations| allocations.into_iter().map(allocation_node).collect(),
    )
    .stops_within(stop_deadline)
}

fn allocation_node(description: AllocationDescription) -> TreeNode {
    let AllocationDescription { status, crashes, given_up, vitals } = description;
    TreeNode {
        name: status.allocation.to_string(),
        kind: "allocation".to_owned(),
        state: format!("{}, {}", status.phase.as_str(), status.health.as_str()),
        restarts: crashes,
        crashes: vitals.map(|vitals| vitals.crashes),
        mailbox_depth: vitals.map(|vitals| vitals.mailbox_depth),
        message: given_up.unwrap_or(status.last_event),
        ..TreeNode::default()
    }
}
