//! The drivers as a part of a host: one node of the tree for each. They end before their processes.

use std::rc::Rc;
use std::time::Duration;

use callboard_actors::driver::{DriverReport, ProcessOwner};
use callboard_actors::drivers::{self, Drivers, DriversMemory, ListDrivers};
use callboard_actors::lease::LeasedCalls;
use callboard_actors::supervisor::TreeNode;
use callboard_actors::vocabulary::Generation;

use super::options::Options;
use super::part::Part;
use crate::host::Host;

/// The minimum stop deadline. The part itself reports how long it takes with the grace periods of the drivers.
const STOP_DEADLINE: Duration = Duration::from_secs(30);

pub(super) fn part(host: &Host, options: &Options) -> Part<Drivers> {
    let (options, owners) = (options.drivers.clone(), options.process_owners.clone());
    let connections = host.driver_connections().clone();
    let node = move |report: DriverReport| {
        let calls = connections.calls_of(&report.name);
        driver_node(report, calls)
    };
    Part::remembering(host.drivers(), move |address, context| {
        let (address, options, settings) = (address.clone(), options.clone(), context.settings());
        let owner: Rc<dyn ProcessOwner> = match &owners {
            Some(owners) => owners.make(),
            None => Rc::new(context.host().processes().clone()),
        };
        let memory =
            DriversMemory::of_run(context.host().run_number(), context.host().task_journals().clone());
        let connections = context.host().driver_connections().clone();
        move || {
            let (options, connections) = (options.clone(), connections.clone());
            Ok(drivers::start(
                &address,
                options,
                owner.clone(),
                memory.clone(),
                connections,
                settings.clone(),
            ))
        }
    })
    .after("processes")
    .described_by(|| ListDrivers, move |drivers| drivers.into_iter().map(&node).collect())
    .stops_within(STOP_DEADLINE)
}

fn driver_node(report: DriverReport, calls: LeasedCalls) -> TreeNode {
    let pid = report.pid.map_or("no process".to_owned(), |pid| format!("pid {pid}"));
    let mut message = pid;
    if report.generation != Generation::default() {
        message.push_str(&format!(", generation {}", report.generation));
    }
    if calls != LeasedCalls::default() {
        message.push_str(&format!(", {calls}"));
    }
    if !report.reason.is_empty() {
        message.push_str(&format!(": {}", report.reason));
    }
    TreeNode {
        name: report.name.to_string(),
        kind: "driver".to_owned(),
        state: format!("{}, {}", report.stage, report.health),
        restarts: report.launches.saturating_sub(1),
        message,
        ..TreeNode::default()
    }
}
