//! The actions of plugins: they listen, answer, misbehave and die.

use std::time::Duration;

use callboard_actors::vocabulary::AllocationId;

use super::super::acting::{Act, Acting, CODES};
use super::super::driver::{CALLS as DRIVER_CALLS, DriverPlugin};
use super::super::plugin::{CALLS, Expansion, Part, Plugin};
use super::super::stage::Performer;
use super::{Entry, Mistake, Stage, Words};

pub(super) const VERBS: &[Entry] = &[
    (
        "plugin ALLOCATION [name=TEXT] [version=TEXT] [controller=yes|no] [groups=yes|no] [stages=yes|no] [creates=yes|no] [expands=online|offline|no] [snapshots=yes|no] [node-id=TEXT]",
        plugin,
    ),
    (
        "answer ALLOCATION|DRIVER CALL ready|not-ready|nothing|lost|empty|CODE [after=DURATION] [times=NUMBER]",
        answer,
    ),
    ("calls ALLOCATION|DRIVER", calls),
    ("kill ALLOCATION|DRIVER", kill),
];

/// A plugin begins to listen at the path of its allocation's socket; a plugin that already listens reports other properties from now on.
fn plugin(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let allocation = words.allocation()?;
    let known = stage.performers.get(&allocation);
    let mut part = known.map_or_else(Part::default, |performer| performer.plugin.part());
    read_part(words, &mut part)?;
    let socket = stage.socket_of(&allocation);
    let performer = stage.performers.remove(&allocation);
    let storage = stage.storage.clone();
    let new = || Performer { plugin: Plugin::new(part.clone(), storage), serving: None };
    let mut performer = performer.unwrap_or_else(new);
    performer.plugin.set_part(part);
    if performer.serving.as_ref().is_none_or(|serving| serving.socket() != socket) {
        performer.serving = None;
        let served = performer.plugin.serve(&socket);
        performer.serving =
            Some(served.map_err(|error| Mistake::new(format!("{}: {error}", socket.display())))?);
        stage.record.in_picture(|drawn| drawn.lives(&format!("process {allocation}"), "listens again"));
    }
    stage.performers.insert(allocation, performer);
    Ok(())
}

fn read_part(words: &mut Words<'_>, part: &mut Part) -> Result<(), Mistake> {
    for (name, place) in
        [("name", &mut part.name), ("version", &mut part.version), ("node-id", &mut part.node_id)]
    {
        if let Some(said) = words.key(name) {
            said.clone_into(place);
        }
    }
    part.has_controller = words.yes_or_no("controller")?.unwrap_or(part.has_controller);
    part.has_groups = words.yes_or_no("groups")?.unwrap_or(part.has_groups);
    part.stages = words.yes_or_no("stages")?.unwrap_or(part.stages);
    part.creates = words.yes_or_no("creates")?.unwrap_or(part.creates);
    part.snapshots = words.yes_or_no("snapshots")?.unwrap_or(part.snapshots);
    let expansions =
        [("online", Some(Expansion::Online)), ("offline", Some(Expansion::Offline)), ("no", None)];
    part.expands = words.key_of("expands", &expansions)?.unwrap_or(part.expands);
    Ok(())
}

fn performer<'a>(stage: &'a mut Stage, allocation: &AllocationId) -> Result<&'a mut Performer, Mistake> {
    let missing = || Mistake::new(format!("{allocation} has no plugin; say `plugin {allocation}` before"));
    stage.performers.get_mut(allocation).ok_or_else(missing)
}

/// The driver of this name, unless an allocation has a plugin of the same name.
fn driver(stage: &Stage, name: &AllocationId) -> Option<DriverPlugin> {
    if stage.performers.contains_key(name) { None } else { stage.drivers.known(name.as_str()) }
}

fn answer(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let name = words.allocation()?;
    let driver = driver(stage, &name);
    let calls: &[&'static str] = if driver.is_some() { &DRIVER_CALLS } else { &CALLS };
    let calls: Vec<_> = calls.iter().map(|call| (*call, *call)).collect();
    let call = words.one_of("call", &calls)?;
    let plain = [
        ("ready", Act::Ready),
        ("not-ready", Act::NotReady),
        ("nothing", Act::Nothing),
        ("lost", Act::Lost),
        ("empty", Act::Empty),
    ];
    let failing = CODES.iter().map(|(name, code)| (*name, Act::Fail(*code)));
    let choices: Vec<_> = plain.into_iter().chain(failing).collect();
    let act = words.one_of("answer", &choices)?;
    let after = words.duration("after")?.unwrap_or(Duration::ZERO);
    let acting = Acting { act, after, times: words.number("times")? };
    match driver {
        Some(driver) => driver.on(call, acting),
        None => performer(stage, &name)?.plugin.on(call, acting),
    }
    Ok(())
}

fn calls(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let name = words.allocation()?;
    let calls = match driver(stage, &name) {
        Some(driver) => driver.take_calls(),
        None => performer(stage, &name)?.plugin.take_calls(),
    };
    let told = if calls.is_empty() { "not called".to_owned() } else { calls.join(", ") };
    stage.record.answer(told);
    Ok(())
}

fn kill(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let allocation = words.allocation()?;
    if driver(stage, &allocation).is_some() {
        if !stage.drivers.kill(allocation.as_str(), "signal 9") {
            return Err(Mistake::new(format!("driver {allocation} does not run")));
        }
        stage.record.in_picture(|drawn| drawn.falls(&format!("driver {allocation}"), "killed"));
        return Ok(());
    }
    if performer(stage, &allocation)?.serving.take().is_none() {
        return Err(Mistake::new(format!("the plugin of {allocation} is dead already")));
    }
    stage.record.in_picture(|drawn| drawn.falls(&format!("process {allocation}"), "killed"));
    Ok(())
}
