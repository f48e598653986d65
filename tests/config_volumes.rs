//! Tests the configuration of volumes and their users: every error in it is reported with its position.

use std::path::Path;

use callboard::config::{Config, SecretOrigin, VolumeConfig, VolumeOrigin};
use callboard_actors::csi::{AccessMode, AccessType, CapacityRange, VolumeContentSource};
use callboard_actors::volume::NewVolume;
use callboard_actors::volumes::KnownVolume;

fn parse(text: &str) -> Result<Config, Vec<String>> {
    Config::parse(Path::new("host.toml"), text).map_err(|error| {
        let text = error.to_string();
        text.lines().map(str::to_owned).collect()
    })
}

fn complaints(text: &str) -> Vec<String> {
    parse(text).expect_err("it is wrong")
}

const WHOLE: &str = r#"
data_dir = "/d"

[[driver]]
name = "exec"

[[allocation]]
name = "zfs-1"
plugin = "zfs"
type = "monolith"
command = "sh"

[[allocation]]
name = "nfs-1"
plugin = "nfs"
type = "node"
command = "sh"
volumes = ["data", { name = "blue/raw-1", variable = "RAW", read_only = true }]

[[task]]
name = "web"
driver = "exec"
volumes = [{ name = "data", destination = "/data" }, { name = "default/cache", destination = "/c", read_only = true }]

[[volume]]
name = "data"
plugin = "zfs"
id = "tank/data"
context = { pool = "tank" }
capacity = "10GiB"
access_mode = "multi-node-multi-writer"
mount = { fs_type = "ext4", flags = ["noatime", "password=hunter2"], group = "1000" }
topology = [{ zone = "a" }, { zone = "b", rack = "7" }]
secrets = { user = { env = "ZFS_USER" }, password = { file = "/etc/callboard/zfs" } }

[[volume]]
name = "raw-1"
namespace = "blue"
plugin = "zfs"
id = "tank/raw"
block = true
capacity = 1048576

[[volume]]
name = "cache"
plugin = "nfs"
id = "tank/data"
access_mode = "multi-node-reader-only"
"#;

#[test]
fn volumes_and_their_users_are_read_and_secrets_by_their_origin_v11() {
    let config = parse(WHOLE).expect("nothing is wrong with it");
    let [data, raw, cache] = &config.volumes[..] else { panic!("three volumes") };
    let known = registered(data);
    assert_eq!((&*known.spec.volume_id, &*known.spec.volume_context["pool"]), ("tank/data", "tank"));
    assert_eq!(
        (known.spec.key.to_string(), known.capacity_bytes),
        ("default/data".to_owned(), Some(10 << 30))
    );
    assert_eq!((&known.spec.key, &known.spec.plugin), (&data.key, &data.plugin));
    assert_eq!(data.usage.capability.access_mode, AccessMode::MultiNodeMultiWriter);
    let AccessType::Mount(mount) = &data.usage.capability.access_type else { panic!("it is mounted") };
    assert_eq!((&*mount.fs_type, &*mount.volume_mount_group), ("ext4", "1000"));
    assert_eq!(mount.mount_flags.expose(), ["noatime", "password=hunter2"]);
    assert_eq!((known.accessible_topology.len(), &*known.accessible_topology[1]["rack"]), (2, "7"));
    assert!(data.secrets["user"] == SecretOrigin::Environment("ZFS_USER".to_owned()));
    assert!(data.secrets["password"] == SecretOrigin::File("/etc/callboard/zfs".into()));
    assert_eq!(raw.usage.capability.access_type, AccessType::Block);
    assert_eq!(
        (raw.key.to_string(), registered(raw).capacity_bytes),
        ("blue/raw-1".to_owned(), Some(1 << 20))
    );
    assert_eq!(
        (raw.usage.capability.access_mode, raw.usage.read_only),
        (AccessMode::SingleNodeWriter, false)
    );
    assert!(cache.usage.read_only, "its access mode permits no writer");
    let nfs = &config.allocations[1].volumes;
    let of: Vec<_> = nfs.iter().map(|of| (of.volume.to_string(), &*of.variable, of.read_only)).collect();
    assert_eq!(
        of,
        [("default/data".to_owned(), "CALLBOARD_VOLUME_DATA", false), ("blue/raw-1".to_owned(), "RAW", true)]
    );
    let web = &config.tasks[0].volumes;
    let of: Vec<_> =
        web.iter().map(|of| (of.volume.to_string(), of.destination.to_str(), of.read_only)).collect();
    assert_eq!(
        of,
        [("default/data".to_owned(), Some("/data"), false), ("default/cache".to_owned(), Some("/c"), true)]
    );
    assert_eq!(config.warnings, []);
    let shown = format!("{config:?}");
    assert!(!shown.contains("hunter2") && !shown.contains("ZFS_USER"), "{shown}");
}

fn registered(volume: &VolumeConfig) -> &KnownVolume {
    let VolumeOrigin::Registered(known) = &volume.origin else { panic!("{volume:?} exists") };
    known
}

/// A configuration with a plugin and a volume that has these lines after its name and its plugin. They begin with line 10.
fn with_volume(lines: &str) -> String {
    let plugin = "data_dir = '/d'\n[[allocation]]\nname = 'a'\nplugin = 'zfs'\ntype = 'node'\ncommand = 'sh'";
    format!("{plugin}\n[[volume]]\nname = 'data'\nplugin = 'zfs'\n{lines}")
}

#[test]
fn everything_that_is_wrong_with_a_volume_is_told_with_its_place_c004_c005_c007_c023_c055_c058() {
    let long = |bytes: usize| "x".repeat(bytes);
    let flags = format!("id = 'v'\nmount.fs_type = 'ext4'\nmount.flags = ['ro', '{}']", long(4095));
    let context = format!("id = 'v'\ncontext = {{ a = 'b', c = '{}' }}", long(4095));
    let secrets = format!(
        "id = 'v'\nsecrets = {{ {} = {{ env = 'A' }}, {} = {{ env = 'A' }} }}",
        long(2048),
        "y".repeat(2049)
    );
    let told = [
        (
            "",
            "7:1: the volume has neither `id` nor `create`; give its `id` with its plugin, or `create = {}` to have it made",
        ),
        ("id = ''", "10:6: `id`: volume_id is empty"),
        (
            "id = 'v'\nmount = {}\nblock = true",
            "12:9: the volume has both `mount` and `block`; give one of them",
        ),
        (
            "id = 'v'\ncapacity = -1",
            "11:12: `capacity` -1 is no size of a volume; give a whole number of bytes from 1 to 2^63 - 1, or one with a unit, as in \
             \"512MiB\" or \"10GiB\"",
        ),
        ("id = 'v'\ncapacity = '10GB'", "11:12: `capacity` \"10GB\" is no size"),
        ("id = 'v'\ncapacity = '99999999TiB'", "11:12: `capacity` \"99999999TiB\" is no size"),
        (&flags, "12:15: `flags`: mount_flags has 4097 bytes, at most 4096 are allowed"),
        (&context, "11:11: `context`: volume_context has 4098 bytes, at most 4096 are allowed"),
        ("id = 'v'\ncontext = { a = 1 }", "11:17: `a` of the volume has to be a text and is a whole number"),
        ("id = 'v'\ntopology = [{ zone = '-a' }]", "11:13: `topology`: topology value is \"-a\""),
        ("id = 'v'\ntopology = [{}]", "11:13: `topology`: segments is empty"),
        (
            "id = 'v'\naccess_mode = 'single-node-writter'",
            "11:15: `access_mode` \"single-node-writter\" is unknown; did you mean `single-node-writer`?",
        ),
        ("id = 'v'\nfs_type = 'ext4'", "11:1: unknown key `fs_type` in the volume; "),
        ("id = 'v'\nmount = { flag = [] }", "11:11: unknown key `flag` in `mount`; did you mean `flags`?"),
        (
            "id = 'v'\nsecrets = { 'a b' = { env = 'A' } }",
            "11:13: `secrets`: secrets have a key that is empty or holds more than letters, digits, '-', '_' and '.'",
        ),
        (&secrets, "11:11: `secrets`: secrets has 4097 bytes, at most 4096 are allowed"),
        (
            "id = 'v'\nsecrets = { password = 'hunter2' }",
            "11:13: a secret never stands in the configuration; give { file = \"/PATH\" } or { env = \"VARIABLE\" }",
        ),
        (
            "id = 'v'\nsecrets = { password = { file = 'hunter2' } }",
            "11:33: `file` of a secret is no absolute path; name the file that holds it",
        ),
        (
            "id = 'v'\nsecrets = { password = { env = 'hunter2=' } }",
            "11:32: `env` of a secret is no name of a variable; name the variable that holds it",
        ),
        (
            "id = 'v'\nsecrets.password = { env = 'A', file = '/a' }",
            "11:20: a secret has both `file` and `env`; ",
        ),
        ("id = 'v'\nsecrets.password = {}", "11:20: a secret has neither `file` nor `env`; "),
    ];
    for (lines, expected) in told {
        let complaints = complaints(&with_volume(lines));
        let [complaint] = &complaints[..] else { panic!("{lines}: {complaints:?}") };
        assert!(complaint.starts_with(&format!("host.toml:{expected}")), "{lines}: {complaint}");
        assert!(!complaint.contains("hunter2"), "{complaint}");
    }
}

#[test]
fn what_is_wrong_with_the_use_of_a_new_volume_is_told_once_and_at_its_key_c005() {
    let lines = format!("mount.flags = ['{}']\n[volume.create]\nlimit = '2GiB'", "x".repeat(5_000));
    let complaints = complaints(&with_new_volume(&lines));
    let [complaint] = &complaints[..] else { panic!("{complaints:?}") };
    assert!(complaint.contains("`flags`: mount_flags has 5000 bytes"), "{complaint}");
}

/// As [`with_volume`], with a plugin that creates volumes.
fn with_new_volume(lines: &str) -> String {
    with_volume(lines).replace("type = 'node'", "type = 'monolith'")
}

#[test]
fn a_volume_that_its_plugin_is_to_create_is_read_with_all_that_it_is_to_be_c051_c052_c054_c056_c057() {
    let lines = "capacity = '10GiB'\ntopology = [{ zone = 'a' }, { zone = 'b' }]\nmount.fs_type = 'ext4'\n\
                 create = { limit = '20GiB', preferred = [{ zone = 'b' }], parameters = { tier = 'gold' }, \
                 mutable_parameters = { iops = '100' }, from_snapshot = 'snap-1' }";
    let config = parse(&with_new_volume(lines)).expect("nothing is wrong with it");
    let [VolumeConfig { origin: VolumeOrigin::Created(new), usage, .. }] = &config.volumes[..] else {
        panic!("one volume, which is to be created")
    };
    let NewVolume {
        capacity_range,
        capabilities,
        parameters,
        content_source,
        accessibility,
        mutable_parameters,
    } = &**new;
    let range = CapacityRange { required_bytes: 10 << 30, limit_bytes: 20 << 30 };
    assert_eq!((*capacity_range, &capabilities[..]), (Some(range), &[usage.capability.clone()][..]));
    assert_eq!((&*parameters["tier"], &*mutable_parameters["iops"]), ("gold", "100"));
    assert_eq!(*content_source, Some(VolumeContentSource::Snapshot("snap-1".to_owned())));
    let places = accessibility.as_ref().expect("it has places");
    assert_eq!((places.requisite.len(), &*places.preferred[0]["zone"]), (2, "b"));

    let config = parse(&with_new_volume("create = {}")).expect("nothing is wrong with it");
    let VolumeOrigin::Created(new) = &config.volumes[0].origin else { panic!("it is to be created") };
    assert_eq!((new.capacity_range, &new.accessibility, new.capabilities.len()), (None, &None, 1));
}

#[test]
fn everything_that_is_wrong_with_a_creation_is_told_with_its_place_c005_c052_c054_c057() {
    let long = format!("create.parameters = {{ a = '{}' }}", "x".repeat(4096));
    let told = [
        (
            "id = 'v'\ncreate = {}",
            "11:10: the volume has both `id` and `create`; give `id` if it exists at its plugin, or `create` if it is to be made",
        ),
        ("create = 'yes'", "10:10: `create` of the volume has to be a table and is a text"),
        (
            "create = {}\ncontext = { a = 'b' }",
            "11:11: `context` is what the plugin answers when it creates the volume; remove it",
        ),
        (
            "create = { parameter = {} }",
            "10:12: unknown key `parameter` in `create`; did you mean `parameters`?",
        ),
        (&long, "10:21: `parameters`: parameters has 4097 bytes, at most 4096 are allowed"),
        ("create = { limit = '1XB' }", "10:20: `limit` \"1XB\" is no size of a volume; "),
        (
            "capacity = '2GiB'\ncreate = { limit = '1GiB' }",
            "11:20: `limit`: limit_bytes is 1073741824, below the required_bytes of 2147483648",
        ),
        ("create = { preferred = [{ zone = '-a' }] }", "10:25: `preferred`: topology value is \"-a\""),
        (
            "topology = [{ zone = 'a' }]\ncreate = { preferred = [{ zone = 'b' }] }",
            "11:24: `preferred`: preferred ",
        ),
        ("create = { from_volume = '' }", "10:26: `from_volume`: volume_id is empty"),
        (
            "create = { from_volume = 'a', from_snapshot = 'b' }",
            "10:26: `create` has both `from_snapshot` and `from_volume`; give one of them",
        ),
    ];
    for (lines, expected) in told {
        let complaints = complaints(&with_new_volume(lines));
        let [complaint] = &complaints[..] else { panic!("{lines}: {complaints:?}") };
        assert!(complaint.starts_with(&format!("host.toml:{expected}")), "{lines}: {complaints:?}");
    }
    assert_eq!(
        complaints(&with_volume("create = {}")),
        [
            "host.toml:10:10: no [[allocation]] of the type \"controller\" or \"monolith\" serves the plugin \"zfs\", which is to \
             create the volume; add one"
        ]
    );
}

#[test]
fn the_name_of_a_volume_has_128_bytes_and_becomes_part_of_a_path_c004_r9() {
    let named = |name: &str| with_volume("id = 'v'").replace("name = 'data'", &format!("name = '{name}'"));
    assert_eq!(parse(&named(&"n".repeat(128))).expect("nothing is wrong").volumes.len(), 1);
    assert_eq!(
        complaints(&named(&"n".repeat(129))),
        ["host.toml:8:8: `name`: name has 129 bytes, at most 128 are allowed"]
    );
    let [told] = &complaints(&named("a/b"))[..] else { panic!("one fault") };
    assert!(
        told.starts_with("host.toml:8:8: `name`: the volume name \"a/b\" would leave its directory"),
        "{told}"
    );
    let [told] = &complaints(&with_volume("id = 'v'\nnamespace = '..'"))[..] else { panic!("one fault") };
    assert!(told.starts_with("host.toml:11:13: `namespace`: the volume namespace"), "{told}");
}

#[test]
fn a_volume_belongs_to_a_plugin_that_an_allocation_serves_as_node() {
    let text = with_volume("id = 'v'");
    let none = "no [[allocation]] of the type \"node\" or \"monolith\" serves a plugin";
    let told = |text: &str| complaints(text).join("\n");
    assert_eq!(
        told(&text.replace("name = 'data'\nplugin = 'zfs'", "name = 'data'")),
        "host.toml:7:1: the volume has no `plugin`, which is required"
    );
    assert_eq!(
        told(&text.replace("name = 'data'\nplugin = 'zfs'", "name = 'data'\nplugin = 'zfz'")),
        format!("host.toml:9:10: {none} \"zfz\"; did you mean `zfs`?")
    );
    assert_eq!(
        told(&text.replace("type = 'node'", "type = 'controller'")),
        format!("host.toml:9:10: {none} \"zfs\"; add one")
    );
}

#[test]
fn a_volume_has_one_entry_with_one_name_and_one_id() {
    let one = with_volume("id = 'v'");
    assert_eq!(
        complaints(&format!(
            "{one}\n[[volume]]\nname = 'data'\nnamespace = 'default'\nplugin = 'zfs'\nid = 'w'"
        )),
        ["host.toml:12:8: a second volume is named default/data; each needs a name of its own"]
    );
    assert_eq!(
        complaints(&format!(
            "{one}\n[[volume]]\nname = 'data'\nnamespace = 'blue'\nplugin = 'zfs'\nid = 'v'"
        )),
        [
            "host.toml:15:6: the volume default/data has this id of the plugin \"zfs\", too; a volume has one entry, which all of its \
             users name"
        ]
    );
}

/// A volume `data` of the plugin of the allocation `a`, and another plugin with an allocation that uses these volumes.
fn with_users(volumes: &str) -> String {
    let user =
        "[[allocation]]\nname = 'b'\nplugin = 'nfs'\ntype = 'node'\ncommand = 'sh'\nenv = { MODE = 'fast' }";
    let another = "[[volume]]\nname = 'da.ta'\nplugin = 'zfs'\nid = 'w'\n[[volume]]\nname = 'da-ta'\nplugin = 'zfs'\nid = 'x'";
    format!("{}\n{another}\n{user}\nvolumes = {volumes}", with_volume("id = 'v'"))
}

#[test]
fn what_is_wrong_with_the_volumes_of_an_allocation_is_told_with_its_place() {
    let told = [
        ("['dat']", "25:12: there is no [[volume]] named \"dat\"; did you mean `data`?"),
        ("['blue/data']", "25:12: there is no [[volume]] named \"blue/data\"; add it"),
        ("['data', 'default/data']", "25:20: the volume \"default/data\" is named twice; remove one of both"),
        (
            "['da.ta', 'da-ta']",
            "25:21: the variable CALLBOARD_VOLUME_DA_TA is set already; give this volume a `variable` of its own",
        ),
        (
            "[{ name = 'data', variable = 'MODE' }]",
            "25:40: the variable MODE is set already; give this volume a `variable` of its own",
        ),
        (
            "[{ name = 'data', variable = 'a b' }]",
            "25:40: `variable` \"a b\" cannot be a variable of the environment; use letters, digits and '_'",
        ),
        ("[{ read_only = true }]", "25:12: the volume of the allocation has no `name`, which is required"),
        (
            "[{ name = 'data', destination = '/d' }]",
            "25:29: unknown key `destination` in the volume of the allocation; ",
        ),
        ("'data'", "25:11: `volumes` of the allocation has to be a list of texts or tables and is a text"),
        (
            "[1]",
            "25:12: an entry of `volumes` of the allocation has to be a text or a table and is a whole number",
        ),
    ];
    for (volumes, expected) in told {
        let complaints = complaints(&with_users(volumes));
        let [complaint] = &complaints[..] else { panic!("{volumes}: {complaints:?}") };
        assert!(complaint.starts_with(&format!("host.toml:{expected}")), "{volumes}: {complaint}");
    }
    let own = with_volume("id = 'v'").replace("command = 'sh'", "command = 'sh'\nvolumes = ['data']");
    assert_eq!(
        complaints(&own),
        [
            "host.toml:7:12: the volume default/data belongs to the plugin of this allocation, which could not start before it; \
             remove it"
        ]
    );
}

#[test]
fn what_is_wrong_with_the_volumes_of_a_task_is_told_with_its_place() {
    let task = "[[driver]]\nname = 'exec'\n[[task]]\nname = 't'\ndriver = 'exec'\nmounts = [{ host_path = '/s', task_path = '/srv' }]";
    let with_task = |volumes: &str| format!("{}\n{task}\nvolumes = {volumes}", with_volume("id = 'v'"));
    let told = [
        (
            "['data']",
            "17:12: the volume \"data\" of the task has none; give it a `destination`, as in { name = \"data\", destination = \
             \"/data\" }",
        ),
        ("[{ name = 'data' }]", "17:12: the volume of the task has no `destination`, which is required"),
        (
            "[{ name = 'data', destination = 'd' }]",
            "17:43: `destination` \"d\" is a relative path; give an absolute one",
        ),
        (
            "[{ name = 'data', destination = '/srv' }]",
            "17:43: the task has a volume or mount at /srv already; each needs its own `destination`",
        ),
        (
            "[{ name = 'date', destination = '/d' }]",
            "17:21: there is no [[volume]] named \"date\"; did you mean `data`?",
        ),
        (
            "[{ name = 'data', destination = '/d' }, { name = 'data', destination = '/e' }]",
            "17:60: the volume \"data\" is named twice; remove one of both",
        ),
    ];
    for (volumes, expected) in told {
        let complaints = complaints(&with_task(volumes));
        let [complaint] = &complaints[..] else { panic!("{volumes}: {complaints:?}") };
        assert!(complaint.starts_with(&format!("host.toml:{expected}")), "{volumes}: {complaint}");
    }
}

#[test]
fn a_volume_that_is_wrong_is_no_unknown_one_to_its_users() {
    let text = with_users("['data']").replace("id = 'v'", "id = ''");
    assert_eq!(complaints(&text), ["host.toml:10:6: `id`: volume_id is empty"]);
}

#[test]
fn users_that_could_never_have_a_volume_at_the_same_time_are_told_v12_c137() {
    let user = |name: &str, lines: &str| {
        format!("\n[[allocation]]\nname = '{name}'\nplugin = 'u'\ntype = 'node'\ncommand = 'sh'\n{lines}")
    };
    let two = |mode: &str, first: &str, second: &str| {
        let volume = with_volume(&format!("id = 'v'\naccess_mode = '{mode}'"));
        format!("{volume}{}{}", user("one", first), user("two", second))
    };
    let (uses, reads) = ("volumes = ['data']", "volumes = [{ name = 'default/data', read_only = true }]");
    let advice = "give it another `access_mode`, or give one of both `start = false`";
    assert_eq!(
        complaints(&two("single-node-writer", uses, reads)),
        [format!(
            "host.toml:23:12: the volume default/data cannot be used by \"two\" beside \"one\": its access mode permits one \
             allocation on a node; {advice}"
        )]
    );
    assert_eq!(
        complaints(&two("multi-node-single-writer", uses, uses)),
        [format!(
            "host.toml:23:12: the volume default/data cannot be used by \"two\" beside \"one\": its access mode permits one \
             writer; {advice}"
        )]
    );
    let task = "\n[[driver]]\nname = 'exec'\n[[task]]\nname = 'three'\ndriver = 'exec'\n\
                volumes = [{ name = 'data', destination = '/data' }]";
    let told = complaints(&format!("{}{task}", two("single-node-writer", uses, "")));
    assert!(told[0].contains("cannot be used by \"three\" beside \"one\""), "{told:?}");
    for fine in [
        two("single-node-writer", uses, &format!("start = false\n{uses}")),
        two("multi-node-single-writer", uses, reads),
        two("multi-node-multi-writer", uses, uses),
    ] {
        assert_eq!(parse(&fine).expect("nothing is wrong with it").allocations.len(), 3);
    }
}
