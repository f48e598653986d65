//! The lifecycle of the host and of its actors.

use std::time::Duration;

use callboard_actors::shell::{Drill, StopMode};
use callboard_actors::supervisor::{DescribeTree, RestartChild, Shutdown};
use callboard_actors::vocabulary::{DriverName, MalformedPolicy, PluginKey};

use super::{Entry, Mistake, Stage, Words};
use crate::launch::AnyPart;
use crate::timeline::answers;

pub(super) const VERBS: &[Entry] = &[
    ("host start|start-beside|stop|detach|kill", host),
    (
        "options [restore-grace=DURATION] [round=DURATION] [call-deadline=DURATION] [failures=NUMBER] [first-wait=DURATION] [restart-grace=DURATION] [policy=POLICY] [registrations=NUMBER] [waiting=NUMBER] [messages=NUMBER] [restarts=NUMBER] [blocked=DRIVER]",
        options,
    ),
    (
        "crash registry|instances|inventory|allocations|drivers|processes|catalog|volumes|host|instance|allocation|driver|eventor|volume [NAME]",
        crash,
    ),
    (
        "end registry|instances|inventory|allocations|drivers|processes|catalog|volumes|instance|allocation|driver|eventor|volume [NAME]",
        end,
    ),
    ("restart ACTOR", restart),
    ("tree", tree),
];

#[derive(Clone, Copy)]
enum Action {
    Start,
    StartBeside,
    Stop(StopMode),
    Kill,
}

fn host(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let actions = [
        ("start", Action::Start),
        ("start-beside", Action::StartBeside),
        ("stop", Action::Stop(StopMode::Stop)),
        ("detach", Action::Stop(StopMode::Detach)),
        ("kill", Action::Kill),
    ];
    match words.one_of("what the host does", &actions)? {
        Action::Start => {
            stage.check_not_held()?;
            let told = stage.start_host();
            stage.record.answer(told);
        }
        Action::StartBeside => {
            stage.check_not_held()?;
            let told = stage.start_beside()?;
            stage.record.answer(told);
        }
        Action::Stop(mode) => {
            let supervisor = stage.host()?.supervisor().clone();
            stage.ask("host", supervisor.ask(Shutdown { mode }), |answer| match answer {
                Ok(report) => answers::stopped(&report),
                Err(error) => error.to_string(),
            });
        }
        Action::Kill => {
            stage.check_not_held()?;
            stage.kill_host()?;
        }
    }
    Ok(())
}

/// Sets the options for the next start of the host.
fn options(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let options = &mut stage.options;
    let set = |place: &mut Duration, said: Option<Duration>| *place = said.unwrap_or(*place);
    set(&mut options.registry.restore_grace, words.duration("restore-grace")?);
    let round = words.duration("round")?;
    set(&mut options.instances.limits.round, round);
    set(&mut options.allocation.round, round);
    let deadline = words.duration("call-deadline")?;
    set(&mut options.instances.limits.call_deadline, deadline);
    set(&mut options.allocation.call_deadline, deadline);
    set(&mut options.inventory.first_wait, words.duration("first-wait")?);
    set(&mut options.inventory.restart_grace, words.duration("restart-grace")?);
    if let Some(failures) = words.number("failures")? {
        options.instances.limits.failures_until_unhealthy = failures;
    }
    if let Some(policy) = words.key("policy") {
        options.registry.policy =
            policy.parse().map_err(|error: MalformedPolicy| Mistake::new(error.to_string()))?;
    }
    if let Some(registrations) = words.number("registrations")? {
        options.registry.registrations_max = registrations as usize;
    }
    if let Some(waiting) = words.number("waiting")? {
        options.registry.waiting_max = waiting as usize;
    }
    if let Some(messages) = words.number("messages")? {
        options.messages_max = messages as usize;
    }
    if let Some(blocked) = words.key("blocked") {
        let blocked = DriverName::new(blocked).map_err(|error| Mistake::new(error.to_string()))?;
        options.drivers.blocked.insert(blocked);
    }
    if let Some(restarts) = words.number("restarts")? {
        options.budget.limit = restarts;
    }
    Ok(())
}

/// The actors with a single instance, except the parts of a host program.
const SINGLE: [&str; 9] = [
    "registry",
    "instances",
    "inventory",
    "allocations",
    "drivers",
    "processes",
    "catalog",
    "volumes",
    "host",
];
/// The kinds of actors with many instances: each is named after its subject.
const NAMED: [&str; 5] = ["instance", "allocation", "driver", "eventor", "volume"];

fn crash(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let actor = actor(stage, words)?;
    drill(stage, &actor, Drill::Crash)
}

fn end(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let actor = actor(stage, words)?;
    if actor == "host" {
        return Err(Mistake::new("the host does not give up by itself; say `host stop` or `host kill`"));
    }
    drill(stage, &actor, Drill::GiveUp)
}

/// The name of the actor that a line refers to.
fn actor(stage: &Stage, words: &mut Words<'_>) -> Result<String, Mistake> {
    let own = stage.options.parts.iter().map(AnyPart::name);
    let all: Vec<_> = SINGLE.into_iter().chain(NAMED).chain(own).map(|kind| (kind, kind)).collect();
    let kind = words.one_of("which actor", &all)?;
    match kind {
        "instance" => {
            let plugin = words.plugin()?;
            Ok(instance(stage, &plugin, words.key("of")))
        }
        _ if NAMED.contains(&kind) => Ok(format!("{kind} {}", words.next(&format!("name of the {kind}"))?)),
        _ => Ok(kind.to_owned()),
    }
}

/// The instance of this allocation, or the only one of the plugin.
fn instance(stage: &Stage, plugin: &PluginKey, of: Option<&str>) -> String {
    let name = format!("instance {plugin}");
    if let Some(of) = of {
        return format!("{name} of {of}");
    }
    let is_of_it = |other: &String| other.strip_prefix(&name).is_some_and(|rest| rest.starts_with(" of "));
    let running: Vec<String> = stage.drills.names().into_iter().filter(is_of_it).collect();
    match <[String; 1]>::try_from(running) {
        Ok([only]) => only,
        Err(_none_or_many) => name,
    }
}

/// Whether this kind of actor has many instances.
fn is_one_of_many(actor: &str) -> bool {
    actor.split_once(' ').is_some_and(|(kind, _)| NAMED.contains(&kind))
}

fn drill(stage: &mut Stage, actor: &str, drill: Drill) -> Result<(), Mistake> {
    stage.host()?;
    match stage.drills.drill(actor, drill) {
        Ok(()) => Ok(()),
        Err(error) if !is_one_of_many(actor) => {
            stage.record.answer(error.to_string());
            Ok(())
        }
        Err(_) => {
            Err(Mistake::new(format!("no {actor} runs; there are {}", stage.drills.names().join(", "))))
        }
    }
}

fn restart(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let name = words.next("name of the actor")?.to_owned();
    let supervisor = stage.host()?.supervisor().clone();
    stage
        .ask("host", supervisor.ask(RestartChild { name }), |answer| answers::done(&answer, "it runs again"));
    Ok(())
}

fn tree(stage: &mut Stage, _: &mut Words<'_>) -> Result<(), Mistake> {
    let supervisor = stage.host()?.supervisor().clone();
    stage.ask("host", supervisor.ask(DescribeTree), |root| answers::tree(&root));
    Ok(())
}
