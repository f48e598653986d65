//! Tests that every message of the wire, filled at random by its descriptor, survives the conversion.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Debug;
use std::sync::LazyLock;

use callboard_proto::csi::v1 as wire;
use callboard_proto::{FILE_DESCRIPTOR_SET, marks};
use fastrand::Rng;
use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, FieldDescriptor, Kind, MapKey, ReflectMessage, Value};

use super::WireRequest;
use crate::csi::*;
use crate::rpc::Problem;

/// The number of messages of each kind that leave out nothing; they come first.
const FULL: u64 = 20;
const ALL: u64 = 300;

/// Fills messages. A required part of one of our messages is never left out.
struct Filler {
    random: Rng,
    leaves_out: bool,
}

/// Parts without which a message is neither a request nor an answer.
const REQUIRED: [&str; 8] = [
    "volume",
    "snapshot",
    "group_snapshot",
    "capacity_range",
    "volume_capability",
    "access_mode",
    "mode",
    "block_metadata_type",
];

impl Filler {
    fn message(&mut self, mut message: DynamicMessage) -> DynamicMessage {
        let descriptor = message.descriptor();
        for oneof in descriptor.oneofs() {
            let choices: Vec<_> = oneof.fields().collect();
            let field = &choices[self.random.usize(..choices.len())];
            let value = self.value(field);
            message.set_field(field, value);
        }
        for field in descriptor.fields().filter(|field| field.containing_oneof().is_none()) {
            if self.leaves_out && !REQUIRED.contains(&field.name()) && self.random.u8(..3) == 0 {
                continue;
            }
            let value = match field {
                _ if field.is_map() => self.map(),
                _ if field.is_list() => Value::List((0..2).map(|_| self.value(&field)).collect()),
                _ => self.value(&field),
            };
            message.set_field(&field, value);
        }
        message
    }

    fn map(&mut self) -> Value {
        let entry = |filler: &mut Self| (MapKey::String(filler.text()), Value::String(filler.text()));
        Value::Map((0..2).map(|_| entry(self)).collect::<HashMap<_, _>>())
    }

    fn text(&mut self) -> String {
        (0..self.random.usize(1..9)).map(|_| self.random.alphanumeric()).collect()
    }

    fn value(&mut self, field: &FieldDescriptor) -> Value {
        match field.kind() {
            Kind::String => Value::String(self.text()),
            Kind::Bool => Value::Bool(true),
            // Nanoseconds of a timestamp have the smallest range of all numbers.
            Kind::Int32 => Value::I32(self.random.i32(1..1_000_000_000)),
            Kind::Int64 => Value::I64(self.random.i64(1..=i64::MAX)),
            Kind::Enum(values) => {
                let known: Vec<i32> =
                    values.values().map(|value| value.number()).filter(|n| *n > 0).collect();
                Value::EnumNumber(known[self.random.usize(..known.len())])
            }
            Kind::Message(inner) => Value::Message(self.message(DynamicMessage::new(inner))),
            kind => panic!("{} is a {kind:?}, which no message of CSI has", field.full_name()),
        }
    }
}

static POOL: LazyLock<DescriptorPool> =
    LazyLock::new(|| DescriptorPool::decode(FILE_DESCRIPTOR_SET).expect("the descriptors are whole"));

fn dynamic(name: &str, bytes: &[u8]) -> DynamicMessage {
    let descriptor = POOL.get_message_by_name(&format!("csi.v1.{name}")).expect("it is of the wire");
    DynamicMessage::decode(descriptor, bytes).expect("it has been encoded")
}

/// Converts a message to our type and back.
fn survives<M: Message + Clone + Debug + Default>(name: &str, through: impl Fn(M) -> M) {
    for seed in 0..ALL {
        let mut filler = Filler { random: Rng::with_seed(seed), leaves_out: seed >= FULL };
        let sent = filler.message(dynamic(name, &[]));
        let message = M::decode(&*sent.encode_to_vec()).expect("it is of this very kind");
        let received = through(message.clone());
        let is_same = dynamic(name, &received.encode_to_vec()) == sent;
        assert!(is_same, "{name}, seed {seed}: {message:#?}\nhas become {received:#?}");
    }
}

macro_rules! survive {
    ($($request:ident => $answer:ident,)*) => {
        /// The names of the messages that are tried.
        const TRIED: &[&str] = &[$(stringify!($request), stringify!($answer),)*];

        /// Holds C096.
        #[test]
        fn no_field_of_any_message_is_lost_in_either_direction_v10_vol_09_c010_c059_c073_c074() {
            $(
                survives(stringify!($request), |message: wire::$request| {
                    $request::from_wire(message).expect("it is a request").to_wire()
                });
                survives(stringify!($answer), |message: wire::$answer| {
                    let answer = $request::answer_from_wire(message).expect("it is an answer");
                    $request::answer_to_wire(&answer)
                });
            )*
        }

        #[test]
        fn every_secret_and_mount_flag_of_a_request_is_withheld_from_the_words_of_a_plugin_c025_v11() {
            $(
                let mut filler = Filler { random: Rng::with_seed(7), leaves_out: false };
                let sent = filler.message(dynamic(stringify!($request), &[]));
                let message = wire::$request::decode(&*sent.encode_to_vec()).expect("it is of this very kind");
                let request = $request::from_wire(message).expect("it is a request");
                let withheld: BTreeSet<String> = request.withheld().into_iter().map(str::to_owned).collect();
                assert_eq!(withheld, secrets_of(&sent), stringify!($request));
            )*
        }
    };
}

/// The values of the marked fields of a message and of those in it, and its mount flags.
fn secrets_of(message: &DynamicMessage) -> BTreeSet<String> {
    let descriptor = message.descriptor();
    let marked = marks::secret_fields(descriptor.full_name()).unwrap_or_default();
    let mut found = BTreeSet::new();
    for (field, value) in message.fields() {
        let is_secret = marked.iter().any(|name| name == field.name()) || field.name() == "mount_flags";
        let within: Vec<&Value> = match value {
            Value::Map(entries) => entries.values().collect(),
            Value::List(items) => items.iter().collect(),
            value => vec![value],
        };
        for value in within {
            match value {
                Value::String(secret) if is_secret => drop(found.insert(secret.clone())),
                Value::Message(inner) => found.extend(secrets_of(inner)),
                _ => {}
            }
        }
    }
    found
}

survive! {
    CreateVolumeRequest => CreateVolumeResponse,
    DeleteVolumeRequest => DeleteVolumeResponse,
    ControllerPublishVolumeRequest => ControllerPublishVolumeResponse,
    ControllerUnpublishVolumeRequest => ControllerUnpublishVolumeResponse,
    ValidateVolumeCapabilitiesRequest => ValidateVolumeCapabilitiesResponse,
    ListVolumesRequest => ListVolumesResponse,
    GetCapacityRequest => GetCapacityResponse,
    CreateSnapshotRequest => CreateSnapshotResponse,
    DeleteSnapshotRequest => DeleteSnapshotResponse,
    ListSnapshotsRequest => ListSnapshotsResponse,
    GetSnapshotRequest => GetSnapshotResponse,
    ControllerExpandVolumeRequest => ControllerExpandVolumeResponse,
    ControllerGetVolumeRequest => ControllerGetVolumeResponse,
    ControllerModifyVolumeRequest => ControllerModifyVolumeResponse,
    CreateVolumeGroupSnapshotRequest => CreateVolumeGroupSnapshotResponse,
    DeleteVolumeGroupSnapshotRequest => DeleteVolumeGroupSnapshotResponse,
    GetVolumeGroupSnapshotRequest => GetVolumeGroupSnapshotResponse,
    GetMetadataAllocatedRequest => GetMetadataAllocatedResponse,
    GetMetadataDeltaRequest => GetMetadataDeltaResponse,
    NodeStageVolumeRequest => NodeStageVolumeResponse,
    NodeUnstageVolumeRequest => NodeUnstageVolumeResponse,
    NodePublishVolumeRequest => NodePublishVolumeResponse,
    NodeUnpublishVolumeRequest => NodeUnpublishVolumeResponse,
    NodeGetVolumeStatsRequest => NodeGetVolumeStatsResponse,
    NodeExpandVolumeRequest => NodeExpandVolumeResponse,
}

/// The calls with an empty request, whose answers an instance reads.
const READ_BY_INSTANCES: [&str; 7] = [
    "GetPluginInfo",
    "GetPluginCapabilities",
    "Probe",
    "ControllerGetCapabilities",
    "GroupControllerGetCapabilities",
    "NodeGetCapabilities",
    "NodeGetInfo",
];

#[test]
fn every_call_of_every_service_is_tried_v10() {
    let services = POOL.services().filter(|service| service.package_name() == "csi.v1");
    let methods: Vec<_> = services.flat_map(|s| s.methods().collect::<Vec<_>>()).collect();
    let names: BTreeSet<_> = methods.iter().map(|method| method.name()).collect();
    assert_eq!(names, Call::ALL.iter().map(|call| call.as_str()).collect());
    let others = methods.iter().filter(|method| !READ_BY_INSTANCES.contains(&method.name()));
    let messages: Vec<_> = others.flat_map(|method| [method.input(), method.output()]).collect();
    let expected: BTreeSet<_> = messages.iter().map(|message| message.name()).collect();
    assert_eq!(TRIED.iter().copied().collect::<BTreeSet<_>>(), expected);
}

#[test]
fn a_message_that_lacks_a_required_part_or_has_an_impossible_one_is_refused_c009_c011_c058_c145() {
    let answer = wire::CreateVolumeResponse { volume: None };
    let fault = CreateVolumeRequest::answer_from_wire(answer).expect_err("no volume");
    assert_eq!((fault.rule, &*fault.to_string()), ("C059", "volume is empty"));
    let volume = wire::Volume { capacity_bytes: -1, ..wire::Volume::default() };
    let answer = wire::CreateVolumeResponse { volume: Some(volume) };
    let fault = CreateVolumeRequest::answer_from_wire(answer).expect_err("below zero");
    assert_eq!(fault.problem, Problem::Negative { value: -1 });
    let usage = wire::VolumeUsage { used: -1, ..wire::VolumeUsage::default() };
    let answer = wire::NodeGetVolumeStatsResponse { usage: vec![usage], volume_condition: None };
    assert_eq!(NodeGetVolumeStatsRequest::answer_from_wire(answer).expect_err("below zero").rule, "C145");
    let with = |access_type, mode| {
        let access_mode = Some(wire::volume_capability::AccessMode { mode });
        let capability = wire::VolumeCapability { access_mode, access_type };
        NodeStageVolumeRequest::from_wire(wire::NodeStageVolumeRequest {
            volume_capability: Some(capability),
            ..Default::default()
        })
    };
    let block = || Some(wire::volume_capability::AccessType::Block(Default::default()));
    assert!(with(block(), 1).is_ok());
    for request in [with(None, 1), with(block(), 0), with(block(), 99)] {
        assert_eq!(request.expect_err("no type, no mode, a strange one").rule, "C058");
    }
    let unusable = NodeStageVolumeRequest::from_wire(Default::default()).expect_err("no capability");
    assert_eq!((unusable.rule, unusable.field), ("C009", "volume_capability"));
    let late = prost_types::Timestamp { seconds: 0, nanos: 1_000_000_000 };
    let snapshot = wire::Snapshot { creation_time: Some(late), ..wire::Snapshot::default() };
    let answer = wire::GetSnapshotResponse { snapshot: Some(snapshot) };
    assert_eq!(GetSnapshotRequest::answer_from_wire(answer).expect_err("no such time").rule, "C011");
}

/// Holds C145.
#[test]
fn a_unit_of_a_newer_plugin_is_kept_as_its_number_c026() {
    let usage = wire::VolumeUsage { used: 1, unit: 7, ..wire::VolumeUsage::default() };
    let answer = wire::NodeGetVolumeStatsResponse { usage: vec![usage], volume_condition: None };
    let stats = NodeGetVolumeStatsRequest::answer_from_wire(answer.clone()).expect("it is an answer");
    assert_eq!(stats.usage[0].unit, UsageUnit::Other(7));
    assert_eq!(NodeGetVolumeStatsRequest::answer_to_wire(&stats), answer);
}

#[test]
fn secrets_and_mount_flags_are_shown_by_no_request_c025_v11() {
    let mut shown = 0;
    for (name, debug) in [
        ("CreateVolumeRequest", debug_of::<CreateVolumeRequest> as fn(&[u8]) -> String),
        ("NodeStageVolumeRequest", debug_of::<NodeStageVolumeRequest>),
        ("NodePublishVolumeRequest", debug_of::<NodePublishVolumeRequest>),
        ("NodeExpandVolumeRequest", debug_of::<NodeExpandVolumeRequest>),
        ("ListSnapshotsRequest", debug_of::<ListSnapshotsRequest>),
        ("GetMetadataDeltaRequest", debug_of::<GetMetadataDeltaRequest>),
    ] {
        let canary = || Value::String("canary".to_owned());
        let mut message = Filler { random: Rng::with_seed(1), leaves_out: false }.message(dynamic(name, &[]));
        let entry = (MapKey::String("canary".to_owned()), canary());
        message.set_field_by_name("secrets", Value::Map([entry].into()));
        let text = debug(&message.encode_to_vec());
        assert!(!text.contains("canary") && text.contains("secrets: <1 withheld>"), "{text}");
        shown += 1;
    }
    assert_eq!(shown, 6);
}

fn debug_of<R>(bytes: &[u8]) -> String
where
    R: WireRequest + Debug,
    R::Message: Message + Default,
{
    let message = R::Message::decode(bytes).expect("it is of this very kind");
    format!("{:?}", R::from_wire(message).expect("it is a request"))
}
