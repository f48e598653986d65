//! Message scripts of the owner of the volumes: the pure machine under virtual time.
//!
//! A script lists the requests of callers, the reports and answers of the volumes, and the actors that end, followed by the actions of the
//! owner, in order. Volumes are in the namespace `default` and of plugin `zfs` unless a script states otherwise. Incarnations are numbered
//! as they start.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use goldenscript::ArgumentConsumer;

use super::*;
use crate::csi::{self, AccessMode, AccessType, MountVolume, UsageUnit, VolumeCapability, VolumeUsage};
use crate::instances::{InstanceReport, InstancesNews, InstancesView};
use crate::kernel::{CallLost, Effect, Ending, Machine as _};
use crate::stage::{Fault, Player, Stage, number, play_all, word};
use crate::vocabulary::*;
use crate::volume::{
    self, ClaimStatus, Claimed, ClaimsConfirmed, Created, Deleted, Desired, Done, Exists, Expanded,
    ForceScope, Forced, GroupMember, GroupOrder, GroupStatus, NewVolume, ObservedEnd, OrderStatus, Released,
    Route, Usage, VolumeAnswer, VolumeAsk, VolumeKey, VolumeNews, VolumeSpec, VolumeStatus,
};
use crate::{AskError, FeedItem};

thread_local! {
    /// The contents of the store and of the ledger.
    static KEPT: RefCell<VolumesImage> = RefCell::default();
}

#[test]
fn every_story_of_the_owner_of_the_volumes_goes_as_it_is_told() {
    play_all(concat!(env!("CARGO_MANIFEST_DIR"), "/src/volumes/scripts"), 25, || Player::new(begin, say));
}

fn begin(args: &mut ArgumentConsumer<'_>) -> Result<Stage<Volumes>, Fault> {
    let mut options = VolumesOptions::default();
    options.restart_backoff.jitter_percent = 0;
    let mut image = VolumesImage::default();
    while let Some((key, value)) = args.next_key() {
        match key {
            "volumes" => options.volumes_max = value.parse()?,
            "waiting" => options.waiting_max = value.parse()?,
            "falls" => options.restart_budget.limit = value.parse()?,
            // These are in the ledger and known, or only in the ledger.
            "ledger" => {
                image.in_ledger = value.split(',').map(|name| spec(name, "zfs")).collect::<Result<_, _>>()?
            }
            "known" => {
                for name in value.split(',') {
                    image.known.push(Arc::new(KnownVolume::new(spec(name, "zfs")?)));
                }
            }
            // Their deletion was requested.
            "deleting" => {
                for name in value.split(',') {
                    image.deleting.insert(spec(name, "zfs")?.key.clone());
                }
            }
            unknown => return Err(format!("no such option: {unknown}").into()),
        }
    }
    KEPT.set(image.clone());
    let config =
        VolumesConfig { options, data_dir: "/d".into(), boot_id: "boot-1".into(), run: RunNumber::new(1) };
    Ok(Stage::begin_from(config, image, tell).keeping(|| KEPT.with_borrow(Clone::clone)))
}

fn say(stage: &mut Stage<Volumes>, verb: &str, args: &mut ArgumentConsumer<'_>) -> Result<(), Fault> {
    match verb {
        "heard" => {
            let items = read_feed(args)?;
            let call = stage.take_call(|call| matches!(call, VolumesCall::Follow { .. }))?;
            stage.give(call, Ok(VolumesOutcome::Followed(Ok(items))));
        }
        "unheard" => {
            let call = stage.take_call(|call| matches!(call, VolumesCall::Follow { .. }))?;
            stage.give(call, Ok(VolumesOutcome::Followed(Err(gone()))));
        }
        "route-lost" => {
            let call = stage.take_call(|call| matches!(call, VolumesCall::SetRoute { .. }))?;
            stage.give(call, Err(CallLost::Busy(9)));
        }
        "not-started" => {
            let call = stage.take_call(|call| matches!(call, VolumesCall::Start { .. }))?;
            stage.give(call, Err(CallLost::Crashed("boom".to_owned())));
        }
        // An actor has ended: in order, or by a panic.
        "endings-lost" => {
            let call = stage.take_call(|call| matches!(call, VolumesCall::AwaitEndings))?;
            stage.give(call, Err(CallLost::Crashed("boom".to_owned())));
        }
        "ended" => {
            let (volume, life) = (key(args)?, life(args)?);
            let ending = match args.next_pos() {
                None => Ending::Normal,
                Some(reason) => Ending::Panicked(reason.to_owned()),
            };
            let call = stage.take_call(|call| matches!(call, VolumesCall::AwaitEndings))?;
            stage.give(call, Ok(VolumesOutcome::Ended(vec![ChildEnded { volume, life, ending }])));
        }
        "answers" => {
            let (life, answer) = (life(args)?, read_answer(args)?);
            let fits = |ask: &VolumeAsk| {
                let kind = format!("{answer:?}");
                format!("{ask:?}").split('(').next() == kind.split('(').next()
            };
            let is_it = |call: &VolumesCall| matches!(call, VolumesCall::Ask { life: at, ask } if *at == life && fits(ask));
            let call = stage.take_call(is_it)?;
            stage.give(call, Ok(VolumesOutcome::Answered(Ok(answer))));
        }
        // The oldest message to this incarnation gets no answer: its actor has ended, the time is over, or the disk is full, for longer or
        // since now.
        "silent" | "overdue" | "full" | "filled" => {
            let life = life(args)?;
            let call =
                stage.take_call(|call| matches!(call, VolumesCall::Ask { life: at, .. } if *at == life))?;
            let outcome = match verb {
                "silent" => Ok(VolumesOutcome::Answered(Err(gone()))),
                "full" | "filled" => Ok(VolumesOutcome::Answered(Err(full(verb == "filled")))),
                _ => Err(CallLost::DeadlineExceeded(Duration::from_secs(90))),
            };
            stage.give(call, outcome);
        }
        // The oldest question to a plugin is answered, or not in time.
        "found" | "not-found" | "found-late" | "other-list" | "listed" | "found-volumes" | "found-room"
        | "found-group" | "validated" => {
            let call = stage.take_call(|call| matches!(call, VolumesCall::Read(_)))?;
            let used = VolumeUsage { available: 7, total: 10, used: 3, unit: UsageUnit::Bytes };
            let stats = VolumeStatistics { path: Some("/t".into()), usage: vec![used], ..Default::default() };
            let (plugin, reason) = (PluginName::new("zfs")?, "it is not mounted".to_owned());
            let outcome = match verb {
                "found" => Ok(VolumesOutcome::Found(Ok(Found::Stats(stats)))),
                "found-volumes" => {
                    Ok(VolumesOutcome::Found(Ok(Found::Volumes(csi::ListVolumesResponse::default()))))
                }
                "found-room" => {
                    let capacity = csi::GetCapacityResponse { available_capacity: 5, ..Default::default() };
                    Ok(VolumesOutcome::Found(Ok(Found::Capacity(capacity))))
                }
                "validated" => {
                    let validated =
                        Validated { unconfirmed: vec!["parameters"], message: "they differ".to_owned() };
                    Ok(VolumesOutcome::Found(Ok(Found::Validated(validated))))
                }
                "found-group" => Ok(VolumesOutcome::Found(Ok(Found::Group(group())))),
                "listed" => {
                    let page = csi::ListSnapshotsResponse { entries: vec![], next_token: "2".to_owned() };
                    Ok(VolumesOutcome::Found(Ok(Found::Snapshots(page))))
                }
                "other-list" => {
                    let reason = "ABORTED".to_owned();
                    Ok(VolumesOutcome::Found(Err(ReadError::OtherList { plugin, reason })))
                }
                "not-found" => {
                    let failed = ReadError::Failed { plugin, reason, is_transient: false };
                    Ok(VolumesOutcome::Found(Err(failed)))
                }
                _ => Err(CallLost::DeadlineExceeded(Duration::from_secs(10))),
            };
            stage.give(call, outcome);
        }
        // Whether a question is refused while the disk is sick, before this machine receives it.
        "on-a-sick-disk" => {
            let verb = word(args, "verb")?;
            let ask = read_ask(&verb, args)?;
            let answer = if stage.machine.is_new_promise(&ask) { "refused" } else { "taken" };
            stage.tell(&format!("{verb}: {answer}\n"));
        }
        "steps" => {
            for step in stage.machine.stop_steps() {
                let left = if step.is_left { " (left)" } else { "" };
                stage.tell(&format!("{}: {} after {:?}{left}\n", step.what, step.ending, step.took));
            }
        }
        _ => {
            let ask = read_ask(verb, args)?;
            stage.ask(ask);
        }
    }
    Ok(())
}

fn gone() -> AskError {
    AskError::NotRunning { actor: "volume".to_owned() }
}

fn full(is_begun: bool) -> AskError {
    AskError::NotDurable { actor: "volume default/v".to_owned(), error: "no space".to_owned(), is_begun }
}

// === Reading ===

fn spec(name: &str, plugin: &str) -> Result<Arc<VolumeSpec>, Fault> {
    let key = VolumeKey { namespace: VolumeNamespace::new("default")?, name: VolumeName::new(name)? };
    let (plugin, volume_id) = (PluginName::new(plugin)?, format!("pool/{name}"));
    Ok(Arc::new(VolumeSpec { key, plugin, volume_id, volume_context: BTreeMap::new() }))
}

fn key(args: &mut ArgumentConsumer<'_>) -> Result<VolumeKey, Fault> {
    Ok(spec(&word(args, "volume")?, "zfs")?.key.clone())
}

fn keys(args: &mut ArgumentConsumer<'_>) -> Result<Vec<VolumeKey>, Fault> {
    std::iter::from_fn(|| args.next_pos()).map(|name| Ok(spec(name, "zfs")?.key.clone())).collect()
}

fn life(args: &mut ArgumentConsumer<'_>) -> Result<Attempt, Fault> {
    Ok(Attempt::new(word(args, "life")?.parse()?))
}

fn allocation(args: &mut ArgumentConsumer<'_>) -> Result<AllocationId, Fault> {
    Ok(AllocationId::new(word(args, "allocation")?)?)
}

fn allocations(args: &mut ArgumentConsumer<'_>) -> Result<Vec<AllocationId>, Fault> {
    std::iter::from_fn(|| args.next_pos()).map(|id| Ok(AllocationId::new(id)?)).collect()
}

fn within(args: &mut ArgumentConsumer<'_>) -> Result<Duration, Fault> {
    args.take_key("within").map_or(Ok(Duration::from_secs(60)), crate::stage::parse_span)
}

/// A zone.
fn place(text: &str) -> Topology {
    BTreeMap::from([("zone".to_owned(), text.to_owned())])
}

fn usage() -> Usage {
    let access_type = AccessType::Mount(MountVolume { fs_type: "ext4".to_owned(), ..MountVolume::default() });
    let capability = VolumeCapability { access_type, access_mode: AccessMode::MultiNodeMultiWriter };
    Usage { capability, read_only: false }
}

fn read_ask(verb: &str, args: &mut ArgumentConsumer<'_>) -> Result<VolumesAsk, Fault> {
    Ok(match verb {
        "register" => {
            let name = word(args, "volume")?;
            let mut spec = spec(&name, args.take_key("plugin").unwrap_or("zfs"))?;
            if let Some(id) = args.take_key("id") {
                Arc::make_mut(&mut spec).volume_id = id.to_owned();
            }
            let capacity_bytes = args.take_key("bytes").map(str::parse).transpose()?;
            let accessible_topology = args.take_key("at").map(place).into_iter().collect();
            let volume = KnownVolume { spec, capacity_bytes, accessible_topology };
            VolumesAsk::RegisterVolume(RegisterVolume { volume })
        }
        "create" => {
            let (volume, plugin) = (key(args)?, PluginName::new(args.take_key("plugin").unwrap_or("zfs"))?);
            let (new, within) =
                (NewVolume { capabilities: vec![usage().capability], ..Default::default() }, within(args)?);
            VolumesAsk::CreateVolume(CreateVolume { volume, plugin, new, within })
        }
        "delete" => VolumesAsk::DeleteVolume(DeleteVolume { volume: key(args)?, within: within(args)? }),
        "expand" => {
            let (volume, within) = (key(args)?, within(args)?);
            let bytes = |text: Option<&str>| -> Result<u64, Fault> { Ok(text.unwrap_or("0").parse()?) };
            let required_bytes = bytes(args.take_key("bytes"))?;
            let limit_bytes = bytes(args.take_key("limit"))?;
            let capacity = csi::CapacityRange { required_bytes, limit_bytes };
            VolumesAsk::ExpandVolume(ExpandVolume { volume, capacity, within })
        }
        "snapshots" => VolumesAsk::ListSnapshots(ListSnapshots {
            plugin: PluginName::new(word(args, "plugin")?)?,
            volume: args
                .take_key("of")
                .map(|name| spec(name, "zfs").map(|spec| spec.key.clone()))
                .transpose()?,
            snapshot_id: String::new(),
            page: Page { max_entries: 2, token: args.take_key("token").unwrap_or_default().to_owned() },
            within: within(args)?,
        }),
        "volumes-of" => VolumesAsk::ListVolumesOfPlugin(ListVolumesOfPlugin {
            plugin: PluginName::new(word(args, "plugin")?)?,
            page: Page { max_entries: 2, token: String::new() },
            within: within(args)?,
        }),
        "capacity" => VolumesAsk::GetCapacity(GetCapacity {
            plugin: PluginName::new(word(args, "plugin")?)?,
            capabilities: vec![],
            parameters: BTreeMap::new(),
            topology: None,
            within: within(args)?,
        }),
        "validate" => VolumesAsk::ValidateVolume(ValidateVolume {
            volume: key(args)?,
            capabilities: match args.take_key("mode") {
                Some("single") => {
                    vec![VolumeCapability { access_mode: AccessMode::SingleNodeWriter, ..usage().capability }]
                }
                _ => vec![usage().capability],
            },
            parameters: BTreeMap::new(),
            within: within(args)?,
        }),
        "stats" => VolumesAsk::VolumeStats(VolumeStats { volume: key(args)?, within: within(args)? }),
        "snapshot" => VolumesAsk::CreateSnapshot(CreateSnapshot {
            volume: key(args)?,
            name: word(args, "name")?,
            parameters: BTreeMap::new(),
            within: within(args)?,
        }),
        "delete-snapshot" => VolumesAsk::DeleteSnapshot(DeleteSnapshot {
            volume: key(args)?,
            snapshot_id: word(args, "id")?,
            within: within(args)?,
        }),
        // Of the named volumes.
        "group" => VolumesAsk::CreateGroupSnapshot(CreateGroupSnapshot {
            name: word(args, "name")?,
            within: within(args)?,
            volumes: keys(args)?,
            parameters: BTreeMap::new(),
        }),
        "delete-group" => VolumesAsk::DeleteGroupSnapshot(DeleteGroupSnapshot {
            volume: key(args)?,
            group_snapshot_id: word(args, "id")?,
            within: within(args)?,
            snapshot_ids: std::iter::from_fn(|| args.next_pos()).map(str::to_owned).collect(),
        }),
        "describe-group" => VolumesAsk::DescribeGroupSnapshot(DescribeGroupSnapshot {
            volume: key(args)?,
            group_snapshot_id: word(args, "id")?,
            within: within(args)?,
            snapshot_ids: std::iter::from_fn(|| args.next_pos()).map(str::to_owned).collect(),
        }),
        "modify" => VolumesAsk::ModifyVolume(ModifyVolume {
            volume: key(args)?,
            parameters: BTreeMap::from([("iops".to_owned(), "9".to_owned())]),
            within: within(args)?,
        }),
        "forget" => VolumesAsk::ForgetVolume(ForgetVolume { volume: key(args)? }),
        "claim" => {
            let (volume, allocation, within) = (key(args)?, allocation(args)?, within(args)?);
            VolumesAsk::Claim(Claim { volume, allocation, usage: usage(), within })
        }
        "release" => {
            let (volume, allocation, within) = (key(args)?, allocation(args)?, within(args)?);
            VolumesAsk::Release(Release { volume, allocation, observed: ObservedEnd::Exited, within })
        }
        "allocation-ended" => {
            let (allocation, within) = (allocation(args)?, within(args)?);
            VolumesAsk::AllocationEnded(AllocationEnded { allocation, observed: ObservedEnd::Exited, within })
        }
        "confirm" => {
            let unclear = args.take_key("unclear").map(AllocationId::new).transpose()?;
            let (living, unclear) = (allocations(args)?, unclear.into_iter().collect());
            VolumesAsk::ConfirmClaims(ConfirmClaims { living: living.into_iter().collect(), unclear })
        }
        "force" => {
            let volume = key(args)?;
            let claim = args.next_pos().map(AllocationId::new).transpose()?;
            let (scope, reason) =
                (claim.map_or(ForceScope::Everything, ForceScope::Claim), "operator kim".to_owned());
            VolumesAsk::ForceRelease(ForceRelease { volume, scope, reason })
        }
        "describe" => VolumesAsk::DescribeVolume(DescribeVolume { volume: key(args)? }),
        "list" => VolumesAsk::ListVolumes(ListVolumes),
        "await-unused" => {
            let (plugin, within) = (PluginName::new(word(args, "plugin")?)?, within(args)?);
            VolumesAsk::AwaitUnused(AwaitUnused { plugin, within })
        }
        "reports" => {
            let (volume, life) = (key(args)?, life(args)?);
            let news = VolumeNews::Changed(read_status(&volume, args)?.into());
            VolumesAsk::VolumeReported(VolumeReported { volume, life, news })
        }
        "reports-failed" | "reports-forced" | "reports-order-failed" => {
            let (volume, life) = (key(args)?, life(args)?);
            let news = match verb {
                "reports-failed" => {
                    let reason = "the disk is broken".to_owned();
                    VolumeNews::ClaimFailed { allocation: allocation(args)?, reason }
                }
                "reports-order-failed" => {
                    let (what, reason) = ("expand to 20 bytes".to_owned(), "no room".to_owned());
                    VolumeNews::OrderFailed { what, reason }
                }
                _ => VolumeNews::Forced(forced(volume.clone())),
            };
            VolumesAsk::VolumeReported(VolumeReported { volume, life, news })
        }
        unknown => return Err(format!("unknown verb {unknown}").into()),
    })
}

/// The stage as a word, then the allocations with claims. Without both it is vacant.
fn read_status(volume: &VolumeKey, args: &mut ArgumentConsumer<'_>) -> Result<VolumeStatus, Fault> {
    let stage = match args.take_key("stage") {
        None | Some("down") => "down",
        Some("up") => "up",
        Some("going-down") => "going-down",
        Some(other) => return Err(format!("no such state: {other}").into()),
    };
    let made = created(args);
    let (exists, created) = match args.take_key("exists") {
        None => (Exists::Registered, None),
        Some("no") => (Exists::Absent, None),
        Some("being-created") => (Exists::BeingCreated, None),
        Some("created") => (Exists::Created, Some(made)),
        Some("unfit") => (Exists::Unfit, Some(made)),
        Some("being-deleted") => (Exists::BeingDeleted, Some(made)),
        Some(other) => return Err(format!("it cannot be {other}").into()),
    };
    let expanded_bytes = args.take_key("expanded").map(str::parse).transpose()?;
    let open = |what: &str| OrderStatus {
        what: what.to_owned(),
        state: "in flight",
        is_resting: false,
        error: None,
        snapshot: None,
        group: None,
    };
    let taken = args.take_key("taken").map(str::to_owned);
    let group = args.take_key("group").map(|named| open_group(named, taken)).transpose()?;
    let snapshot = args.take_key("snapshot").map(|name| OrderStatus {
        snapshot: Some(name.to_owned()),
        ..open(&format!("take snapshot {name}"))
    });
    let orders = args.take_key("order").map(open).into_iter().chain(snapshot).chain(group).collect();
    let claim = |allocation| ClaimStatus {
        allocation,
        usage: String::new(),
        staged_at: None,
        desired: Desired::Held,
        is_provisional: false,
        is_proven: true,
        publish: "up",
        path: "/t".into(),
        error: None,
    };
    let claims: Vec<_> = allocations(args)?.into_iter().map(claim).collect();
    let doing = if claims.is_empty() { "vacant" } else { "in use" }.to_owned();
    let plugin = PluginName::new("zfs")?;
    Ok(VolumeStatus {
        abandoned: Vec::new(),
        deletion_to_allow: args.take_key("allow").map(str::to_owned),
        key: volume.clone(),
        plugin,
        exists,
        created,
        attach: "down",
        stage,
        claims,
        orders,
        expanded_bytes,
        doing,
        error: None,
    })
}

/// The order of a group of snapshots: its name, a colon, and its volumes.
fn open_group(named: &str, taken: Option<String>) -> Result<OrderStatus, Fault> {
    let (name, volumes) = named.split_once(':').ok_or("the volumes are missing")?;
    let member = |name: &str| -> Result<GroupMember, Fault> {
        let spec = spec(name, "zfs")?;
        Ok(GroupMember { volume: spec.key.clone(), volume_id: spec.volume_id.clone() })
    };
    let members = volumes.split('+').map(member).collect::<Result<_, _>>()?;
    let order = Arc::new(GroupOrder { name: name.to_owned(), members, parameters: BTreeMap::new() });
    Ok(OrderStatus {
        what: format!("take {order}"),
        state: "in flight",
        is_resting: false,
        error: None,
        snapshot: None,
        group: Some(GroupStatus { order, taken }),
    })
}

fn group() -> csi::VolumeGroupSnapshot {
    csi::VolumeGroupSnapshot { group_snapshot_id: "g1".to_owned(), ..csi::VolumeGroupSnapshot::default() }
}

/// Without an argument, its id is `new-7`.
fn created(args: &mut ArgumentConsumer<'_>) -> Arc<csi::Volume> {
    let volume_id = args.take_key("id").unwrap_or("new-7").to_owned();
    Arc::new(csi::Volume { capacity_bytes: 4096, volume_id, ..csi::Volume::default() })
}

fn forced(volume: VolumeKey) -> Forced {
    let (reason, left) = ("operator kim".to_owned(), vec!["stage is unknown-down, at /s".to_owned()]);
    Forced { volume, reason, at: Timestamp::default(), left }
}

fn read_answer(args: &mut ArgumentConsumer<'_>) -> Result<VolumeAnswer, Fault> {
    let volume = || -> Result<VolumeKey, Fault> { Ok(spec("v", "zfs")?.key.clone()) };
    Ok(match word(args, "answer")?.as_str() {
        "created" => VolumeAnswer::CreateVolume(Ok(Created { volume: created(args) })),
        "uncreated" => VolumeAnswer::CreateVolume(Err(volume::CreateError::Pending {
            volume: volume()?,
            doing: "CreateVolume is in flight".to_owned(),
        })),
        "unwanted" => VolumeAnswer::CreateVolume(Err(volume::CreateError::Deleted { volume: volume()? })),
        "deleted" => VolumeAnswer::DeleteVolume(Ok(Deleted { did_exist: true })),
        "undeleted" => VolumeAnswer::DeleteVolume(Err(volume::DeleteError::Pending {
            volume: volume()?,
            doing: "DeleteVolume is in flight".to_owned(),
        })),
        "in-use" => VolumeAnswer::DeleteVolume(Err(volume::DeleteError::InUse {
            volume: volume()?,
            holders: Vec::new(),
            held_by: vec!["stage is up".to_owned()],
            remedy: "delete it when all is undone",
        })),
        "expanded" => VolumeAnswer::PlaceOrder(Ok(Done::Expanded(Expanded {
            capacity_bytes: args.take_key("bytes").map(str::parse).transpose()?,
            is_node_next: false,
        }))),
        "taken" => VolumeAnswer::PlaceOrder(Ok(Done::SnapshotTaken(Arc::new(csi::Snapshot {
            snapshot_id: "s1".to_owned(),
            ..csi::Snapshot::default()
        })))),
        "snapshot-deleted" => VolumeAnswer::PlaceOrder(Ok(Done::SnapshotDeleted)),
        "modified" => VolumeAnswer::PlaceOrder(Ok(Done::Modified)),
        "group-taken" => VolumeAnswer::PlaceOrder(Ok(Done::GroupTaken(Arc::new(group())))),
        "group-deleted" => VolumeAnswer::PlaceOrder(Ok(Done::GroupDeleted)),
        "unexpanded" => VolumeAnswer::PlaceOrder(Err(volume::OrderError::Pending {
            volume: volume()?,
            what: "expand to 20 bytes".to_owned(),
            doing: "ControllerExpandVolume is in flight".to_owned(),
        })),
        "claimed" => VolumeAnswer::Claim(Ok(Claimed {
            path: "/t".into(),
            is_block: false,
            read_only: false,
            generation: Generation::new(7),
        })),
        "held" => VolumeAnswer::Claim(Err(volume::ClaimError::Held {
            volume: volume()?,
            holder: allocation(args)?,
            is_releasing: false,
            reason: "its access mode permits one writer",
        })),
        "failed" => VolumeAnswer::Claim(Err(volume::ClaimError::Failed {
            volume: volume()?,
            allocation: allocation(args)?,
            reason: "NodeStageVolume: no such disk".to_owned(),
        })),
        "released" => {
            let was_held = args.take_key("held") != Some("no");
            let has_orders = args.take_key("ordered") == Some("yes");
            VolumeAnswer::Release(Ok(Released { was_held, others: allocations(args)?, has_orders }))
        }
        "unundone" => VolumeAnswer::Release(Err(volume::ReleaseError::Refused {
            volume: volume()?,
            reason: "NodeUnstageVolume: no".to_owned(),
        })),
        "gone" => VolumeAnswer::DeleteVolume(Ok(Deleted { did_exist: false })),
        "allowed" => VolumeAnswer::AllowDeletion(()),
        "disowned" => VolumeAnswer::Disown(true),
        "not-disowned" => VolumeAnswer::Disown(false),
        "unreleased" => VolumeAnswer::Release(Err(volume::ReleaseError::Pending {
            volume: volume()?,
            doing: "NodeUnpublishVolume is in flight".to_owned(),
        })),
        "confirmed" => {
            let released: Vec<_> =
                args.take_key("released").map(AllocationId::new).transpose()?.into_iter().collect();
            let confirmed = allocations(args)?;
            VolumeAnswer::ConfirmClaims(ClaimsConfirmed { confirmed, released })
        }
        "prepared" => VolumeAnswer::PrepareForce(Ok(())),
        "unprepared" => VolumeAnswer::PrepareForce(Err(volume::ForceError::Nothing { volume: volume()? })),
        "forced" => VolumeAnswer::ForceRelease(Ok(forced(volume()?))),
        "status" => VolumeAnswer::DescribeVolume(read_status(&volume()?, args)?.into()),
        other => return Err(format!("no such answer: {other}").into()),
    })
}

/// The report of the instances: `all` with the present plugins, else the change of one of them.
fn read_feed(args: &mut ArgumentConsumer<'_>) -> Result<Vec<FeedItem<InstancesNews, InstancesView>>, Fault> {
    let what = word(args, "kind of item")?;
    let limit = args.take_key("limit").map(str::parse).transpose()?;
    let topology = args.take_key("at").map(place);
    let finer =
        (args.take_key("alpha") == Some("yes")).then_some(ControllerCapability::SingleNodeMultiWriter);
    let health = match args.take_key("health") {
        None => Health::Healthy,
        Some(reason) => Health::Unhealthy { reason: reason.to_owned() },
    };
    let mut reports = Vec::new();
    for (half, plugin_type) in [("node", PluginType::CsiNode), ("controller", PluginType::CsiController)] {
        if let Some(generation) = args.take_key(half) {
            let info = NodeInfo { node_id: "n1".to_owned(), max_volumes: limit, topology: topology.clone() };
            let report = report(plugin_type, generation.parse()?, info, finer)?;
            reports.push(InstanceReport { health: health.clone(), ..report });
        }
    }
    let change = |news| FeedItem::Change { number: 1, news };
    Ok(match what.as_str() {
        "all" => vec![FeedItem::Snapshot {
            number: 0,
            view: InstancesView { reports, ..InstancesView::default() },
        }],
        "now" => reports.into_iter().map(|report| change(InstancesNews::Reported(report))).collect(),
        "left" => reports.into_iter().map(|report| change(InstancesNews::Left(report))).collect(),
        "standby" => reports.into_iter().map(|report| change(InstancesNews::Standby(report))).collect(),
        other => return Err(format!("nothing is heard as {other}").into()),
    })
}

fn report(
    plugin_type: PluginType,
    generation: u64,
    info: NodeInfo,
    finer: Option<ControllerCapability>,
) -> Result<InstanceReport, Fault> {
    let is_node = plugin_type == PluginType::CsiNode;
    let usual = [ControllerCapability::PublishUnpublishVolume, ControllerCapability::GetVolume];
    let fingerprint = CsiFingerprint {
        identity: Identity { provider: "zfs".into(), version: "1.0".into(), manifest: BTreeMap::new() },
        plugin: vec![PluginCapability::ControllerService],
        expansion: Vec::new(),
        controller: (!is_node).then(|| usual.into_iter().chain(finer).collect()),
        group_controller: None,
        node: is_node.then(|| vec![NodeCapability::StageUnstageVolume, NodeCapability::GetVolumeStats]),
        node_info: is_node.then_some(info),
    };
    Ok(InstanceReport {
        plugin: PluginKey { plugin_type, name: PluginName::new("zfs")? },
        allocation: AllocationId::new("plugin-1")?,
        socket: SocketPath::new("/run/zfs.sock")?,
        generation: Generation::new(generation),
        health: Health::Healthy,
        since: Timestamp::default(),
        fitness: Fitness::Fit,
        fingerprint: Some(Arc::new(fingerprint)),
        remarks: Vec::new(),
    })
}

// === Telling ===

fn tell(effect: &Effect<Volumes>, now: Timestamp) -> String {
    match effect {
        Effect::Persist(_, change) => {
            KEPT.with_borrow_mut(|kept| kept.apply(change));
            match change {
                VolumesChange::Keep(volume) => {
                    format!(
                        "write: {} of {}, id {}",
                        volume.spec.key, volume.spec.plugin, volume.spec.volume_id
                    )
                }
                VolumesChange::Forget(volume) => format!("write: {volume} forgotten"),
                VolumesChange::Delete(volume) => format!("write: {volume} is to be deleted"),
                VolumesChange::Stay(volume) => format!("write: {volume} stays"),
            }
        }
        Effect::Reply(id, answer) => match tell_answer(answer) {
            told if told.is_empty() => told,
            told => format!("answer {}: {told}", number(*id)),
        },
        Effect::Publish(VolumesNews::Changed(report)) => format!("news: {}", tell_report(report)),
        Effect::Publish(VolumesNews::Forgotten(volume)) => format!("news: {volume} is forgotten"),
        Effect::Publish(VolumesNews::ClaimFailed { volume, allocation, reason }) => {
            format!("news: the claim of {allocation} to {volume} failed: {reason}")
        }
        Effect::Publish(VolumesNews::OrderFailed { volume, what, reason }) => {
            format!("news: {what:?} of {volume} failed: {reason}")
        }
        Effect::Publish(VolumesNews::Forced(forced)) => {
            format!("news: {} forced by {}, left {:?}", forced.volume, forced.reason, forced.left)
        }
        Effect::Call { call, deadline, .. } => match tell_call(call) {
            told if told.is_empty() => told,
            told if matches!(call, VolumesCall::Ask { .. } | VolumesCall::Read(_)) => {
                format!("call: {told} within {deadline:?}")
            }
            told => format!("call: {told}"),
        },
        Effect::StartTimer(VolumesTimer::Unused(_) | VolumesTimer::Leaving(_), _) => String::new(),
        Effect::StartTimer(VolumesTimer::AwaitEndings, at) => {
            format!("endings are waited for again in {:?}", at.since(now))
        }
        Effect::StartTimer(VolumesTimer::Refollow, at) => format!("follow again in {:?}", at.since(now)),
        Effect::StartTimer(VolumesTimer::Stop(volume), at) => {
            format!("{volume} should stop within {:?}", at.since(now))
        }
        Effect::StartTimer(VolumesTimer::Delete(volume), at) => {
            format!("{volume} is deleted again in {:?}", at.since(now))
        }
        Effect::StartTimer(VolumesTimer::Decide(volume), at) => {
            format!("{volume} is asked again in {:?}", at.since(now))
        }
        Effect::StartTimer(VolumesTimer::Restart(volume), at) => {
            format!("{volume} is started again in {:?}", at.since(now))
        }
        Effect::CancelTimer(_) => String::new(),
        Effect::Stop(ending) => format!("{ending}"),
    }
}

fn tell_call(call: &VolumesCall) -> String {
    match call {
        VolumesCall::AwaitEndings => String::new(),
        VolumesCall::Follow { afresh } => format!("follow the instances, afresh: {afresh}"),
        VolumesCall::Sweep => "kill all".to_owned(),
        VolumesCall::Start { life, config } => format!("start {} as life {life}", config.spec.key),
        VolumesCall::SetRoute { plugin, route: Route { node, controller } } => {
            let node = node.as_ref().map(|node| node.generation);
            let controller = controller.as_ref().map(|controller| controller.generation);
            format!("route of {plugin}: node {node:?}, controller {controller:?}")
        }
        VolumesCall::Stop { life, mode } => format!("{mode:?} life {life}"),
        VolumesCall::Kill { life } => format!("kill life {life}"),
        VolumesCall::Read(read) => match &**read {
            Read::Stats { spec, node, controller } => {
                let node = node.as_ref().map(|(generation, at)| (generation, &at.path));
                format!("stats of {} at node {node:?}, controller {controller:?}", spec.key)
            }
            Read::Volumes { generation, asked } => {
                format!("volumes of {} at generation {generation}, {:?}", asked.plugin, asked.page)
            }
            Read::Capacity { generation, asked } => {
                format!("capacity of {} at generation {generation}", asked.plugin)
            }
            Read::Validate { spec, generation, asked } => {
                let finer = asked.capabilities.iter().map(|asked| asked.access_mode);
                let finer: Vec<_> = finer
                    .filter(|mode| mode.is_alpha())
                    .map(|mode| format!(" as {}", mode.as_str()))
                    .collect();
                format!("validate {}{} at generation {generation}", spec.volume_id, finer.concat())
            }
            Read::Group { spec, generation, asked } => {
                let (id, ids) = (&asked.group_snapshot_id, &asked.snapshot_ids);
                format!("group {id} {ids:?} by {} at generation {generation}", spec.key)
            }
            Read::Snapshots { plugin, generation, of, page, .. } => {
                let of = of.as_ref().map(|spec| &*spec.volume_id);
                format!("snapshots of {of:?} of {plugin} at generation {generation}, {page:?}")
            }
        },
        VolumesCall::Ask { life, ask } => {
            let ask = match ask {
                VolumeAsk::Claim(claim) => format!("claim of {} for {:?}", claim.allocation, claim.within),
                VolumeAsk::Release(release) => {
                    format!("release of {} for {:?}", release.allocation, release.within)
                }
                VolumeAsk::ConfirmClaims(confirm) => {
                    let unclear = match confirm.unclear.len() {
                        0 => String::new(),
                        _ => format!(", unclear are {:?}", confirm.unclear),
                    };
                    format!("living are {:?}{unclear}", confirm.living)
                }
                VolumeAsk::PrepareForce(prepare) => format!("prepare force of {:?}", prepare.force.scope),
                VolumeAsk::ForceRelease(force) => format!("force of {:?} by {}", force.scope, force.reason),
                VolumeAsk::CreateVolume(create) => format!("create for {:?}", create.within),
                VolumeAsk::DeleteVolume(delete) => match &*delete.volume_id {
                    "" => format!("delete for {:?}", delete.within),
                    id => format!("delete {id} for {:?}", delete.within),
                },
                VolumeAsk::AllowDeletion(allow) => format!("allow deletion of {}", allow.volume_id),
                VolumeAsk::Disown(disown) => format!("disown {}", disown.volume_id),
                VolumeAsk::PlaceOrder(placed) => format!("{} for {:?}", placed.order, placed.within),
                VolumeAsk::RouteChanged(_) => "route".to_owned(),
                VolumeAsk::DescribeVolume(_) => "describe".to_owned(),
            };
            format!("ask life {life}: {ask}")
        }
    }
}

fn tell_report(report: &VolumeReport) -> String {
    let VolumeReport { volume, is_known, actor, restarts, status } = report;
    let size = volume.capacity_bytes.map(|bytes| format!(", {bytes} bytes")).unwrap_or_default();
    let unknown = if *is_known { "" } else { ", only in the ledger" };
    let status = status.as_ref().map(|status| format!(", {status}")).unwrap_or_default();
    let reason = match actor {
        VolumeActor::Pausing { reason } | VolumeActor::GivenUp { reason } => format!(" ({reason})"),
        VolumeActor::Unneeded | VolumeActor::Running | VolumeActor::Stopping => String::new(),
    };
    let restarts = if *restarts == 0 { String::new() } else { format!(", restarts {restarts}") };
    format!("{} {}{reason}{restarts}{size}{unknown}{status}", volume.spec.key, actor.as_str())
}

fn tell_answer(answer: &VolumesAnswer) -> String {
    let transient = |is: bool| if is { " (transient)" } else { "" };
    match answer {
        VolumesAnswer::RegisterVolume(Err(error)) => format!("{error}{}", transient(error.is_transient())),
        VolumesAnswer::CreateVolume(Ok(created)) => format!("created {}", created.volume.volume_id),
        VolumesAnswer::CreateVolume(Err(error)) => format!("{error}{}", transient(error.is_transient())),
        VolumesAnswer::DeleteVolume(Ok(deleted)) => format!("{deleted:?}"),
        VolumesAnswer::DeleteVolume(Err(error)) => error.to_string(),
        VolumesAnswer::ExpandVolume(Ok(expanded)) => format!("{expanded:?}"),
        VolumesAnswer::ExpandVolume(Err(error)) => format!("{error}{}", transient(error.is_transient())),
        VolumesAnswer::CreateSnapshot(Ok(snapshot)) => format!("snapshot {}", snapshot.snapshot_id),
        VolumesAnswer::CreateGroupSnapshot(Ok(group)) => format!("group {}", group.group_snapshot_id),
        VolumesAnswer::DescribeGroupSnapshot(Ok(group)) => format!("group {}", group.group_snapshot_id),
        VolumesAnswer::DescribeGroupSnapshot(Err(error)) => {
            format!("{error}{}", transient(error.is_transient()))
        }
        VolumesAnswer::DeleteSnapshot(Ok(()))
        | VolumesAnswer::ModifyVolume(Ok(()))
        | VolumesAnswer::DeleteGroupSnapshot(Ok(())) => "done".to_owned(),
        VolumesAnswer::CreateGroupSnapshot(Err(error))
        | VolumesAnswer::DeleteGroupSnapshot(Err(error))
        | VolumesAnswer::CreateSnapshot(Err(error))
        | VolumesAnswer::DeleteSnapshot(Err(error))
        | VolumesAnswer::ModifyVolume(Err(error)) => format!("{error}{}", transient(error.is_transient())),
        VolumesAnswer::ListSnapshots(Ok(page)) => format!("{page:?}"),
        VolumesAnswer::ListSnapshots(Err(error)) => format!("{error}{}", transient(error.is_transient())),
        VolumesAnswer::ListVolumesOfPlugin(Ok(page)) => format!("{page:?}"),
        VolumesAnswer::GetCapacity(Ok(capacity)) => format!("{capacity:?}"),
        VolumesAnswer::ValidateVolume(Ok(validated)) => format!("{validated:?}"),
        VolumesAnswer::ListVolumesOfPlugin(Err(error))
        | VolumesAnswer::GetCapacity(Err(error))
        | VolumesAnswer::ValidateVolume(Err(error)) => {
            format!("{error}{}", transient(error.is_transient()))
        }
        VolumesAnswer::VolumeStats(Ok(stats)) => format!("{stats:?}"),
        VolumesAnswer::VolumeStats(Err(error)) => format!("{error}{}", transient(error.is_transient())),
        VolumesAnswer::Claim(Ok(claimed)) => format!("claimed at {}", claimed.path.display()),
        VolumesAnswer::Claim(Err(error)) => format!("{error}{}", transient(error.is_transient())),
        VolumesAnswer::Release(Err(error)) => format!("{error}{}", transient(error.is_transient())),
        VolumesAnswer::RegisterVolume(Ok(registered)) => format!("{registered:?}"),
        VolumesAnswer::ForgetVolume(Ok(was_known)) => format!("was known: {was_known}"),
        VolumesAnswer::ForgetVolume(Err(error)) => error.to_string(),
        VolumesAnswer::Release(Ok(released)) => format!("{released:?}"),
        VolumesAnswer::AllocationEnded(rows) => {
            let row = |row: &VolumeReleased| match &row.result {
                Ok(released) => format!("{} {released:?}", row.volume),
                Err(error) => error.to_string(),
            };
            format!("{:?}", rows.iter().map(row).collect::<Vec<_>>())
        }
        VolumesAnswer::ConfirmClaims(rows) => {
            let row = |row: &VolumeConfirmed| match &row.result {
                Ok(confirmed) => format!("{} {confirmed:?}", row.volume),
                Err(error) => error.to_string(),
            };
            format!("{:?}", rows.iter().map(row).collect::<Vec<_>>())
        }
        VolumesAnswer::ForceRelease(Ok(forced)) => format!("left {:?}", forced.left),
        VolumesAnswer::ForceRelease(Err(error)) => error.to_string(),
        VolumesAnswer::DescribeVolume(Ok(report)) => tell_report(report),
        VolumesAnswer::DescribeVolume(Err(error)) => error.to_string(),
        VolumesAnswer::ListVolumes(reports) => reports.iter().map(tell_report).collect::<Vec<_>>().join("; "),
        VolumesAnswer::AwaitUnused(Ok(())) => "unused".to_owned(),
        VolumesAnswer::AwaitUnused(Err(error)) => error.to_string(),
        VolumesAnswer::VolumeReported(()) => String::new(),
    }
}
