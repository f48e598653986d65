//! Message scripts of the eventor: the pure machine under virtual time.
//!
//! Each command is a change of the watched tasks or an item of the stream; below it come the effects in order. An event is
//! written `TASK=SEQUENCE`, or `TASK=-MESSAGE` without a position.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use goldenscript::ArgumentConsumer;

use super::JournalId;
use super::messages::*;
use super::state::*;
use crate::driver::{Asked, DriverError, DriverRpc, EventBatch};
use crate::driver::{EventPosition, TaskEvent, TaskEventItem, TaskKey};
use crate::kernel::{CallLost, Effect};
use crate::stage::{Fault, Player, Stage, number, play_all, word};
use crate::vocabulary::*;

#[test]
fn every_story_of_the_eventor_goes_as_it_is_told() {
    play_all(concat!(env!("CARGO_MANIFEST_DIR"), "/src/eventor/scripts"), 15, || Player::new(begin, say));
}

thread_local! {
    /// The names of sinks, for printing.
    static SINKS: RefCell<Vec<(String, JournalId)>> = const { RefCell::new(Vec::new()) };
}

fn begin(args: &mut ArgumentConsumer<'_>) -> Result<Stage<Eventor>, Fault> {
    let strangers_max = args.take_key("strangers").unwrap_or("1024").parse()?;
    let journal_items = args.take_key("journal").unwrap_or("1000").parse()?;
    let mut options = EventorOptions { strangers_max, journal_items, ..EventorOptions::default() };
    options.backoff.jitter_percent = 0;
    Ok(Stage::begin(options, tell))
}

fn say(stage: &mut Stage<Eventor>, verb: &str, args: &mut ArgumentConsumer<'_>) -> Result<(), Fault> {
    match verb {
        "finished" => {
            let call = stage.take_call(|call| matches!(call, EventorCall::Finish(_)))?;
            stage.give(call, Ok(EventorOutcome::Done));
        }
        "attend" => {
            let generation = Generation::new(word(args, "generation")?.parse()?);
            stage.ask(EventorAsk::SubscribeTo(SubscribeTo { generation }));
        }
        "watch" => stage.ask(EventorAsk::Watch(read_watch(args)?)),
        "forget" => {
            let task = task(&word(args, "task")?)?;
            stage.ask(EventorAsk::Forget(Forget { task }));
        }
        "recent" => {
            let task = task(&word(args, "task")?)?;
            stage.ask(EventorAsk::RecentOf(RecentOf { task }));
        }
        // The call for the next events is lost, or returns nothing.
        "quiet" | "crashed" | "busy" | "closed" => {
            let call = stage.take_call(is_reading)?;
            let outcome = match verb {
                "quiet" => Err(CallLost::DeadlineExceeded(std::time::Duration::from_secs(3_600))),
                "crashed" => Err(CallLost::Crashed("boom".to_owned())),
                "busy" => Err(CallLost::Busy(9)),
                _ => Ok(EventorOutcome::Done),
            };
            stage.give(call, outcome);
        }
        verb => {
            let outcome = read_outcome(verb, args)?;
            let call = stage.take_call(is_reading)?;
            stage.give(call, Ok(EventorOutcome::Heard(outcome)));
        }
    }
    Ok(())
}

fn is_reading(call: &EventorCall) -> bool {
    matches!(call, EventorCall::Open { .. } | EventorCall::Read)
}

// === Parsing ===

fn task(name: &str) -> Result<TaskKey, Fault> {
    Ok(TaskKey::new(AllocationId::new("alloc")?, TaskName::new(name)?))
}

fn read_watch(args: &mut ArgumentConsumer<'_>) -> Result<Watch, Fault> {
    let name = word(args, "task")?;
    let after = args.take_key("after").map(str::parse::<EventPosition>).transpose()?;
    let is_renewal = args.take_key("renewal").is_some();
    let sink = SINKS.with_borrow_mut(|sinks| {
        let sink = JournalId::Handler(sinks.len() as u64);
        sinks.push((name.clone(), sink));
        sink
    });
    Ok(Watch { task: task(&name)?, sink, after, is_renewal })
}

fn read_outcome(
    verb: &str,
    args: &mut ArgumentConsumer<'_>,
) -> Result<Result<EventBatch, DriverError>, Fault> {
    let asked = || Asked { driver: DriverName::new("exec").unwrap(), rpc: DriverRpc::TaskEvents };
    Ok(match verb {
        "opened" => Ok(EventBatch::Opened(args.next_pos().map(Arc::from))),
        "events" => {
            let stream = args.take_key("stream").unwrap_or("s").to_owned();
            let mut events = Vec::new();
            while let Some((name, text)) = args.next_key() {
                events.push(Ok(read_event(name, &stream, text)?));
            }
            Ok(EventBatch::Events(events))
        }
        "malformed" => Ok(EventBatch::Events(vec![Err("it names no task".to_owned())])),
        "ended" => Ok(EventBatch::Ended),
        "broke" => Err(DriverError::Disconnected { asked: asked(), detail: "broken pipe".to_owned() }),
        "gone" => Err(DriverError::PluginGone {
            asked: asked(),
            is_worth_retrying: true,
            reason: "its process ended".to_owned(),
        }),
        unknown => return Err(format!("no such verb: {unknown}").into()),
    })
}

fn read_event(name: &str, stream: &str, text: &str) -> Result<TaskEventItem, Fault> {
    let (message, position) = match text.strip_prefix('-') {
        Some(message) => (message, None),
        None => (text, Some(EventPosition::new(stream, text.parse()?)?)),
    };
    let event = TaskEvent {
        task_id: "t".into(),
        task: task(name)?,
        at: None,
        message: message.to_owned(),
        annotations: BTreeMap::new(),
    };
    Ok(TaskEventItem::Event { event: Arc::new(event), position })
}

// === Printing ===

fn tell(effect: &Effect<Eventor>, now: Timestamp) -> String {
    match effect {
        Effect::Call { call, .. } => match call {
            EventorCall::Open { generation, after } => {
                let after =
                    after.as_ref().map_or("from the beginning".to_owned(), |after| format!("after {after}"));
                format!("open generation {generation} {after}")
            }
            EventorCall::Read => String::new(),
            EventorCall::Close => "close".to_owned(),
            EventorCall::Hand(items) => {
                items.iter().map(|(sink, item)| tell_item(sink, item)).collect::<Vec<_>>().join("\n")
            }
            EventorCall::End(sinks) | EventorCall::Finish(sinks) => {
                let names: Vec<String> = sinks.iter().map(name_of).collect();
                format!("end [{}]", names.join(" "))
            }
        },
        Effect::Publish(news) => match news {
            EventorNews::Began => "news: began".to_owned(),
            EventorNews::Interrupted { generation, error } => {
                format!("news: generation {generation} interrupted: {error}")
            }
            EventorNews::DeadLetters { task, count, error } => {
                let task = task.as_ref().map_or("no task".to_owned(), |task| task.task.to_string());
                format!(
                    "news: {count} dead letters for {task}{}",
                    error.as_deref().map_or(String::new(), |e| format!(": {e}"))
                )
            }
        },
        Effect::Reply(id, EventorAnswer::RecentOf(recent)) => {
            let recent: Vec<String> = recent.iter().map(ToString::to_string).collect();
            format!("answer {}: {}", number(*id), recent.join(", "))
        }
        Effect::Reply(
            _,
            EventorAnswer::SubscribeTo(()) | EventorAnswer::Watch(()) | EventorAnswer::Forget(()),
        ) => String::new(),
        Effect::StartTimer(EventorTimer::HandlerDeadline(task), at) => {
            format!("{} is waited for, {:?}", task.task, at.since(now))
        }
        Effect::StartTimer(timer, at) => format!("{timer:?} in {:?}", at.since(now)),
        Effect::CancelTimer(EventorTimer::HandlerDeadline(task)) => {
            format!("{} is not waited for any more", task.task)
        }
        Effect::CancelTimer(EventorTimer::Reopen | EventorTimer::Rewind) => String::new(),
        Effect::Stop(ending) => format!("ends: {ending:?}"),
        Effect::Persist(_, never) => match *never {},
    }
}

fn name_of(sink: &JournalId) -> String {
    SINKS.with_borrow(|sinks| {
        sinks.iter().find(|(_, known)| known == sink).map_or("?".to_owned(), |(name, _)| name.clone())
    })
}

fn tell_item(sink: &JournalId, item: &TaskEventItem) -> String {
    let name = name_of(sink);
    match item {
        TaskEventItem::Event { position: Some(position), .. } => format!("{name} <- {position}"),
        TaskEventItem::Event { event, position: None } => format!("{name} <- {:?}", event.message),
        TaskEventItem::Gap { missed: Some(missed), reason } => format!("{name} <- gap of {missed}: {reason}"),
        TaskEventItem::Gap { missed: None, reason } => format!("{name} <- gap: {reason}"),
    }
}
