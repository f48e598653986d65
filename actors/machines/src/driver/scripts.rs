//! The driver's stories: message scripts against the pure machine, under virtual time.
//!
//! A script says what comes back from the plugin and from the owner of the processes; below stands, in order, what the driver
//! does.

use goldenscript::ArgumentConsumer;

use super::messages::{DescribeTroubles, DriverAnswer, DriverAsk, RestartNow};
use super::spec::{DriverLimits, DriverSpec, process_name};
use super::state::*;
use super::*;
use crate::goplugin::{Handshake, HandshakeTerms, PluginEndpoint};
use crate::kernel::{CallKey, CallLost, Effect};
use crate::process::{Executable, Launched, Lifetime, ProcessRecord, ProcessSpec, ProcessTag, Reach};
use crate::processes::Recalled;
use crate::stage::{Fault, Player, Stage, number, parse_span, play_all, word};
use crate::vocabulary::*;

#[test]
fn every_story_of_the_driver_goes_as_it_is_told() {
    play_all(concat!(env!("CARGO_MANIFEST_DIR"), "/src/driver/scripts"), 29, || Player::new(begin, say));
}

fn begin(args: &mut ArgumentConsumer<'_>) -> Result<Stage<Driver>, Fault> {
    Ok(Stage::begin(read_config(args)?, tell))
}

fn say(stage: &mut Stage<Driver>, verb: &str, args: &mut ArgumentConsumer<'_>) -> Result<(), Fault> {
    match verb {
        "restart" => {
            let number = crate::kernel::Machine::view(&stage.machine).restart.next();
            stage.ask(DriverAsk::RestartNow(RestartNow { number }));
        }
        "troubles" => stage.ask(DriverAsk::DescribeTroubles(DescribeTroubles)),
        // Everything that goes well, from where it stands to the first fingerprint.
        "advance" => advance(stage)?,
        "gives" => {
            let outcome = read_outcome(args)?;
            let call = stage.take_call(is_step)?;
            stage.give(call, outcome);
        }
        // The ping that is under way comes back.
        "pinged" => {
            let outcome = read_outcome(args)?;
            let call = stage.take_call(|call| *call == DriverCall::Ping)?;
            stage.give(call, outcome);
        }
        // The same, but of a try before this one.
        "late" => {
            let outcome = read_outcome(args)?;
            let (key, call) = stage.take_call(is_step)?;
            stage.give((CallKey { attempt: Attempt::default(), ..key }, call), outcome);
        }
        // No call of a lease is in flight any more.
        "drained" => {
            let call = stage.take_call(|call| matches!(call, DriverCall::HangUp { .. }))?;
            stage.give(call, Ok(Ok(Reached::Done)));
        }
        // The end of the launch with this number.
        "ended" => {
            let launch: u8 = word(args, "launch")?.parse()?;
            let how = args.next_pos().unwrap_or("exit code 1").to_owned();
            let call = stage.take_call(|call| *call == DriverCall::AwaitEnd(tag(launch)))?;
            stage.give(call, Ok(Ok(Reached::Ended(how))));
        }
        "wait-lost" => {
            let call = stage.take_call(|call| matches!(call, DriverCall::AwaitEnd(_)))?;
            stage.give(call, Err(CallLost::Crashed("boom".to_owned())));
        }
        unknown => return Err(format!("no such verb: {unknown}").into()),
    }
    Ok(())
}

fn is_step(call: &DriverCall) -> bool {
    !matches!(call, DriverCall::AwaitEnd(_) | DriverCall::HangUp { .. } | DriverCall::Ping)
}

fn advance(stage: &mut Stage<Driver>) -> Result<(), Fault> {
    loop {
        let (key, call) = stage.take_call(is_step)?;
        let reached = match &call {
            DriverCall::Advance(StartStep::Recall, _) => Reached::Recalled(Recalled::Unknown),
            DriverCall::Advance(StartStep::Launch, _) => Reached::Launched(launched(1, false)),
            DriverCall::Advance(StartStep::Dial, _) => Reached::Connected(Generation::new(1)),
            DriverCall::Advance(StartStep::Identify, _) => Reached::Identified { version: "1.0".into() },
            DriverCall::Advance(StartStep::Own(DriverStep::Capabilities), _) => {
                Reached::Told(DriverTold::Capable(capabilities()))
            }
            DriverCall::Advance(StartStep::Watch, _) | DriverCall::ReadOn => fingerprint("healthy", "", None),
            _ => Reached::Done,
        };
        let is_last = matches!(call, DriverCall::Advance(StartStep::Watch, _));
        stage.give((key, call), Ok(Ok(reached)));
        if is_last {
            return Ok(());
        }
    }
}

// === Reading ===

fn tag(launch: u8) -> ProcessTag {
    ProcessTag::new([launch; 16])
}

fn launched(launch: u8, is_adopted: bool) -> Launched {
    Launched {
        name: process_name(&name()).unwrap(),
        tag: tag(launch),
        pid: 100 + u32::from(launch),
        started_at: Timestamp::default(),
        handshake: None,
        is_adopted,
        spec_digest: None,
    }
}

/// What identifies the spec of a surviving process with this argument, as it is on record.
fn digest_of(argument: &str, tag: ProcessTag) -> [u8; 32] {
    let mut spec = ProcessSpec::new(Executable::at("/bin/driver"));
    spec.arguments = vec![argument.to_owned()];
    spec.lifetime = Lifetime::Surviving;
    ProcessRecord::intent(process_name(&name()).unwrap(), tag, &spec, Timestamp::default()).spec_digest
}

fn name() -> DriverName {
    DriverName::new("exec").unwrap()
}

fn read_config(args: &mut ArgumentConsumer<'_>) -> Result<DriverConfig, Fault> {
    let mut process = ProcessSpec::new(Executable::at("/bin/driver"));
    if args.take_key("lifetime") == Some("surviving") {
        process.lifetime = Lifetime::Surviving;
    }
    if args.take_key("reach") == Some("everything") {
        process.reach = Reach::Everything;
    }
    process.arguments = args.take_key("argument").map(str::to_owned).into_iter().collect();
    if let Some(versions) = args.take_key("offers") {
        let versions = versions.split(',').map(str::parse).collect::<Result<_, _>>()?;
        process.handshake = Some(HandshakeTerms { versions, ..HandshakeTerms::nomad(None) });
    }
    let mut limits = DriverLimits::default();
    limits.backoff.jitter_percent = 0;
    limits.ping_every = args.take_key("pings").map(parse_span).transpose()?;
    let mode = if args.take_key("mode") == Some("retire") { DriverMode::Retire } else { DriverMode::Serve };
    let not_launched = args.take_key("not-launched").map(str::to_owned);
    let adopts_any = args.take_key("adopts") == Some("any");
    let spec = DriverSpec { not_launched, adopts_any, ..DriverSpec::new(name(), process) };
    Ok(DriverConfig { spec, process: process_name(&name())?, mode, limits })
}

fn capabilities() -> DriverCapabilities {
    DriverCapabilities {
        send_signals: true,
        exec: true,
        fs_isolation: FsIsolation::None,
        network_modes: vec![NetworkMode::Host],
        must_create_network: false,
        mounts: MountSupport::None,
        disable_log_collection: false,
        dynamic_workload_users: false,
    }
}

fn fingerprint(health: &str, description: &str, version: Option<&str>) -> Reached {
    let health = match health {
        "healthy" => DriverHealth::Healthy,
        "undetected" => DriverHealth::Undetected,
        _ => DriverHealth::Unhealthy,
    };
    let description = description.to_owned();
    let told = |version: &str| {
        let value = AttributeValue::Text(version.to_owned());
        ("version".to_owned(), Attribute { value, unit: String::new() })
    };
    let attributes = version.map(told).into_iter().collect();
    Reached::Told(DriverTold::Fingerprinted(Fingerprint { health, description, attributes }))
}

type Outcome = Result<Result<Reached, Trouble>, CallLost>;

fn read_outcome(args: &mut ArgumentConsumer<'_>) -> Result<Outcome, Fault> {
    let word = word(args, "outcome")?;
    let launch = |args: &mut ArgumentConsumer<'_>| -> Result<u8, Fault> {
        Ok(args.next_pos().unwrap_or("1").parse()?)
    };
    let trouble = |kind, what: &str| Ok(Err(Trouble { kind, what: what.to_owned() }));
    Ok(match word.as_str() {
        "unknown" => Ok(Ok(Reached::Recalled(Recalled::Unknown))),
        "proven" => {
            let version = args.take_key("version").map(str::parse).transpose()?;
            let endpoint = || PluginEndpoint::Unix("/run/p.sock".into());
            let handshake = version.map(|app_version| Handshake { app_version, endpoint: endpoint() });
            let argument = args.take_key("argument").map(str::to_owned);
            let found = launched(launch(args)?, true);
            let spec_digest = argument.map(|argument| digest_of(&argument, found.tag));
            let found = Launched { handshake, spec_digest, ..found };
            Ok(Ok(Reached::Recalled(Recalled::Proven(found))))
        }
        "gone" => {
            let recalled = Recalled::Ended { ending: None, reason: "its pid is another's".to_owned() };
            Ok(Ok(Reached::Recalled(recalled)))
        }
        "launched" => Ok(Ok(Reached::Launched(launched(launch(args)?, false)))),
        "connected" => Ok(Ok(Reached::Connected(Generation::new(launch(args)?.into())))),
        "done" => Ok(Ok(Reached::Done)),
        "version" => Ok(Ok(Reached::Identified { version: "1.0".into() })),
        "capabilities" => Ok(Ok(Reached::Told(DriverTold::Capable(capabilities())))),
        "healthy" | "undetected" | "unhealthy" => {
            let told = args.next_pos().unwrap_or_default().to_owned();
            Ok(Ok(fingerprint(&word, &told, args.take_key("version"))))
        }
        "ended" => Ok(Ok(Reached::Ended(args.next_pos().unwrap_or("exit code 0").to_owned()))),
        "silence" => trouble(TroubleKind::Silent, "no answer"),
        "no" => trouble(TroubleKind::Answered, args.next_pos().unwrap_or("it said no")),
        "refused" => trouble(TroubleKind::Refused, args.next_pos().unwrap_or("its digest is another")),
        "not-begun" => trouble(TroubleKind::NotBegun, args.next_pos().unwrap_or("no space")),
        "unimplemented" => trouble(TroubleKind::Unimplemented, "it does not have this call"),
        "deadline" => Err(CallLost::DeadlineExceeded(std::time::Duration::from_secs(12))),
        "panic" => Err(CallLost::Crashed("boom".to_owned())),
        unknown => return Err(format!("no such outcome: {unknown}").into()),
    })
}

// === Telling ===

fn tell(effect: &Effect<Driver>, now: Timestamp) -> String {
    match effect {
        Effect::Call { call, deadline, .. } => match call {
            DriverCall::Advance(start_step, None) => {
                format!("call: {} within {deadline:?}", tell_step(*start_step))
            }
            DriverCall::Advance(start_step, Some(to)) => {
                let step = tell_step(*start_step);
                format!("call: {step} to launch {} within {deadline:?}", to.tag.bytes()[0])
            }
            DriverCall::AwaitChange => format!("call: await another program within {deadline:?}"),
            DriverCall::Ping => format!("call: ping within {deadline:?}"),
            DriverCall::ReadOn => format!("call: read on within {deadline:?}"),
            DriverCall::AwaitEnd(tag) => format!("await the end of launch {}", tag.bytes()[0]),
            DriverCall::HangUp { is_worth_retrying, reason, within } => {
                let hint = if *is_worth_retrying { "try again" } else { "for good" };
                let when = if within.is_zero() { String::new() } else { format!(" within {within:?}") };
                format!("hang up{when}, {hint}: {reason}")
            }
            DriverCall::ShutdownAnswer => format!("call: shutdown within {deadline:?}"),
            DriverCall::StopProcess { tag, grace } => match tag {
                Some(tag) => format!("stop launch {} within {grace:?}, {deadline:?} in all", tag.bytes()[0]),
                None => format!("stop whichever launch there is within {grace:?}, {deadline:?} in all"),
            },
        },
        Effect::Publish(report) => format!("news: {}", tell_report(report, now)),
        Effect::Reply(id, DriverAnswer::RestartNow(())) => format!("answer {}: taken", number(*id)),
        Effect::Reply(id, DriverAnswer::DescribeTroubles(troubles)) => {
            let troubles: Vec<String> = troubles.iter().map(ToString::to_string).collect();
            format!("answer {}: {}", number(*id), troubles.join("; "))
        }
        Effect::StartTimer(timer, at) => format!("{timer:?} in {:?}", at.since(now)),
        Effect::CancelTimer(_) => String::new(),
        Effect::Stop(ending) => format!("ends: {ending:?}"),
        Effect::Persist(_, never) => match *never {},
    }
}

fn tell_step(step: StartStep) -> String {
    match step {
        StartStep::Own(step) => format!("{step:?}"),
        step => format!("{step:?}"),
    }
}

fn tell_report(report: &DriverReport, now: Timestamp) -> String {
    let DriverReport {
        generation, health, reason, since, stage, attributes, pid, is_adopted, launches, ..
    } = report;
    let reason = if reason.is_empty() { String::new() } else { format!(" ({reason})") };
    let adopted = if *is_adopted { ", adopted" } else { "" };
    let pid = pid.map_or("no process".to_owned(), |pid| format!("pid {pid}"));
    let since = now.since(*since);
    let attributes: String = attributes.iter().map(|(key, told)| format!(", {key} {}", told.value)).collect();
    format!(
        "{stage}, {health}{reason} for {since:?}, generation {generation}, {pid}{adopted}, launches {launches}{attributes}"
    )
}
