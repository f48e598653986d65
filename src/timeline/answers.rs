//! Converts the answers of actors into lines.

use std::any::Any;
use std::fmt::Display;

use callboard_actors::allocations::{
    AllocationStatus, AllocationStopped, AllocationsAnswer, PrepareError, StopAllocationError, TaskContext,
    UnknownAllocation,
};
use callboard_actors::driver::{DriverReport, Folded};
use callboard_actors::drivers::{Added, DriverStatus, DriversAnswer, Removed};
use callboard_actors::instances::{Dispensed, InstanceReport, InstanceStatus, InstancesAnswer};
use callboard_actors::inventory::{InventoryAnswer, InventoryView};
use callboard_actors::process::{Launched, ProcessEnding};
use callboard_actors::processes::{ProcessesAnswer, Recalled};
use callboard_actors::registry::{
    Active, Deregistered, Description, Entry, RegisterError, Registered, RegistryAnswer, Standby, WaitError,
};
use callboard_actors::supervisor::{SupervisorAnswer, TreeNode};
use callboard_actors::vocabulary::FailoverPolicy;

use super::allocations::status;
use super::drivers::driver;
pub(crate) use super::drivers::driver_summary;
use super::instances::report;
use super::inventory::{offer, summary};
use super::news_lines::joined;
use super::registry::{active, lacks, registration};
pub(crate) use super::supervisor::stopped;
use super::volumes;

/// An answer of any actor, as lines; none for an empty answer, as to a child that reports.
pub(crate) fn answer(answer: &dyn Any) -> Option<String> {
    if let Some(answer) = answer.downcast_ref() {
        return Some(registry(answer));
    }
    if let Some(answer) = answer.downcast_ref() {
        return instances(answer);
    }
    if let Some(answer) = answer.downcast_ref() {
        return Some(inventory(answer));
    }
    if let Some(answer) = answer.downcast_ref() {
        return allocations(answer);
    }
    if let Some(answer) = answer.downcast_ref() {
        return drivers(answer);
    }
    if let Some(answer) = answer.downcast_ref() {
        return processes(answer);
    }
    if let Some(answer) = answer.downcast_ref() {
        return volumes::answer(answer);
    }
    answer.downcast_ref().map(supervisor)
}

/// The effect of a request, or why it failed.
pub(crate) fn done<T, E: Display>(answer: &Result<T, E>, done: &str) -> String {
    or_no(answer, |_| done.to_owned())
}

pub(super) fn or_no<T, E: Display>(answer: &Result<T, E>, tell: impl Fn(&T) -> String) -> String {
    answer.as_ref().map_or_else(|error| format!("no: {error}"), tell)
}

/// The lines of a list, or a line that reports that it is empty.
pub(crate) fn lines(all: impl IntoIterator<Item = String>, none: &str) -> String {
    let all: Vec<_> = all.into_iter().collect();
    if all.is_empty() { none.to_owned() } else { all.join("\n") }
}

// === The registry ===

fn registry(answer: &RegistryAnswer) -> String {
    match answer {
        RegistryAnswer::Register(answer) => registered(answer),
        RegistryAnswer::Deregister(answer) => deregistered(answer),
        RegistryAnswer::ReportFitness(()) | RegistryAnswer::Renew(()) => "noted".to_owned(),
        RegistryAnswer::List(entries) => listed(entries),
        RegistryAnswer::Describe(description) => described(description),
        RegistryAnswer::DescribePlugins(all) => all_described(all),
        RegistryAnswer::RegistrationOf(entry) => registration_of(entry.as_ref()),
        RegistryAnswer::WaitForPlugin(answer) => waited(answer),
    }
}

pub(crate) fn registered(answer: &Result<Registered, RegisterError>) -> String {
    match answer {
        Ok(Registered::New) => "new".to_owned(),
        Ok(Registered::Updated) => "updated".to_owned(),
        Ok(Registered::Unchanged) => "unchanged".to_owned(),
        Err(error) => format!("refused: {error}"),
    }
}

pub(crate) fn deregistered(answer: &Deregistered) -> String {
    match answer {
        Deregistered::Removed(plugins) => format!("removed {}", joined(plugins)),
        Deregistered::NotRegistered => "was not registered".to_owned(),
    }
}

pub(crate) fn listed(entries: &[Entry]) -> String {
    lines(entries.iter().map(registration), "no plugin is registered")
}

pub(crate) fn described(description: &Description) -> String {
    let mut text = format!("active {}", active(description.active.as_ref()));
    if description.active.is_some() && description.policy != FailoverPolicy::default() {
        text.push_str(&format!(" by policy {}", description.policy));
    }
    if let Some(active_because) = description.active_because {
        text.push_str(&format!(", {active_because}"));
    }
    for Standby { entry, inactive_because } in &description.standby {
        text.push_str(&format!("; standby {}: {}", entry.registration.allocation, lacks(inactive_because)));
    }
    if !description.provisional.is_empty() {
        let names: Vec<_> =
            description.provisional.iter().map(|entry| entry.registration.allocation.clone()).collect();
        text.push_str(&format!("; not confirmed {}", joined(&names)));
    }
    text
}

pub(crate) fn all_described(all: &[Description]) -> String {
    lines(all.iter().map(|one| format!("{}: {}", one.plugin, described(one))), "no plugin is registered")
}

pub(crate) fn registration_of(entry: Option<&Entry>) -> String {
    entry.map_or("not registered".to_owned(), registration)
}

pub(crate) fn waited(answer: &Result<Active, WaitError>) -> String {
    match answer {
        Ok(entry) => format!("there: {}", active(Some(entry))),
        Err(error) => format!("not there: {error}"),
    }
}

// === The instances and the inventory ===

fn instances(answer: &InstancesAnswer) -> Option<String> {
    Some(match answer {
        InstancesAnswer::Dispense(answer) => dispensed(answer),
        InstancesAnswer::CheckNow(answer) => checked(answer),
        InstancesAnswer::HealthOf(reports) => health(reports),
        InstancesAnswer::AwaitHealthy(Ok(())) => "healthy for long enough".to_owned(),
        InstancesAnswer::AwaitHealthy(Err(error)) => error.to_string(),
        InstancesAnswer::AwaitRetired(answer) => retired(answer),
        InstancesAnswer::DescribeInstances(all) => instance_list(all),
        InstancesAnswer::InstanceReported(()) => return None,
    })
}

pub(crate) fn dispensed<E: Display>(answer: &Result<Dispensed, E>) -> String {
    let here = |Dispensed { plugin, allocation, generation, .. }: &Dispensed| {
        format!("here: {plugin} of {allocation} @{generation}")
    };
    or_no(answer, here)
}

pub(crate) fn checked<E: Display>(answer: &Result<InstanceReport, E>) -> String {
    or_no(answer, report)
}

pub(crate) fn health(reports: &[InstanceReport]) -> String {
    lines(reports.iter().map(report), "no instance talks to it")
}

pub(crate) fn retired<E: Display>(answer: &Result<(), E>) -> String {
    done(answer, "no instance talks to it any more")
}

pub(crate) fn instance_list(all: &[InstanceStatus]) -> String {
    let told = |status: &InstanceStatus| {
        let InstanceStatus { report: reported, state, restarts, calls, .. } = status;
        let calls = if calls.leases > 0 { format!(", {calls}") } else { String::new() };
        format!("{}, {}, {restarts} restarts{calls}", report(reported), state.as_str())
    };
    lines(all.iter().map(told), "no instances")
}

fn inventory(answer: &InventoryAnswer) -> String {
    match answer {
        InventoryAnswer::TakeInventory(view) => offered(view),
        InventoryAnswer::AwaitFirst(view) => first(view),
    }
}

pub(crate) fn offered(view: &InventoryView) -> String {
    if view.first.is_none() {
        return "nothing is told before the first inventory".to_owned();
    }
    lines(view.offers.iter().map(offer), "this node offers nothing")
}

pub(crate) fn first(view: &InventoryView) -> String {
    let found = view.first.as_ref();
    found.map_or("not waited for".to_owned(), |found| format!("first inventory: {}", summary(found)))
}

// === The allocations ===

fn allocations(answer: &AllocationsAnswer) -> Option<String> {
    Some(match answer {
        AllocationsAnswer::PrepareAllocation(answer) | AllocationsAnswer::AdoptAllocation(answer) => {
            prepared(answer)
        }
        AllocationsAnswer::TaskStarted(answer) | AllocationsAnswer::TaskExited(answer) => noted(answer),
        AllocationsAnswer::StopAllocation(answer) => allocation_stopped(answer),
        AllocationsAnswer::ListAllocations(all) => allocation_list(all),
        AllocationsAnswer::DescribeAllocations(all) => {
            lines(all.iter().map(|one| one.status.allocation.to_string()), "no allocations")
        }
        AllocationsAnswer::AllocationReported(()) => return None,
    })
}

pub(crate) fn allocation_list(all: &[AllocationStatus]) -> String {
    lines(all.iter().map(status), "no allocations")
}

pub(crate) fn prepared(answer: &Result<TaskContext, PrepareError>) -> String {
    match answer {
        Ok(context) => {
            let set = context.environment.iter().map(|(name, value)| format!("{name}={value}"));
            lines(std::iter::once(format!("socket {}", context.socket)).chain(set), "")
        }
        Err(error) => format!("refused: {error}"),
    }
}

pub(crate) fn noted(answer: &Result<(), UnknownAllocation>) -> String {
    answer.as_ref().map_or_else(|error| format!("refused: {error}"), |()| "noted".to_owned())
}

pub(crate) fn allocation_stopped(answer: &Result<AllocationStopped, StopAllocationError>) -> String {
    match answer {
        Ok(AllocationStopped { deregistered, remarks }) => {
            let first = if *deregistered { "stopped and deregistered" } else { "stopped" };
            lines(std::iter::once(first.to_owned()).chain(remarks.iter().cloned()), "")
        }
        Err(error) => format!("refused: {error}"),
    }
}

// === The drivers and the processes ===

fn drivers(answer: &DriversAnswer) -> Option<String> {
    Some(match answer {
        DriversAnswer::AddDriver(answer) => added(answer),
        DriversAnswer::RemoveDriver(answer) => removed(answer),
        DriversAnswer::RestartDriver(answer) => done(answer, "noted"),
        DriversAnswer::ListDrivers(reports) => driver_list(reports),
        DriversAnswer::DescribeDriver(answer) => driver_status(answer),
        DriversAnswer::AwaitDrivers(found) => driver_summary(found),
        DriversAnswer::DispenseDriver(answer) => done(answer, "here"),
        DriversAnswer::AnnounceTask(answer) | DriversAnswer::RegisterTaskHandler(answer) => {
            done(answer, "noted")
        }
        DriversAnswer::ForgetTaskHandler(()) | DriversAnswer::GiveUpDriver(()) => "noted".to_owned(),
        DriversAnswer::RecentTaskEvents(events) => recent(events),
        DriversAnswer::DriverReported(()) | DriversAnswer::EventorReported(()) => return None,
    })
}

pub(crate) fn added<E: Display>(answer: &Result<Added, E>) -> String {
    match answer {
        Ok(Added::New) => "new".to_owned(),
        Ok(Added::Unchanged) => "unchanged".to_owned(),
        Ok(Added::Replacing) => "replacing".to_owned(),
        Err(error) => format!("refused: {error}"),
    }
}

pub(crate) fn removed<E: Display>(answer: &Result<Removed, E>) -> String {
    or_no(answer, |removed| match removed {
        Removed::Ended { ending } => format!("removed; its process ended: {ending}"),
        Removed::NothingRan => "removed; nothing ran".to_owned(),
        Removed::Untold => "removed; it is unknown how its process ended".to_owned(),
    })
}

pub(crate) fn driver_list(reports: &[DriverReport]) -> String {
    lines(reports.iter().map(driver), "no drivers")
}

pub(crate) fn driver_status<E: Display>(answer: &Result<DriverStatus, E>) -> String {
    or_no(answer, |DriverStatus { report, troubles, tasks_watched, restarts, calls }| {
        let mut first = format!(
            "{}; {} launches, {tasks_watched} tasks watched, {restarts} restarts of its actor",
            driver(report),
            report.launches
        );
        if calls.leases > 0 {
            first.push_str(&format!(", {calls}"));
        }
        lines(std::iter::once(first).chain(troubles.iter().map(|folded| format!("trouble: {folded}"))), "")
    })
}

pub(crate) fn recent(events: &[Folded]) -> String {
    lines(events.iter().map(ToString::to_string), "nothing is known of it")
}

fn processes(answer: &ProcessesAnswer) -> Option<String> {
    let launched = |launched: &Launched| format!("process {} runs", launched.pid);
    let ended = |ending: &ProcessEnding| format!("ended: {ending}");
    Some(match answer {
        ProcessesAnswer::LaunchProcess(answer) => or_no(answer, launched),
        ProcessesAnswer::RecallProcess(answer) => or_no(answer, |recalled| match recalled {
            Recalled::Proven(found) => format!("still there: {}", launched(found)),
            Recalled::Ended { reason, .. } => format!("gone: {reason}"),
            Recalled::Unknown => "not known".to_owned(),
        }),
        ProcessesAnswer::StopProcess(answer) | ProcessesAnswer::AwaitEnd(answer) => or_no(answer, ended),
        ProcessesAnswer::ListProcesses(all) => {
            lines(all.iter().map(|report| report.name.to_string()), "no processes")
        }
        ProcessesAnswer::DescribeProcess(report) => {
            let report = report.as_ref();
            report.map_or("not known".to_owned(), |report| report.phase.as_str().to_owned())
        }
        ProcessesAnswer::ProcessReported(()) => return None,
    })
}

// === Supervisors ===

fn supervisor(answer: &SupervisorAnswer) -> String {
    match answer {
        SupervisorAnswer::AwaitStarted(answer) => done(answer, "all have started"),
        SupervisorAnswer::RestartChild(answer) => done(answer, "it runs again"),
        SupervisorAnswer::DescribeTree(root) => tree(root),
        SupervisorAnswer::Shutdown(answer) => or_no(answer, stopped),
    }
}

pub(crate) fn tree(root: &TreeNode) -> String {
    let mut text = String::new();
    branch(root, 0, &mut text);
    text
}

fn branch(node: &TreeNode, depth: usize, text: &mut String) {
    let indent = "  ".repeat(depth);
    let crashes = node.crashes.filter(|crashes| *crashes > 0);
    let crashes = crashes.map(|crashes| format!(", {crashes} crashes")).unwrap_or_default();
    let restarts = if node.restarts > 0 { format!(", {} restarts", node.restarts) } else { String::new() };
    text.push_str(&format!("{indent}{}: {}{restarts}{crashes}\n", node.name, node.state));
    node.children.iter().for_each(|child| branch(child, depth + 1, text));
}
