//! What a configuration may hold, and how everything that is wrong in it is told, with its place.

use std::path::Path;
use std::time::Duration;

use callboard::config::{Config, ConfigError};
use callboard_actors::vocabulary::Role;

fn parse(text: &str) -> Result<Config, Vec<String>> {
    Config::parse(Path::new("host.toml"), text).map_err(|error| {
        let text = error.to_string();
        text.lines().map(str::to_owned).collect()
    })
}

fn complaints(text: &str) -> Vec<String> {
    parse(text).expect_err("it is wrong")
}

#[test]
fn a_whole_configuration_is_read() {
    let config = parse(
        r#"
        data_dir = "/var/lib/callboard"
        admin_socket = "/run/callboard.sock"
        runtime_dir = "/run"

        [restart]
        attempts = 2
        window = "90s"
        delay = "250ms"

        [[allocation]]
        name = "zfs-1"
        plugin = "zfs"
        type = "monolith"
        command = ["/bin/sh", "-c"]
        args = ["echo ${CSI_ENDPOINT}"]
        env = { POOL = "tank" }
        health_timeout = "10s"
        start = false
        stop_grace = "2s"

        [[allocation]]
        name = "zfs-2"
        plugin = "zfs"
        type = "node"
        command = "sh"
        "#,
    )
    .expect("nothing is wrong with it");
    assert_eq!(config.data_dir, Path::new("/var/lib/callboard"));
    assert_eq!(config.admin_socket.expect("it is given").as_str(), "/run/callboard.sock");
    assert_eq!(config.restart.budget.limit, 2);
    assert_eq!(config.restart.budget.window, Duration::from_secs(90));
    assert_eq!(config.restart.backoff.first, Duration::from_millis(250));
    let [first, second] = &config.allocations[..] else { panic!("two allocations") };
    assert_eq!(first.arguments, ["-c", "echo ${CSI_ENDPOINT}"]);
    assert_eq!((first.start, first.stop_grace), (false, Duration::from_secs(2)));
    assert_eq!(first.environment["POOL"], "tank");
    assert_eq!((second.role, second.start), (Role::Node, true));
    assert_eq!(second.health_timeout, Duration::from_secs(30));
    assert!(second.program.is_absolute(), "a bare name was found in PATH: {}", second.program.display());
}

#[test]
fn a_configuration_without_allocations_is_one() {
    assert_eq!(parse("data_dir = '/d'").expect("nothing is wrong with it").allocations, []);
}

/// Nearly every line of this is wrong.
const WRONG: &str = r#"datadir = "/d"
admin_socket = "admin.sock"

[restart]
attempts = "three"
windows = "1m"

[[allocation]]
name = "a/b"
plugin = "zfs"
type = "nodes"
command = "/bin/sh"
start = "yes"

[[allocation]]
name = "b"
plugin = ""
command = "/nowhere/plugin"
health_timeout = "30"
env = { A = 1 }

[[allocation]]
name = "b"
plugin = "zfs"
type = "node"
command = []
colour = "red"
"#;

#[test]
fn everything_that_is_wrong_is_told_at_once_and_in_the_order_of_the_file() {
    let expected = [
        "host.toml:1:1: unknown key `datadir` in the configuration; did you mean `data_dir`?",
        "host.toml:1:1: the configuration has no `data_dir`, which is required",
        "host.toml:2:16: `admin_socket`: the socket path \"admin.sock\" is relative; give an absolute path",
        "host.toml:5:12: `attempts` of `restart` has to be a whole number and is a text",
        "host.toml:6:1: unknown key `windows` in `restart`; did you mean `window`?",
        "host.toml:9:8: `name`: the allocation id \"a/b\" would leave its directory when used in a path; '/', '.' and \
         '..' are not allowed",
        "host.toml:11:8: `type` \"nodes\" is no type of allocation; did you mean `node`?",
        "host.toml:13:9: `start` of the allocation has to be true or false and is a text",
        "host.toml:15:1: the allocation has no `type`, which is required",
        "host.toml:17:10: `plugin`: the plugin name is empty; give it a name of 1 to 255 bytes",
        "host.toml:18:11: the command /nowhere/plugin cannot be used: No such file or directory (os error 2)",
        "host.toml:19:18: `health_timeout`: \"30\" is no duration; write a whole number and a unit, as in 1500ms, 2s, 5m or 1h",
        "host.toml:20:13: `A` of the allocation has to be a text and is a whole number",
        "host.toml:23:8: a second allocation is named \"b\"; each needs a name of its own",
        "host.toml:26:11: `command` of the allocation is an empty list",
        "host.toml:27:1: unknown key `colour` in the allocation; known here: name, plugin, type, command, args, env, \
         health_timeout, start, stop_grace",
    ];
    assert_eq!(complaints(WRONG), expected);
}

/// One fault each: the text, and what is said of it.
const SINGLE: &[(&str, &str)] = &[
    ("data_dir = 'here'", "1:12: `data_dir` \"here\" is a relative path; give an absolute one"),
    ("data_dir = '/etc/passwd'", "1:12: `data_dir` /etc/passwd is a file; name a directory"),
    ("data_dir = 1", "1:12: `data_dir` of the configuration has to be a text and is a whole number"),
    (
        "data_dir = '/d'\nruntime_dir = 'run'",
        "2:15: `runtime_dir` \"run\" is a relative path; give an absolute one",
    ),
    (
        "data_dir = '/d'\nrestart = 3",
        "2:11: `restart` of the configuration has to be a table and is a whole number",
    ),
    ("data_dir = '/d'\nrestart = { attempts = -1 }", "2:24: `attempts` is -1; give a number from 0 to 10000"),
    ("data_dir = '/d'\nrestart = { window = '0s' }", "2:22: `window` is \"0s\"; give at least 1ms"),
    ("data_dir = '/d'\nrestart = { window = '721h' }", "2:22: `window` is \"721h\"; give at most 720h"),
    (
        "data_dir = '/d'\nallocation = 3",
        "2:14: `allocation` of the configuration has to be a list of tables, each begun by [[allocation]], and is a \
         whole number",
    ),
    (
        "data_dir = '/d'\nallocation = [3]",
        "2:15: an entry of `allocation` of the configuration has to be a table and is a whole number",
    ),
    (
        "data_dir = '/d'\n[[allocation]]\nname='a'\nplugin='p'\ntype='node'\ncommand=['sh', 1]",
        "6:16: an entry of `command` of the allocation has to be a text and is a whole number",
    ),
    (
        "data_dir = '/d'\n[[allocation]]\nname='a'\nplugin='p'\ntype='node'\ncommand='bin/plugin'",
        "6:9: the command \"bin/plugin\" is a relative path; give an absolute path, or a name in PATH",
    ),
    (
        "data_dir = '/d'\n[[allocation]]\nname='a'\nplugin='p'\ntype='node'\ncommand='sh'\nenv = { 'A=B' = 'c' }",
        "7:9: `env` holds \"A=B\", which cannot be a variable of the environment",
    ),
    (
        "data_dir = '/d'\n[[allocation]]\nname='a'\nplugin='p'\ntype='node'\ncommand='sh'\nenv.CSI_ENDPOINT = 'tcp://h:1'",
        "7:5: `CSI_ENDPOINT`: the endpoint \"tcp://h:1\" is no Unix socket; give unix:///path or an absolute path",
    ),
];

#[test]
fn each_single_fault_is_told_with_its_place() {
    for (text, complaint) in SINGLE {
        assert_eq!(complaints(text), [format!("host.toml:{complaint}")], "{text}");
    }
}

#[test]
fn broken_toml_is_told_with_its_places_and_nothing_else() {
    let complaints = complaints("data_dir = \n[[allocation]\nname = 'a'\n");
    assert!(complaints.len() >= 2, "{complaints:?}");
    assert!(complaints[0].starts_with("host.toml:1:"), "{complaints:?}");
    assert!(complaints.iter().all(|line| !line.contains("required")), "{complaints:?}");
}

#[test]
fn a_key_given_twice_is_told() {
    let complaints = complaints("data_dir = '/d'\ndata_dir = '/e'\n");
    assert_eq!(complaints.len(), 1, "{complaints:?}");
    assert!(complaints[0].starts_with("host.toml:2:1: duplicate key"), "{complaints:?}");
}

#[test]
fn a_name_too_long_for_its_log_file_is_refused() {
    let name = "n".repeat(201);
    let head = "data_dir = '/d'\n[[allocation]]\nplugin = 'p'\ntype = 'node'\ncommand = 'sh'";
    assert_eq!(
        complaints(&format!("{head}\nname = '{name}'")),
        ["host.toml:6:8: `name` has 201 bytes; at most 200 fit into the name of its log file"]
    );
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = Config::load(Path::new("/nowhere/host.toml")).expect_err("it is not there");
    assert!(matches!(error, ConfigError::Unreadable { .. }));
    assert!(
        error.to_string().starts_with("cannot read configuration /nowhere/host.toml: No such file"),
        "{error}"
    );
}

#[test]
fn a_configuration_without_an_end_is_not_read_to_its_end() {
    let error = Config::load(Path::new("/dev/zero")).expect_err("nobody writes that much");
    assert!(matches!(error, ConfigError::TooLong { .. }), "{error}");
}
