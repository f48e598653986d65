//! Message scripts of the instance: the pure machine under virtual time.
//!
//! Each command is an answer of the plugin or a passage of time; below it come the effects in order.

use goldenscript::ArgumentConsumer;

use super::messages::{ConnectionEnded, InstanceAnswer, InstanceAsk, InstanceReport, LookNow, Retire};
use super::state::{Half, Instance, InstanceCall, InstanceConfig, InstanceLimits, InstanceTimer, Reached};
use crate::csi::{Answer, CallError, Cause, Code, Readiness, Rpc, Step};
use crate::kernel::{CallKey, CallLost, Effect};
use crate::lease::RetireCause;
use crate::stage::{Fault, Player, Stage, number, play_all, word};
use crate::vocabulary::*;

#[test]
fn every_story_of_the_instance_goes_as_it_is_told() {
    play_all(concat!(env!("CARGO_MANIFEST_DIR"), "/src/instance/scripts"), 17, || {
        // The key of the first call that returned.
        let mut first = None;
        Player::new(begin, move |stage, verb, args| say(stage, verb, args, &mut first))
    });
}

fn begin(args: &mut ArgumentConsumer<'_>) -> Result<Stage<Instance>, Fault> {
    Ok(Stage::begin(read_config(args)?, tell))
}

fn say(
    stage: &mut Stage<Instance>,
    verb: &str,
    args: &mut ArgumentConsumer<'_>,
    first: &mut Option<CallKey>,
) -> Result<(), Fault> {
    match verb {
        "look" => {
            let times: usize = args.take_key("times").unwrap_or("1").parse()?;
            (0..times).for_each(|_| stage.ask(InstanceAsk::LookNow(LookNow)));
        }
        "retire" => stage.ask(InstanceAsk::Retire(Retire { cause: RetireCause::NotServed })),
        // The first connection, unless another one is named.
        "connection-ends" => {
            let cut_off = args.take_key("cut-off").map(str::to_owned);
            let connection = Attempt::new(args.next_pos().unwrap_or("1").parse()?);
            stage.ask(InstanceAsk::ConnectionEnded(ConnectionEnded { connection, cut_off }));
        }
        // All answers of a healthy plugin, from the first call to the last.
        "whole" => {
            let (name, version) = (args.take_key("name"), args.take_key("version"));
            while let Ok((key, call)) = stage.take_call(|_| true) {
                first.get_or_insert(key);
                let outcome = whole(call, name.unwrap_or("zfs.example"), version.unwrap_or("1"));
                stage.give((key, call), Ok(Ok(outcome)));
            }
        }
        // An outcome of an earlier attempt.
        "late" => {
            let key = first.ok_or("nothing came back yet")?;
            let call = InstanceCall::Dial;
            stage.give((key, call), read_outcome(call, args)?);
        }
        // An outcome of the previous generation.
        "stray" => {
            let (key, call) = stage.take_call(|_| true)?;
            let stray = CallKey { generation: Generation::new(2), ..key };
            stage.give((stray, call), read_outcome(call, args)?);
        }
        "gives" => {
            let (key, call) = stage.take_call(|_| true)?;
            stage.give((key, call), read_outcome(call, args)?);
        }
        unknown => return Err(format!("no such verb: {unknown}").into()),
    }
    Ok(())
}

fn socket() -> SocketPath {
    SocketPath::new("/run/a.sock").unwrap()
}

fn read_config(args: &mut ArgumentConsumer<'_>) -> Result<InstanceConfig, Fault> {
    let half = if args.take_key("half") == Some("controller") { Half::Controller } else { Half::Node };
    let plugin_type = match half {
        Half::Controller => PluginType::CsiController,
        Half::Node => PluginType::CsiNode,
    };
    let predecessor = args.take_key("before").map(|text| {
        let (name, version) = text.split_once('@').unwrap_or((text, "1"));
        fingerprint(name, version).into()
    });
    let limits = InstanceLimits {
        round_jitter_percent: 0,
        failures_until_unhealthy: args.take_key("tolerates").unwrap_or("1").parse()?,
        backoff: Backoff { jitter_percent: 0, ..InstanceLimits::default().backoff },
        ..InstanceLimits::default()
    };
    Ok(InstanceConfig {
        plugin: PluginKey::new(plugin_type, PluginName::new("zfs")?),
        half,
        allocation: AllocationId::new("a")?,
        socket: socket(),
        generation: Generation::new(3),
        expected_provider: args.take_key("registered").map(Into::into),
        former: args.take_key("former").map(read_former).transpose()?.map(Box::new),
        predecessor,
        limits,
    })
}

/// The last report of the former instance: its health, or the reason why it was unhealthy.
fn read_former(health: &str) -> Result<InstanceReport, Fault> {
    let (health, fitness) = match health {
        "starting" => (Health::Starting, Fitness::Fit),
        reason => {
            let fitness = Fitness::Unfit { reason: reason.into() };
            (Health::Unhealthy { reason: reason.to_owned() }, fitness)
        }
    };
    Ok(InstanceReport {
        plugin: PluginKey::new(PluginType::CsiNode, PluginName::new("zfs")?),
        allocation: AllocationId::new("a")?,
        socket: socket(),
        generation: Generation::new(2),
        health,
        since: Timestamp::default(),
        fitness,
        fingerprint: Some(fingerprint("zfs.example", "1").into()),
        remarks: vec![],
    })
}

fn fingerprint(name: &str, version: &str) -> CsiFingerprint {
    CsiFingerprint {
        identity: identity(name, version),
        plugin: vec![],
        expansion: vec![],
        controller: None,
        group_controller: None,
        node: Some(vec![]),
        node_info: None,
    }
}

fn identity(name: &str, version: &str) -> Identity {
    Identity { provider: name.into(), version: version.into(), manifest: Default::default() }
}

fn node_info() -> Answer {
    Answer::NodeInfo(NodeInfo { node_id: "node-1".to_owned(), max_volumes: None, topology: None })
}

fn offers(has_controller: bool) -> Answer {
    let capabilities = has_controller.then_some(PluginCapability::ControllerService).into_iter().collect();
    Answer::PluginCapabilities { capabilities, expansion: vec![] }
}

fn offers_groups() -> Answer {
    let capabilities = vec![PluginCapability::ControllerService, PluginCapability::GroupControllerService];
    Answer::PluginCapabilities { capabilities, expansion: vec![] }
}

fn whole(call: InstanceCall, name: &str, version: &str) -> Reached {
    let rpc = match call {
        InstanceCall::Dial => return Reached::Connected { connection: Attempt::new(1) },
        InstanceCall::Drain(_) => return Reached::Drained,
        InstanceCall::Ask(rpc) => rpc,
    };
    let answer = match rpc {
        Rpc::PluginInfo => Answer::PluginInfo(identity(name, version)),
        Rpc::PluginCapabilities => offers(true),
        Rpc::Probe => Answer::Probe(Readiness::Ready),
        Rpc::ControllerCapabilities => Answer::ControllerCapabilities(vec![]),
        Rpc::GroupControllerCapabilities => Answer::GroupControllerCapabilities(vec![]),
        Rpc::NodeCapabilities => Answer::NodeCapabilities(vec![]),
        Rpc::NodeInfo => node_info(),
    };
    Reached::Answered(answer, vec![])
}

type Outcome = Result<Result<Reached, CallError>, CallLost>;

fn read_outcome(call: InstanceCall, args: &mut ArgumentConsumer<'_>) -> Result<Outcome, Fault> {
    let remark = args.take_key("remark").map(str::to_owned);
    let remarks = || remark.iter().cloned().collect();
    let answered = |answer| Ok(Ok(Reached::Answered(answer, remarks())));
    let step = match call {
        InstanceCall::Dial | InstanceCall::Drain(_) => Step::Dial,
        InstanceCall::Ask(rpc) => Step::Call(rpc),
    };
    let failed =
        |cause| Ok(Err(CallError::new(step, socket(), InstanceLimits::default().call_deadline, cause)));
    let status = |code, message: &str| failed(Cause::Status { code, message: message.to_owned() });
    Ok(match word(args, "outcome")?.as_str() {
        "connected" => Ok(Ok(Reached::Connected { connection: Attempt::new(1) })),
        "drained" => Ok(Ok(Reached::Drained)),
        "too-late" => Err(CallLost::DeadlineExceeded(InstanceLimits::default().retire_deadline)),
        "name" => {
            let (name, version) = (word(args, "name")?, args.next_pos().unwrap_or("1"));
            answered(Answer::PluginInfo(identity(&name, version)))
        }
        "controller" => answered(offers(true)),
        "controller-and-groups" => answered(offers_groups()),
        "no-controller" => answered(offers(false)),
        "ready" => answered(Answer::Probe(Readiness::Ready)),
        "not-ready" => answered(Answer::Probe(Readiness::NotReady)),
        "publishes" => {
            answered(Answer::ControllerCapabilities(vec![ControllerCapability::PublishUnpublishVolume]))
        }
        "groups" => answered(Answer::GroupControllerCapabilities(vec![
            GroupControllerCapability::CreateDeleteGetVolumeGroupSnapshot,
        ])),
        "nothing" => answered(match call {
            InstanceCall::Ask(Rpc::ControllerCapabilities) => Answer::ControllerCapabilities(vec![]),
            _ => Answer::NodeCapabilities(vec![]),
        }),
        "stages" => answered(Answer::NodeCapabilities(vec![NodeCapability::StageUnstageVolume])),
        "node" => answered(node_info()),
        "absent" => failed(Cause::Absent),
        "refused" => failed(Cause::Refused),
        "hung-up" => failed(Cause::Disconnected { detail: "broken pipe".to_owned() }),
        "flood" => failed(Cause::CutOff { detail: "it floods".to_owned() }),
        "silence" => failed(Cause::DeadlineExceeded),
        "unimplemented" => status(Code::Unimplemented, ""),
        "missing" => status(Code::FailedPrecondition, "no kernel module"),
        "trouble" => status(Code::Internal, "disk on fire"),
        "panic" => Err(CallLost::Crashed("boom".to_owned())),
        unknown => return Err(format!("no such outcome: {unknown}").into()),
    })
}

fn tell(effect: &Effect<Instance>, now: Timestamp) -> String {
    match effect {
        Effect::Call { call: InstanceCall::Dial, .. } => "call: Dial".to_owned(),
        Effect::Call { call: InstanceCall::Ask(rpc), .. } => format!("call: {rpc}"),
        Effect::Call { call: InstanceCall::Drain(cause), deadline, .. } => {
            format!("call: Drain within {deadline:?}: {cause}")
        }
        Effect::Publish(report) => format!("news: {}", tell_report(report, now)),
        Effect::Reply(id, InstanceAnswer::LookNow(report)) => {
            format!("answer {}: {}", number(*id), tell_report(report, now))
        }
        Effect::Reply(_, InstanceAnswer::ConnectionEnded(())) => String::new(),
        Effect::Reply(id, InstanceAnswer::Retire(report)) => {
            format!("retired {}: {}", number(*id), tell_report(report, now))
        }
        Effect::StartTimer(InstanceTimer::Look, at) => format!("next look in {:?}", at.since(now)),
        Effect::CancelTimer(timer) => format!("no more waiting for {timer:?}"),
        Effect::Stop(ending) => format!("ends: {ending:?}"),
        Effect::Persist(_, never) => match *never {},
    }
}

fn tell_report(report: &InstanceReport, now: Timestamp) -> String {
    let fitness = match &report.fitness {
        Fitness::Unproven => "unproven",
        Fitness::Fit => "fit",
        Fitness::Unfit { .. } => "unfit",
    };
    let mut told = format!("{} (for {:?}), {fitness}", report.health, now.since(report.since));
    if let Some(fingerprint) = &report.fingerprint {
        let Identity { provider, version, .. } = &fingerprint.identity;
        let node = fingerprint.node_info.as_ref().map_or("no node id", |info| &info.node_id);
        let stages = if fingerprint.node.iter().flatten().next().is_some() { ", stages" } else { "" };
        let controller = if fingerprint.controller.is_some() { ", controller" } else { "" };
        let groups = if fingerprint.group_controller.is_some() { ", group controller" } else { "" };
        told.push_str(&format!(" {provider} {version}, {node}{stages}{controller}{groups}"));
    }
    for remark in &report.remarks {
        told.push_str(&format!("; remark: {remark}"));
    }
    told
}
