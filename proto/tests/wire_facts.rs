//! Compares the descriptors of the plugin protocols with the facts that were read from their specifications, in both
//! directions.
//!
//! Both sides are brought into one form: for each package, a map from the name of a part of the wire to a line that says
//! all about it. Every difference between the two maps is one line of the failure.

use std::collections::{BTreeMap, BTreeSet};

use callboard_proto::FILE_DESCRIPTOR_SET;
use prost_reflect::{
    DescriptorPool, EnumDescriptor, ExtensionDescriptor, FieldDescriptor, Kind, MessageDescriptor,
    MethodDescriptor, ServiceDescriptor, Syntax,
};

/// The facts: names, numbers, types and oneofs of everything in CSI v1, and the marks of its fields.
const CSI: &str = include_str!("data/csi-1.12.txt");

/// The same of what go-plugin runs beside a plugin's own services.
const GO_PLUGIN: &str = include_str!("data/go-plugin.txt");

/// The same of the services of Nomad's plugins, and of what they share.
const NOMAD_PLUGINS: &str = include_str!("data/nomad-plugins.txt");

/// What is alpha besides fields, which the facts file does not say: the marked services and methods of table
/// C.1 and the marked enum values of table C.2. No message and no enum as a whole is said to be alpha.
const ALPHA: [&str; 12] = [
    "service SnapshotMetadata",
    "method Controller.ControllerGetVolume",
    "method Controller.GetSnapshot",
    "value PluginCapability.Service.Type.SNAPSHOT_METADATA_SERVICE",
    "value ControllerServiceCapability.RPC.Type.VOLUME_CONDITION",
    "value ControllerServiceCapability.RPC.Type.GET_VOLUME",
    "value ControllerServiceCapability.RPC.Type.SINGLE_NODE_MULTI_WRITER",
    "value ControllerServiceCapability.RPC.Type.GET_SNAPSHOT",
    "value NodeServiceCapability.RPC.Type.VOLUME_CONDITION",
    "value NodeServiceCapability.RPC.Type.SINGLE_NODE_MULTI_WRITER",
    "value VolumeCapability.AccessMode.Mode.SINGLE_NODE_SINGLE_WRITER",
    "value VolumeCapability.AccessMode.Mode.SINGLE_NODE_MULTI_WRITER",
];

/// The name of every part of one package, and all that is said of it.
type Wire = BTreeMap<String, String>;

#[test]
fn the_csi_that_we_speak_is_the_csi_of_the_facts() {
    let differences = differences(&csi_facts(CSI), &descriptors("csi.v1"));
    assert!(differences.is_empty(), "\n{}\n", differences.join("\n"));
}

#[test]
fn the_go_plugin_and_nomad_protocols_that_we_speak_are_those_of_the_facts_d50_to_d55_d102_to_d106() {
    for (text, packages) in [
        (GO_PLUGIN, &["plugin"][..]),
        (
            NOMAD_PLUGINS,
            &[
                "hashicorp.nomad.plugins.base.proto",
                "hashicorp.nomad.plugins.device",
                "hashicorp.nomad.plugins.drivers.proto",
                "hashicorp.nomad.plugins.shared.hclspec",
                "hashicorp.nomad.plugins.shared.structs",
            ],
        ),
    ] {
        let facts = facts(text);
        assert_eq!(facts.keys().map(String::as_str).collect::<Vec<_>>(), packages);
        for (package, facts) in facts {
            let differences = differences(&facts, &descriptors(&package));
            assert!(differences.is_empty(), "in {package}\n{}\n", differences.join("\n"));
        }
    }
}

#[test]
fn a_number_that_is_reserved_is_compared_too() {
    let altered = NOMAD_PLUGINS.replacen("  reserved 7..7", "  reserved 7..8", 1);
    let package = "hashicorp.nomad.plugins.drivers.proto";
    assert_eq!(
        differences(&facts(&altered)[package], &descriptors(package)),
        ["reserved DriverCapabilities: the facts say `7..8`, ours is `7..7`"]
    );
}

#[test]
fn every_kind_of_difference_is_told_with_both_sides() {
    let altered = CSI
        .replacen("2  vendor_version  string", "7  vendor_version  bytes", 1)
        .replacen("    1  ready  google.protobuf.BoolValue", "", 1)
        .replacen(
            "1  block  VolumeCapability.BlockVolume  [oneof access_type]",
            "1  block  VolumeCapability.BlockVolume",
            1,
        )
        .replacen("-> stream csi.v1.GetMetadataDeltaResponse", "-> csi.v1.GetMetadataDeltaResponse", 1)
        .replacen("2  INODES", "3  INODES", 1)
        .replacen(
            "6  secrets  map<string,string>  [secret alpha]",
            "6  secrets  map<string,string>  [secret]",
            1,
        )
        .replacen("2  mount_flags  repeated string", "2  mount_flags  string", 1)
        .replacen("message ProbeRequest", "message ProbeRequest\n    1  invented  string", 1);
    let expected = [
        "field GetPluginInfoResponse.vendor_version: the facts say `7 bytes`, ours is `2 string`",
        "field NodeExpandVolumeRequest.secrets: the facts say `6 map<string,string> secret`, \
         ours is `6 map<string,string> secret alpha`",
        "field ProbeRequest.invented: the facts say `1 string`, ours is missing",
        "field ProbeResponse.ready: the facts do not know it, ours is `1 google.protobuf.BoolValue`",
        "field VolumeCapability.MountVolume.mount_flags: the facts say `2 string`, ours is `2 repeated string`",
        "field VolumeCapability.block: the facts say `1 VolumeCapability.BlockVolume`, \
         ours is `1 VolumeCapability.BlockVolume oneof access_type`",
        "method SnapshotMetadata.GetMetadataDelta: the facts say \
         `GetMetadataDeltaRequest -> GetMetadataDeltaResponse`, \
         ours is `GetMetadataDeltaRequest -> stream GetMetadataDeltaResponse`",
        "value VolumeUsage.Unit.INODES: the facts say `3`, ours is `2`",
    ];
    assert_eq!(differences(&csi_facts(&altered), &descriptors("csi.v1")), expected);
}

#[test]
fn the_marks_have_the_numbers_that_the_specification_gave_them() {
    let say = |mark: ExtensionDescriptor| {
        let of = mark.containing_message();
        format!("{} = {} in {}: {:?}", mark.full_name(), mark.number(), of.name(), mark.kind())
    };
    let found: BTreeSet<String> = pool().all_extensions().map(say).collect();
    let expected = [
        "csi.v1.alpha_enum = 1060 in EnumOptions: bool",
        "csi.v1.alpha_enum_value = 1060 in EnumValueOptions: bool",
        "csi.v1.alpha_field = 1060 in FieldOptions: bool",
        "csi.v1.alpha_message = 1060 in MessageOptions: bool",
        "csi.v1.alpha_method = 1060 in MethodOptions: bool",
        "csi.v1.alpha_service = 1060 in ServiceOptions: bool",
        "csi.v1.csi_secret = 1059 in FieldOptions: bool",
    ];
    assert_eq!(found, BTreeSet::from(expected.map(str::to_owned)));
}

#[test]
fn the_descriptors_hold_our_packages_and_what_they_import_and_nothing_else() {
    let pool = pool();
    let packages: BTreeSet<&str> = pool.file_descriptor_protos().map(|file| file.package()).collect();
    let expected = [
        "callboard.admin.v1",
        "csi.v1",
        "google.protobuf",
        "hashicorp.nomad.plugins.base.proto",
        "hashicorp.nomad.plugins.device",
        "hashicorp.nomad.plugins.drivers.proto",
        "hashicorp.nomad.plugins.shared.hclspec",
        "hashicorp.nomad.plugins.shared.structs",
        "plugin",
    ];
    assert_eq!(packages, BTreeSet::from(expected));
    for file in pool.files().filter(|file| file.package_name() != "google.protobuf") {
        assert_eq!(file.syntax(), Syntax::Proto3, "{}", file.name());
    }
}

fn differences(facts: &Wire, ours: &Wire) -> Vec<String> {
    let names: BTreeSet<&String> = facts.keys().chain(ours.keys()).collect();
    let difference = |name: &String| match (facts.get(name), ours.get(name)) {
        (Some(fact), Some(our)) if fact == our => None,
        (Some(fact), Some(our)) => Some(format!("{name}: the facts say `{fact}`, ours is `{our}`")),
        (Some(fact), None) => Some(format!("{name}: the facts say `{fact}`, ours is missing")),
        (None, Some(our)) => Some(format!("{name}: the facts do not know it, ours is `{our}`")),
        (None, None) => None,
    };
    names.into_iter().filter_map(difference).collect()
}

fn csi_facts(text: &str) -> Wire {
    let mut wire = facts(text).remove("csi.v1").expect("the facts are of CSI");
    for alpha in ALPHA {
        let said = wire.get_mut(alpha).unwrap_or_else(|| panic!("the facts do not know {alpha}"));
        *said = format!("{said} alpha").trim().to_owned();
    }
    wire
}

/// Reads the facts, by package. A package may come in several blocks.
fn facts(text: &str) -> BTreeMap<String, Wire> {
    let mut packages = BTreeMap::new();
    let (mut package, mut kind, mut owner) = ("", "", "");
    for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with("# ")) {
        if let Some(name) = line.strip_prefix("## package ") {
            package = name;
            continue;
        }
        let said = if line.starts_with(' ') {
            fact_of_a_part(package, kind, owner, line.trim())
        } else {
            (kind, owner) = line.split_once(' ').expect("a block begins with its kind and its name");
            (format!("{kind} {owner}"), String::new())
        };
        let wire: &mut Wire = packages.entry(package.to_owned()).or_default();
        assert!(wire.insert(said.0, said.1).is_none(), "the facts say it twice: {line}");
    }
    packages
}

/// Reads a line below a service, an enum or a message.
fn fact_of_a_part(package: &str, kind: &str, owner: &str, line: &str) -> (String, String) {
    if kind == "service" {
        let (name, types) = line.split_once(": ").expect("a method is followed by its types");
        return (format!("method {owner}.{name}"), types.replace(&format!("{package}."), ""));
    }
    if let Some(numbers) = line.strip_prefix("reserved ") {
        return (format!("reserved {owner}"), numbers.to_owned());
    }
    let words: Vec<&str> = line.split("  ").collect();
    match (kind, words.as_slice()) {
        ("enum", [number, name]) => (format!("value {owner}.{name}"), (*number).to_owned()),
        ("message", [number, name, kind]) => (format!("field {owner}.{name}"), format!("{number} {kind}")),
        ("message", [number, name, kind, notes]) => {
            let notes = notes.trim_matches(['[', ']']);
            (format!("field {owner}.{name}"), format!("{number} {kind} {notes}"))
        }
        _ => panic!("a line of the facts that cannot be read: {line}"),
    }
}

fn pool() -> DescriptorPool {
    DescriptorPool::decode(FILE_DESCRIPTOR_SET).expect("the descriptors are whole")
}

fn descriptors(package: &str) -> Wire {
    let pool = pool();
    let mut wire = Wire::new();
    pool.services().filter(|s| s.package_name() == package).for_each(|s| add_service(&mut wire, &s));
    pool.all_enums().filter(|e| e.package_name() == package).for_each(|e| add_enum(&mut wire, &e));
    let messages = pool.all_messages().filter(|m| m.package_name() == package && !m.is_map_entry());
    messages.for_each(|m| add_message(&mut wire, &m));
    wire
}

fn add_service(wire: &mut Wire, service: &ServiceDescriptor) {
    wire.insert(format!("service {}", service.name()), marks(&service.options()));
    for method in service.methods() {
        let said = said([types_of(&method), marks(&method.options())]);
        wire.insert(format!("method {}.{}", service.name(), method.name()), said);
    }
}

fn types_of(method: &MethodDescriptor) -> String {
    let stream = |is: bool| if is { "stream " } else { "" };
    let (input, output) = (method.input(), method.output());
    format!(
        "{}{} -> {}{}",
        stream(method.is_client_streaming()),
        local(input.full_name(), method.parent_service().package_name()),
        stream(method.is_server_streaming()),
        local(output.full_name(), method.parent_service().package_name())
    )
}

fn add_enum(wire: &mut Wire, found: &EnumDescriptor) {
    let owner = local(found.full_name(), found.package_name());
    wire.insert(format!("enum {owner}"), marks(&found.options()));
    for value in found.values() {
        let said = said([value.number().to_string(), marks(&value.options())]);
        wire.insert(format!("value {owner}.{}", value.name()), said);
    }
}

fn add_message(wire: &mut Wire, message: &MessageDescriptor) {
    let package = message.package_name();
    let owner = local(message.full_name(), package);
    wire.insert(format!("message {owner}"), marks(&message.options()));
    for numbers in message.reserved_ranges() {
        wire.insert(format!("reserved {owner}"), format!("{}..{}", numbers.start, numbers.end - 1));
    }
    for field in message.fields() {
        let oneof = field.containing_oneof().map(|oneof| format!("oneof {}", oneof.name()));
        let said = said([
            field.number().to_string(),
            type_of(&field, package),
            oneof.unwrap_or_default(),
            marks(&field.options()),
        ]);
        wire.insert(format!("field {owner}.{}", field.name()), said);
    }
}

fn type_of(field: &FieldDescriptor, package: &str) -> String {
    let kind = field.kind();
    if let (true, Some(entry)) = (field.is_map(), kind.as_message()) {
        let (key, value) = (entry.map_entry_key_field(), entry.map_entry_value_field());
        return format!("map<{},{}>", type_of(&key, package), type_of(&value, package));
    }
    let name = match &kind {
        Kind::Message(message) => local(message.full_name(), package).to_owned(),
        Kind::Enum(found) => local(found.full_name(), package).to_owned(),
        scalar => format!("{scalar:?}"),
    };
    if field.is_list() { format!("repeated {name}") } else { name }
}

/// The marks that these options carry, secret first. Any other option than a mark would be found too.
fn marks(options: &prost_reflect::DynamicMessage) -> String {
    let mut marks: Vec<String> = options
        .extensions()
        .filter(|(_, value)| value.as_bool() != Some(false))
        .map(|(mark, _)| match mark.name() {
            "csi_secret" => "secret".to_owned(),
            name if name.starts_with("alpha_") => "alpha".to_owned(),
            name => name.to_owned(),
        })
        .collect();
    marks.sort_by_key(|mark| mark != "secret");
    marks.join(" ")
}

/// A name as seen from a package.
fn local<'a>(full_name: &'a str, package: &str) -> &'a str {
    full_name.strip_prefix(package).and_then(|name| name.strip_prefix('.')).unwrap_or(full_name)
}

fn said<const N: usize>(words: [String; N]) -> String {
    let words: Vec<String> = words.into_iter().filter(|word| !word.is_empty()).collect();
    words.join(" ")
}
