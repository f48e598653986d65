//! Message scripts of a driver: the pure machine under virtual time.
//!
//! Each command is a result from the plugin or from the owner of the processes; below it come the effects of the driver, in
//! order.

use goldenscript::ArgumentConsumer;

use super::messages::{DescribeTroubles, DriverAnswer, DriverAsk, RestartNow};
use super::service::DriverService;
use super::spec::{DriverLimits, DriverSpec, process_name};
use super::state::*;
use super::*;
use crate::goplugin::{Handshake, HandshakeTerms, PluginEndpoint};
use crate::kernel::{CallLost, Effect};
use crate::process::{Executable, Launched, Lifetime, ProcessRecord, ProcessSpec, ProcessTag, Reach};
use crate::processes::Recalled;
use crate::session::stories;
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
        // All successful steps, from the present one to the first fingerprint.
        "advance" => advance(stage)?,
        "wait-lost" => {
            let call = stage.take_call(|call| matches!(call, DriverCall::AwaitEnd(_)))?;
            stage.give(call, Err(CallLost::Crashed("boom".to_owned())));
        }
        verb if stories::say::<DriverService, _>(stage, verb, args, read_outcome)? => {}
        unknown => return Err(format!("no such verb: {unknown}").into()),
    }
    Ok(())
}

fn advance(stage: &mut Stage<Driver>) -> Result<(), Fault> {
    loop {
        let (key, call) = stage.take_call(stories::is_step)?;
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

// === Parsing ===

fn launched(launch: u8, is_adopted: bool) -> Launched {
    stories::launched(process_name(&name()).unwrap(), launch, is_adopted)
}

/// The digest of the spec of a surviving process with this argument, as it is on record.
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

type Outcome = crate::session::Outcome<DriverService>;

fn read_outcome(args: &mut ArgumentConsumer<'_>) -> Result<Outcome, Fault> {
    let word = word(args, "outcome")?;
    Ok(match word.as_str() {
        "proven" => {
            let version = args.take_key("version").map(str::parse).transpose()?;
            let endpoint = || PluginEndpoint::Unix("/run/p.sock".into());
            let handshake = version.map(|app_version| Handshake { app_version, endpoint: endpoint() });
            let argument = args.take_key("argument").map(str::to_owned);
            let found = launched(stories::read_number(args)?, true);
            let spec_digest = argument.map(|argument| digest_of(&argument, found.tag));
            let found = Launched { handshake, spec_digest, ..found };
            Ok(Ok(Reached::Recalled(Recalled::Proven(found))))
        }
        "capabilities" => Ok(Ok(Reached::Told(DriverTold::Capable(capabilities())))),
        "healthy" | "undetected" | "unhealthy" => {
            let told = args.next_pos().unwrap_or_default().to_owned();
            Ok(Ok(fingerprint(&word, &told, args.take_key("version"))))
        }
        word => return stories::read_outcome::<DriverService>(word, args, process_name(&name())?),
    })
}

// === Printing ===

fn tell(effect: &Effect<Driver>, now: Timestamp) -> String {
    match effect {
        Effect::Call { call, deadline, .. } => stories::tell_call(call, *deadline),
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
