//! Message scripts of the owner of the drivers: the pure machine under virtual time.
//!
//! Each command is a request of a host, a message of a driver or an eventor, or the end of a child; below it come the effects in
//! order. Lives of children are numbered as they are started.

use std::cell::RefCell;
use std::time::Duration;

use goldenscript::ArgumentConsumer;

use super::DriverSummary;
use super::messages::*;
use super::news::*;
use super::state::*;
use crate::driver::{
    DriverEnding, DriverHealth, DriverMode, DriverReport, DriverSpec, DriverStage, Folded, TaskKey,
};
use crate::eventor::{EventorNews, JournalId};
use crate::kernel::{CallLost, Effect, Ending, Machine as _, StopMode};
use crate::lease::LeasedCalls;
use crate::process::{Executable, ProcessSpec};
use crate::stage::{Fault, Player, Stage, number, play_all, span, word};
use crate::vocabulary::*;

#[test]
fn every_story_of_the_owner_of_the_drivers_goes_as_it_is_told() {
    play_all(concat!(env!("CARGO_MANIFEST_DIR"), "/src/drivers/scripts"), 20, || {
        SINKS.take();
        KEPT.take();
        Player::new(begin, say)
    });
}

thread_local! {
    /// The names of sinks, for printing.
    static SINKS: RefCell<Vec<(String, JournalId)>> = const { RefCell::new(Vec::new()) };
    /// The data that survives a crash of the machine.
    static KEPT: RefCell<DriversImage> = RefCell::default();
}

fn begin(args: &mut ArgumentConsumer<'_>) -> Result<Stage<Drivers>, Fault> {
    Ok(Stage::begin(read_options(args)?, tell).keeping(|| KEPT.with_borrow(DriversImage::clone)))
}

fn say(stage: &mut Stage<Drivers>, verb: &str, args: &mut ArgumentConsumer<'_>) -> Result<(), Fault> {
    match verb {
        "view" => {
            let view = stage.machine.view();
            let names: Vec<_> = view.reports.iter().map(|report| report.name.as_str()).collect();
            stage.tell(&names.join(" "));
        }
        // The stopped parts in its report.
        "steps" => {
            for step in stage.machine.stop_steps() {
                stage.tell(&format!("{}: {} after {:?}\n", step.what, step.ending, step.took));
            }
        }
        // The children with these lives have ended, all at once.
        "ended" => {
            let ended = read_endings(args)?;
            let call = stage.take_call(|call| matches!(call, DriversCall::AwaitEndings))?;
            stage.give(call, Ok(DriversOutcome::Ended(ended)));
        }
        "endings-lost" => {
            let call = stage.take_call(|call| matches!(call, DriversCall::AwaitEndings))?;
            stage.give(call, Err(CallLost::Crashed("boom".to_owned())));
        }
        "not-started" => {
            let life = life(args)?;
            let is_start = |call: &DriversCall| match call {
                DriversCall::StartDriver(at, _) | DriversCall::StartEventor(at, _) => *at == life,
                _ => false,
            };
            let call = stage.take_call(is_start)?;
            stage.give(call, Err(CallLost::Crashed("boom".to_owned())));
        }
        // A child answers its pending question, or does not.
        "told" => {
            let entry = |text: String| Folded { text, first: stage.now, last: stage.now, count: 1 };
            let mut told = Vec::new();
            while let Some(text) = args.next_pos() {
                told.push(entry(text.to_owned()));
            }
            let call = stage.take_call(is_question)?;
            let outcome = match call.1 {
                DriversCall::AskTroubles(..) => DriversOutcome::Described(told, LeasedCalls::default()),
                _ => DriversOutcome::Told(told),
            };
            stage.give(call, Ok(outcome));
        }
        "not-taken" => {
            let request = Attempt::new(word(args, "request")?.parse()?);
            let call = stage
                .take_call(|call| matches!(call, DriversCall::RestartNow(_, number) if *number == request))?;
            stage.give(call, Ok(DriversOutcome::NotTaken));
        }
        "untold" => {
            let call = stage.take_call(is_question)?;
            stage.give(call, Err(CallLost::Busy(9)));
        }
        _ => {
            let ask = read_ask(verb, args, stage.now)?;
            stage.ask(ask);
        }
    }
    Ok(())
}

fn is_question(call: &DriversCall) -> bool {
    matches!(call, DriversCall::AskTroubles(..) | DriversCall::AskRecent(..))
}

// === Parsing ===

fn read_options(args: &mut ArgumentConsumer<'_>) -> Result<DriversOptions, Fault> {
    let mut options = DriversOptions::default();
    options.restart_backoff.jitter_percent = 0;
    while let Some((key, value)) = args.next_key() {
        let names = || value.split(',').map(DriverName::new).collect::<Result<_, _>>();
        match key {
            "allowed" => options.allowed = Some(names()?),
            "blocked" => options.blocked = names()?,
            "expected" => options.expected = names()?,
            "drivers" => options.drivers_max = value.parse()?,
            "tasks" => options.tasks_max = value.parse()?,
            "waiting" => options.waiting_max = value.parse()?,
            unknown => return Err(format!("no such option: {unknown}").into()),
        }
    }
    Ok(options)
}

fn driver(args: &mut ArgumentConsumer<'_>) -> Result<DriverName, Fault> {
    Ok(DriverName::new(word(args, "driver")?)?)
}

fn task(args: &mut ArgumentConsumer<'_>) -> Result<TaskKey, Fault> {
    Ok(TaskKey::new(AllocationId::new("alloc")?, TaskName::new(word(args, "task")?)?))
}

fn life(args: &mut ArgumentConsumer<'_>) -> Result<Attempt, Fault> {
    Ok(Attempt::new(word(args, "life")?.parse()?))
}

fn read_ask(verb: &str, args: &mut ArgumentConsumer<'_>, now: Timestamp) -> Result<DriversAsk, Fault> {
    Ok(match verb {
        "add" => {
            let process = ProcessSpec::new(Executable::at("/bin/driver"));
            let mut spec = DriverSpec::new(driver(args)?, process);
            spec.api_version = args.next_pos().unwrap_or("one").to_owned();
            if let Some(seconds) = args.take_key("grace-seconds") {
                spec.stop_grace = Duration::from_secs(seconds.parse()?);
            }
            spec.not_launched = args.take_key("not-launched").map(str::to_owned);
            DriversAsk::AddDriver(AddDriver { spec })
        }
        "remove" => DriversAsk::RemoveDriver(RemoveDriver { name: driver(args)? }),
        "restart" => DriversAsk::RestartDriver(RestartDriver { name: driver(args)? }),
        "give-up" => {
            DriversAsk::GiveUpDriver(GiveUpDriver { name: driver(args)?, reason: word(args, "reason")? })
        }
        "list" => DriversAsk::ListDrivers(ListDrivers),
        "describe" => DriversAsk::DescribeDriver(DescribeDriver { name: driver(args)? }),
        "await" => DriversAsk::AwaitDrivers(AwaitDrivers { within: span(args)? }),
        "dispense" => {
            let (name, within) = (driver(args)?, span(args)?);
            let wanted =
                if args.next_pos() == Some("reachable") { Wanted::Reachable } else { Wanted::Healthy };
            DriversAsk::DispenseDriver(DispenseDriver { name, wanted, within })
        }
        "announce" => DriversAsk::AnnounceTask(AnnounceTask { driver: driver(args)?, task: task(args)? }),
        "handle" => {
            let (driver, task, name) = (driver(args)?, task(args)?, word(args, "handler")?);
            DriversAsk::RegisterTaskHandler(RegisterTaskHandler { driver, task, sink: sink_called(&name) })
        }
        "forget" => {
            DriversAsk::ForgetTaskHandler(ForgetTaskHandler { driver: driver(args)?, task: task(args)? })
        }
        "recent" => {
            DriversAsk::RecentTaskEvents(RecentTaskEvents { driver: driver(args)?, task: task(args)? })
        }
        "report" => read_report(args, now)?,
        "began" | "interrupted" | "dead-letters" => read_news(verb, args)?,
        unknown => return Err(format!("no such verb: {unknown}").into()),
    })
}

/// The sink of a handler: always the same for the same name.
fn sink_called(name: &str) -> JournalId {
    SINKS.with_borrow_mut(|sinks| {
        if let Some((_, sink)) = sinks.iter().find(|(known, _)| known == name) {
            return *sink;
        }
        let sink = JournalId::Handler(sinks.len() as u64);
        sinks.push((name.to_owned(), sink));
        sink
    })
}

/// `report DRIVER LIFE HEALTH [REASON] [stage=STAGE] [client=GENERATION] [restart=NUMBER]`.
fn read_report(args: &mut ArgumentConsumer<'_>, now: Timestamp) -> Result<DriversAsk, Fault> {
    let (name, life) = (driver(args)?, life(args)?);
    let health = match word(args, "health")?.as_str() {
        "healthy" => DriverHealth::Healthy,
        "undetected" => DriverHealth::Undetected,
        "unhealthy" => DriverHealth::Unhealthy,
        "gone" => DriverHealth::Gone,
        _ => DriverHealth::NoAnswerYet,
    };
    let reason = args.next_pos().unwrap_or_default().to_owned();
    let stage = match args.take_key("stage") {
        Some("recalling") => DriverStage::Recalling,
        Some("stopping") => DriverStage::Stopping,
        Some("launching") => DriverStage::Launching,
        Some("connecting") => DriverStage::Connecting,
        Some("refused") => DriverStage::Refused,
        Some("gone") => DriverStage::Gone,
        _ => DriverStage::Watching,
    };
    let generation = args.take_key("client").map(str::parse).transpose()?.map(Generation::new);
    let ending = (health == DriverHealth::Gone).then(|| match reason.as_str() {
        "" => DriverEnding::NothingRan,
        how => DriverEnding::Told { how: how.to_owned() },
    });
    let report = DriverReport {
        name,
        generation: generation.unwrap_or_default(),
        health,
        reason,
        ending,
        since: now,
        stage,
        attributes: std::sync::Arc::default(),
        capabilities: None,
        version: None,
        pid: None,
        is_adopted: false,
        launches: 1,
        restart: Attempt::new(args.take_key("restart").map_or(Ok(0), str::parse)?),
    };
    Ok(DriversAsk::DriverReported(DriverReported { life, report, may_lend: generation.is_some() }))
}

fn read_news(verb: &str, args: &mut ArgumentConsumer<'_>) -> Result<DriversAsk, Fault> {
    let (driver, life) = (driver(args)?, life(args)?);
    let news = match verb {
        "began" => EventorNews::Began,
        "interrupted" => {
            EventorNews::Interrupted { generation: Generation::new(7), error: "broken pipe".to_owned() }
        }
        _ => EventorNews::DeadLetters { task: None, count: 3, error: Some("it names no task".to_owned()) },
    };
    Ok(DriversAsk::EventorReported(EventorReported { driver, life, news }))
}

/// `KIND DRIVER LIFE HOW`, again and again.
fn read_endings(args: &mut ArgumentConsumer<'_>) -> Result<Vec<ChildEnded>, Fault> {
    let mut endings = Vec::new();
    while let Some(kind) = args.next_pos() {
        let kind = if kind == "driver" { ChildKind::Driver } else { ChildKind::Eventor };
        let (driver, life) = (driver(args)?, life(args)?);
        let ending = match word(args, "ending")?.as_str() {
            "normal" => Ending::Normal,
            "panic" => Ending::Panicked("boom".to_owned()),
            "budget" => Ending::BudgetSpent("boom".to_owned()),
            "killed" => Ending::Killed,
            reason => Ending::Failed(reason.to_owned()),
        };
        endings.push(ChildEnded { driver, kind, life, ending });
    }
    Ok(endings)
}

// === Printing ===

fn tell(effect: &Effect<Drivers>, now: Timestamp) -> String {
    match effect {
        Effect::Call { call, .. } => tell_call(call),
        Effect::Publish(news) => format!("news: {}", tell_news(news, now)),
        Effect::Reply(_, DriversAnswer::DriverReported(()) | DriversAnswer::EventorReported(())) => {
            String::new()
        }
        Effect::Reply(id, answer) => format!("answer {}: {}", number(*id), tell_answer(answer, now)),
        Effect::StartTimer(timer, at) => format!("{} in {:?}", tell_timer(timer), at.since(now)),
        Effect::CancelTimer(timer) => format!("no more {}", tell_timer(timer)),
        Effect::Stop(ending) => format!("ends: {ending:?}"),
        Effect::Persist(_, change) => tell_change(change),
    }
}

fn tell_timer(timer: &DriversTimer) -> String {
    match timer {
        DriversTimer::AwaitEndings => "pause of the wait for endings".to_owned(),
        DriversTimer::Stop(driver) => format!("stop deadline of {driver}"),
        DriversTimer::Restart(driver) => format!("pause of {driver}"),
        DriversTimer::AskForRestart(driver, restart) => {
            format!("pause before restart {restart} of {driver} is asked for again")
        }
        DriversTimer::RestartEventor(driver) => format!("pause of the eventor of {driver}"),
        DriversTimer::Dispense(driver, id) => format!("waiting of {} for {driver}", number(*id)),
        DriversTimer::AwaitDrivers(id) => format!("waiting of {} for what is known", number(*id)),
    }
}

/// Keeps the change, as the shell does, and prints it.
fn tell_change(change: &DriversChange) -> String {
    let (same, line) = match change {
        DriversChange::Keep(spec) => {
            (DriversChange::Keep(spec.clone()), format!("keep {} {}", spec.name, spec.api_version))
        }
        DriversChange::Drop(driver) => (DriversChange::Drop(driver.clone()), format!("drop {driver}")),
        DriversChange::Restart(driver) => {
            (DriversChange::Restart(driver.clone()), format!("{driver} is to be restarted"))
        }
        DriversChange::Restarted(driver) => {
            (DriversChange::Restarted(driver.clone()), format!("{driver} is restarted"))
        }
        DriversChange::Watch(driver, task, sink) => {
            let line = format!("keep {} of {driver} for {}", task.task, name_of(sink));
            (DriversChange::Watch(driver.clone(), task.clone(), *sink), line)
        }
        DriversChange::Forget(driver, task) => {
            (DriversChange::Forget(driver.clone(), task.clone()), format!("drop {} of {driver}", task.task))
        }
    };
    KEPT.with_borrow_mut(|kept| kept.apply(same));
    line
}

fn tell_call(call: &DriversCall) -> String {
    match call {
        DriversCall::AwaitEndings => "await endings".to_owned(),
        DriversCall::Sweep => "end all children".to_owned(),
        DriversCall::StartDriver(life, config) => {
            let mode = if config.mode == DriverMode::Retire { ", to retire it" } else { "" };
            format!("life {life}: start driver {} {}{mode}", config.spec.name, config.spec.api_version)
        }
        DriversCall::StartEventor(life, driver) => format!("life {life}: start the eventor of {driver}"),
        DriversCall::Stop(life, StopMode::Stop) => format!("life {life}: stop"),
        DriversCall::Stop(life, StopMode::Detach) => format!("life {life}: detach"),
        DriversCall::Kill(life) => format!("life {life}: end by force"),
        DriversCall::RestartNow(life, number) => format!("life {life}: restart, request {number}"),
        DriversCall::AskTroubles(life, _, id) => format!("life {life}: what went wrong, for {}", number(*id)),
        DriversCall::AskRecent(life, task, id) => {
            format!("life {life}: what was told of {}, for {}", task.task, number(*id))
        }
        DriversCall::SubscribeTo(life, generation) => format!("life {life}: attend generation {generation}"),
        DriversCall::Watch(life, tasks, is_renewal) => {
            let of = |(task, sink): &(TaskKey, JournalId)| format!("{} for {}", task.task, name_of(sink));
            let tasks: Vec<_> = tasks.iter().map(of).collect();
            let again = if *is_renewal { " again" } else { "" };
            format!("life {life}: watch [{}]{again}", tasks.join(", "))
        }
        DriversCall::Forget(life, task) => format!("life {life}: forget {}", task.task),
        DriversCall::HandOver(from, to) => format!("{} hands over to {}", name_of(from), name_of(to)),
        DriversCall::End(sink) => format!("end of {}", name_of(sink)),
    }
}

fn name_of(sink: &JournalId) -> String {
    SINKS.with_borrow(|sinks| {
        let known = sinks.iter().find(|(_, known)| known == sink);
        known.map_or("a handler to come".to_owned(), |(name, _)| name.clone())
    })
}

fn tell_news(news: &DriversNews, now: Timestamp) -> String {
    match news {
        DriversNews::Reported(report) => tell_report(report, now),
        DriversNews::Left(report) => format!("left: {}", tell_report(report, now)),
        DriversNews::DeadLetters { driver, count, error, .. } => {
            format!("{count} dead letters of {driver}: {}", error.as_deref().unwrap_or_default())
        }
        DriversNews::EventsInterrupted { driver, generation, error } => {
            format!("events of {driver}, generation {generation}, interrupted: {error}")
        }
    }
}

fn tell_report(report: &DriverReport, now: Timestamp) -> String {
    let DriverReport { name, health, reason, since, stage, .. } = report;
    let reason = if reason.is_empty() { String::new() } else { format!(" ({reason})") };
    format!("{name} is {health}{reason} for {:?}, {stage}", now.since(*since))
}

fn tell_answer(answer: &DriversAnswer, now: Timestamp) -> String {
    match answer {
        DriversAnswer::AddDriver(Err(error)) if error.is_transient() => format!("{error} (try again)"),
        DriversAnswer::AddDriver(answer) => said(answer),
        DriversAnswer::RemoveDriver(Ok(Removed::Ended { ending })) => format!("removed, {ending}"),
        DriversAnswer::RemoveDriver(Ok(Removed::NothingRan)) => "removed, nothing ran".to_owned(),
        DriversAnswer::RemoveDriver(Ok(Removed::Untold)) => "removed, end unknown".to_owned(),
        DriversAnswer::RemoveDriver(Err(error)) => error.to_string(),
        DriversAnswer::RestartDriver(answer) => said(answer),
        DriversAnswer::ListDrivers(reports) => {
            let reports: Vec<_> = reports.iter().map(|report| tell_report(report, now)).collect();
            format!("[{}]", reports.join("; "))
        }
        DriversAnswer::DescribeDriver(Ok(status)) => {
            let troubles: Vec<_> = status.troubles.iter().map(ToString::to_string).collect();
            let DriverStatus { report, tasks_watched, restarts, .. } = status;
            let report = tell_report(report, now);
            format!(
                "{report}; {tasks_watched} tasks, {restarts} restarts, troubles [{}]",
                troubles.join(", ")
            )
        }
        DriversAnswer::DescribeDriver(Err(error)) => error.to_string(),
        DriversAnswer::AwaitDrivers(summary) => tell_summary(summary),
        DriversAnswer::DispenseDriver(Ok(DispensedDriver { driver, generation })) => {
            format!("{driver}, generation {generation}")
        }
        DriversAnswer::DispenseDriver(Err(error)) => error.to_string(),
        DriversAnswer::AnnounceTask(answer) | DriversAnswer::RegisterTaskHandler(answer) => said(answer),
        DriversAnswer::RecentTaskEvents(told) => {
            let told: Vec<_> = told.iter().map(ToString::to_string).collect();
            format!("[{}]", told.join(", "))
        }
        DriversAnswer::GiveUpDriver(())
        | DriversAnswer::ForgetTaskHandler(())
        | DriversAnswer::DriverReported(())
        | DriversAnswer::EventorReported(()) => "taken".to_owned(),
    }
}

fn said<T: std::fmt::Debug, E: std::fmt::Display>(answer: &Result<T, E>) -> String {
    match answer {
        Ok(answer) => format!("{answer:?}"),
        Err(error) => error.to_string(),
    }
}

fn tell_summary(summary: &DriverSummary) -> String {
    let names =
        |drivers: &[DriverName]| drivers.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let unhealthy: Vec<_> =
        summary.unhealthy.iter().map(|(name, reason)| format!("{name} ({reason})")).collect();
    format!(
        "healthy [{}], unhealthy [{}], undetected [{}], no answer [{}]",
        names(&summary.healthy),
        unhealthy.join(", "),
        names(&summary.undetected),
        names(&summary.no_answer)
    )
}
