//! The commands and output shared by the message scripts of all plugins with a session.

use std::fmt::Debug;
use std::time::Duration;

use goldenscript::ArgumentConsumer;

use super::calls::{Outcome, Reached, SessionCall, Step, Trouble, TroubleKind};
use super::service::{Plugin, Service};
use crate::kernel::{CallKey, CallLost};
use crate::process::{Launched, ProcessName, ProcessTag};
use crate::processes::Recalled;
use crate::stage::{Fault, Stage, word};
use crate::vocabulary::{Attempt, Generation, Timestamp};

pub(crate) fn tag(launch: u8) -> ProcessTag {
    ProcessTag::new([launch; 16])
}

pub(crate) fn launched(name: ProcessName, launch: u8, is_adopted: bool) -> Launched {
    Launched {
        name,
        tag: tag(launch),
        pid: 100 + u32::from(launch),
        started_at: Timestamp::default(),
        handshake: None,
        is_adopted,
        spec_digest: None,
    }
}

/// Whether a call leads from one phase of the session to the next.
pub(crate) const fn is_step<T>(call: &SessionCall<T>) -> bool {
    !matches!(call, SessionCall::AwaitEnd(_) | SessionCall::HangUp { .. } | SessionCall::Ping)
}

/// Completes a call of the session. False if the verb is not one for that.
pub(crate) fn say<S: Service, M: Plugin<S>>(
    stage: &mut Stage<M>,
    verb: &str,
    args: &mut ArgumentConsumer<'_>,
    read_outcome: impl Fn(&mut ArgumentConsumer<'_>) -> Result<Outcome<S>, Fault>,
) -> Result<bool, Fault>
where
    M::Image: Default,
{
    match verb {
        "gives" => {
            let outcome = read_outcome(args)?;
            let call = stage.take_call(is_step)?;
            stage.give(call, outcome);
        }
        // The ping in flight returns.
        "pinged" => {
            let outcome = read_outcome(args)?;
            let call = stage.take_call(|call| *call == SessionCall::Ping)?;
            stage.give(call, outcome);
        }
        // The same as `gives`, but for an earlier attempt.
        "late" => {
            let outcome = read_outcome(args)?;
            let (key, call) = stage.take_call(is_step)?;
            stage.give((CallKey { attempt: Attempt::default(), ..key }, call), outcome);
        }
        // No call of a lease is in flight.
        "drained" => {
            let call = stage.take_call(|call| matches!(call, SessionCall::HangUp { .. }))?;
            stage.give(call, Ok(Ok(Reached::Done)));
        }
        // The end of the launch with this number.
        "ended" => {
            let launch: u8 = word(args, "launch")?.parse()?;
            let how = args.next_pos().unwrap_or("exit code 1").to_owned();
            let call = stage.take_call(|call| *call == SessionCall::AwaitEnd(tag(launch)))?;
            stage.give(call, Ok(Ok(Reached::Ended(how))));
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// The number after an outcome: of a launch, or a generation.
pub(crate) fn read_number(args: &mut ArgumentConsumer<'_>) -> Result<u8, Fault> {
    Ok(args.next_pos().unwrap_or("1").parse()?)
}

/// The outcome for this word, regardless of the service; the process has this name.
pub(crate) fn read_outcome<S: Service>(
    outcome: &str,
    args: &mut ArgumentConsumer<'_>,
    name: ProcessName,
) -> Result<Outcome<S>, Fault> {
    let trouble = |kind, what: &str| Ok(Err(Trouble { kind, what: what.to_owned() }));
    Ok(match outcome {
        "unknown" => Ok(Ok(Reached::Recalled(Recalled::Unknown))),
        "gone" => {
            let recalled = Recalled::Ended { ending: None, reason: "its pid is another's".to_owned() };
            Ok(Ok(Reached::Recalled(recalled)))
        }
        "launched" => Ok(Ok(Reached::Launched(launched(name, read_number(args)?, false)))),
        "connected" => Ok(Ok(Reached::Connected(Generation::new(read_number(args)?.into())))),
        "done" => Ok(Ok(Reached::Done)),
        "version" => Ok(Ok(Reached::Identified { version: "1.0".into() })),
        "ended" => Ok(Ok(Reached::Ended(args.next_pos().unwrap_or("exit code 0").to_owned()))),
        "silence" => trouble(TroubleKind::Silent, "no answer"),
        "no" => trouble(TroubleKind::Answered, args.next_pos().unwrap_or("it said no")),
        "refused" => trouble(TroubleKind::Refused, args.next_pos().unwrap_or("its digest is another")),
        "not-begun" => trouble(TroubleKind::NotBegun, args.next_pos().unwrap_or("no space")),
        "unimplemented" => trouble(TroubleKind::Unimplemented, "it does not have this call"),
        "deadline" => Err(CallLost::DeadlineExceeded(Duration::from_secs(12))),
        "panic" => Err(CallLost::Crashed("boom".to_owned())),
        unknown => return Err(format!("no such outcome: {unknown}").into()),
    })
}

/// A call in words.
pub(crate) fn tell_call<T: Debug>(call: &SessionCall<T>, deadline: Duration) -> String {
    match call {
        SessionCall::Advance(step, None) => format!("call: {} within {deadline:?}", tell_step(step)),
        SessionCall::Advance(step, Some(to)) => {
            format!("call: {} to launch {} within {deadline:?}", tell_step(step), to.tag.bytes()[0])
        }
        SessionCall::AwaitChange => format!("call: await another program within {deadline:?}"),
        SessionCall::Ping => format!("call: ping within {deadline:?}"),
        SessionCall::ReadOn => format!("call: read on within {deadline:?}"),
        SessionCall::AwaitEnd(tag) => format!("await the end of launch {}", tag.bytes()[0]),
        SessionCall::HangUp { is_worth_retrying, reason, within } => {
            let hint = if *is_worth_retrying { "try again" } else { "for good" };
            let when = if within.is_zero() { String::new() } else { format!(" within {within:?}") };
            format!("hang up{when}, {hint}: {reason}")
        }
        SessionCall::ShutdownAnswer => format!("call: shutdown within {deadline:?}"),
        SessionCall::StopProcess { tag, grace } => match tag {
            Some(tag) => format!("stop launch {} within {grace:?}, {deadline:?} in all", tag.bytes()[0]),
            None => format!("stop whichever launch there is within {grace:?}, {deadline:?} in all"),
        },
    }
}

fn tell_step<T: Debug>(step: &Step<T>) -> String {
    match step {
        Step::Own(step) => format!("{step:?}"),
        step => format!("{step:?}"),
    }
}
