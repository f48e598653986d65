//! Shows that no secret gets into debug output, whichever code prints it (C025 for CSI, SEC-06 for drivers).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use callboard_proto::admin::v1 as admin;
use callboard_proto::csi::v1::*;
use callboard_proto::{FILE_DESCRIPTOR_SET, base, device, drivers, marks};
use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, MapKey, Value};

/// What is in every secret field of these tests, as key and as value.
const CANARY: &str = "canary-in-a-secret";

/// Reads a message in its generated form and gives its debug output.
type Print = fn(&[u8]) -> String;

fn print<M: Message + Debug + Default>(bytes: &[u8]) -> String {
    let message = M::decode(bytes).expect("the bytes are of this very message");
    format!("{message:?} {message:#?}")
}

macro_rules! printers {
    ($($name:ident),* $(,)?) => {
        BTreeMap::from([$((concat!("csi.v1.", stringify!($name)), print::<$name> as Print)),*])
    };
}

/// All messages with a marked field; a test compares this list with the descriptors.
fn printers() -> BTreeMap<&'static str, Print> {
    printers![
        ControllerExpandVolumeRequest,
        ControllerModifyVolumeRequest,
        ControllerPublishVolumeRequest,
        ControllerUnpublishVolumeRequest,
        CreateSnapshotRequest,
        CreateVolumeGroupSnapshotRequest,
        CreateVolumeRequest,
        DeleteSnapshotRequest,
        DeleteVolumeGroupSnapshotRequest,
        DeleteVolumeRequest,
        GetMetadataAllocatedRequest,
        GetMetadataDeltaRequest,
        GetSnapshotRequest,
        GetVolumeGroupSnapshotRequest,
        ListSnapshotsRequest,
        NodeExpandVolumeRequest,
        NodePublishVolumeRequest,
        NodeStageVolumeRequest,
        ValidateVolumeCapabilitiesRequest,
    ]
}

fn pool() -> DescriptorPool {
    DescriptorPool::decode(FILE_DESCRIPTOR_SET).expect("the descriptors are whole")
}

#[test]
fn c025_every_message_that_is_marked_is_tested_here() {
    let marked = |name: &str| marks::secret_fields(name).is_some_and(|fields| !fields.is_empty());
    let pool = pool();
    let messages: Vec<_> = pool.all_messages().collect();
    let expected: BTreeSet<&str> = messages.iter().map(|m| m.full_name()).filter(|n| marked(n)).collect();
    assert_eq!(printers().into_keys().collect::<BTreeSet<_>>(), expected);
}

#[test]
fn c025_no_debug_output_shows_a_secret() {
    for (name, print) in printers() {
        let descriptor =
            pool().get_message_by_name(name).expect("the list was compared with the descriptors");
        let mut message = DynamicMessage::new(descriptor);
        for field in marks::secret_fields(name).expect("it was found a moment ago") {
            let entry = (MapKey::String(CANARY.into()), Value::String(CANARY.into()));
            message.set_field_by_name(&field, Value::Map([entry].into()));
        }
        let shown = print(&message.encode_to_vec());
        assert!(!shown.contains(CANARY), "{name} shows its secrets: {shown}");
        assert!(shown.contains("secrets: <1 withheld>"), "{name} says that it has some: {shown}");
    }
}

#[test]
fn c025_what_is_no_secret_is_still_shown() {
    let request = DeleteVolumeRequest {
        volume_id: "volume-7".into(),
        secrets: [("user".to_owned(), CANARY.to_owned())].into(),
    };
    assert_eq!(
        format!("{request:?}"),
        r#"DeleteVolumeRequest { volume_id: "volume-7", secrets: <1 withheld> }"#
    );
}

#[test]
fn c025_mount_flags_are_kept_as_well_wherever_they_are_nested() {
    let mount = volume_capability::MountVolume {
        fs_type: "ext4".into(),
        mount_flags: vec![format!("password={CANARY}")],
        volume_mount_group: String::new(),
    };
    let request = NodePublishVolumeRequest {
        volume_capability: Some(VolumeCapability {
            access_type: Some(volume_capability::AccessType::Mount(mount)),
            access_mode: None,
        }),
        ..Default::default()
    };
    let shown = format!("{request:?}");
    assert!(!shown.contains(CANARY), "{shown}");
    assert!(shown.contains(r#"fs_type: "ext4", mount_flags: <1 withheld>"#), "{shown}");
}

fn environment() -> std::collections::HashMap<String, String> {
    [("TOKEN".to_owned(), CANARY.to_owned())].into()
}

fn task() -> drivers::TaskConfig {
    drivers::TaskConfig {
        id: "task-7".into(),
        msgpack_driver_config: CANARY.into(),
        env: environment(),
        device_env: environment(),
        ..Default::default()
    }
}

/// What a task is given, what its driver keeps of it and what goes in and out of it, is no matter for a log.
#[test]
fn c025_mount_flags_are_kept_on_the_way_from_the_command_line_too() {
    let usage = admin::VolumeUsage {
        fs_type: "ext4".to_owned(),
        mount_flags: vec![format!("password={CANARY}")],
        ..Default::default()
    };
    let request = admin::ClaimVolumeRequest { usage: Some(usage), ..Default::default() };
    let shown = format!("{request:?} {request:#?}");
    assert!(!shown.contains(CANARY), "{shown}");
    assert!(shown.contains(r#"fs_type: "ext4", mount_flags: <1 withheld>"#), "{shown}");
}

#[test]
fn sec_06_environment_configuration_and_input_of_tasks_are_kept_wherever_they_are_nested() {
    let handle = drivers::TaskHandle {
        config: Some(task()),
        driver_state: CANARY.into(),
        state: drivers::TaskState::Running.into(),
        ..Default::default()
    };
    let piece = drivers::ExecTaskStreamingIoOperation { data: CANARY.into(), close: false };
    let output =
        drivers::ExecTaskResponse { stdout: CANARY.into(), stderr: CANARY.into(), ..Default::default() };
    let reservation = device::ContainerReservation { envs: environment(), ..Default::default() };
    let input = drivers::ExecTaskStreamingRequest { stdin: Some(piece), ..Default::default() };
    let config = base::SetConfigRequest {
        msgpack_config: CANARY.into(),
        plugin_api_version: "v0.1.0".into(),
        ..Default::default()
    };
    let shown: [String; 6] = [
        format!("{:?}", drivers::StartTaskRequest { task: Some(task()) }),
        format!("{:?}", drivers::RecoverTaskRequest { task_id: "task-7".into(), handle: Some(handle) }),
        format!("{input:?}"),
        format!("{output:?}"),
        format!("{:?}", device::ReserveResponse { container_res: Some(reservation) }),
        format!("{config:?}"),
    ];
    let as_bytes = format!("{:?}", CANARY.as_bytes());
    for shown in &shown {
        assert!(!shown.contains(CANARY) && !shown.contains(&as_bytes), "{shown}");
        assert!(shown.contains(" withheld>"), "{shown}");
    }
    assert!(shown[0].contains(r#"id: "task-7""#) && shown[0].contains("env: <1 withheld>"), "{}", shown[0]);
    assert!(shown[5].contains(r#"plugin_api_version: "v0.1.0""#), "{}", shown[5]);
}
