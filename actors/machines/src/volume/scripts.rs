//! Message scripts of a volume: the pure machine under virtual time, with its ledger.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use goldenscript::ArgumentConsumer;

use super::VolumeLayout;
use super::before::Before;
use super::existence::{Existence, NewVolume};
use super::force::*;
use super::group::{GroupMember, GroupOrder};
use super::lifecycle::*;
use super::mark::Mark;
use super::messages::*;
use super::news::*;
use super::order::{GrowArgs, Order, OrderCall, OrderRecord, OrderResult};
use super::order_messages::*;
use super::outcome::{
    ControllerRoute, Expands, Failure, Known, NodeRoute, Route, Seen, VolumeCall, VolumeOutcome,
};
use super::record::{Desired, Step, Usage, VolumeChange, VolumeImage, VolumeKey, VolumeSpec};
use super::state::{Volume, VolumeConfig, VolumeOptions, VolumeTimer};
use crate::csi::{self, AccessMode, AccessType, MountVolume, VolumeCapability};
use crate::kernel::{CallLost, Effect};
use crate::mounts::{BlockDevice, DeviceNumber, ListedMount, MountId, MountIdentity};
use crate::stage::{Fault, Player, Stage, number, play_all, word};
use crate::vocabulary::{
    AllocationId, Backoff, Generation, PluginName, RunNumber, Timestamp, Topology, VolumeName,
    VolumeNamespace,
};

thread_local! {
    /// The ledger of the current script.
    static LEDGER: RefCell<VolumeImage> = RefCell::default();
    /// Whether the host knows the id of the volume from the beginning.
    static IS_REGISTERED: Cell<bool> = const { Cell::new(true) };
}

#[test]
fn every_story_of_a_volume_goes_as_it_is_told() {
    play_all(concat!(env!("CARGO_MANIFEST_DIR"), "/src/volume/scripts"), 21, || Player::new(begin, say));
}

/// Without an argument the volume exists; `begin absent`: it is to be created.
fn begin(args: &mut ArgumentConsumer<'_>) -> Result<Stage<Volume>, Fault> {
    LEDGER.set(VolumeImage::default());
    IS_REGISTERED.set(args.next_pos() != Some("absent"));
    Ok(started(1, "boot-1"))
}

fn started(run: u64, boot_id: &str) -> Stage<Volume> {
    let is_registered = IS_REGISTERED.get();
    let context = is_registered.then(|| ("pool".to_owned(), "tank".to_owned()));
    let spec = VolumeSpec {
        key: VolumeKey {
            namespace: VolumeNamespace::new("default").unwrap(),
            name: VolumeName::new("data").unwrap(),
        },
        plugin: PluginName::new("zfs").unwrap(),
        volume_id: if is_registered { "pool/data".to_owned() } else { String::new() },
        volume_context: context.into_iter().collect(),
    };
    let options = VolumeOptions::default();
    let config = VolumeConfig {
        layout: VolumeLayout::new(Path::new("/d"), &spec.plugin),
        spec: Arc::new(spec),
        boot_id: boot_id.into(),
        run: RunNumber::new(run),
        options: VolumeOptions {
            backoff: Backoff { jitter_percent: 0, ..options.backoff },
            tries_max: 3,
            claims_max: 4,
            ..options
        },
    };
    Stage::begin_from(config, LEDGER.with_borrow(Clone::clone), tell)
        .keeping(|| LEDGER.with_borrow(Clone::clone))
        .refusing()
}

fn say(stage: &mut Stage<Volume>, verb: &str, args: &mut ArgumentConsumer<'_>) -> Result<(), Fault> {
    match verb {
        // The host has ended, and another one starts on the ledger; the row of the `lost=volume` or of that claim is damaged.
        "restart" => {
            LEDGER.with_borrow_mut(|ledger| match args.take_key("lost") {
                None => {}
                Some("volume") => ledger.volume = None,
                Some(id) => {
                    ledger.claims.retain(|claim| claim.allocation.as_str() != id);
                    ledger.lost.insert(AllocationId::new(id).unwrap());
                }
            });
            let (run, boot) =
                (args.take_key("run").unwrap_or("2"), args.take_key("boot").unwrap_or("boot-1"));
            *stage = started(run.parse()?, boot);
        }
        "route" => {
            let route = route(args)?;
            match stage.take_call(|call| *call == VolumeCall::ReadRoute) {
                Ok(call) => stage.give(call, Ok(VolumeOutcome::Route(route))),
                Err(_) => stage.ask(VolumeAsk::RouteChanged(RouteChanged { route })),
            }
        }
        "create" => {
            let within = args.take_key("within").map_or(Ok(Duration::from_secs(600)), seconds)?;
            stage.ask(VolumeAsk::CreateVolume(CreateVolume { volume: new_volume(args)?, within }));
        }
        "delete" => {
            let within = args.take_key("within").map_or(Ok(Duration::from_secs(600)), seconds)?;
            // Without an argument, its owner knows the present data on disk.
            let on_disk =
                || LEDGER.with_borrow(|ledger| ledger.volume.as_ref().map(|row| row.spec.volume_id.clone()));
            let registered = || if IS_REGISTERED.get() { "pool/data" } else { "" }.to_owned();
            let named = args.take_key("id").map(str::to_owned);
            let volume_id = named.unwrap_or_else(|| on_disk().unwrap_or_else(registered));
            stage.ask(VolumeAsk::DeleteVolume(DeleteVolume { volume_id, within }));
        }
        "allow" => {
            let volume_id = word(args, "id")?;
            stage.ask(VolumeAsk::AllowDeletion(AllowDeletion { volume_id }));
        }
        "disown" => {
            let volume_id = word(args, "id")?;
            stage.ask(VolumeAsk::Disown(Disown { volume_id }));
        }
        "expand" => {
            let within = args.take_key("within").map_or(Ok(Duration::from_secs(600)), seconds)?;
            let (required_bytes, limit_bytes) =
                (bytes(args, "bytes")?.unwrap_or_default(), bytes(args, "limit")?.unwrap_or_default());
            let range = csi::CapacityRange { required_bytes, limit_bytes };
            stage.ask(VolumeAsk::PlaceOrder(PlaceOrder { order: Order::Expand { range }, within }));
        }
        // The expansion in flight succeeds, at the controller or on the node.
        "expanded" => {
            let capacity_bytes = bytes(args, "bytes")?.unwrap_or(20);
            let is_node_next = args.next_pos() == Some("node-next");
            let call = stage.take_call(|call| matches!(call, VolumeCall::Order(..)))?;
            let brought = match call.1 {
                VolumeCall::Order(_, _, OrderCall::Grow(_)) => OrderResult::Grown { capacity_bytes },
                _ => OrderResult::Expanded { capacity_bytes, is_node_next },
            };
            stage.give(call, Ok(VolumeOutcome::Ordered(Ok(brought))));
        }
        // Of this volume and the named ones.
        "group" | "delete-group" => {
            let within = args.take_key("within").map_or(Ok(Duration::from_secs(600)), seconds)?;
            let name = word(args, "name")?;
            let others: Vec<String> = std::iter::from_fn(|| args.next_pos()).map(str::to_owned).collect();
            let order = match verb {
                "group" => Order::TakeGroup(Arc::new(group_of(name, &others)?)),
                _ => {
                    Order::DeleteGroup { group_snapshot_id: name, snapshot_ids: others.into_iter().collect() }
                }
            };
            stage.ask(VolumeAsk::PlaceOrder(PlaceOrder { order, within }));
        }
        // The call in flight returns a group with a snapshot of each of these volumes.
        "group-taken" => {
            let is_ready = args.take_key("ready") != Some("no");
            let group_snapshot_id = word(args, "id")?;
            let snapshot = |of: &str| csi::Snapshot {
                snapshot_id: format!("{group_snapshot_id}-{of}"),
                source_volume_id: format!("pool/{of}"),
                group_snapshot_id: group_snapshot_id.clone(),
                ..csi::Snapshot::default()
            };
            let snapshots = std::iter::from_fn(|| args.next_pos()).map(snapshot).collect();
            let group = csi::VolumeGroupSnapshot {
                group_snapshot_id: group_snapshot_id.clone(),
                snapshots,
                creation_time: None,
                ready_to_use: is_ready,
            };
            let call = stage.take_call(|call| matches!(call, VolumeCall::Order(..)))?;
            stage.give(call, Ok(VolumeOutcome::Ordered(Ok(OrderResult::Group(Arc::new(group))))));
        }
        "snapshot" | "delete-snapshot" | "modify" => {
            let within = args.take_key("within").map_or(Ok(Duration::from_secs(600)), seconds)?;
            let name = word(args, "name")?;
            let parameters: BTreeMap<_, _> = args
                .take_key("set")
                .map(|value| BTreeMap::from([("iops".to_owned(), value.to_owned())]))
                .unwrap_or_default();
            let order = match verb {
                "snapshot" => Order::TakeSnapshot { name, parameters },
                "delete-snapshot" => Order::DeleteSnapshot { snapshot_id: name },
                _ => Order::Modify { parameters: BTreeMap::from([(name, "9".to_owned())]) },
            };
            stage.ask(VolumeAsk::PlaceOrder(PlaceOrder { order, within }));
        }
        // The call of an order in flight succeeds: for a snapshot with its id, for other orders without data.
        "taken" | "done" => {
            let (of, is_ready) =
                (args.take_key("of").unwrap_or("pool/data"), args.take_key("ready") != Some("no"));
            let call = stage.take_call(|call| matches!(call, VolumeCall::Order(..)))?;
            let brought = match verb {
                "taken" => OrderResult::Snapshot(Arc::new(csi::Snapshot {
                    size_bytes: 10,
                    snapshot_id: word(args, "id")?,
                    source_volume_id: of.to_owned(),
                    ready_to_use: is_ready,
                    ..csi::Snapshot::default()
                })),
                _ => OrderResult::Nothing,
            };
            stage.give(call, Ok(VolumeOutcome::Ordered(Ok(brought))));
        }
        "claim" => {
            let (allocation, usage) = (allocation(args)?, usage(args)?);
            let within = args.take_key("within").map_or(Ok(Duration::from_secs(600)), seconds)?;
            stage.ask(VolumeAsk::Claim(Claim { allocation, usage, within }));
        }
        "release" => {
            let allocation = allocation(args)?;
            let within = args.take_key("within").map_or(Ok(Duration::from_secs(600)), seconds)?;
            let observed = ObservedEnd::Exited;
            stage.ask(VolumeAsk::Release(Release { allocation, observed, within }));
        }
        "confirm" => {
            let (mut living, mut unclear) = (BTreeSet::new(), BTreeSet::new());
            while let Some(id) = args.next_pos() {
                match id.strip_suffix('?') {
                    Some(id) => unclear.insert(AllocationId::new(id)?),
                    None => living.insert(AllocationId::new(id)?),
                };
            }
            let asked = ConfirmClaims { living: living.into(), unclear: unclear.into() };
            stage.ask(VolumeAsk::ConfirmClaims(asked));
        }
        "force" => {
            let scope = force_scope(args)?;
            let reason = "operator kim, the server is gone".to_owned();
            stage.ask(VolumeAsk::ForceRelease(ForceRelease { scope, reason }));
        }
        "prepare-force" => {
            let force = ForceRelease { scope: force_scope(args)?, reason: "operator kim".to_owned() };
            stage.ask(VolumeAsk::PrepareForce(PrepareForce { force }));
        }
        "describe" => stage.ask(VolumeAsk::DescribeVolume(DescribeVolume)),
        // The creation in flight succeeds.
        "created" => {
            let call = stage.take_call(|call| matches!(call, VolumeCall::Create(..)))?;
            let volume = csi::Volume {
                volume_id: word(args, "id")?,
                capacity_bytes: bytes(args, "bytes")?.unwrap_or(10),
                volume_context: BTreeMap::from([("pool".to_owned(), "tank".to_owned())]),
                content_source: None,
                accessible_topology: zone(args).into_iter().collect(),
            };
            stage.give(call, Ok(VolumeOutcome::Created(Ok(volume))));
        }
        // The call in flight succeeds; for an attachment with a context.
        "ok" => {
            let context = args.take_key("context").map(|value| ("device".to_owned(), value.to_owned()));
            let call = stage.take_call(|call| call.csi().is_some())?;
            let seen = match args.next_pos() {
                Some(seen) => self::seen(seen)?,
                None if matches!(call.1, VolumeCall::Stage(..) | VolumeCall::Publish(..)) => seen("same")?,
                None => Seen::Nothing,
            };
            let outcome = match call.1 {
                VolumeCall::Attach(..) | VolumeCall::Detach(..) | VolumeCall::Delete(..) => {
                    VolumeOutcome::Controller(Ok(context.into_iter().collect()))
                }
                _ => VolumeOutcome::Node(Ok(()), seen),
            };
            stage.give(call, Ok(outcome));
        }
        "fails" => {
            let known = known(&word(args, "what is known")?)?;
            let seen = seen(args.next_pos().unwrap_or("nothing"))?;
            let call = stage.take_call(|call| call.csi().is_some())?;
            let failure = Failure { known, reason: format!("the plugin said {known:?}") };
            let outcome = match call.1 {
                VolumeCall::Create(..) => VolumeOutcome::Created(Err(failure)),
                VolumeCall::Order(..) => VolumeOutcome::Ordered(Err(failure)),
                VolumeCall::Attach(..) | VolumeCall::Detach(..) | VolumeCall::Delete(..) => {
                    VolumeOutcome::Controller(Err(failure))
                }
                _ => VolumeOutcome::Node(Err(failure), seen),
            };
            stage.give(call, Ok(outcome));
        }
        // The messages before the call were sent, whatever the result of the call.
        "audited" | "audited-late" => {
            let call = stage.take_call(|call| matches!(call, VolumeCall::AwaitAudits(_)))?;
            let late = CallLost::DeadlineExceeded(Duration::from_secs(10));
            stage.give(call, if verb == "audited" { Ok(VolumeOutcome::AuditsLeft) } else { Err(late) });
        }
        "lost" => {
            let call = stage.take_call(|call| call.csi().is_some())?;
            stage.give(call, Err(CallLost::DeadlineExceeded(Duration::from_secs(120))));
        }
        "seen" => {
            let seen = seen(&word(args, "what is seen")?)?;
            let call = stage.take_call(|call| matches!(call, VolumeCall::Look { .. }))?;
            stage.give(call, Ok(VolumeOutcome::Looked(seen)));
        }
        other => return Err(format!("unknown verb {other}").into()),
    }
    Ok(())
}

fn allocation(args: &mut ArgumentConsumer<'_>) -> Result<AllocationId, Fault> {
    Ok(AllocationId::new(word(args, "allocation")?)?)
}

fn group_of(name: String, others: &[String]) -> Result<GroupOrder, Fault> {
    let member = |name: &str| -> Result<GroupMember, Fault> {
        let namespace = VolumeNamespace::new("default")?;
        let volume = VolumeKey { namespace, name: VolumeName::new(name)? };
        Ok(GroupMember { volume, volume_id: format!("pool/{name}") })
    };
    let all = std::iter::once("data").chain(others.iter().map(String::as_str));
    let members = all.map(member).collect::<Result<_, _>>()?;
    Ok(GroupOrder { name, members, parameters: BTreeMap::new() })
}

fn seconds(text: &str) -> Result<Duration, Fault> {
    Ok(Duration::from_secs(text.trim_end_matches('s').parse()?))
}

fn bytes(args: &mut ArgumentConsumer<'_>, key: &str) -> Result<Option<u64>, Fault> {
    Ok(args.take_key(key).map(str::parse).transpose()?)
}

fn zone(args: &mut ArgumentConsumer<'_>) -> Option<Topology> {
    args.take_key("zone").map(|zone| Topology::from([("zone".to_owned(), zone.to_owned())]))
}

/// Without further arguments: of at least 10 bytes, anywhere.
fn new_volume(args: &mut ArgumentConsumer<'_>) -> Result<NewVolume, Fault> {
    let (required_bytes, limit_bytes) =
        (bytes(args, "bytes")?.unwrap_or(10), bytes(args, "limit")?.unwrap_or(0));
    let parameters = args.take_key("pool").map(|pool| ("pool".to_owned(), pool.to_owned()));
    let accessibility =
        zone(args).map(|zone| csi::TopologyRequirement { requisite: vec![zone], preferred: Vec::new() });
    Ok(NewVolume {
        capacity_range: Some(csi::CapacityRange { required_bytes, limit_bytes }),
        capabilities: vec![usage(args)?.capability],
        accessibility,
        parameters: parameters.into_iter().collect(),
        ..NewVolume::default()
    })
}

/// Without an argument everything, with `orders` the orders, or the claim of an allocation.
fn force_scope(args: &mut ArgumentConsumer<'_>) -> Result<ForceScope, Fault> {
    Ok(match args.next_pos() {
        None => ForceScope::Everything,
        Some("orders") => ForceScope::Orders,
        Some(claimant) => ForceScope::Claim(AllocationId::new(claimant)?),
    })
}

fn usage(args: &mut ArgumentConsumer<'_>) -> Result<Usage, Fault> {
    let access_mode = match args.take_key("mode") {
        None | Some("multi") => AccessMode::MultiNodeMultiWriter,
        Some("single") => AccessMode::SingleNodeWriter,
        Some("one-writer") => AccessMode::MultiNodeSingleWriter,
        Some("alpha") => AccessMode::SingleNodeMultiWriter,
        Some(other) => return Err(format!("no such mode: {other}").into()),
    };
    let access_type = match args.take_key("fs") {
        Some("block") => AccessType::Block,
        fs => AccessType::Mount(MountVolume {
            fs_type: fs.unwrap_or("ext4").to_owned(),
            volume_mount_group: args.take_key("group").unwrap_or_default().to_owned(),
            ..MountVolume::default()
        }),
    };
    let read_only = args.take_key("read-only").is_some();
    Ok(Usage { capability: VolumeCapability { access_type, access_mode }, read_only })
}

fn route(args: &mut ArgumentConsumer<'_>) -> Result<Route, Fault> {
    let generation = |text: &str| -> Result<Generation, Fault> { Ok(Generation::new(text.parse()?)) };
    let stages = args.take_key("stages") != Some("no");
    let has_id = args.take_key("id") != Some("no");
    let snapshots = args.take_key("snapshots") != Some("no");
    let groups = args.take_key("groups") != Some("no");
    let grows = args.take_key("grows") != Some("no");
    let (node_knows, controller_knows) = match args.take_key("alpha") {
        None => (false, false),
        Some("yes") => (true, true),
        Some("node") => (true, false),
        Some(other) => return Err(format!("alpha is yes or node, not {other}").into()),
    };
    let expands = match args.take_key("expands") {
        None | Some("online") => Expands::Online,
        Some("offline") => Expands::Offline,
        Some("no") => Expands::Not,
        Some(other) => return Err(format!("no plugin expands {other}").into()),
    };
    let controller = args.take_key("controller").map(generation).transpose()?;
    let requires_controller = controller.is_some() || args.take_key("requires-controller").is_some();
    let node = args.take_key("node").map(generation).transpose()?.map(|generation| NodeRoute {
        generation,
        node_id: has_id.then(|| "n1".to_owned()),
        requires_controller,
        stages,
        knows_alpha_modes: node_knows,
        knows_mount_group: false,
        expands: grows,
    });
    let controller = controller.map(|generation| ControllerRoute {
        generation,
        attaches: true,
        expands,
        takes_snapshots: snapshots,
        modifies: snapshots,
        knows_alpha_modes: controller_knows,
        takes_groups: groups,
    });
    Ok(Route { node, controller })
}

fn known(text: &str) -> Result<Known, Fault> {
    Ok(match text {
        "not-made" => Known::NotMade,
        "refused" => Known::Refused,
        "not-now" => Known::NotNow,
        "unclear" => Known::Unclear,
        "absent" => Known::Absent,
        "unsupported" => Known::Unsupported,
        other => return Err(format!("nothing is known as {other}").into()),
    })
}

fn seen(text: &str) -> Result<Seen, Fault> {
    let mount = |id| {
        let device = DeviceNumber { major: 0, minor: 41 };
        let (root, fs_type) = ("/".into(), "ext4".to_owned());
        Mark::Mount(MountIdentity::Listed(ListedMount {
            id: MountId(id),
            unique_id: None,
            device,
            root,
            fs_type,
        }))
    };
    let device = |sequence| {
        let device = BlockDevice { number: DeviceNumber { major: 7, minor: 3 }, sequence };
        Seen::Present(Mark::Device { mount: None, device })
    };
    Ok(match text {
        "same" => Seen::Present(mount(70)),
        "other" => Seen::Present(mount(71)),
        "device" => device(Some(5)),
        "other-disk" => device(Some(6)),
        "nothing" => Seen::Nothing,
        "bare" => Seen::BareStaging,
        "dead" => Seen::Dead("transport endpoint is not connected".to_owned()),
        "hung" => Seen::Unclear("no answer within 10s".to_owned()),
        other => return Err(format!("{other} cannot be seen").into()),
    })
}

fn tell(effect: &Effect<Volume>, now: Timestamp) -> String {
    match effect {
        Effect::Persist(_, change) => {
            LEDGER.with_borrow_mut(|ledger| ledger.apply(change));
            tell_change(change)
        }
        Effect::Reply(id, answer) => match tell_answer(answer) {
            told if told.is_empty() => told,
            told => format!("answer {}: {told}", number(*id)),
        },
        Effect::Publish(VolumeNews::Changed(status)) => format!("news: {status}"),
        Effect::Publish(VolumeNews::ClaimFailed { allocation, reason }) => {
            format!("news: the claim of {allocation} failed: {reason}")
        }
        Effect::Publish(VolumeNews::MountLost { path, reason }) => {
            format!("news: the mount at {} is lost: {reason}", path.display())
        }
        Effect::Publish(VolumeNews::OrderFailed { what, reason }) => {
            format!("news: {what:?} failed: {reason}")
        }
        Effect::Publish(VolumeNews::Forced(forced)) => {
            format!("news: forced by {}: left {:?}", forced.reason, forced.left)
        }
        Effect::Call { key, call, deadline } => {
            format!("call: {} to generation {} within {deadline:?}", tell_call(call), key.generation)
        }
        Effect::StartTimer(VolumeTimer::Retry, at) => format!("again in {:?}", at.since(now)),
        Effect::StartTimer(..) | Effect::CancelTimer(_) => String::new(),
        Effect::Stop(ending) => format!("{ending}"),
    }
}

fn tell_change(change: &VolumeChange) -> String {
    match change {
        VolumeChange::KeepVolume(row) => {
            let existence = row.existence.as_ref().map_or_else(String::new, tell_existence);
            format!("ledger: {existence}attach {}, stage {}", row.attach.as_str(), row.stage.as_str())
        }
        VolumeChange::KeepClaim(row) => {
            let desired = if row.desired == Desired::Held { "held" } else { "released" };
            let proof = match &row.publish {
                Step::Up(_, proof) => proof.mark.as_ref().map(|mark| format!(", {mark}")).unwrap_or_default(),
                _ => String::new(),
            };
            format!("ledger: {} {desired}, publish {}{proof}", row.allocation, row.publish.as_str())
        }
        VolumeChange::ForgetClaim(id) => format!("ledger: {id} forgotten"),
        VolumeChange::ForgetVolume => "ledger: volume forgotten".to_owned(),
        VolumeChange::KeepOrder(row) => {
            let OrderRecord { number, order, .. } = row;
            format!("ledger: order {number} {order}, {}", row.as_str())
        }
        VolumeChange::ForgetOrder(number) => format!("ledger: order {number} forgotten"),
        VolumeChange::KeepAbandoned(target) => {
            format!("ledger: abandoned {}, released", target.path.display())
        }
        VolumeChange::ForgetAbandoned(path) => format!("ledger: abandoned {} forgotten", path.display()),
        VolumeChange::Force { claims, volume, orders, abandoned, audit } => {
            let claims = claims.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
            let shared = if volume.is_some() { ", and what they shared" } else { "" };
            let orders = if orders.is_empty() { String::new() } else { format!(", orders {orders:?}") };
            let of_target = |target: &Abandoned| format!(", abandoned {}", target.path.display());
            let abandoned: String = abandoned.iter().map(of_target).collect();
            format!("ledger: forced [{claims}]{shared}{orders}{abandoned}, audit {}", audit.number)
        }
        VolumeChange::ForgetAudits(numbers) => format!("ledger: audits {numbers:?} forgotten"),
    }
}

fn tell_existence(existence: &Existence) -> String {
    let desired = if existence.desired == Desired::Held { "" } else { " to be deleted" };
    match &existence.volume {
        _ if !existence.is_to_be_kept() => String::new(),
        None => format!("volume {}{desired}, ", existence.step.as_str()),
        Some(volume) => {
            let csi::Volume { volume_id, capacity_bytes, .. } = &**volume;
            format!("volume {}{desired} as {volume_id} of {capacity_bytes} bytes, ", existence.step.as_str())
        }
    }
}

/// Whether the step of the call may be up already.
const fn tell_before(before: Before) -> &'static str {
    match before {
        Before::Down => "",
        Before::Unknown => ", which may be up,",
    }
}

/// The path for which directories are made meanwhile.
fn tell_next(next: Option<&std::path::PathBuf>) -> String {
    next.map_or_else(String::new, |path| format!(", then {}", path.display()))
}

fn tell_call(call: &VolumeCall) -> String {
    let name = call.csi().map_or("", |call| call.as_str());
    match call {
        VolumeCall::ReadRoute => "read route".to_owned(),
        VolumeCall::Create(_, _, args) => {
            let modes: String = args.volume.capabilities.iter().map(finer_mode).collect();
            format!("{name} {}{modes}", args.name)
        }
        VolumeCall::Delete(spec, _) => format!("{name} {}", spec.volume_id),
        VolumeCall::Attach(_, _, args, next) => {
            let mode = finer_mode(&args.capability);
            format!("{name} node={}{mode}{}", args.node_id, tell_next(next.as_ref()))
        }
        VolumeCall::Detach(_, _, args) => format!("{name} node={}", args.node_id),
        VolumeCall::Stage(_, _, args, before, next) => {
            let (path, fs) = (args.staging_path.display(), fs(&args.capability));
            let next = tell_next(next.as_ref());
            let again = tell_before(*before);
            format!("{name}{again} {path} as {fs} with {:?}{next}", args.publish_context)
        }
        VolumeCall::Unstage(_, _, args) => format!("{name} {}", args.staging_path.display()),
        VolumeCall::Publish(_, _, args, before) => {
            let from = if args.staging_path.is_some() { "staged" } else { "unstaged" };
            let mode = if args.usage.read_only { " read-only" } else { "" };
            let again = tell_before(*before);
            let finer = finer_mode(&args.usage.capability);
            format!(
                "{name}{again} {}{mode}{finer}, {from}, with {:?}",
                args.target_path.display(),
                args.publish_context
            )
        }
        VolumeCall::Unpublish(_, _, path) => format!("{name} {}", path.display()),
        VolumeCall::Order(_, _, OrderCall::Expand { range, capability }) => {
            let usage = capability.as_ref().map(|used| format!(", used as {}", fs(used)));
            format!("{name} to {} bytes{}", range.required_bytes, usage.unwrap_or_default())
        }
        VolumeCall::Order(_, _, OrderCall::Grow(args)) => {
            let GrowArgs { volume_path, staging_path, range, .. } = args;
            let staged = staging_path.as_ref().map(|path| format!(", staged at {}", path.display()));
            let (path, staged) = (volume_path.display(), staged.unwrap_or_default());
            format!("{name} to {} bytes at {path}{staged}", range.required_bytes)
        }
        VolumeCall::Order(_, _, OrderCall::TakeSnapshot { name: of, parameters, taken }) => {
            let taken = taken.as_deref().map(|id| format!(", which has the id {id}"));
            format!("{name} {of} with {parameters:?}{}", taken.unwrap_or_default())
        }
        VolumeCall::Order(_, _, OrderCall::DeleteSnapshot { snapshot_id }) => format!("{name} {snapshot_id}"),
        VolumeCall::Order(_, _, OrderCall::TakeGroup(group)) => {
            let ids: Vec<_> = group.members.iter().map(|member| &*member.volume_id).collect();
            format!("{name} {} of {ids:?}", group.name)
        }
        VolumeCall::Order(
            _,
            _,
            OrderCall::DescribeGroup { group_snapshot_id, snapshot_ids }
            | OrderCall::DeleteGroup { group_snapshot_id, snapshot_ids },
        ) => format!("{name} {group_snapshot_id} {snapshot_ids:?}"),
        VolumeCall::Order(_, _, OrderCall::Modify { parameters }) => format!("{name} {parameters:?}"),
        VolumeCall::Look { path, .. } => format!("look at {}", path.display()),
        VolumeCall::AwaitAudits(number) => format!("await audits up to {number}"),
    }
}

/// The access type of a volume, and its finer mode.
fn fs(capability: &VolumeCapability) -> String {
    let fs = match &capability.access_type {
        AccessType::Block => "block",
        AccessType::Mount(mount) => &mount.fs_type,
    };
    format!("{fs}{}", finer_mode(capability))
}

fn finer_mode(capability: &VolumeCapability) -> String {
    let mode = capability.access_mode;
    if mode.is_alpha() { format!(" by {}", mode.as_str()) } else { String::new() }
}

fn tell_answer(answer: &VolumeAnswer) -> String {
    match answer {
        VolumeAnswer::CreateVolume(Ok(Created { volume })) => format!("created {volume:?}"),
        VolumeAnswer::CreateVolume(Err(error)) => {
            format!("{error}{}", if error.is_transient() { " (transient)" } else { "" })
        }
        VolumeAnswer::DeleteVolume(Ok(deleted)) => format!("deleted, did exist: {}", deleted.did_exist),
        VolumeAnswer::DeleteVolume(Err(error)) => error.to_string(),
        VolumeAnswer::AllowDeletion(()) => "heard".to_owned(),
        VolumeAnswer::Disown(is_gone) => format!("disowned: {is_gone}"),
        VolumeAnswer::PlaceOrder(Ok(done)) => format!("{done:?}"),
        VolumeAnswer::PlaceOrder(Err(error)) => {
            format!("{error}{}", if error.is_transient() { " (transient)" } else { "" })
        }
        VolumeAnswer::Claim(Ok(claimed)) => {
            let Claimed { path, is_block, read_only, generation } = claimed;
            let kind = if *is_block { "block device" } else { "file system" };
            let mode = if *read_only { "read-only" } else { "read-write" };
            format!("{kind} at {}, {mode}, by generation {generation}", path.display())
        }
        VolumeAnswer::Claim(Err(error)) => {
            format!("{error}{}", if error.is_transient() { " (transient)" } else { "" })
        }
        VolumeAnswer::Release(Ok(Released { was_held, others, .. })) => {
            format!("released, was held: {was_held}, others: {others:?}")
        }
        VolumeAnswer::Release(Err(error)) => error.to_string(),
        VolumeAnswer::ConfirmClaims(ClaimsConfirmed { confirmed, released }) => {
            format!("confirmed {confirmed:?}, released {released:?}")
        }
        VolumeAnswer::PrepareForce(Ok(())) => "it can be forced".to_owned(),
        VolumeAnswer::PrepareForce(Err(error)) => error.to_string(),
        VolumeAnswer::ForceRelease(Ok(forced)) => format!("forced, left {:?}", forced.left),
        VolumeAnswer::ForceRelease(Err(error)) => error.to_string(),
        VolumeAnswer::RouteChanged(()) => String::new(),
        VolumeAnswer::DescribeVolume(status) => {
            let errors = status.claims.iter().filter_map(|claim| claim.error.as_deref());
            let errors: Vec<_> = status.error.as_deref().into_iter().chain(errors).collect();
            format!("{status}, errors {errors:?}")
        }
    }
}
