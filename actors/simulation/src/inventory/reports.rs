//! The reports of instances and allocations in the small world.

use std::time::Duration;

use callboard_actors::allocations::{AllocationPhase, AllocationStatus};
use callboard_actors::instances::InstanceReport;
use callboard_actors::vocabulary::{Fitness, Generation, Health, Role, SocketPath, TaskName, Timestamp};

use super::event::{Word, allocation, plugin};

/// A change of an instance, with its report.
pub(super) fn said(
    report: &mut Option<InstanceReport>,
    generations: &mut u64,
    (plugin, allocation): (usize, &str),
    word: Word,
) -> Option<InstanceReport> {
    if word == Word::Starts {
        *generations += 1;
        *report = Some(self::report(plugin, allocation, *generations));
    }
    let report = report.as_mut()?;
    report.health = match word {
        Word::Starts => Health::Starting,
        Word::Serves => Health::Healthy,
        Word::Ails => Health::Unhealthy { reason: "it fails".to_owned() },
        Word::Retires | Word::Leaves => Health::Gone,
    };
    Some(report.clone())
}

/// The report of an allocation's supervisor.
pub(super) fn prepared(name: &str) -> AllocationStatus {
    AllocationStatus {
        allocation: allocation(name),
        task: TaskName::new("plugin").expect("it is a name"),
        plugin: plugin(0).name,
        role: Role::Node,
        phase: AllocationPhase::Prepared,
        health: Health::Starting,
        socket: SocketPath::new("/run/blue.sock").expect("it is short and absolute"),
        since: Timestamp::from_epoch(Duration::ZERO),
        last_event: String::new(),
    }
}

/// A new instance that starts.
fn report(place: usize, name: &str, generation: u64) -> InstanceReport {
    InstanceReport {
        plugin: plugin(place),
        allocation: allocation(name),
        socket: SocketPath::new("/run/red.sock").expect("it is short and absolute"),
        generation: Generation::new(generation),
        health: Health::Starting,
        since: Timestamp::from_epoch(Duration::ZERO),
        fitness: Fitness::Unproven,
        fingerprint: None,
        remarks: Vec::new(),
    }
}
