//! The messages of a host about the workloads with its plugins.

use callboard_actors::allocations::{
    AdoptAllocation, AllocationSpec, Isolation, ListAllocations, PrepareAllocation, PrepareError,
    RestartWhen, StopAllocation, TaskContext, TaskExited, TaskStarted,
};
use callboard_actors::shell::AskError;
use callboard_actors::vocabulary::{Role, TaskName};

use super::{Entry, Mistake, Stage, Words};
use crate::timeline::answers;

pub(super) const VERBS: &[Entry] = &[
    (
        "prepare ALLOCATION NAME [role=controller|node|monolith] [timeout=DURATION] [unhealthy-for=DURATION] [isolation=none|chroot|image] [endpoint=TEXT] [environment.NAME=TEXT]...",
        prepare,
    ),
    (
        "adopt ALLOCATION NAME [role=controller|node|monolith] [timeout=DURATION] [unhealthy-for=DURATION] [isolation=none|chroot|image] [endpoint=TEXT] [environment.NAME=TEXT]...",
        adopt,
    ),
    ("started ALLOCATION", started),
    ("exited ALLOCATION [how=TEXT]", exited),
    ("stop ALLOCATION", stop),
    ("allocations", allocations),
];

const ISOLATIONS: [(&str, Isolation); 3] =
    [("none", Isolation::None), ("chroot", Isolation::Chroot), ("image", Isolation::Image)];

fn spec(words: &mut Words<'_>) -> Result<AllocationSpec, Mistake> {
    let (allocation, plugin) = (words.allocation()?, words.plugin_name()?);
    let roles = Role::ALL.map(|role| (role.as_str(), role));
    let role = words.key_of("role", &roles)?.unwrap_or(Role::Node);
    let task = TaskName::new("plugin").map_err(|error| Mistake::new(error.to_string()))?;
    let mut spec = AllocationSpec::new(allocation, task, plugin, role);
    spec.health_timeout = words.duration("timeout")?.unwrap_or(spec.health_timeout);
    if let Some(time) = words.duration("unhealthy-for")? {
        spec.restart_when = RestartWhen::UnhealthyFor(time);
    }
    spec.isolation = words.key_of("isolation", &ISOLATIONS)?.unwrap_or(spec.isolation);
    let environment = words.keys_below("environment.").into_iter();
    spec.environment.extend(environment.map(|(name, value)| (name.to_owned(), value.to_owned())));
    if let Some(endpoint) = words.key("endpoint") {
        spec.environment.insert("CSI_ENDPOINT".to_owned(), endpoint.to_owned());
    }
    Ok(spec)
}

fn prepare(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let spec = spec(words)?;
    let asking = stage.host()?.allocations().ask(PrepareAllocation { spec: spec.clone() });
    make_ready(stage, spec, asking)
}

fn adopt(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let spec = spec(words)?;
    let asking = stage.host()?.allocations().ask(AdoptAllocation { spec: spec.clone() });
    make_ready(stage, spec, asking)
}

/// Waits for the context and records where the allocation's plugin must listen.
fn make_ready(
    stage: &mut Stage,
    spec: AllocationSpec,
    asking: impl Future<Output = Result<Result<TaskContext, PrepareError>, AskError>> + 'static,
) -> Result<(), Mistake> {
    stage.record.in_picture(|drawn| drawn.add_workload(spec.allocation.as_str()));
    let sockets = stage.sockets.clone();
    let of = format!("allocation {}", spec.allocation);
    stage.ask(&of, asking, move |answer| {
        let text = answers::prepared(&answer);
        if let Ok(context) = answer {
            sockets.borrow_mut().insert(spec.allocation, context.socket);
        }
        text
    });
    Ok(())
}

fn started(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let allocation = words.allocation()?;
    let allocations = stage.host()?.allocations().clone();
    let of = format!("allocation {allocation}");
    stage.ask(&of, allocations.ask(TaskStarted { allocation }), |answer| answers::noted(&answer));
    Ok(())
}

fn exited(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let allocation = words.allocation()?;
    let how = words.key("how").unwrap_or("exit code 1").to_owned();
    let allocations = stage.host()?.allocations().clone();
    let of = format!("allocation {allocation}");
    stage.ask(&of, allocations.ask(TaskExited { allocation, how }), |answer| answers::noted(&answer));
    Ok(())
}

fn stop(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let allocation = words.allocation()?;
    let allocations = stage.host()?.allocations().clone();
    let of = format!("allocation {allocation}");
    stage.ask(&of, allocations.ask(StopAllocation { allocation, even_if_used: false }), |answer| {
        answers::allocation_stopped(&answer)
    });
    Ok(())
}

fn allocations(stage: &mut Stage, _: &mut Words<'_>) -> Result<(), Mistake> {
    let allocations = stage.host()?.allocations().clone();
    stage.ask("allocations", allocations.ask(ListAllocations), |all| answers::allocation_list(&all));
    Ok(())
}
