//! Message scripts of the inventory: the pure machine under virtual time.
//!
//! A script contains the reports of the instances; below each come, in order, the notifications of the inventory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use goldenscript::ArgumentConsumer;

use super::messages::*;
use super::state::*;
use crate::allocations::{AllocationPhase, AllocationStatus, AllocationsNews, AllocationsView};
use crate::driver::{DriverHealth, DriverReport};
use crate::drivers::{DriverSummary, DriversNews, DriversView};
use crate::instances::{InstanceReport, InstancesNews, InstancesView};
use crate::kernel::Effect;
use crate::stage::{Fault, Player, Stage, number, play_all, word};
use crate::vocabulary::*;
use crate::volume::{VolumeKey, VolumeSpec};
use crate::volumes::{KnownVolume, VolumeActor, VolumeReport, VolumesNews, VolumesView};
use crate::{AskError, FeedItem};

#[test]
fn every_story_of_the_inventory_goes_as_it_is_told() {
    play_all(concat!(env!("CARGO_MANIFEST_DIR"), "/src/inventory/scripts"), 25, || Player::new(begin, say));
}

fn begin(args: &mut ArgumentConsumer<'_>) -> Result<Stage<Inventory>, Fault> {
    let waiting_max = args.take_key("waiting").unwrap_or("4096").parse()?;
    let has_drivers = args.take_key("drivers") == Some("awaited");
    let expected =
        args.take_key("expects").map_or(Ok(vec![]), |names| names.split(',').map(read_expected).collect());
    let expected: Result<_, Fault> = expected;
    let (expected, has_allocations) = (expected?, args.take_key("allocations").is_some());
    let has_volumes = args.take_key("volumes").is_some();
    let options = InventoryOptions { waiting_max, expected, ..InventoryOptions::default() };
    let others = [
        (Source::Allocations, has_allocations),
        (Source::Drivers, has_drivers),
        (Source::Volumes, has_volumes),
    ];
    let mut config = InventoryConfig::new(options, others);
    let begun = Stage::begin(config.clone(), tell).now;
    config.options.expected_until = begun + config.options.first_wait;
    Ok(Stage::begin(config, tell))
}

fn say(stage: &mut Stage<Inventory>, verb: &str, args: &mut ArgumentConsumer<'_>) -> Result<(), Fault> {
    match verb {
        "take" => stage.ask(InventoryAsk::TakeInventory(TakeInventory)),
        "await-first" => stage.ask(InventoryAsk::AwaitFirst(AwaitFirst)),
        "gone" => {
            let call = stage.take_call(follows(Source::Instances))?;
            let gone = AskError::NotRunning { actor: "instances".to_owned() };
            stage.give(call, Ok(InventoryOutcome::Instances(Err(gone))));
        }
        "allocations" | "allocation" | "stopped" | "refused" | "no-allocations" => {
            let said = read_allocations(verb, args, stage.now)?;
            let call = stage.take_call(follows(Source::Allocations))?;
            stage.give(call, Ok(InventoryOutcome::Allocations(said)));
        }
        "drivers" => {
            let call = stage.take_call(|call| matches!(call, InventoryCall::AwaitDrivers { .. }))?;
            let known = read_drivers(args, stage.now)?;
            stage.give(call, Ok(InventoryOutcome::DriversKnown(known)));
        }
        "driver" | "drivers-snapshot" | "no-drivers" => {
            let heard = read_drivers_feed(verb, args, stage.now)?;
            let call = stage.take_call(follows(Source::Drivers))?;
            stage.give(call, Ok(InventoryOutcome::Drivers(heard)));
        }
        "volumes" | "volume" | "vacant" | "forgotten" | "no-volumes" => {
            let said = read_volumes(verb, args)?;
            let call = stage.take_call(follows(Source::Volumes))?;
            stage.give(call, Ok(InventoryOutcome::Volumes(said)));
        }
        verb => {
            let item = read_item(verb, args, stage.now)?;
            let call = stage.take_call(follows(Source::Instances))?;
            stage.give(call, Ok(InventoryOutcome::Instances(Ok(vec![item]))));
        }
    }
    Ok(())
}

fn follows(source: Source) -> impl Fn(&InventoryCall) -> bool {
    move |call| matches!(call, InventoryCall::Follow { source: followed, .. } if *followed == source)
}

// === Parsing ===

/// `exec=healthy raw="it says no" docker=given-up`, or `gone` if the owner of the drivers is not running.
fn read_drivers(
    args: &mut ArgumentConsumer<'_>,
    now: Timestamp,
) -> Result<Result<DriversKnown, AskError>, Fault> {
    if args.next_pos().is_some() {
        return Ok(Err(AskError::NotRunning { actor: "drivers".to_owned() }));
    }
    let (mut reports, mut given_up) = (Vec::new(), Vec::new());
    while let Some((driver, state)) = args.next_key() {
        match state {
            "given-up" => given_up.push((DriverName::new(driver)?, "it was given up".to_owned())),
            _ => reports.push(read_driver(driver, state, now)?),
        }
    }
    let mut summary = DriverSummary::of(reports.iter());
    summary.unhealthy.extend(given_up);
    Ok(Ok((summary, reports)))
}

/// `driver exec=healthy` is news of one driver, `drivers-snapshot exec=healthy raw=undetected` the snapshot of all.
fn read_drivers_feed(
    verb: &str,
    args: &mut ArgumentConsumer<'_>,
    now: Timestamp,
) -> Result<Result<Vec<DriversItem>, AskError>, Fault> {
    if verb == "no-drivers" {
        return Ok(Err(AskError::NotRunning { actor: "drivers".to_owned() }));
    }
    let mut reports = Vec::new();
    while let Some((driver, state)) = args.next_key() {
        reports.push(read_driver(driver, state, now)?);
    }
    if verb == "drivers-snapshot" {
        return Ok(Ok(vec![FeedItem::Snapshot { number: 0, view: DriversView { reports } }]));
    }
    let news = |report: DriverReport| match report.health {
        DriverHealth::Gone => DriversNews::Left(report),
        _ => DriversNews::Reported(report),
    };
    Ok(Ok(reports.into_iter().map(|report| FeedItem::Change { number: 1, news: news(report) }).collect()))
}

/// `exec=healthy`, `exec=healthy/2` with its version, `exec=restarting`, `exec=gone`, or the reason why it is unhealthy.
fn read_driver(driver: &str, state: &str, now: Timestamp) -> Result<DriverReport, Fault> {
    let (state, version) = state.split_once('/').unwrap_or((state, "1"));
    let health = match state {
        "healthy" => DriverHealth::Healthy,
        "undetected" => DriverHealth::Undetected,
        "mute" | "restarting" => DriverHealth::NoAnswerYet,
        "gone" => DriverHealth::Gone,
        _ => DriverHealth::Unhealthy,
    };
    let report = DriverReport::of_nothing_yet(DriverName::new(driver)?, now);
    let reason = if health == DriverHealth::Unhealthy { state.to_owned() } else { String::new() };
    let version = (state != "mute").then(|| version.into());
    Ok(DriverReport { health, reason, version, generation: Generation::new(1), ..report })
}

/// `allocations zfs=a nfs=b` is a snapshot, `allocation zfs=a` news of one, `stopped a` its end, `refused a` a failed preparation.
fn read_allocations(
    verb: &str,
    args: &mut ArgumentConsumer<'_>,
    now: Timestamp,
) -> Result<Result<Vec<AllocationsItem>, AskError>, Fault> {
    if verb == "no-allocations" {
        return Ok(Err(AskError::NotRunning { actor: "allocations".to_owned() }));
    }
    if matches!(verb, "stopped" | "refused") {
        let allocation = AllocationId::new(&*word(args, "allocation")?)?;
        let news = match verb {
            "stopped" => AllocationsNews::Gone(allocation),
            _ => AllocationsNews::Refused { allocation, reason: "too many".to_owned() },
        };
        return Ok(Ok(vec![FeedItem::Change { number: 1, news }]));
    }
    let mut allocations = Vec::new();
    while let Some((plugin, allocation)) = args.next_key() {
        allocations.push(AllocationStatus {
            allocation: AllocationId::new(allocation)?,
            task: TaskName::new("plugin")?,
            plugin: PluginName::new(plugin)?,
            role: Role::Node,
            phase: AllocationPhase::Prepared,
            health: Health::Starting,
            socket: SocketPath::new("/run/p.sock")?,
            since: now,
            last_event: String::new(),
        });
    }
    if verb == "allocations" {
        return Ok(Ok(vec![FeedItem::Snapshot { number: 0, view: AllocationsView { allocations } }]));
    }
    let changed = |status| FeedItem::Change { number: 1, news: AllocationsNews::Changed(status) };
    Ok(Ok(allocations.into_iter().map(changed).collect()))
}

/// `volumes data=zfs logs=nfs` is a snapshot of volumes in use and their plugins; `volume data=zfs` news of one, `vacant data=zfs` news of
/// a volume that is not in use, and `forgotten data=zfs` the removal of one.
fn read_volumes(
    verb: &str,
    args: &mut ArgumentConsumer<'_>,
) -> Result<Result<Vec<VolumesItem>, AskError>, Fault> {
    if verb == "no-volumes" {
        return Ok(Err(AskError::NotRunning { actor: "volumes".to_owned() }));
    }
    let mut volumes = Vec::new();
    while let Some((volume, plugin)) = args.next_key() {
        let key = VolumeKey { namespace: VolumeNamespace::new("default")?, name: VolumeName::new(volume)? };
        let plugin = PluginName::new(plugin)?;
        let spec = VolumeSpec { key, plugin, volume_id: volume.to_owned(), volume_context: BTreeMap::new() };
        volumes.push(VolumeReport {
            volume: Arc::new(KnownVolume::new(Arc::new(spec))),
            is_known: true,
            actor: if verb == "vacant" { VolumeActor::Unneeded } else { VolumeActor::Running },
            restarts: 0,
            status: None,
        });
    }
    if verb == "volumes" {
        return Ok(Ok(vec![FeedItem::Snapshot { number: 0, view: VolumesView { volumes } }]));
    }
    let news = |report: VolumeReport| match verb {
        "forgotten" => VolumesNews::Forgotten(report.volume.spec.key.clone()),
        _ => VolumesNews::Changed(report),
    };
    Ok(Ok(volumes.into_iter().map(|report| FeedItem::Change { number: 1, news: news(report) }).collect()))
}

fn read_item(verb: &str, args: &mut ArgumentConsumer<'_>, now: Timestamp) -> Result<InstancesItem, Fault> {
    let news = match verb {
        "snapshot" => {
            let mut view =
                InstancesView { settled: args.take_key("settled").is_some(), ..Default::default() };
            while let Some((plugin, text)) = args.next_key() {
                match text {
                    "expected" => view.expected.push(plugin_key(plugin)?),
                    _ => view.reports.push(read_report(plugin, text, now)?),
                }
            }
            return Ok(FeedItem::Snapshot { number: 0, view });
        }
        "expected" => {
            let plugins = std::iter::from_fn(|| args.next_pos()).map(plugin_key);
            InstancesNews::Expected(plugins.collect::<Result<_, _>>()?)
        }
        "report" => {
            let (plugin, text) = args.next_key().ok_or("write PLUGIN=ALLOCATION@GENERATION/HEALTH")?;
            InstancesNews::Reported(read_report(plugin, text, now)?)
        }
        "standby" => {
            let (plugin, text) = args.next_key().ok_or("write PLUGIN=ALLOCATION@GENERATION/HEALTH")?;
            InstancesNews::Standby(read_report(plugin, text, now)?)
        }
        "left" => {
            let plugin = word(args, "plugin")?;
            InstancesNews::Left(read_report(&plugin, "a@1/gone", now)?)
        }
        "settled" => InstancesNews::Settled,
        unknown => return Err(format!("no such verb: {unknown}").into()),
    };
    Ok(FeedItem::Change { number: 1, news })
}

/// `zfs:a`: a plugin and its allocation.
fn read_expected(text: &str) -> Result<Expected, Fault> {
    let (plugin, allocation) = text.split_once(':').ok_or("write PLUGIN:ALLOCATION")?;
    Ok((plugin_key(plugin)?, AllocationId::new(allocation)?))
}

fn plugin_key(name: &str) -> Result<PluginKey, Fault> {
    Ok(PluginKey::new(PluginType::CsiNode, PluginName::new(name)?))
}

/// `zfs=a@3/healthy`, `zfs=a@3/healthy/2` and `zfs=a@3/healthy/max-8`: allocation, generation, health, the version if it is not 1, and
/// the maximum number of volumes on the node, 0 for no limit.
fn read_report(plugin: &str, text: &str, now: Timestamp) -> Result<InstanceReport, Fault> {
    let mut parts = text.splitn(3, ['@', '/']);
    let (allocation, generation) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let rest = parts.next().ok_or("write PLUGIN=ALLOCATION@GENERATION/HEALTH")?;
    let (rest, limit) = match rest.split_once("/max-") {
        Some((rest, limit)) => (rest, Some(Some(limit.parse()?).filter(|limit| *limit > 0))),
        None => (rest, None),
    };
    let (health, version) = rest.split_once('/').unwrap_or((rest, "1"));
    let fingerprint = CsiFingerprint {
        identity: Identity {
            provider: "p.example".into(),
            version: version.into(),
            manifest: BTreeMap::new(),
        },
        plugin: vec![],
        expansion: vec![],
        controller: None,
        group_controller: None,
        node: Some(vec![]),
        node_info: limit.map(|limit| NodeInfo {
            node_id: "n1".to_owned(),
            max_volumes: limit,
            topology: None,
        }),
    };
    let (health, fingerprint) = match health {
        "starting" => (Health::Starting, None),
        "healthy" => (Health::Healthy, Some(fingerprint.into())),
        "gone" => (Health::Gone, None),
        reason => (Health::Unhealthy { reason: reason.to_owned() }, Some(fingerprint.into())),
    };
    Ok(InstanceReport {
        fitness: Fitness::default(),
        plugin: plugin_key(plugin)?,
        allocation: AllocationId::new(allocation)?,
        socket: SocketPath::new("/run/p.sock")?,
        generation: Generation::new(generation.parse()?),
        health,
        since: now,
        fingerprint,
        remarks: vec![],
    })
}

// === Printing ===

fn tell(effect: &Effect<Inventory>, now: Timestamp) -> String {
    match effect {
        Effect::Call { call: InventoryCall::Follow { source, afresh: true }, .. } => {
            let followed = match source {
                Source::Instances => "instances",
                Source::Allocations => "allocations",
                Source::Drivers => "drivers",
                Source::Volumes => "volumes",
            };
            format!("follow the {followed}")
        }
        Effect::Call { call: InventoryCall::AwaitDrivers { within }, .. } => {
            format!("await the drivers for {within:?}")
        }
        Effect::Publish(news) => match news {
            InventoryNews::First(offers, summary) => {
                format!("first: {}\n{}", tell_offers(offers), tell_summary(summary))
            }
            InventoryNews::Changed(offer) => format!("changed: {}", tell_offer(offer)),
            InventoryNews::Removed(offer) => format!("removed: {}", tell_offer(offer)),
            InventoryNews::VolumesUsed { plugin, in_use } => format!("{in_use} volumes of {plugin} in use"),
        },
        Effect::Reply(id, InventoryAnswer::TakeInventory(view) | InventoryAnswer::AwaitFirst(view)) => {
            let first = if view.first.is_some() { "" } else { "nothing is told yet " };
            format!("answer {}: {first}{}{}", number(*id), tell_offers(&view.offers), tell_rooms(view))
        }
        Effect::StartTimer(InventoryTimer::Grace(plugin), at) => {
            format!("the grace of {plugin} ends in {:?}", at.since(now))
        }
        Effect::CancelTimer(InventoryTimer::Grace(plugin)) => format!("the grace of {plugin} is over"),
        Effect::Call { call: InventoryCall::Follow { afresh: false, .. }, .. }
        | Effect::StartTimer(
            InventoryTimer::FirstWait | InventoryTimer::Refollow(_) | InventoryTimer::AskDrivers,
            _,
        )
        | Effect::CancelTimer(
            InventoryTimer::FirstWait | InventoryTimer::Refollow(_) | InventoryTimer::AskDrivers,
        ) => String::new(),
        Effect::Stop(ending) => format!("ends: {ending:?}"),
        Effect::Persist(_, never) => match *never {},
    }
}

/// The known room for volumes, for each plugin that is offered or has volumes.
fn tell_rooms(view: &InventoryView) -> String {
    let Some(in_use) = &view.volumes_in_use else { return String::new() };
    let offered = view.offers.iter().map(|offer| &offer.plugin.name);
    let plugins: BTreeSet<_> = offered.chain(in_use.keys()).collect();
    let rooms = plugins.into_iter().map(|plugin| match view.volume_room(plugin) {
        Some(VolumeRoom { in_use, limit: Some(limit) }) => format!(" {plugin} {in_use} of {limit}"),
        Some(VolumeRoom { in_use, limit: None }) => format!(" {plugin} {in_use} without a limit"),
        None => format!(" {plugin} {} of ?", in_use.get(plugin).copied().unwrap_or_default()),
    });
    format!(" volumes in use:{}", rooms.collect::<String>())
}

fn tell_offers(offers: &[Offer]) -> String {
    format!("[{}]", offers.iter().map(tell_offer).collect::<Vec<_>>().join(", "))
}

fn tell_offer(offer: &Offer) -> String {
    let Offer { plugin, allocation, generation, health, since, fingerprint, restarting, .. } = offer;
    let version = match fingerprint {
        Some(Fingerprint::Csi(fingerprint)) => &fingerprint.identity.version,
        Some(Fingerprint::Driver(fingerprint)) => fingerprint.version.as_deref().unwrap_or("?"),
        None => "?",
    };
    let of = allocation.as_ref().map_or_else(|| "driver".to_owned(), |allocation| format!("of {allocation}"));
    let began = since.since(Timestamp::from_epoch(std::time::Duration::from_secs(1_000)));
    let mark = if *restarting { format!(", restarting since {began:?}") } else { String::new() };
    format!("{} {of}@{generation} {health}, version {version}{mark}", plugin.name)
}

fn tell_summary(summary: &FirstSummary) -> String {
    let names =
        |plugins: &[PluginKey]| plugins.iter().map(|p| p.name.to_string()).collect::<Vec<_>>().join(" ");
    let unhealthy = summary.unhealthy.iter().map(|(plugin, why)| format!("{} ({why})", plugin.name));
    let missing = summary.missing.iter().map(|(plugin, allocation)| format!("{}:{allocation}", plugin.name));
    let missing = missing.collect::<Vec<_>>().join(" ");
    format!(
        "healthy [{}] unhealthy [{}] undetected [{}] no answer [{}]{}",
        names(&summary.healthy),
        unhealthy.collect::<Vec<_>>().join(" "),
        names(&summary.undetected),
        names(&summary.no_answer),
        if missing.is_empty() { String::new() } else { format!(" missing [{missing}]") }
    )
}
