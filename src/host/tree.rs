//! How those who supervise actors of their own show them in the tree.

use callboard_actors::allocations::{AllocationDescription, Allocations, DescribeAllocations};
use callboard_actors::driver::DriverReport;
use callboard_actors::drivers::{Drivers, ListDrivers};
use callboard_actors::instances::{DescribeInstances, InstanceStatus, Instances};
use callboard_actors::shell::Address;
use callboard_actors::supervisor::{ChildDescription, TreeNode};
use callboard_actors::vocabulary::Health;

/// The instances, one node for each plugin.
pub(crate) async fn describe_instances(address: Address<Instances>) -> Option<ChildDescription> {
    let instances = address.ask(DescribeInstances).await.ok()?;
    let children = instances.into_iter().map(instance_node).collect();
    Some(ChildDescription { vitals: address.vitals(), children })
}

fn instance_node(status: InstanceStatus) -> TreeNode {
    let InstanceStatus { report, state, restarts, vitals } = status;
    let message = match &report.health {
        Health::Unhealthy { reason } => reason.clone(),
        Health::Starting | Health::Healthy | Health::Gone => {
            format!("{}, generation {}", report.allocation, report.generation)
        }
    };
    TreeNode {
        name: report.plugin.to_string(),
        kind: "instance".to_owned(),
        state: format!("{}, {}", state.as_str(), report.health.as_str()),
        restarts,
        crashes: vitals.map(|vitals| vitals.crashes),
        mailbox_depth: vitals.map(|vitals| vitals.mailbox_depth),
        message,
        children: Vec::new(),
    }
}

/// The allocations, one node for each.
pub(crate) async fn describe_allocations(address: Address<Allocations>) -> Option<ChildDescription> {
    let allocations = address.ask(DescribeAllocations).await.ok()?;
    let children = allocations.into_iter().map(allocation_node).collect();
    Some(ChildDescription { vitals: address.vitals(), children })
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
        children: Vec::new(),
    }
}

/// The drivers, one node for each.
pub(crate) async fn describe_drivers(address: Address<Drivers>) -> Option<ChildDescription> {
    let drivers = address.ask(ListDrivers).await.ok()?;
    let children = drivers.into_iter().map(driver_node).collect();
    Some(ChildDescription { vitals: address.vitals(), children })
}

fn driver_node(report: DriverReport) -> TreeNode {
    let pid = report.pid.map_or("no process".to_owned(), |pid| format!("pid {pid}"));
    let message = if report.reason.is_empty() {
        format!("{pid}, generation {}", report.generation)
    } else {
        format!("{pid}, generation {}: {}", report.generation, report.reason)
    };
    TreeNode {
        name: report.name.to_string(),
        kind: "driver".to_owned(),
        state: format!("{}, {}", report.stage, report.health),
        restarts: report.launches.saturating_sub(1),
        crashes: None,
        mailbox_depth: None,
        message,
        children: Vec::new(),
    }
}
