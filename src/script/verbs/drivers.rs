//! The messages to the owner of the drivers, and the actions of drivers.

use callboard_actors::driver::{DriverSpec, EventPosition, TaskKey};
use callboard_actors::drivers::{
    AddDriver, AnnounceTask, AwaitDrivers, DescribeDriver, DispenseDriver, ForgetTaskHandler, ListDrivers,
    RecentTaskEvents, RegisterTaskHandler, RemoveDriver, RestartDriver, Wanted,
};
use callboard_actors::goplugin::HandshakeTerms;
use callboard_actors::process::{Executable, Lifetime, ProcessSpec};
use callboard_actors::vocabulary::{DriverName, TaskName};
use tonic::{Code, Status};

use super::super::acting::CODES;
use super::super::driver::{DriverPlugin, StreamKind, VERSION, Wellbeing};
use super::super::told::event as told_event;
use super::{Entry, Mistake, Stage, Words};
use crate::picture::{Arrow, Mark};
use crate::timeline::answers;

pub(super) const VERBS: &[Entry] = &[
    (
        "driver NAME [health=healthy|unhealthy|undetected] [reason=TEXT] [version=TEXT] [positions=yes|no] [speaks=NUMBER] [ignores-sigterm=yes|no] [failed-launches=NUMBER]",
        driver,
    ),
    ("event NAME ALLOCATION TASK TEXT", event),
    ("break NAME fingerprint|events [code=CODE]", break_stream),
    ("garble NAME fingerprint|events", garble),
    ("add-driver NAME [speaks=NUMBER] [stop-grace=DURATION] [environment.NAME=TEXT]...", add),
    ("remove-driver NAME", remove),
    ("restart-driver NAME", restart),
    ("dispense-driver NAME [wanted=healthy|reachable] [within=DURATION]", dispense),
    ("drivers", drivers),
    ("describe-driver NAME", describe),
    ("await-drivers within=DURATION", await_all),
    ("announce-task NAME ALLOCATION TASK", announce),
    ("watch-task NAME ALLOCATION TASK [after=STREAM:NUMBER] [limit=NUMBER] [reader=NAME]", watch),
    ("forget-task NAME ALLOCATION TASK", forget),
    ("recent-events NAME ALLOCATION TASK", recent),
];

/// How many events of a task may wait for its handler.
const JOURNAL_LIMIT: u32 = 64;

pub(super) fn name(words: &mut Words<'_>) -> Result<DriverName, Mistake> {
    DriverName::new(words.next("name of the driver")?).map_err(|error| Mistake::new(error.to_string()))
}

pub(super) fn task(words: &mut Words<'_>) -> Result<TaskKey, Mistake> {
    let allocation = words.allocation()?;
    let task =
        TaskName::new(words.next("name of the task")?).map_err(|error| Mistake::new(error.to_string()))?;
    Ok(TaskKey::new(allocation, task))
}

/// Makes a driver launchable from now on, or changes an existing driver as the line requires.
fn driver(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let name = name(words)?;
    let plugin = stage.drivers.driver(name.as_str());
    if let Some(version) = words.key("version") {
        plugin.set_version(version);
    }
    if let Some(keeps) = words.yes_or_no("positions")? {
        plugin.set_keeps_positions(keeps);
    }
    if let Some(version) = words.number("speaks")? {
        plugin.set_protocol(version);
    }
    if let Some(ignores) = words.yes_or_no("ignores-sigterm")? {
        plugin.set_ignores_sigterm(ignores);
    }
    if let Some(failures) = words.number("failed-launches")? {
        stage.drivers.fail_launches(name.as_str(), failures);
    }
    let healths = [
        ("healthy", Wellbeing::Healthy),
        ("unhealthy", Wellbeing::Unhealthy),
        ("undetected", Wellbeing::Undetected),
    ];
    let reason = words.key("reason").unwrap_or_default();
    if let Some(wellbeing) = words.key_of("health", &healths)? {
        plugin.set_wellbeing(wellbeing, reason);
    }
    Ok(())
}

pub(super) fn known(stage: &Stage, name: &DriverName) -> Result<DriverPlugin, Mistake> {
    let missing = || Mistake::new(format!("there is no driver {name}; say `driver {name}` before"));
    stage.drivers.known(name.as_str()).ok_or_else(missing)
}

fn event(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let (name, task) = (name(words)?, task(words)?);
    let text = words.next("text of the event")?;
    known(stage, &name)?.tell(task.allocation.as_str(), task.task.as_str(), text);
    stage.record.draw(Mark::Message {
        from: format!("driver {name}"),
        to: "drivers".to_owned(),
        text: format!("event: {text}"),
        about: task.to_string(),
        arrow: Arrow::Said,
    });
    Ok(())
}

const STREAMS: [(&str, StreamKind); 2] =
    [("fingerprint", StreamKind::Fingerprint), ("events", StreamKind::Events)];

fn unheard(name: &DriverName) -> Mistake {
    Mistake::new(format!("this stream of {name} has no reader"))
}

/// The driver sends something that violates the protocol.
fn garble(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let name = name(words)?;
    let stream = words.one_of("stream", &STREAMS)?;
    if known(stage, &name)?.garble(stream) { Ok(()) } else { Err(unheard(&name)) }
}

fn break_stream(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let name = name(words)?;
    let stream = words.one_of("stream", &STREAMS)?;
    let code: Option<Code> = words.key_of("code", &CODES)?;
    let how = code.map(|code| Status::new(code, "as the script wants it"));
    if known(stage, &name)?.end_stream(stream, how) { Ok(()) } else { Err(unheard(&name)) }
}

fn add(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let name = name(words)?;
    let mut process = ProcessSpec::new(Executable::at("/bin/driver"));
    process.lifetime = Lifetime::Surviving;
    let versions = vec![words.number("speaks")?.unwrap_or(VERSION)];
    process.handshake = Some(HandshakeTerms { versions, ..HandshakeTerms::nomad(None) });
    let environment = words.keys_below("environment.").into_iter();
    process.environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let mut spec = DriverSpec::new(name, process);
    spec.stop_grace = words.duration("stop-grace")?.unwrap_or(spec.stop_grace);
    let drivers = stage.host()?.drivers().clone();
    stage.ask("drivers", drivers.ask(AddDriver { spec }), |answer| answers::added(&answer));
    Ok(())
}

fn remove(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let name = name(words)?;
    let drivers = stage.host()?.drivers().clone();
    stage.ask("drivers", drivers.ask(RemoveDriver { name }), |answer| answers::removed(&answer));
    Ok(())
}

fn restart(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let name = name(words)?;
    let drivers = stage.host()?.drivers().clone();
    stage.ask("drivers", drivers.ask(RestartDriver { name }), |answer| answers::done(&answer, "noted"));
    Ok(())
}

fn dispense(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let name = name(words)?;
    let choices = [("healthy", Wanted::Healthy), ("reachable", Wanted::Reachable)];
    let wanted = words.key_of("wanted", &choices)?.unwrap_or(Wanted::Healthy);
    let within = words.duration("within")?.unwrap_or_default();
    let drivers = stage.host()?.drivers().clone();
    stage.ask("drivers", drivers.ask(DispenseDriver { name, wanted, within }), |answer| {
        answers::done(&answer, "here")
    });
    Ok(())
}

fn drivers(stage: &mut Stage, _: &mut Words<'_>) -> Result<(), Mistake> {
    let drivers = stage.host()?.drivers().clone();
    stage.ask("drivers", drivers.ask(ListDrivers), |reports| answers::driver_list(&reports));
    Ok(())
}

fn describe(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let name = name(words)?;
    let drivers = stage.host()?.drivers().clone();
    stage.ask("drivers", drivers.ask(DescribeDriver { name }), |answer| answers::driver_status(&answer));
    Ok(())
}

fn await_all(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let within = words.duration("within")?.ok_or_else(|| Mistake::new("within=DURATION is missing"))?;
    let drivers = stage.host()?.drivers().clone();
    stage.ask("drivers", drivers.ask(AwaitDrivers { within }), |found| answers::driver_summary(&found));
    Ok(())
}

fn recent(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let (driver, task) = (name(words)?, task(words)?);
    let drivers = stage.host()?.drivers().clone();
    stage.ask("drivers", drivers.ask(RecentTaskEvents { driver, task }), |events| answers::recent(&events));
    Ok(())
}

fn announce(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let (driver, task) = (name(words)?, task(words)?);
    let drivers = stage.host()?.drivers().clone();
    stage
        .ask("drivers", drivers.ask(AnnounceTask { driver, task }), |answer| answers::done(&answer, "noted"));
    Ok(())
}

fn position(text: &str) -> Result<EventPosition, Mistake> {
    let malformed = || Mistake::new(format!("after: {text:?} is no position; write STREAM:NUMBER"));
    let (stream, sequence) = text.rsplit_once(':').ok_or_else(malformed)?;
    let sequence = sequence.parse().map_err(|_| malformed())?;
    EventPosition::new(stream, sequence).map_err(|error| Mistake::new(error.to_string()))
}

fn watch(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let (driver, task) = (name(words)?, task(words)?);
    let after = words.key("after").map(position).transpose()?;
    let limit = words.number("limit")?.unwrap_or(JOURNAL_LIMIT) as usize;
    let (drivers, journals) = (stage.host()?.drivers().clone(), stage.host()?.task_journals().clone());
    let sink = match words.key("reader") {
        Some(reader) => {
            let (sink, events) = journals.open(limit, after);
            stage.readers.handle(reader, events);
            sink
        }
        None => {
            let (record, of) = (stage.record.clone(), task.to_string());
            let told = move |item| record.say("drivers", &format!("event of {of}: {}", told_event(&item)));
            // Its reader is a task of the host, and continues by itself.
            stage.run(async move { journals.call_back(limit, after, told) }).0
        }
    };
    stage.ask("drivers", drivers.ask(RegisterTaskHandler { driver, task, sink }), |answer| {
        answers::done(&answer, "noted")
    });
    Ok(())
}

fn forget(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let (driver, task) = (name(words)?, task(words)?);
    let drivers = stage.host()?.drivers().clone();
    stage.ask("drivers", drivers.ask(ForgetTaskHandler { driver, task }), |()| "noted".to_owned());
    Ok(())
}
