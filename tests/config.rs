//! Tests the contents of a configuration: every error in it is reported with its position.

use std::path::Path;
use std::time::Duration;

use callboard::config::{Config, ConfigError, DriverProgram, TaskRestart};
use callboard_actors::allocations::RestartWhen;
use callboard_actors::driver::NetworkMode;
use callboard_actors::task_config::MemoryMax;
use callboard_actors::vocabulary::{AllocationId, FailoverPolicy, ListenerRule, Probing, Role};

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
    let budget = config.restart.budget.expect("it is limited");
    assert_eq!((budget.limit, budget.window), (2, Duration::from_secs(90)));
    assert_eq!(config.restart.backoff.first, Duration::from_millis(250));
    let [first, second] = &config.allocations[..] else { panic!("two allocations") };
    assert_eq!(first.arguments, ["-c", "echo ${CSI_ENDPOINT}"]);
    assert_eq!((first.start, first.stop_grace), (false, Duration::from_secs(2)));
    assert_eq!(first.environment["POOL"], "tank");
    assert_eq!((second.role, second.start), (Role::Node, true));
    assert_eq!(second.health_timeout, Duration::from_secs(30));
    assert!(second.program.is_absolute(), "a bare name was found in PATH: {}", second.program.display());
}

const TWO_OF_A_PLUGIN: &str = "data_dir = '/d'
    failover = { policy = 'newest', plugins = { zfs = 'POLICY' }, tolerance = 5, calm = '30s' }
    [[allocation]]
    name = 'zfs-1'
    plugin = 'zfs'
    type = 'node'
    command = 'sh'
    failover = 'pinned'
    [[allocation]]
    name = 'nfs-1'
    plugin = 'nfs'
    type = 'node'
    command = 'sh'";

#[test]
fn the_policy_of_failover_is_read_for_all_plugins_for_one_and_of_an_allocation_r1() {
    let config =
        parse(&TWO_OF_A_PLUGIN.replace("POLICY", "newest-healthy")).expect("nothing is wrong with it");
    let zfs_1 = AllocationId::new("zfs-1").expect("a good name");
    assert_eq!(config.allocations[0].failover, Some(FailoverPolicy::Pinned(zfs_1)));
    let registry = config.failover.registry();
    assert_eq!(registry.policy, FailoverPolicy::Newest);
    assert_eq!(registry.policies.values().collect::<Vec<_>>(), [&FailoverPolicy::NewestHealthy]);
    assert_eq!(registry.calm.first, Duration::from_secs(30));
    assert_eq!(config.failover.instances().limits.failures_until_unfit(), 5);
}

#[test]
fn an_allocation_is_pinned_only_for_the_plugin_that_it_serves_r9() {
    let text = TWO_OF_A_PLUGIN.replace("POLICY", "pinned:nfs-1");
    let expected =
        "host.toml:2:49: `zfs` pins the allocation \"nfs-1\", which does not serve it; known here: zfs-1";
    assert_eq!(complaints(&text), [expected]);
    let text = TWO_OF_A_PLUGIN.replace("POLICY", "newest").replace("'pinned'", "'pinned:nfs-1'");
    let [told] = &complaints(&text)[..] else { panic!("one fault") };
    assert!(told.contains("`failover` of an allocation pins no other one"), "{told}");
}

#[test]
fn a_configuration_without_allocations_is_one() {
    assert_eq!(parse("data_dir = '/d'").expect("nothing is wrong with it").allocations, []);
}

#[test]
fn an_allocation_says_how_it_is_probed_and_when_it_is_restarted() {
    let config = parse(
        r#"
        data_dir = "/d"
        strict = true
        [restart]
        attempts = "forever"
        delay = "2s"

        [[allocation]]
        name = "a"
        plugin = "zfs"
        type = "node"
        command = "/bin/sh"
        restart_when = "unhealthy-for 2m"
        probe_interval = "5s"
        call_deadline = "3s"
        failures_until_unhealthy = 4
        restart_grace = "0s"
        strict = false
        listener = "any"

        [[allocation]]
        name = "b"
        plugin = "zfs"
        type = "node"
        command = "/bin/sh"
        restart_when = "never"
        "#,
    )
    .expect("nothing is wrong with it");
    assert_eq!((config.restart.budget, config.restart.backoff.first), (None, Duration::from_secs(2)));
    let [a, b] = &config.allocations[..] else { panic!("two allocations") };
    assert_eq!(a.restart_when, RestartWhen::UnhealthyFor(Duration::from_secs(120)));
    let second = |seconds| Some(Duration::from_secs(seconds));
    let probing = Probing {
        interval: second(5),
        call_deadline: second(3),
        failures_until_unhealthy: Some(4),
        restart_grace: second(0),
        strict: Some(false),
        listener: ListenerRule::Any,
    };
    let others = Probing { strict: Some(true), ..Probing::default() };
    assert_eq!((a.probing, b.probing, b.restart_when), (probing, others, RestartWhen::Never));
}

#[test]
fn an_endpoint_that_is_written_as_for_kubernetes_or_a_shell_is_a_warning_at_its_place() {
    let text = "data_dir = '/d'\n[[allocation]]\nname = 'a'\nplugin = 'zfs'\ntype = 'node'\ncommand = ['/bin/sh', '-c']\n\
                args = ['--endpoint=$(CSI_ENDPOINT)', '${CSI_ENDPOINT}', '$CSI_ENDPOINT', 'exec zfs $CSI_ENDPOINT']\n";
    let config = parse(text).expect("nothing is wrong with it");
    let warnings: Vec<_> =
        config.warnings.iter().map(|told| (told.place.to_string(), &*told.message)).collect();
    let advice = ["$(CSI_ENDPOINT)", "$CSI_ENDPOINT"].map(|spelt| {
        format!("the plugin gets `{spelt}` literally; write `${{CSI_ENDPOINT}}` for its socket")
    });
    assert_eq!(warnings, [("7:9".to_owned(), &*advice[0]), ("7:58".to_owned(), &*advice[1])]);
    assert_eq!(config.allocations[0].arguments[1], "--endpoint=$(CSI_ENDPOINT)");
}

#[test]
fn what_is_wrong_with_probes_and_restarts_is_told() {
    let expected = [
        "host.toml:3:12: `attempts` is -1; give a number from 0 to 10000",
        "host.toml:9:16: `restart_when` \"always\" is unknown; give \"never\", or as in \"unhealthy-for 2m\"",
        "host.toml:10:18: `probe_interval` is \"1ms\"; give at least 100ms",
        "host.toml:11:28: `failures_until_unhealthy` is 0; give a number from 1 to 1000",
        "host.toml:17:16: `restart_when` is \"10ms\"; give at least 1s",
        "host.toml:18:12: `listener` \"everybody\" is unknown; give \"own\" or \"any\"",
    ];
    assert_eq!(complaints(WRONG_PROBES), expected);
}

const WRONG_PROBES: &str = r#"data_dir = "/d"
[restart]
attempts = -1
[[allocation]]
name = "a"
plugin = "zfs"
type = "node"
command = "/bin/sh"
restart_when = "always"
probe_interval = "1ms"
failures_until_unhealthy = 0
[[allocation]]
name = "b"
plugin = "zfs"
type = "node"
command = "/bin/sh"
restart_when = "unhealthy-for 10ms"
listener = "everybody"
"#;

#[test]
fn drivers_and_tasks_are_read_with_the_places_of_what_their_plugins_are_to_check() {
    let config = parse(
        r#"
        data_dir = "/d"
        plugin_dir = "/usr/lib/callboard/plugins"
        allow_plugins = ["raw-1.2"]
        block_plugins = ["docker"]

        [[driver]]
        name = "exec"

        [[driver]]
        name = "raw"
        plugin = "raw-1.2"
        args = ["--fast"]
        sha256 = "ABcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789"
        env = { TOKEN = "secret" }
        survives = false
        stop_grace = "9s"
        start_timeout = "3s"
        [driver.config]
        volumes = [{ name = "a", size = 0x10 }]
        ratio = 1.5
        since = 1979-05-27

        [[driver]]
        name = "shell"
        command = ["sh", "-c"]
        args = ["true"]

        [[task]]
        name = "web"
        driver = "exec"
        config = { command = "/bin/sleep", args = ["100"] }
        env = { PORT = "80" }
        user = "www-data"
        restart = "none"
        start = false
        stop_grace = "1s"

        [[task]]
        name = "db"
        driver = "raw"
        "#,
    )
    .expect("nothing is wrong with it");
    assert_eq!(config.plugins.directory.as_deref(), Some(Path::new("/usr/lib/callboard/plugins")));
    assert_eq!(
        (config.plugins.allow, config.plugins.block),
        (Some(vec!["raw-1.2".into()]), vec!["docker".into()])
    );
    let [exec, raw, shell] = &config.drivers[..] else { panic!("three drivers") };
    assert_eq!(exec.program, DriverProgram::Internal("exec".into()));
    assert!(exec.survives && exec.config.is_empty());
    assert_eq!(raw.program, DriverProgram::Plugin("raw-1.2".into()));
    assert_eq!(raw.sha256.expect("it is pinned")[..3], [0xab, 0xcd, 0xef]);
    assert_eq!(
        (raw.survives, raw.stop_grace, raw.start_timeout.as_secs()),
        (false, Duration::from_secs(9), 3)
    );
    assert_eq!(raw.config["volumes"][0]["size"].as_integer(), Some(16));
    assert_eq!(raw.config["ratio"].as_float(), Some(1.5));
    assert_eq!(raw.config_places.find("config").to_string(), "19:9");
    assert_eq!(shell.arguments, ["-c", "true"]);
    let [web, db] = &config.tasks[..] else { panic!("two tasks") };
    assert_eq!((web.restart, web.start, web.user.as_str()), (TaskRestart::None, false, "www-data"));
    assert_eq!(web.config["args"][0].as_str(), Some("100"));
    assert_eq!((db.restart, db.start, db.stop_grace), (TaskRestart::OnFailure, true, Duration::from_secs(5)));
    assert_eq!(db.config_places.find("config").line, 39, "without a `config` it is the task's own place");
    for shown in [format!("{raw:?}"), format!("{web:?}")] {
        assert!(!shown.contains("secret") && !shown.contains("sleep"), "{shown}");
    }
}

/// Drivers and tasks, nearly every line with one error.
const WRONG_DRIVERS: &str = r#"data_dir = "/d"
plugin_dir = "plugins"
allow_plugins = "exec"

[[driver]]
name = "a b"
plugin = "../exec"
sha256 = "12"
survives = "yes"
configs = {}

[[driver]]
name = "exec"
plugin = "exec"
command = "/bin/sh"

[[driver]]
name = "exec"
config = 3

[[task]]
name = "t"
driver = "exec"
restart = "always"

[[task]]
name = "t"
driver = "exek"
user = 3

[[task]]
name = "a/b"
driver = "a b"

[[task]]
name = "c d"
driver = "zfs"
"#;

#[test]
fn everything_that_is_wrong_with_drivers_and_tasks_is_told_with_its_place() {
    let expected = [
        "host.toml:2:14: `plugin_dir` \"plugins\" is a relative path; give an absolute one",
        "host.toml:3:17: `allow_plugins` of the configuration has to be a list of texts and is a text",
        "host.toml:6:8: `name`: the driver name \"a b\" holds ' '; blanks and control characters are not allowed",
        "host.toml:7:10: the plugin \"../exec\" cannot be a file of the plugin directory; use letters, digits, '.', '_' \
         and '-'",
        "host.toml:8:10: `sha256` has to be 64 hexadecimal digits and has 2",
        "host.toml:9:12: `survives` of the driver has to be true or false and is a text",
        "host.toml:10:1: unknown key `configs` in the driver; did you mean `config`?",
        "host.toml:15:11: the driver has both `plugin` and `command`; give one of them",
        "host.toml:18:8: a second driver is named \"exec\"; each needs a name of its own",
        "host.toml:19:10: `config` of the driver has to be a table and is a whole number",
        "host.toml:24:11: `restart` \"always\" is no way to restart a task; known here: none, on-failure",
        "host.toml:27:8: a second allocation or task is named \"t\"; each needs a name of its own",
        "host.toml:28:10: there is no [[driver]] named \"exek\"; did you mean `exec`?",
        "host.toml:29:8: `user` of the task has to be a text and is a whole number",
        "host.toml:32:8: `name`: the task name \"a/b\" would leave its directory when used in a path; '/', '\\', '.' and \
         '..' are not allowed",
        "host.toml:36:8: `name`: the task name \"c d\" holds ' '; blanks and control characters are not allowed",
        "host.toml:37:10: there is no [[driver]] named \"zfs\"; add it",
    ];
    assert_eq!(complaints(WRONG_DRIVERS), expected);
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
        "host.toml:5:12: `attempts` \"three\" is no number of restarts; give a whole number, or \"forever\"",
        "host.toml:6:1: unknown key `windows` in `restart`; did you mean `window`?",
        "host.toml:9:8: `name`: the allocation id \"a/b\" would leave its directory when used in a path; '/', '\\', '.' and \
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
         health_timeout, restart_when, probe_interval, call_deadline, failures_until_unhealthy, restart_grace, strict, listener, \
         failover, volumes, start, survives, stop_grace",
    ];
    assert_eq!(complaints(WRONG), expected);
}

/// One error each: the text, and the message about it.
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
    (
        "data_dir = '/d'\nrestart = { attempts = 'forever', delay = '0s' }",
        "2:43: `delay` is \"0s\"; give at least 1ms",
    ),
    ("data_dir = '/d'\nrestart = { window = '0s' }", "2:22: `window` is \"0s\"; give at least 1ms"),
    (
        "data_dir = '/d'\nfailover = { policy = 'oldest' }",
        "2:23: `policy`: \"oldest\" is no policy; write `newest-healthy`, `newest` or `pinned:ALLOCATION`",
    ),
    (
        "data_dir = '/d'\n[[allocation]]\nname = 'a'\nplugin = 'zfs'\ntype = 'node'\ncommand = '/bin/true'\nfailover = 'pined'",
        "7:12: `failover` \"pined\" is no policy; write `newest-healthy`, `newest` or `pinned`",
    ),
    ("data_dir = '/d'\nfailover = { tolerance = 0 }", "2:26: `tolerance` is 0; give a number from 1 to 1000"),
    (
        "data_dir = '/d'\nfailover.plugins = { zfs = 'newest' }",
        "2:22: no allocation serves a plugin \"zfs\"; there is none",
    ),
    ("data_dir = '/d'\nrestart = { window = '721h' }", "2:22: `window` is \"721h\"; give at most 720h"),
    (
        "data_dir = '/d'\n[[driver]]\nname = 'exek'",
        "2:1: there is no `plugin_dir` to look for the plugin \"exek\" in; give one, or a `command`; did you mean `exec`?",
    ),
    (
        "data_dir = '/d'\n[[driver]]\nname = 'exec'\nconfig.a = 1",
        "4:1: only a plugin of the plugin directory is asked what its `config` must look like; this driver can have none",
    ),
    (
        "data_dir = '/d'\n[[task]]\nname = 't'\ndriver = 'exec'",
        "4:10: there is no [[driver]] named \"exec\"; add it",
    ),
    (
        "data_dir = '/d'\n[[driver]]\nname = 'exec'\n[[task]]\nname = 't'\ndriver = 'exec'\nconfig.n = 9223372036854775808",
        "7:12: 9223372036854775808 is too large for a number",
    ),
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
fn a_config_for_a_plugin_nests_so_deep_and_no_deeper() {
    let task = "data_dir = '/d'\n[[driver]]\nname = 'exec'\n[[task]]\nname = 't'\ndriver = 'exec'\n";
    let lists = |depth: usize| format!("{task}config.a = {}{}", "[".repeat(depth), "]".repeat(depth));
    parse(&lists(65)).expect("the innermost list is 64 lists deep");
    assert_eq!(complaints(&lists(66)), ["host.toml:7:77: `config` nests deeper than 64"]);
    let tables = |depth: usize| format!("{task}config = {}1{}", "{ a = ".repeat(depth), "}".repeat(depth));
    parse(&tables(65)).expect("what is in the innermost table is 64 tables deep");
    assert_eq!(complaints(&tables(66)), ["host.toml:7:406: `config` nests deeper than 64"]);
}

#[test]
fn a_user_has_a_name_that_can_be_one() {
    let task = |user: &str| {
        format!(
            "data_dir = '/d'\n[[driver]]\nname = 'exec'\n[[task]]\nname = 't'\ndriver = 'exec'\nuser = \"{user}\""
        )
    };
    let longest = "u".repeat(256);
    assert_eq!(parse(&task(&longest)).expect("nothing is wrong with it").tasks[0].user, longest);
    for wrong in ["u".repeat(257), "a\\u0007b".to_owned()] {
        let complaints = complaints(&task(&wrong));
        assert_eq!(complaints.len(), 1, "{complaints:?}");
        assert!(
            complaints[0].ends_with("cannot be a user; give a name of at most 256 bytes"),
            "{complaints:?}"
        );
    }
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
    let error = Config::load(Path::new("/dev/zero")).expect_err("it has no end");
    assert!(matches!(error, ConfigError::TooLong { .. }), "{error}");
}

/// A configuration with one task that has these lines.
fn with_task(lines: &str) -> String {
    format!("data_dir = '/d'\n[[driver]]\nname = 'exec'\n[[task]]\nname = 'web'\ndriver = 'exec'\n{lines}")
}

#[test]
fn a_task_says_what_it_may_use_and_what_of_the_host_reaches_into_it_t090_t077_t078_t079() {
    let text = with_task(
        r#"
        kill_signal = "int"
        shutdown_delay = "2s"
        look_again = "7s"
        job = "shop"
        group = "front"
        namespace = "prod"
        meta = { owner = "me" }
        resources = { cpu = 250, memory = "1GiB", memory_max = "unlimited" }
        network = { mode = "group", path = "/run/netns/web" }
        dns = { servers = ["10.0.0.53", "::1"], searches = ["example.com"], options = ["ndots:2"] }

        [[task.mounts]]
        host_path = "/srv"
        task_path = "/data"
        read_only = true
        propagation = "private"

        [[task.devices]]
        host_path = "/dev/fuse"
        permissions = "rw"
        "#,
    );
    let task = parse(&text).expect("nothing is wrong with it").tasks.remove(0);
    assert_eq!((&*task.kill_signal, task.shutdown_delay), ("SIGINT", Duration::from_secs(2)));
    assert_eq!(task.look_again, Duration::from_secs(7));
    assert_eq!((&*task.job, &*task.group, &*task.namespace), ("shop", "front", "prod"));
    assert_eq!(task.meta["owner"], "me");
    let resources = task.resources;
    assert_eq!((resources.cpu_mhz, resources.cores, resources.memory_mib), (250, 0, 1_024));
    assert_eq!(resources.memory_max, MemoryMax::Unlimited);
    let network = task.network.expect("it has one");
    assert_eq!((network.mode, &*network.path), (NetworkMode::Group, "/run/netns/web"));
    let dns = task.dns.expect("it has one");
    assert_eq!((dns.servers.len(), &*dns.searches[0], &*dns.options[0]), (2, "example.com", "ndots:2"));
    let [mount] = &task.mounts[..] else { panic!("one mount") };
    assert_eq!((mount.read_only, &*mount.propagation_mode), (true, "private"));
    let [device] = &task.devices[..] else { panic!("one device") };
    assert_eq!((device.task_path.to_str(), &*device.cgroup_permissions), (Some("/dev/fuse"), "rw"));
}

#[test]
fn memory_is_a_number_of_mib_or_has_a_unit_and_a_task_that_says_nothing_has_some_t090() {
    let resources = |lines: &str| parse(&with_task(lines)).expect("nothing is wrong").tasks[0].resources;
    let usual = resources("");
    assert_eq!((usual.cpu_mhz, usual.cores, usual.memory_mib), (100, 0, 300));
    assert_eq!((usual.memory_max, usual), (MemoryMax::Promised, resources("resources = {}")));
    for (text, mib) in [("512", 512), ("'512MiB'", 512), ("'2 GiB'", 2_048), ("'1TiB'", 1 << 20)] {
        assert_eq!(resources(&format!("resources = {{ memory = {text} }}")).memory_mib, mib, "{text}");
    }
    for (text, max) in
        [("-1", MemoryMax::Unlimited), ("0", MemoryMax::Promised), ("400", MemoryMax::Mib(400))]
    {
        assert_eq!(resources(&format!("resources = {{ memory_max = {text} }}")).memory_max, max, "{text}");
    }
    assert_eq!(resources("resources = { cores = 2 }").cores, 2);
}

#[test]
fn everything_that_is_wrong_with_what_a_task_may_use_is_told_with_its_place() {
    let told = [
        ("resources = { cpu = 0 }", "`cpu` is 0"),
        ("resources = { cpu = 7, cores = 1 }", "both `cpu` and `cores`"),
        ("resources = { memory = '300MB' }", "as in \"300MiB\""),
        ("resources = { memory = 0 }", "`memory` 0 is no amount"),
        ("resources = { memory = true }", "a whole number or a text"),
        ("resources = { memory_max = 299 }", "`memory_max` is 299 MiB and `memory` 300 MiB"),
        ("resources = { memory_max = -2 }", "`memory_max` -2 is no amount"),
        ("resources = { memry = 7 }", "did you mean `memory`"),
        ("kill_signal = 'SIGFOO'", "give a name such as SIGINT"),
        ("shutdown_delay = 'soon'", "`shutdown_delay`"),
        ("look_again = '999ms'", "`look_again` is \"999ms\"; give at least 1s"),
        ("job = 'a b'", "`job` \"a b\" is no name"),
        ("meta = { 'a b' = 'c' }", "cannot be a variable"),
        ("network = { mode = 'group' }", "needs the `path`"),
        ("network = { mode = 'bridge' }", "`mode` \"bridge\" is unknown"),
        ("network = { mode = 'none', path = '/n' }", "only a `network` of the mode \"group\""),
        ("dns = { servers = ['dns.example'] }", "\"dns.example\" in `servers` is no address"),
        ("mounts = [{ host_path = 'srv', task_path = '/d' }]", "`host_path` \"srv\" is a relative path"),
        ("mounts = [{ host_path = '/srv' }]", "the mount has no `task_path`"),
        ("mounts = [{ host_path = '/s', task_path = '/d', propagation = 'shared' }]", "`propagation`"),
        ("devices = [{ host_path = '/dev/a', permissions = 'rr' }]", "letters of \"rwm\""),
    ];
    for (lines, expected) in told {
        let complaints = complaints(&with_task(lines));
        let [complaint] = &complaints[..] else { panic!("{lines}: {complaints:?}") };
        assert!(complaint.starts_with("host.toml:") && complaint.contains(expected), "{lines}: {complaint}");
    }
}

#[test]
fn what_tasks_are_told_of_the_host_is_read_t005_t015_th061() {
    let usual = parse("data_dir = '/d'").expect("nothing is wrong with it").host;
    assert_eq!(usual.client_ports, (14_000, 14_512));
    assert_eq!((&*usual.region, &*usual.datacenter, usual.control_groups), ("global", "dc1", true));
    assert_eq!(usual.task_env_inherit, ["PATH", "LANG", "TZ"]);
    let host = "alloc_dir = '/a'\nnode_name = 'n1'\nregion = 'eu'\ndatacenter = 'dc2'\ncontrol_groups = false\n\
                client_ports = '20000-20010'\ntask_env_inherit = ['PATH', 'HOME']\ncpu_total_compute = 9000\n\
                cpu_reserved = 500\nreserved_cores = '0,2-3'";
    let host = parse(&format!("data_dir = '/d'\n[host]\n{host}")).expect("nothing is wrong with it").host;
    assert_eq!(host.alloc_dir.as_deref(), Some(Path::new("/a")));
    assert_eq!((host.node_name.as_deref(), &*host.region, &*host.datacenter), (Some("n1"), "eu", "dc2"));
    assert_eq!((host.control_groups, host.client_ports), (false, (20_000, 20_010)));
    assert_eq!((host.cpu_total_compute, host.cpu_reserved), (9_000, 500));
    assert_eq!((host.task_env_inherit.len(), host.reserved_cores.to_string()), (2, "0,2-3".to_owned()));
    let told = [
        ("client_ports = '7-3'", "is no range of ports"),
        ("client_ports = '0-3'", "is no range of ports"),
        ("reserved_cores = 'all'", "\"all\" is no list of processors"),
        ("task_env_inherit = ['VAULT_TOKEN']", "\"VAULT_TOKEN\" in `task_env_inherit` is never passed on"),
        ("task_env_inherit = ['A=B']", "cannot be a variable"),
        ("node_name = ''", "is no name"),
        ("alloc_dir = 'alloc'", "is a relative path"),
        ("cgroup = true", "unknown key `cgroup`"),
    ];
    for (lines, expected) in told {
        let complaints = complaints(&format!("data_dir = '/d'\n[host]\n{lines}"));
        assert!(complaints.len() == 1 && complaints[0].contains(expected), "{lines}: {complaints:?}");
    }
}

#[test]
fn names_and_paths_that_would_turn_a_line_around_are_refused_and_so_is_the_root_r9() {
    let root = complaints("data_dir = \"/\"");
    assert_eq!(root.len(), 1, "{root:?}");
    assert_eq!(complaints("data_dir = \"/var/../..\""), root, "it leads to the root, too");
    assert!(root[0].contains("`data_dir` must not be /; give it a directory of its own"), "{root:?}");
    for (line, what) in [
        ("data_dir = \"/a\\u202eb\"", "`data_dir` \"/a\\u{202e}b\" holds '\\u{202e}'"),
        ("data_dir = \"/d\"\nadmin_socket = \"/a\\u001b.sock\"", "holds '\\u{1b}'"),
        ("data_dir = \"/d\"\n[host]\nnode_name = \"a\\u2066b\"", "`node_name` \"a\\u{2066}b\" is no name"),
        ("data_dir = \"/d\"\n[[driver]]\nname = \"a\\u202eb\"", "holds '\\u{202e}'"),
    ] {
        let told = complaints(line).join("\n");
        assert!(told.contains(what), "{told}");
    }
}
