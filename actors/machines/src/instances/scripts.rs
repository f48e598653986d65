//! Message scripts of the supervisor of instances: the pure machine under virtual time.
//!
//! Each command is news of the registry, a report or an ending of an instance, or a message; below it come the effects in
//! order. Instances are numbered by their lives.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use goldenscript::ArgumentConsumer;

use super::messages::*;
use super::state::*;
use crate::kernel::{CallLost, Effect, Ending, Machine, Vitals};
use crate::lease::LeasedCalls;
use crate::registry::{
    Active, ActiveReason, Departure, Entry, RegistryNews, RegistryView, Renew, ReportFitness, Standing,
};
use crate::stage::{Fault, Player, Stage, number, play_all, span, word};
use crate::vocabulary::*;
use crate::{AskError, FeedItem};

#[test]
fn every_story_of_the_instances_goes_as_it_is_told() {
    play_all(concat!(env!("CARGO_MANIFEST_DIR"), "/src/instances/scripts"), 12, || Player::new(begin, say));
}

fn begin(args: &mut ArgumentConsumer<'_>) -> Result<Stage<Instances>, Fault> {
    Ok(Stage::begin(read_options(args)?, tell))
}

fn say(stage: &mut Stage<Instances>, verb: &str, args: &mut ArgumentConsumer<'_>) -> Result<(), Fault> {
    match verb {
        "view" => stage.tell(&tell_view(&stage.machine.view(), stage.now)),
        "snapshot" | "registry" | "registry-gone" => {
            let call = stage.take_call(|call| matches!(call, InstancesCall::Follow { .. }))?;
            let followed = match verb {
                "snapshot" => Ok(vec![read_snapshot(args)?]),
                "registry" => Ok(read_news(args)?),
                _ => Err(AskError::NotRunning { actor: "registry".to_owned() }),
            };
            stage.give(call, Ok(InstancesOutcome::Followed(followed)));
        }
        "reports" => {
            let report = read_report(stage, args)?;
            stage.ask(InstancesAsk::InstanceReported(report));
        }
        // The registry does not take the last report.
        "not-told" => {
            let is_told =
                |call: &InstancesCall| matches!(call, InstancesCall::Report(_) | InstancesCall::Renew(_));
            let call = stage.take_call(is_told)?;
            let error = AskError::NotRunning { actor: "registry".to_owned() };
            stage.give(call, Ok(InstancesOutcome::Sent(Err(error))));
        }
        "endings-lost" => {
            let call = stage.take_call(|call| matches!(call, InstancesCall::AwaitEndings))?;
            stage.give(call, Err(CallLost::Crashed("boom".to_owned())));
        }
        "ended" => {
            let ended = read_ended(stage, args)?;
            let call = stage.take_call(|call| matches!(call, InstancesCall::AwaitEndings))?;
            stage.give(call, Ok(InstancesOutcome::Ended(vec![ended])));
        }
        // The instance answers, or ends without an answer.
        "looked" | "look-ends" => {
            let call = stage.take_call(|call| matches!(call, InstancesCall::Look { .. }))?;
            let report = stage.machine.view().reports.into_iter().next().ok_or("there is no instance")?;
            let error = AskError::NotRunning { actor: "instance".to_owned() };
            let looked = if verb == "looked" { Ok(report) } else { Err(error) };
            stage.give(call, Ok(InstancesOutcome::Looked(looked)));
        }
        "not-started" => {
            let call = stage.take_call(|call| matches!(call, InstancesCall::Start { .. }))?;
            stage.give(call, Err(CallLost::Crashed("boom".to_owned())));
        }
        "described" => {
            let call = stage.take_call(|call| matches!(call, InstancesCall::Describe))?;
            let vitals = Vitals { steps: 7, ..Vitals::default() };
            let life = Attempt::new(word(args, "life")?.parse()?);
            stage.give(
                call,
                Ok(InstancesOutcome::Described(BTreeMap::from([(life, (vitals, LeasedCalls::default()))]))),
            );
        }
        _ => stage.ask(read_ask(verb, args)?),
    }
    Ok(())
}

// === Parsing ===

fn read_options(args: &mut ArgumentConsumer<'_>) -> Result<InstancesOptions, Fault> {
    let defaults = InstancesOptions::default();
    let limit = args.take_key("restarts").unwrap_or("2").parse()?;
    Ok(InstancesOptions {
        restart_budget: RestartBudget { limit, window: Duration::from_secs(60) },
        restart_backoff: Backoff { jitter_percent: 0, ..defaults.restart_backoff },
        waiting_max: args.take_key("waiting").unwrap_or("4096").parse()?,
        ..defaults
    })
}

fn read_plugin(text: &str) -> Result<PluginKey, Fault> {
    let (plugin_type, name) = text.split_once('/').unwrap_or(("csi-node", text));
    Ok(PluginKey::new(plugin_type.parse()?, PluginName::new(name)?))
}

/// `zfs=a@3`: allocation `a` serves plugin `zfs`, as generation 3.
fn read_active(text: &str) -> Result<Active, Fault> {
    let (plugin, rest) = text.split_once('=').ok_or("write PLUGIN=ALLOCATION@GENERATION")?;
    let (allocation, generation) = rest.split_once('@').ok_or("write PLUGIN=ALLOCATION@GENERATION")?;
    Ok(Active {
        generation: Generation::new(generation.parse()?),
        registration: registration(plugin, allocation)?,
        since: Timestamp::default(),
    })
}

fn registration(plugin: &str, allocation: &str) -> Result<Arc<Registration>, Fault> {
    Ok(Arc::new(Registration {
        policy: None,
        plugin: read_plugin(plugin)?,
        allocation: AllocationId::new(allocation)?,
        socket: SocketPath::new(format!("/run/{allocation}.sock"))?,
        provider: None,
        version: None,
        options: Arc::default(),
    }))
}

/// `ALLOCATION@GENERATION`; without a generation it is provisional.
fn entry(plugin: &str, text: &str) -> Result<Entry, Fault> {
    let number = RegistrationNumber::default();
    let (allocation, generation, standing) = match text.split_once('@') {
        Some((allocation, generation)) => (allocation, generation.parse()?, Standing::Confirmed),
        None => (text, 0, Standing::Provisional),
    };
    Ok(Entry {
        number,
        registration: registration(plugin, allocation)?,
        generation: Generation::new(generation),
        standing,
        since: Timestamp::default(),
    })
}

/// Active registrations as above; `standby=zfs/b@4` is confirmed and not active, `zfs=a` is provisional.
fn read_snapshot(args: &mut ArgumentConsumer<'_>) -> Result<RegistryItem, Fault> {
    let mut view = RegistryView::default();
    while let Some((plugin, rest)) = args.next_key() {
        if plugin == "standby" {
            let (plugin, rest) = rest.rsplit_once('/').ok_or("write PLUGIN/ALLOCATION@GENERATION")?;
            view.entries.push(entry(plugin, rest)?);
            continue;
        }
        if rest.contains('@') {
            view.active.push(read_active(&format!("{plugin}={rest}"))?);
        }
        view.entries.push(entry(plugin, rest)?);
    }
    Ok(FeedItem::Snapshot { number: 0, view })
}

/// One batch. `zfs=b@4` is registered or has a new generation, and is active; `zfs=none` is no longer active. `active=zfs/b@4` becomes
/// active; `came=zfs/b@4`, `changed=zfs/b@5` and `left=zfs/a` are registrations.
fn read_news(args: &mut ArgumentConsumer<'_>) -> Result<Vec<RegistryItem>, Fault> {
    let mut news = vec![];
    while let Some((key, value)) = args.next_key() {
        let of = || {
            let (plugin, rest) = value.rsplit_once('/').ok_or("write PLUGIN/ALLOCATION@GENERATION")?;
            entry(plugin, rest)
        };
        match (key, value) {
            ("came", _) => {
                let came = of()?;
                let number = RegistrationNumber::new(came.generation.get());
                news.push(RegistryNews::Registered(Entry { number, ..came }));
            }
            ("changed", _) => news.push(RegistryNews::Renewed(of()?)),
            ("left", _) => news.push(RegistryNews::Deregistered(of()?, Departure::NotConfirmed)),
            (plugin, "none") => {
                let reason = ActiveReason::Left(Departure::Deregistered);
                let plugin = read_plugin(plugin)?;
                news.push(RegistryNews::ActiveChanged { plugin, from: None, to: None, reason });
            }
            ("active", text) => {
                let (plugin, rest) = text.rsplit_once('/').ok_or("write PLUGIN/ALLOCATION@GENERATION")?;
                news.push(active_changed(plugin, rest)?);
            }
            (plugin, rest) => {
                news.push(RegistryNews::Registered(entry(plugin, rest)?));
                news.push(active_changed(plugin, rest)?);
            }
        }
    }
    Ok(news.into_iter().map(|news| FeedItem::Change { number: 1, news }).collect())
}

fn active_changed(plugin: &str, rest: &str) -> Result<RegistryNews, Fault> {
    let to = Some(read_active(&format!("{plugin}={rest}"))?);
    let (plugin, reason) = (read_plugin(plugin)?, ActiveReason::Registered);
    Ok(RegistryNews::ActiveChanged { plugin, from: None, to, reason })
}

/// The report of life 2: `reports 2 zfs healthy`, of allocation `b` with `of=b`.
fn read_report(stage: &Stage<Instances>, args: &mut ArgumentConsumer<'_>) -> Result<InstanceReported, Fault> {
    let life = Attempt::new(word(args, "life")?.parse()?);
    let plugin = read_plugin(&word(args, "plugin")?)?;
    let of = args.take_key("of").map(str::to_owned);
    let provider = args.take_key("name").unwrap_or("p.example").into();
    let unfit = args.take_key("unfit").is_some();
    let text = word(args, "health")?;
    let view = stage.machine.view();
    let is_it = |report: &InstanceReport| {
        report.plugin == plugin && of.as_ref().is_none_or(|of| report.allocation.as_str() == of)
    };
    let before = view.reports.into_iter().chain(view.standby).find(is_it).ok_or("no such plugin")?;
    let identity = Identity { provider, version: "1".into(), manifest: BTreeMap::new() };
    let fingerprint = CsiFingerprint {
        identity,
        plugin: vec![],
        expansion: vec![],
        controller: None,
        group_controller: None,
        node: Some(vec![]),
        node_info: None,
    };
    let (health, fingerprint) = match text.as_str() {
        "starting" => (Health::Starting, None),
        "healthy" => (Health::Healthy, Some(Arc::new(fingerprint))),
        "gone" => (Health::Gone, before.fingerprint.clone()),
        reason => (Health::Unhealthy { reason: reason.to_owned() }, before.fingerprint.clone()),
    };
    let fitness = match &health {
        Health::Healthy => Fitness::Fit,
        Health::Unhealthy { reason } if unfit => Fitness::Unfit { reason: reason.as_str().into() },
        Health::Starting if unfit => Fitness::Unfit { reason: "it is not ready yet".into() },
        _ => before.fitness.clone(),
    };
    let report = InstanceReport { health, fitness, fingerprint, since: stage.now, ..before };
    Ok(InstanceReported { life, report })
}

/// `ended 2 zfs panicked`, of allocation `b` with `of=b`; without how, its connection was lost or it has retired.
fn read_ended(stage: &Stage<Instances>, args: &mut ArgumentConsumer<'_>) -> Result<ChildEnded, Fault> {
    let life = Attempt::new(word(args, "life")?.parse()?);
    let plugin = read_plugin(&word(args, "plugin")?)?;
    let started = |(place, entry): (&Place, &super::state::Entry)| {
        (entry.child.life() == Some(life)).then(|| place.1.clone())
    };
    let allocation = match args.take_key("of") {
        Some(of) => AllocationId::new(of)?,
        None => stage.machine.entries.iter().find_map(started).unwrap_or(AllocationId::new("a")?),
    };
    let ending = match args.next_pos() {
        None => Ending::Normal,
        Some("killed") => Ending::Killed,
        Some("panicked") => Ending::Panicked("boom".to_owned()),
        Some(message) => Ending::BudgetSpent(message.to_owned()),
    };
    Ok(ChildEnded { plugin, allocation, life, ending })
}

fn read_ask(verb: &str, args: &mut ArgumentConsumer<'_>) -> Result<InstancesAsk, Fault> {
    Ok(match verb {
        "dispense" => {
            let plugin = read_plugin(&word(args, "plugin")?)?;
            let within = span(args)?;
            InstancesAsk::Dispense(Dispense { plugin, within })
        }
        "check" => InstancesAsk::CheckNow(CheckNow { plugin: read_plugin(&word(args, "plugin")?)? }),
        "health-of" => {
            InstancesAsk::HealthOf(HealthOf { allocation: AllocationId::new(word(args, "allocation")?)? })
        }
        "await-retired" => InstancesAsk::AwaitRetired(AwaitRetired {
            allocation: AllocationId::new(word(args, "allocation")?)?,
        }),
        "await-healthy" => InstancesAsk::AwaitHealthy(AwaitHealthy {
            allocation: AllocationId::new(word(args, "allocation")?)?,
            healthy_for: span(args)?,
            within: span(args)?,
            plugins: std::iter::from_fn(|| args.next_pos()).map(read_plugin).collect::<Result<_, _>>()?,
        }),
        "describe" => InstancesAsk::DescribeInstances(DescribeInstances),
        unknown => return Err(format!("no such verb: {unknown}").into()),
    })
}

// === Printing ===

fn tell(effect: &Effect<Instances>, now: Timestamp) -> String {
    match effect {
        Effect::Call { call, .. } => tell_call(call),
        Effect::Publish(news) => format!("news: {}", tell_instances_news(news)),
        Effect::Reply(_, InstancesAnswer::InstanceReported(())) => String::new(),
        Effect::Reply(id, answer) => format!("answer {}: {}", number(*id), tell_answer(answer)),
        Effect::StartTimer(timer, at) => match timer {
            InstancesTimer::Restart((plugin, allocation)) => {
                format!("{plugin} of {allocation} starts again in {:?}", at.since(now))
            }
            InstancesTimer::Resend((plugin, allocation)) => {
                format!("the registry is told again of {plugin} of {allocation} in {:?}", at.since(now))
            }
            InstancesTimer::AwaitEndings => {
                format!("endings are waited for again in {:?}", at.since(now))
            }
            InstancesTimer::Refollow => format!("the registry is followed again in {:?}", at.since(now)),
            InstancesTimer::Gate(id) => format!("{} is checked in {:?}", number(*id), at.since(now)),
            InstancesTimer::Retire(..) | InstancesTimer::Dispense(..) | InstancesTimer::AwaitRetired(..) => {
                String::new()
            }
        },
        Effect::CancelTimer(_) => String::new(),
        Effect::Stop(ending) => format!("ends: {ending:?}"),
        Effect::Persist(_, never) => match *never {},
    }
}

fn tell_call(call: &InstancesCall) -> String {
    match call {
        InstancesCall::Start { life, config } => {
            let before = config.predecessor.as_ref().map_or_else(String::new, |before| {
                format!(", after {} {}", before.identity.provider, before.identity.version)
            });
            format!(
                "start {life}: {} of {} at {}, generation {}{before}",
                config.plugin, config.allocation, config.socket, config.generation
            )
        }
        InstancesCall::Report(report) => {
            let ReportFitness { plugin, allocation, generation, fitness } = report;
            format!("tell the registry: {plugin} of {allocation}@{generation} {fitness:?}")
        }
        InstancesCall::Renew(Renew { plugin, allocation, generation }) => {
            format!("tell the registry: {plugin} of {allocation} needs a generation after {generation}")
        }
        InstancesCall::Retire { life, cause } => format!("retire {life}: {cause}"),
        InstancesCall::Kill { life } => format!("kill {life}"),
        InstancesCall::Look { life, .. } => format!("look {life}"),
        InstancesCall::Sweep => "sweep".to_owned(),
        InstancesCall::Describe => "look at the actors".to_owned(),
        InstancesCall::Follow { afresh: true } => "follow the registry".to_owned(),
        InstancesCall::Follow { afresh: false } | InstancesCall::AwaitEndings => String::new(),
    }
}

fn tell_report(report: &InstanceReport) -> String {
    let InstanceReport { plugin, allocation, generation, health, .. } = report;
    format!("{plugin} of {allocation}@{generation} {health}")
}

fn tell_instances_news(news: &InstancesNews) -> String {
    match news {
        InstancesNews::Expected(plugins) => format!("expected {plugins:?}", plugins = tell_plugins(plugins)),
        InstancesNews::Reported(report) => tell_report(report),
        InstancesNews::Standby(report) => format!("standby: {}", tell_report(report)),
        InstancesNews::Left(report) => format!("left: {}", tell_report(report)),
        InstancesNews::Settled => "settled".to_owned(),
    }
}

fn tell_plugins(plugins: &[PluginKey]) -> Vec<String> {
    plugins.iter().map(ToString::to_string).collect()
}

fn tell_view(view: &InstancesView, now: Timestamp) -> String {
    let told = |report: &InstanceReport| format!("{} for {:?}", tell_report(report), now.since(report.since));
    let standby = view.standby.iter().map(|report| format!("standby: {}", told(report)));
    let mut told: Vec<String> = view.reports.iter().map(told).chain(standby).collect();
    told.push(format!("expected {:?}, settled {}", tell_plugins(&view.expected), view.settled));
    told.join("\n")
}

fn tell_answer(answer: &InstancesAnswer) -> String {
    match answer {
        InstancesAnswer::Dispense(Ok(dispensed)) => {
            format!("{} of {}@{}", dispensed.plugin, dispensed.allocation, dispensed.generation)
        }
        InstancesAnswer::Dispense(Err(error)) => format!("in vain: {error}"),
        InstancesAnswer::CheckNow(Ok(report)) => tell_report(report),
        InstancesAnswer::CheckNow(Err(error)) => format!("in vain: {error}"),
        InstancesAnswer::HealthOf(reports) => {
            format!("[{}]", reports.iter().map(tell_report).collect::<Vec<_>>().join(", "))
        }
        InstancesAnswer::AwaitHealthy(Ok(())) => "healthy".to_owned(),
        InstancesAnswer::AwaitHealthy(Err(error)) => error.to_string(),
        InstancesAnswer::AwaitRetired(Ok(())) => "retired".to_owned(),
        InstancesAnswer::AwaitRetired(Err(error)) => format!("in vain: {error}"),
        InstancesAnswer::DescribeInstances(statuses) => {
            let told = statuses.iter().map(|status| {
                let steps =
                    status.vitals.map_or_else(|| "no actor".to_owned(), |v| format!("{} steps", v.steps));
                let (state, restarts) = (status.state.as_str(), status.restarts);
                format!("{} ({state}, {restarts} restarts, {steps})", tell_report(&status.report))
            });
            format!("[{}]", told.collect::<Vec<_>>().join(", "))
        }
        InstancesAnswer::InstanceReported(()) => String::new(),
    }
}
