//! Message scripts of one process: the pure machine under virtual time.
//!
//! Each command is an outcome of the system or a passage of time; below it come the effects in order.

use std::sync::Arc;

use goldenscript::ArgumentConsumer;

use super::Exit;
use super::identity::{FileId, Findings, Identity, Seen};
use super::launch_error::{ExecutableError, LaunchError};
use super::messages::{Dropped, EndProcess, ProcessAsk};
use super::name::{ProcessName, ProcessTag};
use super::record::{Positions, ProcessRecord};
use super::spec::{Executable, Lifetime, ProcessSpec};
use super::state::{
    LastWords, Over, Process, ProcessCall, ProcessConfig, ProcessNews, ProcessOutcome, ProcessTimer, Why,
};
use crate::goplugin::{Handshake, HandshakeError, HandshakeTerms, PluginEndpoint};
use crate::kernel::{CallLost, Effect};
use crate::stage::{Fault, Player, Stage, play_all, span, word};
use crate::vocabulary::Timestamp;

const TAG: ProcessTag = ProcessTag::new([7; 16]);

#[test]
fn every_story_of_a_process_goes_as_it_is_told() {
    play_all(concat!(env!("CARGO_MANIFEST_DIR"), "/src/process/scripts"), 12, || Player::new(begin, say));
}

fn begin(args: &mut ArgumentConsumer<'_>) -> Result<Stage<Process>, Fault> {
    Ok(Stage::begin(config(args)?, tell))
}

fn say(stage: &mut Stage<Process>, verb: &str, args: &mut ArgumentConsumer<'_>) -> Result<(), Fault> {
    match verb {
        "end" => stage.ask(ProcessAsk::EndProcess(EndProcess { grace: span(args)? })),
        // The outcome of one kind of call: `back Spawn ok`.
        "back" => {
            let kind = word(args, "call")?;
            let (key, call) = stage.take_call(|call| name_of(call) == kind)?;
            let outcome = outcome(&call, args)?;
            stage.give((key, call), outcome);
        }
        unknown => return Err(format!("no such verb: {unknown}").into()),
    }
    Ok(())
}

fn identity() -> Identity {
    let executable = Some(FileId { device: 1, inode: 2 });
    Identity { pid: 10, started_ticks: 100, boot_id: "boot".to_owned(), executable }
}

/// `begin launch plugin` or `begin recall record=intent`.
fn config(args: &mut ArgumentConsumer<'_>) -> Result<ProcessConfig, Fault> {
    let task = word(args, "task")?;
    let mut spec = ProcessSpec::new(Executable::at("/bin/plugin"));
    spec.lifetime = Lifetime::Surviving;
    while let Some(word) = args.next_pos() {
        match word {
            "bound" => spec.lifetime = Lifetime::Bound,
            "plugin" => spec.handshake = Some(HandshakeTerms::nomad(None)),
            unknown => return Err(format!("no such kind: {unknown}").into()),
        }
    }
    let now = Timestamp::from_epoch(std::time::Duration::from_secs(990));
    let mut record = ProcessRecord::intent(ProcessName::new("a")?, TAG, &spec, now);
    if task == "launch" {
        return Ok(ProcessConfig { record, spec: Some(Arc::new(spec)) });
    }
    let state = args.take_key("record").unwrap_or("ready");
    record.identity = (state != "intent").then(identity);
    record.is_ready = state == "ready";
    Ok(ProcessConfig { record, spec: None })
}

fn name_of(call: &ProcessCall) -> &'static str {
    match call {
        ProcessCall::Spawn => "Spawn",
        ProcessCall::Find => "Find",
        ProcessCall::Adopt => "Adopt",
        ProcessCall::EndLeft(_) => "EndLeft",
        ProcessCall::AwaitHandshake => "AwaitHandshake",
        ProcessCall::AwaitEnd => "AwaitEnd",
        ProcessCall::AwaitReading => "AwaitReading",
        ProcessCall::Terminate => "Terminate",
        ProcessCall::Kill => "Kill",
        ProcessCall::Clear => "Clear",
        ProcessCall::LetGo => "LetGo",
    }
}

fn seen() -> Seen {
    Seen {
        pid: 10,
        started_ticks: 100,
        group: 10,
        session: 1,
        is_zombie: false,
        executable: Some(FileId { device: 1, inode: 2 }),
        tag: Some(TAG),
        owner: Some("us".to_owned()),
    }
}

fn findings(at_pid: Option<Seen>, tagged: Vec<Seen>) -> ProcessOutcome {
    let (owner, boot_id) = ("us".to_owned(), "boot".to_owned());
    ProcessOutcome::Found(Ok(Findings { owner, boot_id, at_pid, is_child: false, tagged, writers: vec![] }))
}

fn outcome(
    call: &ProcessCall,
    args: &mut ArgumentConsumer<'_>,
) -> Result<Result<ProcessOutcome, CallLost>, Fault> {
    let foreign = Seen { started_ticks: 500, tag: None, owner: None, ..seen() };
    let handshake = Handshake { app_version: 2, endpoint: PluginEndpoint::Unix("/run/p".into()) };
    let words = LastWords { errors: vec!["last words".to_owned()], ..LastWords::default() };
    let system = ExecutableError::NotAFile { path: "/bin/plugin".into() };
    Ok(Ok(match (call, word(args, "outcome")?.as_str()) {
        (_, "lost") => return Ok(Err(CallLost::Crashed("boom".to_owned()))),
        (ProcessCall::Spawn, "ok") => ProcessOutcome::Spawned(Ok(identity())),
        (ProcessCall::Spawn, "refused") => ProcessOutcome::Spawned(Err(LaunchError::Executable {
            name: ProcessName::new("a")?,
            source: system,
        })),
        (ProcessCall::Find, "proven") => findings(Some(seen()), vec![]),
        (ProcessCall::Find, "gone") => findings(None, vec![]),
        (ProcessCall::Find, "foreign") => findings(Some(foreign), vec![]),
        (ProcessCall::Find, "foreign-and-ours") => findings(Some(foreign), vec![seen()]),
        (ProcessCall::Find, "ours") => findings(None, vec![seen()]),
        (ProcessCall::Find, "blind") => ProcessOutcome::Found(Err("permission denied".to_owned())),
        (ProcessCall::Adopt, "ok") => ProcessOutcome::Adopted(Ok(true)),
        (ProcessCall::Adopt, "zombie") => ProcessOutcome::Adopted(Ok(false)),
        (ProcessCall::Adopt, "gone") => ProcessOutcome::Adopted(Err("it has ended".to_owned())),
        (ProcessCall::AwaitHandshake, "ok") => ProcessOutcome::Shaken(Ok(handshake), Some(identity())),
        (ProcessCall::AwaitHandshake, "bad") => {
            ProcessOutcome::Shaken(Err(Why::Handshake(HandshakeError::InsistsOnNetRpc)), None)
        }
        (ProcessCall::AwaitHandshake, "changed") => ProcessOutcome::Shaken(Err(Why::Program(system)), None),
        (ProcessCall::AwaitEnd, code) => ProcessOutcome::Ended(Exit::Code(code.parse()?)),
        (ProcessCall::AwaitReading, bytes) => {
            ProcessOutcome::Reading(Positions { output: 0, errors: bytes.parse()? }, Dropped::default())
        }
        (ProcessCall::Clear | ProcessCall::EndLeft(_), "left") => ProcessOutcome::Left(1),
        (ProcessCall::Clear | ProcessCall::EndLeft(_), "empty") => ProcessOutcome::Cleared(Box::new(words)),
        (ProcessCall::LetGo, "ok") => ProcessOutcome::LetGo(Positions { output: 1, errors: 2 }),
        (ProcessCall::Terminate | ProcessCall::Kill, "ok") => ProcessOutcome::Done,
        (call, unknown) => return Err(format!("no such outcome of {}: {unknown}", name_of(call)).into()),
    }))
}

fn tell(effect: &Effect<Process>, now: Timestamp) -> String {
    match effect {
        Effect::Call { call: ProcessCall::EndLeft(proven), .. } => {
            let pids: Vec<u32> = proven.iter().map(|seen| seen.pid).collect();
            format!("call: EndLeft {pids:?}")
        }
        Effect::Call { call, .. } => format!("call: {}", name_of(call)),
        Effect::Publish(news) => format!("news: {}", tell_news(news)),
        Effect::Reply(..) => String::new(),
        Effect::StartTimer(ProcessTimer::Start, at) => format!("handshake awaited for {:?}", at.since(now)),
        Effect::StartTimer(ProcessTimer::Grace, at) => format!("grace of {:?}", at.since(now)),
        Effect::StartTimer(ProcessTimer::Clear, at) => format!("next try in {:?}", at.since(now)),
        Effect::CancelTimer(_) => String::new(),
        Effect::Stop(ending) => format!("ends: {ending:?}"),
        Effect::Persist(_, never) => match *never {},
    }
}

fn tell_news(news: &ProcessNews) -> String {
    match news {
        ProcessNews::Spawned(identity) => format!("spawned, pid {}", identity.pid),
        ProcessNews::Ready { handshake, is_adopted, .. } => {
            let shaken = if handshake.is_some() { ", by handshake" } else { "" };
            format!("ready{shaken}{}", if *is_adopted { ", adopted" } else { "" })
        }
        ProcessNews::Stopping => "stopping".to_owned(),
        ProcessNews::Clearing => "clearing".to_owned(),
        ProcessNews::Read { positions, .. } => format!("read up to {}", positions.errors),
        ProcessNews::Over(over) => match &**over {
            Over::NotStarted(error) => format!("not started: {error}"),
            Over::Ended { ending, why, .. } => format!("over: {ending}; why: {why:?}"),
            Over::Detached(positions) => format!("left alone, read up to {}", positions.errors),
            Over::Unsettled => "left as it was".to_owned(),
        },
    }
}
