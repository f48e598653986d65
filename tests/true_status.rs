//! Tests that `callboard status` is true about plugins at every moment of every accident of `docs/failover.md`: a real `callboard run`,
//! real plugin processes, and a monitor that requests the status all the time and checks the processes.

#[path = "support/preloaded.rs"]
mod preloaded;
mod program;
#[path = "support/status_monitor.rs"]
mod status_monitor;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use preloaded::Preloaded;
use program::{CALLBOARD, Program, Stage, allocation, pid_of, plugin, task, until_true};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use status_monitor::{Ground, HangBounds, Judge, SOON, StatusMonitor};

/// How each allocation is probed: often, and with a deadline that a plugin on a busy machine does not miss.
const ROUND: Duration = Duration::from_millis(100);
const DEADLINE: Duration = Duration::from_secs(1);
/// The number of checks that must fail before a standby takes over, and the longest pause between two of them.
const TOLERANCE: u32 = 2;
const PAUSE_BETWEEN: Duration = Duration::from_secs(1);
/// A healthy standby serves within a millisecond of a kill; this is the limit for a busy machine, and for one answer.
const TAKEOVER: Duration = Duration::from_secs(2);
/// How long a wrapper and a host leave a plugin dead: longer than a claim that it lives is tolerated.
const WRAPPER_PAUSE: &str = "1.5";
const HOST_PAUSE: &str = "1500ms";

/// How long a plugin that hangs may be shown as healthy, and as fit.
fn hang() -> HangBounds {
    HangBounds {
        healthy: ROUND + DEADLINE + SOON,
        ready: ROUND + TOLERANCE * DEADLINE + (TOLERANCE - 1) * PAUSE_BETWEEN + SOON,
    }
}

/// The settings of the host, and its allocations.
fn stage(failover: &str, allocations: &[String]) -> Stage {
    stage_with("200ms", failover, allocations)
}

/// The same, with this delay before a restart.
fn stage_with(delay: &str, failover: &str, allocations: &[String]) -> Stage {
    let restart = format!("[restart]\nattempts = \"forever\"\ndelay = {delay:?}\n");
    Stage::new(&format!("{restart}[failover]\ntolerance = {TOLERANCE}\n{failover}\n{}", allocations.concat()))
}

/// The settings for the probes of an allocation.
fn probed(more: &str) -> String {
    let [round, deadline] = [ROUND, DEADLINE].map(|time| time.as_millis());
    format!("probe_interval = \"{round}ms\"\ncall_deadline = \"{deadline}ms\"\n{more}\n")
}

/// An allocation whose node id and version are its name, so that each answer names the allocation that gave it.
fn named(name: &str, arguments: &[&str], more: &str) -> String {
    let arguments = [&["--node-id", name, "--plugin-version", name], arguments].concat();
    allocation(name, "zfs", "node", &arguments, &probed(more))
}

fn old(more: &str) -> String {
    named("old", &[], more)
}

/// The newer allocation, which is started by hand.
fn new(arguments: &[&str]) -> String {
    named("new", arguments, "start = false")
}

/// An allocation that runs this script, in which `$PLUGIN` is the command of its plugin.
fn script(name: &str, script: &str, more: &str) -> String {
    seldom_probed_script(name, script, &probed(more))
}

/// The same, probed as seldom as by default.
fn seldom_probed_script(name: &str, script: &str, more: &str) -> String {
    let plugin = format!("{CALLBOARD} plugin hostpath --role node --node-id {name} --endpoint");
    format!(
        "[[allocation]]\nname = {name:?}\nplugin = \"zfs\"\ntype = \"node\"\ncommand = [\"/bin/sh\", \"-c\", {script:?}]\n\
         env = {{ PLUGIN = {plugin:?} }}\n{more}"
    )
}

/// A wrapper that restarts its plugin whenever the plugin ends, after a pause and as another version.
fn wrapper(name: &str, more: &str) -> String {
    let again = format!(
        "n=0; while :; do n=$((n+1)); $PLUGIN $CSI_ENDPOINT --plugin-version $n; sleep {WRAPPER_PAUSE}; done"
    );
    script(name, &again, more)
}

fn monitor(stage: &Stage) -> StatusMonitor {
    StatusMonitor::of(stage.data_dir(), hang())
}

/// The process of the plugin of an allocation, not that of its wrapper.
fn plugin_pid(stage: &Stage, allocation: &str) -> Pid {
    let ground = Ground::look(&stage.data_dir());
    let pid = ground.plugin(allocation).unwrap_or_else(|| panic!("{allocation} has no plugin")).pid;
    Pid::from_raw(i32::try_from(pid).expect("a pid")).expect("a pid")
}

fn signal(stage: &Stage, allocation: &str, signal: Signal) {
    kill_process(plugin_pid(stage, allocation), signal).expect("it lives");
}

fn zfs(status: &Value) -> &Value {
    plugin(status, "csi-node", "zfs")
}

/// A host on which `old` serves first, and then `new`.
fn two(stage: &Stage) -> Program<'_> {
    begun(stage, stage.run())
}

/// The same for a host that runs already.
fn begun<'s>(stage: &'s Stage, host: Program<'s>) -> Program<'s> {
    if task(&host.json(&["status"]), "new")["task"] == "stopped" {
        host.until_active("csi-node", "zfs", "old");
        assert!(host.ask(&["start", "new"]).status.success(), "{}", host.log());
    }
    host.until_active("csi-node", "zfs", "new");
    until_all(&host, 2);
    let pid = plugin_pid(stage, "new").as_raw_nonzero().get();
    assert_eq!(pid_of(&host.json(&["status"]), "new"), u64::try_from(pid).expect("a pid"));
    host
}

/// Waits until this many are healthy.
fn until_all(host: &Program<'_>, count: u64) {
    host.until("all healthy", |status| zfs(status)["healthy"] == count);
}

/// Waits within this time until an allocation serves; returns the row of its plugin.
fn serves_within(host: &Program<'_>, within: Duration, allocation: &str) -> Value {
    let what = format!("{allocation} as the one that serves, within {within:?}");
    let status = host.until_within(within, &what, |status| {
        zfs(status)["active"] == allocation && zfs(status)["health"] == "healthy"
    });
    zfs(&status).clone()
}

/// The cell of a row of a table, in the column with this head.
fn cell<'t>(head: &str, row: &'t str, name: &str) -> &'t str {
    let place = head.find(name).unwrap_or_else(|| panic!("no {name} in {head}"));
    row[place..].split("  ").next().expect("a first one").trim()
}

/// The cells in the columns with these heads, for each row of a table whose first head is the first of them; as a set, since a table lists
/// first what is not well.
fn cells(text: &str, heads: &[&str]) -> BTreeSet<Vec<String>> {
    let mut lines = text.lines().skip_while(|line| !line.starts_with(heads[0]));
    let head = lines.next().unwrap_or_else(|| panic!("no {} in {text}", heads[0]));
    let rows = lines.take_while(|line| !line.is_empty()).filter(|line| !line.starts_with("  "));
    rows.map(|row| heads.iter().map(|name| cell(head, row, name).to_owned()).collect()).collect()
}

/// The same for the JSON, with these keys.
fn values(status: &Value, list: &str, keys: &[&str]) -> BTreeSet<Vec<String>> {
    let text = |row: &Value, key: &str| row[key].as_str().unwrap_or("-").to_owned();
    let rows = status[list].as_array().expect("a list").iter();
    rows.map(|row| keys.iter().map(|key| text(row, key)).collect()).collect()
}

/// Checks that text and JSON agree: requests the text between two JSONs, and repeats this until the two are equal.
fn assert_text_says_the_same(host: &Program<'_>) {
    let tables = [
        ("plugins", ["PLUGIN", "HEALTH", "ACTIVE"], ["name", "health", "active"]),
        ("allocations", ["ALLOCATION", "TASK", "HEALTH"], ["name", "task", "health"]),
    ];
    let said = || {
        let status = host.json(&["status"]);
        tables.map(|(list, _, keys)| values(&status, list, &keys))
    };
    let asked = || (said(), String::from_utf8(host.ask(&["status"]).stdout).expect("text"), said());
    let began = Instant::now();
    let (before, text) = loop {
        match asked() {
            (before, text, after) if before == after => break (before, text),
            (before, ..) => assert!(began.elapsed() < program::TIMEOUT, "it is never quiet: {before:?}"),
        }
    };
    assert_eq!(tables.map(|(_, heads, _)| cells(&text, &heads)), before, "{text}");
}

/// The state after the accident: this allocation serves with its configured node id, text and JSON agree, and no claim was untrue
/// meanwhile.
fn at_rest(host: &Program<'_>, monitor: StatusMonitor, allocation: &str) {
    let row = serves_within(host, program::TIMEOUT, allocation);
    assert_eq!(row["node_id"], allocation, "{row:#}");
    assert_text_says_the_same(host);
    monitor.end();
}

/// Waits until the reason why an allocation is not active contains these words.
fn until_lacks(host: &Program<'_>, allocation: &str, words: &str) {
    let lacks = |status: &Value| {
        let registrations = zfs(status)["registrations"].as_array().cloned().unwrap_or_default();
        let of_it = registrations.iter().find(|one| one["allocation"] == allocation).cloned();
        of_it.and_then(|one| Some(one["lacks"].as_str()?.contains(words))).unwrap_or_default()
    };
    host.until(&format!("{allocation} lacks {words:?}"), lacks);
}

/// The untrue claims that a monitor finds if this status is repeated until its bounds are over, compared with the present processes.
fn found(status: &Value, stage: &Stage) -> Vec<String> {
    let mut judge = Judge::new(hang());
    let (ground, began) = (Ground::look(&stage.data_dir()), Instant::now());
    for step in 0..10 {
        judge.judge(status, began + step * (hang().ready + SOON) / 9, [&ground, &ground]);
    }
    judge.found.into_keys().collect()
}

/// The same for a status in which one value is replaced.
fn found_with(status: &Value, stage: &Stage, place: &str, value: Value) -> Vec<String> {
    let mut status = status.clone();
    *status.pointer_mut(place).unwrap_or_else(|| panic!("no {place}")) = value;
    found(&status, stage)
}

#[test]
fn the_monitor_finds_each_claim_that_is_not_so_and_no_other() {
    let stage = stage("", &[old(""), new(&[])]);
    let host = two(&stage);
    let status = host.json(&["status"]);
    assert_eq!(found(&status, &stage), [""; 0]);
    for (place, value) in [
        ("/plugins/0/active", json!("old")),
        ("/plugins/0/active", Value::Null),
        ("/plugins/0/version", json!("old")),
        ("/plugins/0/node_id", json!("old")),
        ("/plugins/0/provider", json!("impostor.example")),
        ("/plugins/0/health", json!("unhealthy")),
        ("/plugins/0/healthy", json!(3)),
        ("/plugins/0/registrations/1/version", json!("new")),
        ("/allocations/1/health", json!("unhealthy")),
        ("/allocations/1/task", json!("waiting")),
    ] {
        assert_ne!(found_with(&status, &stage, place, value.clone()), [""; 0], "{place} {value}");
    }
    // Claims that were true of living plugins are repeated for plugins that hang or are dead.
    for (accident, why) in [(Signal::STOP, "which hangs"), (Signal::KILL, "which has no process")] {
        let pids = ["old", "new"].map(|name| plugin_pid(&stage, name));
        host.signal(Signal::STOP);
        for pid in pids {
            kill_process(pid, accident).expect("it lives");
        }
        let is_so = || {
            let found = found(&status, &stage).join("; ");
            let claims =
                ["is \"healthy\" by", "standby old lacks nothing", "allocation new", "allocation old"];
            claims.iter().all(|claim| found.split("; ").any(|one| one.contains(claim) && one.contains(why)))
        };
        until_true(why, program::TIMEOUT, is_so);
        host.signal(Signal::CONT);
    }
}

#[test]
fn what_is_shown_is_so_when_the_active_one_is_killed_hlt_08_r1b() {
    let stage = stage_with(HOST_PAUSE, "", &[old(""), new(&[])]);
    let host = two(&stage);
    let monitor = monitor(&stage);
    signal(&stage, "new", Signal::KILL);
    let generation = serves_within(&host, TAKEOVER, "old")["generation"].clone();
    let takeover = "another registration is active plugin=csi-node/zfs from=\"new\" to=\"old\"";
    assert!(host.log().contains(takeover), "{}", host.log());
    // It is started again, and becomes active again only after its calm time.
    until_all(&host, 2);
    until_lacks(&host, "new", "must be healthy for a while");
    let status = host.json(&["status"]);
    let registrations = zfs(&status)["registrations"].as_array().expect("a list");
    let calm = |name: &str| {
        let of_it = registrations.iter().find(|one| one["allocation"] == name);
        of_it.expect("it is registered")["calm_until_unix_ms"].clone()
    };
    let began = status["host"]["started_at_unix_ms"].as_u64().expect("a time");
    assert!(calm("new").as_u64() > Some(began) && calm("old").is_null(), "{registrations:#?}");
    assert_eq!(zfs(&host.json(&["status"]))["generation"], generation);
    at_rest(&host, monitor, "old");
}

#[test]
fn what_is_shown_is_so_when_the_active_one_hangs_hlt_03_r1b() {
    let stage = stage("calm = \"1s\"", &[old(""), new(&[])]);
    let host = two(&stage);
    let monitor = monitor(&stage);
    signal(&stage, "new", Signal::STOP);
    serves_within(&host, hang().ready, "old");
    until_all(&host, 1);
    monitor.settle();
    signal(&stage, "new", Signal::CONT);
    until_all(&host, 2);
    at_rest(&host, monitor, "new");
}

#[test]
fn what_is_shown_is_so_when_the_only_one_hangs_hlt_03() {
    let stage = stage("", &[named("only", &[], "")]);
    let host = stage.run();
    host.until_active("csi-node", "zfs", "only");
    let monitor = monitor(&stage);
    signal(&stage, "only", Signal::STOP);
    host.until_within(hang().healthy, "that it hangs", |status| {
        zfs(status)["health"] == "unhealthy" && task(status, "only")["health"] == "unhealthy"
    });
    monitor.settle();
    signal(&stage, "only", Signal::CONT);
    at_rest(&host, monitor, "only");
}

#[test]
fn what_is_shown_is_so_when_the_newest_crashes_in_a_loop_r1c_u35() {
    let stage = stage("", &[old(""), new(&[])]);
    let host = two(&stage);
    let monitor = monitor(&stage);
    signal(&stage, "new", Signal::KILL);
    let taken_over = serves_within(&host, TAKEOVER, "old")["generation"].clone();
    for crashes in 1..=4 {
        host.until("another life of the newest", |status| {
            let row = zfs(status);
            let shown = (&row["active"], &row["generation"], &row["health"]);
            assert_eq!(shown, (&json!("old"), &taken_over, &json!("healthy")), "{row:#}\n{}", host.log());
            let new = task(status, "new");
            new["restarts"] == crashes && new["health"] == "healthy"
        });
        until_lacks(&host, "new", "must be healthy for a while");
        if crashes < 4 {
            signal(&stage, "new", Signal::KILL);
        }
    }
    at_rest(&host, monitor, "old");
}

/// Starts a newer allocation with these arguments beside a healthy one, which stays active.
fn beside_a_healthy_one(arguments: &[&str], lacks: &str) {
    let more = probed("start = false");
    let stage = stage("", &[old(""), allocation("new", "zfs", "node", arguments, &more)]);
    let host = stage.run();
    let before = host.until_active("csi-node", "zfs", "old");
    let monitor = monitor(&stage);
    assert!(host.ask(&["start", "new"]).status.success());
    until_lacks(&host, "new", lacks);
    // It is probed a few more times.
    let began = Instant::now();
    host.until("some more rounds", |status| {
        assert_eq!(zfs(status)["generation"], before["generation"], "{status:#}");
        began.elapsed() > 10 * ROUND
    });
    at_rest(&host, monitor, "old");
}

#[test]
fn what_is_shown_is_so_when_a_bad_rollout_starts_beside_a_healthy_one_f4_r1a() {
    beside_a_healthy_one(&["--node-id", "", "--plugin-version", "new"], "node_id is empty");
}

#[test]
fn what_is_shown_is_so_when_an_impostor_starts_beside_a_healthy_one_c031() {
    let arguments = ["--name", "impostor.example", "--node-id", "new", "--plugin-version", "new"];
    beside_a_healthy_one(&arguments, "impostor.example");
}

/// Adds allocations whose configuration needs the path of the stage.
fn configure_more(stage: &Stage, allocations: &[String]) {
    let text = std::fs::read_to_string(stage.config()).expect("it is written");
    std::fs::write(stage.config(), text + &allocations.concat()).expect("it can be written");
}

/// An allocation whose process is another plugin from its second start on.
fn one_that_comes_back_as_an_impostor(stage: &Stage, name: &str, more: &str) -> String {
    let lives = stage.directory.path().join("lives").display().to_string();
    let run = format!(
        "if mkdir {lives}; then NAME=hostpath.callboard.example; else NAME=impostor.example; fi; \
         exec $PLUGIN $CSI_ENDPOINT --plugin-version {name} --name $NAME"
    );
    script(name, &run, more)
}

#[test]
fn what_is_shown_is_so_when_an_impostor_comes_after_a_kill_c031() {
    let stage = stage("calm = \"100ms\"", &[old("")]);
    configure_more(&stage, &[one_that_comes_back_as_an_impostor(&stage, "new", "start = false")]);
    let host = two(&stage);
    let monitor = monitor(&stage);
    signal(&stage, "new", Signal::KILL);
    serves_within(&host, TAKEOVER, "old");
    host.until("the impostor is seen", |status| {
        task(status, "new")["task"] == "running" && task(status, "new")["health"] == "unhealthy"
    });
    at_rest(&host, monitor, "old");
}

#[test]
fn what_is_shown_is_so_when_a_wrapper_starts_an_impostor_c031() {
    let again = "while :; do $PLUGIN $CSI_ENDPOINT --plugin-version only --name ${NAME:-hostpath.callboard.example}; \
                 NAME=impostor.example; done";
    let stage = stage("", &[script("only", again, "")]);
    let host = stage.run();
    host.until_active("csi-node", "zfs", "only");
    let monitor = monitor(&stage);
    signal(&stage, "only", Signal::KILL);
    host.until("the impostor is seen", |status| {
        let reason = zfs(status)["reason"].as_str().unwrap_or_default();
        zfs(status)["health"] == "unhealthy" && reason.contains("is now \"impostor.example\"")
    });
    let status = host.json(&["status"]);
    assert_eq!((&zfs(&status)["health"], &zfs(&status)["healthy"]), (&json!("unhealthy"), &json!(0)));
    assert_text_says_the_same(&host);
    monitor.end();
}

#[test]
fn what_is_shown_is_so_when_a_wrapper_starts_the_only_one_again_hlt_08() {
    let stage = stage("", &[wrapper("only", "")]);
    let host = stage.run();
    let before = host.until_active("csi-node", "zfs", "only");
    let monitor = monitor(&stage);
    signal(&stage, "only", Signal::KILL);
    host.until_within(SOON, "that it does not serve", |status| zfs(status)["health"] != "healthy");
    let after = serves_within(&host, program::TIMEOUT, "only");
    assert!(after["generation"].as_u64() > before["generation"].as_u64());
    assert_eq!((&before["version"], &after["version"]), (&json!("1"), &json!("2")));
    at_rest(&host, monitor, "only");
}

#[test]
fn what_is_shown_is_so_when_a_wrapper_starts_its_plugin_again_beside_a_standby_hlt_08_r1b() {
    let stage = stage("calm = \"1s\"", &[old(""), wrapper("new", "start = false")]);
    let host = stage.run();
    host.until_active("csi-node", "zfs", "old");
    assert!(host.ask(&["start", "new"]).status.success());
    host.until_active("csi-node", "zfs", "new");
    until_all(&host, 2);
    let monitor = monitor(&stage);
    signal(&stage, "new", Signal::KILL);
    serves_within(&host, TAKEOVER, "old");
    let after = serves_within(&host, program::TIMEOUT, "new");
    assert_eq!(after["version"], "2");
    until_all(&host, 2);
    at_rest(&host, monitor, "new");
}

#[test]
fn what_is_shown_is_so_when_a_wrapper_loses_its_plugin_beside_a_standby_hlt_08_r1b() {
    let loses = script("new", "$PLUGIN $CSI_ENDPOINT --plugin-version 1; exec sleep 1000", "start = false");
    let stage = stage("", &[old(""), loses]);
    let host = stage.run();
    host.until_active("csi-node", "zfs", "old");
    assert!(host.ask(&["start", "new"]).status.success());
    host.until_active("csi-node", "zfs", "new");
    until_all(&host, 2);
    let (monitor, wrapper) = (monitor(&stage), pid_of(&host.json(&["status"]), "new"));
    signal(&stage, "new", Signal::KILL);
    serves_within(&host, TAKEOVER, "old");
    host.until("that the other one is lost", |status| {
        let new = task(status, "new");
        zfs(status)["healthy"] == 1 && new["health"] == "unhealthy" && new["pid"] == wrapper
    });
    until_lacks(&host, "new", "");
    at_rest(&host, monitor, "old");
}

/// The next round is some 30 s away, so before that only the end of the connection reports the loss.
#[test]
fn every_view_tells_at_once_of_a_plugin_that_is_lost_behind_its_wrapper_a3_hlt_08() {
    let lone = seldom_probed_script("lone", "$PLUGIN $CSI_ENDPOINT; exec sleep 1000", "");
    let stage = stage("", &[lone]);
    let host = stage.run();
    host.until_active("csi-node", "zfs", "lone");
    until_all(&host, 1);
    signal(&stage, "lone", Signal::KILL);
    host.until_within(Duration::from_secs(15), "the event of the loss", |status| {
        let lone = task(status, "lone");
        lone["health"] == "unhealthy"
            && lone["last_event"].as_str().is_some_and(|it| it.starts_with("unhealthy"))
    });
    let tree = host.ask(&["tree"]);
    let tree = String::from_utf8_lossy(&tree.stdout);
    assert!(!tree.contains("healthy as"), "{tree}");
    assert!(host.log().contains("kind=\"unhealthy\""), "{}", host.log());
}

/// The health of an allocation, and its reason, in each line of the JSON log.
fn logged_health(host: &Program<'_>, allocation: &str) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let told = |line: &str| {
        let line: Value = serde_json::from_str(line).expect("a line of JSON");
        let fields = &line["fields"];
        let is_told = fields["allocation"] == allocation && fields["health"].is_string();
        is_told.then(|| (text(&fields["health"]), text(&fields["error"])))
    };
    host.log().lines().filter_map(told).collect()
}

#[test]
fn the_log_and_the_status_say_the_same_of_what_is_started_again_and_of_what_is_not_hlt_03() {
    let restart = "[restart]\nattempts = 1\ndelay = \"2s\"\n";
    let stage = Stage::new(&format!("{restart}{}", old("")));
    let host = stage.run_as(&["--log-format", "json"], &[]);
    for (state, health) in [("waiting", "restarting"), ("failed", "gone")] {
        host.until_active("csi-node", "zfs", "old");
        until_all(&host, 1);
        signal(&stage, "old", Signal::KILL);
        let status = host.until(health, |status| {
            let old = task(status, "old");
            // Until the agent has decided whether to restart it, it is waiting and has no due time.
            old["task"] == state && (state == "failed" || old["due_unix_ms"].is_u64())
        });
        let (old, plugin) = (task(&status, "old"), zfs(&status));
        assert_eq!((&old["health"], &plugin["health"]), (&json!(health), &json!(health)), "{status:#}");
        let reason = old["last_event"].as_str().expect("it says what happened").to_owned();
        assert_eq!(plugin["reason"], format!("old: {reason}"));
        let said = Some((health.to_owned(), reason));
        until_true("the same in the log", program::TIMEOUT, || {
            logged_health(&host, "old").last() == said.as_ref()
        });
        let is_gone = |(said, _): &(String, String)| said == "gone";
        assert_eq!(logged_health(&host, "old").iter().any(is_gone), health == "gone", "{}", host.log());
    }
}

/// Two plugins that survive their host; `new` listens later.
fn two_that_survive() -> Stage {
    let survives = "survives = true";
    stage_with(HOST_PAUSE, "", &[old(survives), named("new", &["--listen-after", "500ms"], survives)])
}

#[test]
fn what_is_shown_is_so_when_a_killed_host_is_started_again_over_plugins_that_survived_r2_r8() {
    let stage = two_that_survive();
    let host = two(&stage);
    let monitor = monitor(&stage);
    host.kill();
    let host = stage.run();
    host.until_active("csi-node", "zfs", "new");
    until_all(&host, 2);
    at_rest(&host, monitor, "new");
}

#[test]
fn what_is_shown_is_so_when_the_active_one_died_or_hung_while_no_host_ran_r2_r8() {
    for accident in [Signal::KILL, Signal::STOP] {
        let stage = two_that_survive();
        let host = two(&stage);
        let monitor = monitor(&stage);
        host.kill();
        signal(&stage, "new", accident);
        let host = stage.run();
        host.until_active("csi-node", "zfs", "old");
        if accident == Signal::STOP {
            until_all(&host, 1);
            monitor.settle();
            signal(&stage, "new", Signal::CONT);
        }
        until_all(&host, 2);
        at_rest(&host, monitor, "new");
    }
}

/// Kills the active plugin while the disk of the host is in this state.
fn killed_on_a_disk_that_is(state: &str) {
    let stage = stage_with(HOST_PAUSE, "", &[old(""), new(&[])]);
    let preloaded = Preloaded::below(stage.directory.path());
    let host = begun(&stage, stage.run_as(&[], &preloaded.environment()));
    let monitor = monitor(&stage);
    preloaded.disk(state);
    signal(&stage, "new", Signal::KILL);
    serves_within(&host, TAKEOVER, "old");
    host.until("the sick disk", |status| status["host"]["disk"]["health"] == "sick");
    preloaded.disk("ok");
    host.until("the sound disk", |status| status["host"]["disk"]["health"] == "sound");
    until_all(&host, 2);
    at_rest(&host, monitor, "old");
}

#[test]
fn what_is_shown_is_so_when_the_active_one_is_killed_on_a_full_disk_shell_1a_r1b() {
    killed_on_a_disk_that_is("full");
}

#[test]
fn what_is_shown_is_so_when_the_active_one_is_killed_on_a_disk_that_hangs_shell_1a_r1b() {
    killed_on_a_disk_that_is("hang");
}
