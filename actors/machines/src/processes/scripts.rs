//! Message scripts of the owner of the processes: the pure machine under virtual time.

use std::sync::Arc;
use std::time::Duration;

use goldenscript::ArgumentConsumer;

use super::messages::*;
use super::state::{
    ChildEnded, Processes, ProcessesCall, ProcessesChange, ProcessesOptions, ProcessesOutcome, ProcessesTimer,
};
use crate::kernel::{CallLost, Effect, Ending, Machine};
use crate::process::{
    Dropped, EndedBy, Executable, Exit, Identity, LaunchError, Lifetime, Over, Positions, ProcessEnding,
    ProcessName, ProcessNews, ProcessRecord, ProcessSpec, ProcessTag, Why,
};
use crate::stage::{Fault, Player, Stage, number, play_all, span, word};
use crate::vocabulary::{Attempt, Moment, Timestamp};

#[test]
fn every_story_of_the_owner_of_the_processes_goes_as_it_is_told() {
    play_all(concat!(env!("CARGO_MANIFEST_DIR"), "/src/processes/scripts"), 15, || Player::new(begin, say));
}

#[test]
fn a_rebuilt_owner_gives_other_numbers_to_lives_reg_08() {
    let options = ProcessesOptions::new([0; 16]);
    let life = |random| {
        let moment = Moment { now: Timestamp::default(), random };
        Processes::restore(&options, Vec::new(), moment).life.get()
    };
    assert_eq!(life(1 << 16), 1 << 8, "so many lives may begin before a number could come again");
    assert_eq!(life(3 << 20), 3 << 12);
}

#[test]
fn no_two_launches_share_a_tag_even_in_the_same_instant_prc_09() {
    let moment = Moment { now: Timestamp::default(), random: 0 };
    let mut processes = Processes::restore(&ProcessesOptions::new([0; 16]), Vec::new(), moment);
    let name = ProcessName::new("a").unwrap();
    let mut tags: Vec<_> = (0..3).map(|_| processes.draw_tag(&name, moment)).collect();
    tags.dedup();
    assert_eq!(tags.len(), 3);
}

fn say(stage: &mut Stage<Processes>, verb: &str, args: &mut ArgumentConsumer<'_>) -> Result<(), Fault> {
    match verb {
        "launch" => {
            let (name, argument) = (name(args)?, args.next_pos().unwrap_or_default());
            stage.ask(ProcessesAsk::LaunchProcess(LaunchProcess { name, spec: spec(argument) }));
        }
        "recall" => stage.ask(ProcessesAsk::RecallProcess(RecallProcess { name: name(args)? })),
        "end" => {
            let (name, grace) = (name(args)?, span(args)?);
            stage.ask(ProcessesAsk::StopProcess(StopProcess { name, tag: None, grace }));
        }
        // Waits for the end of the present launch; `stale` means another launch.
        "await" => {
            let name = name(args)?;
            let is_stale = args.take_key("stale").is_some();
            let present = stage.machine.entries.get(&name).filter(|_| !is_stale);
            let tag = present.map_or(ProcessTag::new([9; 16]), |entry| entry.record.tag);
            stage.ask(ProcessesAsk::AwaitEnd(AwaitEnd { name, tag }));
        }
        "view" => stage.tell(&tell_view(&stage.machine.view())),
        "swept" => {
            let (key, call) = stage.take_call(|call| matches!(call, ProcessesCall::Sweep { .. }))?;
            let outcome = match args.next_pos() {
                Some(fault) => Err(fault.to_owned()),
                None => Ok(vec![]),
            };
            stage.give((key, call), Ok(ProcessesOutcome::Swept(outcome)));
        }
        // News of the present actor of a process; `stale` means an earlier actor.
        "tells" => {
            let name = name(args)?;
            let life = if args.take_key("stale").is_some() {
                Attempt::new(u64::MAX)
            } else {
                stage.machine.entries[&name].life
            };
            let news = news(stage, &name, args)?;
            stage.ask(ProcessesAsk::ProcessReported(ProcessReported { life, name, news }));
        }
        "endings-lost" => {
            let call = stage.take_call(|call| matches!(call, ProcessesCall::AwaitEndings))?;
            stage.give(call, Err(CallLost::Crashed("boom".to_owned())));
        }
        "crashes" => {
            let name = name(args)?;
            let life = stage.machine.entries[&name].life;
            let (key, call) = stage.take_call(|call| matches!(call, ProcessesCall::AwaitEndings))?;
            let ended = ChildEnded { name, life, ending: Ending::Panicked("boom".to_owned()) };
            stage.give((key, call), Ok(ProcessesOutcome::Ended(vec![ended])));
        }
        unknown => return Err(format!("no such verb: {unknown}").into()),
    }
    Ok(())
}

/// Starts with these records on disk, each of a ready process.
fn begin(args: &mut ArgumentConsumer<'_>) -> Result<Stage<Processes>, Fault> {
    let processes_max = args.take_key("most").unwrap_or("8").parse()?;
    let waiting_max = args.take_key("waiting").unwrap_or("100").parse()?;
    let endings_max = args.take_key("endings").unwrap_or("100").parse()?;
    let mut records = Vec::new();
    while let Some(text) = args.next_pos() {
        let now = Timestamp::from_epoch(Duration::from_secs(900));
        let mut record =
            ProcessRecord::intent(ProcessName::new(text)?, ProcessTag::new([1; 16]), &spec(""), now);
        record.identity = Some(identity());
        record.is_ready = true;
        records.push(record);
    }
    let options =
        ProcessesOptions { processes_max, waiting_max, endings_max, ..ProcessesOptions::new([0; 16]) };
    let options = ProcessesOptions {
        restart_backoff: crate::vocabulary::Backoff { jitter_percent: 0, ..options.restart_backoff },
        ..options
    };
    let awaited =
        |call: &_| matches!(call, ProcessesCall::AwaitDisk { .. }).then_some(ProcessesOutcome::Done);
    Ok(Stage::begin_from(options, records, tell).awaiting(awaited))
}

fn name(args: &mut ArgumentConsumer<'_>) -> Result<ProcessName, Fault> {
    Ok(ProcessName::new(word(args, "name")?)?)
}

fn spec(argument: &str) -> Arc<ProcessSpec> {
    let mut spec = ProcessSpec::new(Executable::at("/bin/plugin"));
    spec.arguments = vec![argument.to_owned()];
    spec.lifetime = Lifetime::Surviving;
    Arc::new(spec)
}

fn identity() -> Identity {
    Identity { pid: 10, started_ticks: 100, boot_id: "boot".to_owned(), executable: None }
}

fn news(
    stage: &Stage<Processes>,
    name: &ProcessName,
    args: &mut ArgumentConsumer<'_>,
) -> Result<ProcessNews, Fault> {
    let over = |why| {
        let ending = ProcessEnding {
            name: name.clone(),
            tag: stage.machine.entries[name].record.tag,
            pid: Some(10),
            exit: Exit::Code(3),
            by: EndedBy::Itself,
            uptime: Duration::from_secs(1),
            last_output: vec![],
            last_errors: vec!["last words".to_owned()],
            panic: None,
        };
        ProcessNews::Over(Box::new(Over::Ended { ending, why, diagnosis: vec![] }))
    };
    let reason = "no host was there".to_owned();
    Ok(match word(args, "news")?.as_str() {
        "spawned" => ProcessNews::Spawned(identity()),
        "ready" => ProcessNews::Ready { identity: identity(), handshake: None, is_adopted: false },
        "adopted" => ProcessNews::Ready { identity: identity(), handshake: None, is_adopted: true },
        "stopping" => ProcessNews::Stopping,
        "clearing" => ProcessNews::Clearing,
        "read" => {
            let errors = word(args, "position")?.parse()?;
            ProcessNews::Read { positions: Positions { output: 0, errors }, dropped: Dropped::default() }
        }
        "ended" => over(Why::Itself),
        "left" => over(Why::Left(reason)),
        "foreign" => over(Why::NotProven("it carries no tag".to_owned())),
        "refused" => {
            let error = LaunchError::NotBindable { name: name.clone() };
            ProcessNews::Over(Box::new(Over::NotStarted(error)))
        }
        "unsettled" => ProcessNews::Over(Box::new(Over::Unsettled)),
        "detached" => ProcessNews::Over(Box::new(Over::Detached(Positions { output: 1, errors: 2 }))),
        unknown => return Err(format!("no such news: {unknown}").into()),
    })
}

fn tell(effect: &Effect<Processes>, now: Timestamp) -> String {
    match effect {
        Effect::Persist(_, ProcessesChange::Keep(records)) => {
            let told: Vec<String> = records.iter().map(tell_record).collect();
            format!("on disk: {}", told.join(", "))
        }
        Effect::Persist(_, ProcessesChange::Forget(name)) => format!("on disk: {name} no more"),
        Effect::Reply(_, ProcessesAnswer::ProcessReported(())) => String::new(),
        Effect::Reply(id, answer) => format!("answer {}: {}", number(*id), tell_answer(answer)),
        Effect::Publish(ProcessesNews::Changed(report)) => {
            format!("news: {} is {}", report.name, report.phase.as_str())
        }
        Effect::Publish(ProcessesNews::Ended(ending)) => format!("news: {} ended: {ending}", ending.name),
        Effect::Publish(ProcessesNews::Retired { name, reason, .. }) => {
            format!("news: record of {name} retired: {reason}")
        }
        Effect::Publish(ProcessesNews::Settled) => "news: settled".to_owned(),
        Effect::Call { call, .. } => tell_call(call),
        Effect::StartTimer(ProcessesTimer::Restart(name), at) => {
            format!("actor of {name} again in {:?}", at.since(now))
        }
        Effect::StartTimer(ProcessesTimer::AwaitEndings, at) => {
            format!("endings are waited for again in {:?}", at.since(now))
        }
        Effect::StartTimer(ProcessesTimer::Save, at) => format!("positions on disk in {:?}", at.since(now)),
        Effect::StartTimer(ProcessesTimer::Sweep, at) => format!("sweep again in {:?}", at.since(now)),
        Effect::StartTimer(ProcessesTimer::StopDeadline, at) => {
            format!("stop deadline in {:?}", at.since(now))
        }
        Effect::CancelTimer(_) => String::new(),
        Effect::Stop(ending) => format!("ends: {ending:?}"),
    }
}

fn tell_view(view: &ProcessesView) -> String {
    let reports: Vec<_> =
        view.reports.iter().map(|report| format!("{} is {}", report.name, report.phase.as_str())).collect();
    format!("[{}], {}", reports.join(", "), if view.settled { "settled" } else { "not settled" })
}

fn tell_record(record: &ProcessRecord) -> String {
    let state = match (&record.identity, record.is_ready) {
        (None, _) => "intended",
        (Some(_), false) => "spawned",
        (Some(_), true) => "ready",
    };
    format!("{} {state}, read up to {}", record.name, record.positions.errors)
}

fn tell_call(call: &ProcessesCall) -> String {
    match call {
        ProcessesCall::Release => "call: let go of all actors".to_owned(),
        ProcessesCall::Sweep { known, .. } => format!("call: sweep, {} tags are known", known.len()),
        ProcessesCall::AwaitEndings => String::new(),
        ProcessesCall::AwaitDisk { .. } => "waits for the disk".to_owned(),
        ProcessesCall::Start { config, .. } => {
            let what = if config.spec.is_some() { "launch" } else { "look for" };
            format!("call: actor to {what} {}", config.record.name)
        }
        ProcessesCall::End { grace, .. } => format!("call: end within {grace:?}"),
        ProcessesCall::Stop { mode, .. } => format!("call: {mode:?}"),
    }
}

fn tell_answer(answer: &ProcessesAnswer) -> String {
    match answer {
        ProcessesAnswer::LaunchProcess(Ok(launched)) => {
            format!("{} runs, pid {}", launched.name, launched.pid)
        }
        ProcessesAnswer::LaunchProcess(Err(error)) => error.to_string(),
        ProcessesAnswer::RecallProcess(Ok(Recalled::Proven(launched))) => {
            format!("{} is ours, pid {}", launched.name, launched.pid)
        }
        ProcessesAnswer::RecallProcess(Ok(Recalled::Ended { reason, .. })) => format!("ended: {reason}"),
        ProcessesAnswer::RecallProcess(Ok(Recalled::Unknown)) => "unknown".to_owned(),
        ProcessesAnswer::RecallProcess(Err(error)) => error.to_string(),
        ProcessesAnswer::StopProcess(Ok(ending)) | ProcessesAnswer::AwaitEnd(Ok(ending)) => {
            ending.to_string()
        }
        ProcessesAnswer::StopProcess(Err(error)) | ProcessesAnswer::AwaitEnd(Err(error)) => error.to_string(),
        ProcessesAnswer::ListProcesses(reports) => format!("{} processes", reports.len()),
        ProcessesAnswer::DescribeProcess(report) => format!("{report:?}"),
        ProcessesAnswer::ProcessReported(()) => String::new(),
    }
}
