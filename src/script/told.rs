//! What the actors say, as lines of a script.

use std::any::Any;
use std::fmt::Display;

use callboard_actors::allocations::{AllocationStatus, AllocationsNews};
use callboard_actors::driver::{DriverReport, GapReason, TaskEventItem};
use callboard_actors::drivers::{DriverSummary, DriversNews};
use callboard_actors::hclspec::{Spec, Value};
use callboard_actors::instances::{InstanceReport, InstancesNews};
use callboard_actors::inventory::{FirstSummary, InventoryNews, Offer};
use callboard_actors::processes::ProcessesNews;
use callboard_actors::registry::{Active, Departure, Entry, RegistryNews, Standing};
use callboard_actors::shell::{Ending, Recorded};
use callboard_actors::supervisor::{ShutdownReport, StopOutcome, SupervisorNews};
use callboard_actors::vocabulary::Health;

/// One thing that an actor did, as a line, unless it is nobody's business outside.
pub(super) fn entry(entry: &Recorded) -> Option<String> {
    match entry {
        Recorded::Published { news, .. } => self::news(&**news),
        Recorded::Crashed { message, .. } => Some(format!("crashed: {message}")),
        Recorded::WriteFailed { error } => Some(format!("could not write: {error}")),
        Recorded::Built { is_rebuilt: true } => Some("was rebuilt from what is on disk".to_owned()),
        Recorded::Ended { ending: Ending::Normal, .. } => None,
        Recorded::Ended { ending, .. } => Some(format!("ended: {}", self::ending(ending))),
        Recorded::Built { is_rebuilt: false }
        | Recorded::LoadFailed { .. }
        | Recorded::Holds { .. }
        | Recorded::Called { .. }
        | Recorded::Lagged { .. }
        | Recorded::Stepped { .. }
        | Recorded::Stale
        | Recorded::Writing { .. }
        | Recorded::OnDisk { .. } => None,
    }
}

/// News of an actor, as a line, if they concern others.
pub(crate) fn news(news: &dyn Any) -> Option<String> {
    if let Some(news) = news.downcast_ref() {
        return Some(registry(news));
    }
    if let Some(news) = news.downcast_ref() {
        return Some(instances(news));
    }
    if let Some(news) = news.downcast_ref() {
        return Some(inventory(news));
    }
    if let Some(news) = news.downcast_ref() {
        return Some(allocations(news));
    }
    if let Some(news) = news.downcast_ref() {
        return Some(drivers(news));
    }
    if let Some(news) = news.downcast_ref() {
        return Some(processes(news));
    }
    news.downcast_ref().and_then(supervisor)
}

fn registry(news: &RegistryNews) -> String {
    match news {
        RegistryNews::Registered(entry) => about(entry, "registered as"),
        RegistryNews::Updated(entry) => about(entry, "updated its registration as"),
        RegistryNews::Deregistered(entry, Departure::Deregistered) => about(entry, "deregistered as"),
        RegistryNews::Deregistered(entry, Departure::NotConfirmed) => {
            about(entry, "was not confirmed and left as")
        }
        RegistryNews::ActiveChanged { plugin, from, to } => {
            format!("{plugin} is active: {} → {}", active(from.as_ref()), active(to.as_ref()))
        }
    }
}

fn about(entry: &Entry, what: &str) -> String {
    format!("{} {what} {}", entry.registration.allocation, entry.registration.plugin)
}

/// Who is active, with its generation.
pub(super) fn active(active: Option<&Active>) -> String {
    active.map_or("nobody".to_owned(), |active| {
        format!("{} @{}", active.registration.allocation, active.generation)
    })
}

/// One registration with all that its owner said.
pub(super) fn registration(entry: &Entry) -> String {
    let registration = &entry.registration;
    let mut text = format!("{} as {}", registration.allocation, registration.plugin);
    let said = [("provider", &registration.provider), ("version", &registration.version)];
    for (name, value) in said.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?))) {
        text.push_str(&format!(" {name}={value}"));
    }
    for (name, value) in &*registration.options {
        text.push_str(&format!(" option.{name}={value}"));
    }
    match entry.standing {
        Standing::Confirmed => text,
        Standing::Provisional => text + ", not confirmed",
    }
}

fn instances(news: &InstancesNews) -> String {
    match news {
        InstancesNews::Expected(plugins) => format!("awaits {}", joined(plugins)),
        InstancesNews::Reported(report) => self::report(report),
        InstancesNews::Left(report) => format!("{} of {} left", report.plugin, report.allocation),
        InstancesNews::Settled => "all that was known before is accounted for".to_owned(),
    }
}

/// What is known of an instance.
pub(super) fn report(report: &InstanceReport) -> String {
    let InstanceReport { plugin, allocation, generation, health, fingerprint, remarks, .. } = report;
    let identity = fingerprint.as_ref().filter(|_| *health == Health::Healthy).map_or(String::new(), |f| {
        format!(", {} {}", f.identity.provider, f.identity.version).trim_end().to_owned()
    });
    let remarks = remarks.iter().map(|remark| format!("; {remark}")).collect::<String>();
    format!("{plugin} of {allocation} @{generation} is {health}{identity}{remarks}")
}

fn inventory(news: &InventoryNews) -> String {
    match news {
        InventoryNews::First(_, summary) => format!("first inventory: {}", self::summary(summary)),
        InventoryNews::Changed(offer) => format!("offers {}", self::offer(offer)),
        InventoryNews::Removed(offer) => format!("offers {} no more", offer.plugin),
    }
}

/// What the first wait found.
pub(super) fn summary(summary: &FirstSummary) -> String {
    let FirstSummary { healthy, unhealthy, undetected, no_answer } = summary;
    grouped(healthy, unhealthy, undetected, no_answer)
}

/// What is known of the drivers.
pub(super) fn driver_summary(summary: &DriverSummary) -> String {
    let DriverSummary { healthy, unhealthy, undetected, no_answer } = summary;
    grouped(healthy, unhealthy, undetected, no_answer)
}

fn grouped<T: Display>(healthy: &[T], unhealthy: &[(T, String)], undetected: &[T], silent: &[T]) -> String {
    let unhealthy: Vec<_> = unhealthy.iter().map(|(name, reason)| format!("{name} ({reason})")).collect();
    let all = [
        ("healthy", joined(healthy)),
        ("unhealthy", joined(&unhealthy)),
        ("undetected", joined(undetected)),
        ("no answer from", joined(silent)),
    ];
    let parts = all.iter().filter(|(_, names)| !names.is_empty());
    let parts: Vec<_> = parts.map(|(what, names)| format!("{what} {names}")).collect();
    if parts.is_empty() { "nothing".to_owned() } else { parts.join("; ") }
}

/// One offer of the node.
pub(super) fn offer(offer: &Offer) -> String {
    let restarting = if offer.restarting { ", restarting" } else { "" };
    format!("{} of {}, {}{restarting}", offer.plugin, offer.allocation, offer.health)
}

fn allocations(news: &AllocationsNews) -> String {
    match news {
        AllocationsNews::Changed(status) => self::status(status),
        AllocationsNews::Gone(allocation) => format!("{allocation} is gone"),
        AllocationsNews::Task(event) => format!("event of {}: {}", event.allocation, event.message),
        AllocationsNews::RestartRequested { allocation, reason, .. } => {
            format!("asks the host to restart {allocation}: {reason}")
        }
    }
}

/// Where an allocation has got to.
pub(super) fn status(status: &AllocationStatus) -> String {
    let AllocationStatus { allocation, phase, health, last_event, .. } = status;
    let health = health.to_string();
    // The last event may be that its health is what it is.
    let event = if *last_event == health { String::new() } else { format!(": {last_event}") };
    format!("{allocation} is {}, {health}{event}", phase.as_str())
}

fn drivers(news: &DriversNews) -> String {
    match news {
        DriversNews::Reported(report) => driver(report),
        DriversNews::Left(report) => format!("{} left", report.name),
        DriversNews::DeadLetters { driver, task, count, error } => {
            let task = task.as_ref().map_or("no task".to_owned(), ToString::to_string);
            let error = error.as_ref().map_or(String::new(), |error| format!(": {error}"));
            format!("{count} events of {driver} for {task} are dead letters{error}")
        }
        DriversNews::EventsInterrupted { driver, generation, error } => {
            format!("the events of {driver} @{generation} were interrupted: {error}")
        }
    }
}

fn processes(news: &ProcessesNews) -> String {
    match news {
        ProcessesNews::Changed(report) => format!("{} is {}", report.name, report.phase.as_str()),
        ProcessesNews::Ended(ending) => format!("{} has ended: {ending}", ending.name),
        ProcessesNews::Retired { name, reason, .. } => format!("the record of {name} was retired: {reason}"),
        ProcessesNews::Settled => "all that was left before is settled".to_owned(),
    }
}

/// What is known of a driver.
pub(super) fn driver(report: &DriverReport) -> String {
    let DriverReport { name, generation, health, reason, stage, version, is_adopted, .. } = report;
    let version = version.as_ref().map_or(String::new(), |version| format!(", {version}"));
    let adopted = if *is_adopted { ", adopted" } else { "" };
    let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    format!("{name} @{generation} is {}, {}{version}{adopted}{reason}", stage.as_str(), health.as_str())
}

/// What a handler of a task is told.
pub(super) fn event(item: &TaskEventItem) -> String {
    match item {
        TaskEventItem::Event { event, position } => match position {
            Some(position) => format!("{} ({}:{})", event.message, position.stream, position.sequence),
            None => event.message.clone(),
        },
        TaskEventItem::Gap { missed, reason } => {
            let missed = missed.map_or("some".to_owned(), |missed| missed.to_string());
            let why = match reason {
                GapReason::HandlerTooSlow => "the handler was too slow",
                GapReason::NotAnnounced => "nobody had announced the task",
                GapReason::Interrupted => "the stream was interrupted",
                GapReason::NewStream => "the driver began a new stream",
                GapReason::Forgotten => "the driver has forgotten them",
            };
            format!("{missed} are missing: {why}")
        }
    }
}

/// What the configuration of a task has to look like, one line for each thing in it.
pub(super) fn schema(spec: &Spec) -> String {
    match spec {
        Spec::Object(fields) => fields.values().map(schema).collect::<Vec<_>>().join("\n"),
        Spec::Array(values) => values.iter().map(schema).collect::<Vec<_>>().join("\n"),
        Spec::Attribute { name, kind, is_required } => format!("{name}: {kind}{}", needed(*is_required)),
        Spec::BlockAttributes { name, element, is_required } => {
            format!("{name}: a block of {element}{}", needed(*is_required))
        }
        Spec::Block { name, is_required, nested } => {
            format!("{name}: a block{}\n{}", needed(*is_required), schema(nested))
        }
        Spec::BlockList { name, nested, .. }
        | Spec::BlockSet { name, nested, .. }
        | Spec::BlockMap { name, nested, .. } => format!("{name}: blocks\n{}", schema(nested)),
        Spec::Default { primary, fallback } => format!("{}, else {}", schema(primary), schema(fallback)),
        Spec::Literal(value) => self::value(value),
    }
}

const fn needed(is_required: bool) -> &'static str {
    if is_required { ", required" } else { "" }
}

/// A value that a driver gets.
pub(super) fn value(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(bool) => bool.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => format!("{text:?}"),
        Value::List(values) => {
            format!("[{}]", values.iter().map(self::value).collect::<Vec<_>>().join(", "))
        }
        Value::Map(entries) => {
            let entries = entries.iter().map(|(key, value)| format!("{key} = {}", self::value(value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
    }
}

fn supervisor(news: &SupervisorNews) -> Option<String> {
    Some(match news {
        SupervisorNews::ChildStarted { restarts: 0, .. } | SupervisorNews::ChildStopped(_) => return None,
        SupervisorNews::ChildStarted { name, restarts } => format!("{name} runs again, restart {restarts}"),
        SupervisorNews::ChildStartFailed { name, reason } => format!("{name} did not start: {reason}"),
        SupervisorNews::ChildEnded { name, ending } => format!("{name} fell: {}", self::ending(ending)),
        SupervisorNews::ChildRestarting { name, .. } => format!("{name} is started again after a pause"),
        SupervisorNews::Escalated { reason } => format!("gives up: {reason}"),
    })
}

/// How an actor ended.
pub(super) fn ending(ending: &Ending) -> String {
    match ending {
        Ending::Normal => "in order".to_owned(),
        Ending::Panicked(message) => format!("it panicked: {message}"),
        Ending::BudgetSpent(message) => format!("it crashed too often: {message}"),
        Ending::Failed(reason) => format!("it gave up: {reason}"),
        Ending::Killed => "it was killed".to_owned(),
    }
}

/// How everything stopped, without how long it took.
pub(super) fn stopped(report: &ShutdownReport) -> String {
    let children = report.children.iter().map(|child| match &child.ending {
        StopOutcome::Stopped => child.name.clone(),
        other => format!("{} ({other})", child.name),
    });
    format!("stopped: {}", children.collect::<Vec<_>>().join(", "))
}

/// Names in a row.
pub(super) fn joined<T: Display>(names: &[T]) -> String {
    names.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
