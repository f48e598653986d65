//! Tests the command line end to end: real hosts, real plugins, and their output for a person.

mod program;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};
use std::time::Duration;

use program::{CALLBOARD, Stage, allocation, exists, lives, pid_of, plugin, refusal, task, until_true};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

#[test]
fn allocations_are_started_and_stopped_by_hand_and_take_over_from_each_other_reg_05() {
    let blue = allocation("blue", "zfs", "monolith", &[], "");
    let green = allocation("green", "zfs", "monolith", &["--max-volumes", "7"], "start = false");
    let stage = Stage::new(&(blue + &green));
    let host = stage.run();
    let first = host.until_active("csi-node", "zfs", "blue");
    assert_eq!(first["standby"], serde_json::json!([]));

    assert!(host.ask(&["start", "green"]).status.success());
    let second = host.until_active("csi-node", "zfs", "green");
    assert_eq!(second["standby"], serde_json::json!(["blue"]));
    assert_eq!(second["max_volumes"], 7);
    assert!(second["generation"].as_u64() > first["generation"].as_u64());

    let report = host.json(&["stop", "green"]);
    let stopped: Vec<_> = report["report"].as_array().expect("a list").iter().map(|s| &s["child"]).collect();
    assert_eq!(stopped, ["allocation/green", "process/green"], "the books first (SHD-04)");
    let third = host.until_active("csi-node", "zfs", "blue");
    assert!(third["generation"].as_u64() > second["generation"].as_u64());

    let status = host.json(&["status"]);
    assert_eq!(task(&status, "green")["task"], "stopped");
    assert_eq!(task(&status, "green")["pid"], Value::Null);
    assert_eq!(
        host.refusal(&["start", "blue"]),
        (1, "callboard: allocation blue is running already".to_owned())
    );
    assert_eq!(
        host.refusal(&["stop", "green"]),
        (1, "callboard: allocation green does not run: it is stopped".to_owned())
    );
    assert_eq!(
        host.refusal(&["stop", "grey"]),
        (1, "callboard: the configuration has neither an allocation nor a task \"grey\"".to_owned())
    );
}

#[test]
fn a_host_that_is_told_to_end_ends_everything_in_order_and_reports_s3_s4() {
    let stage =
        Stage::new(&(allocation("a", "zfs", "monolith", &[], "") + &allocation("b", "nfs", "node", &[], "")));
    let host = stage.run();
    host.until_active("csi-node", "zfs", "a");
    let status = host.until("b", |status| task(status, "b")["state"] == "registered");
    host.signal(Signal::TERM);
    let (exit, printed) = host.ended();
    assert_eq!(exit.code(), Some(0));
    let reported: Vec<_> =
        printed.lines().skip(1).map(|line| line.split_whitespace().next().expect("a word")).collect();
    let expected = [
        "host/tasks",
        "allocation/b",
        "process/b",
        "allocation/a",
        "process/a",
        "host/agent",
        "host/volumes",
        "host/catalog",
        "host/inventory",
        "host/allocations",
        "host/drivers",
        "host/instances",
        "host/registry",
        "host/processes",
        "host/persister",
    ];
    assert_eq!(reported, expected, "{printed}");
    for name in ["a", "b"] {
        assert!(!exists(pid_of(&status, name)));
        assert!(!stage.data_dir().join("csi/plugins").join(name).exists());
    }
    assert!(!stage.data_dir().join("admin.sock").exists());
}

#[test]
fn a_second_signal_while_a_host_ends_changes_nothing() {
    let stubborn = allocation("a", "zfs", "node", &["--ignore-sigterm"], "stop_grace = \"700ms\"");
    let stage = Stage::new(&stubborn);
    let host = stage.run();
    let status = host.until("a", |status| task(status, "a")["state"] == "registered");
    host.signal(Signal::TERM);
    until_true("it hears of it", Duration::from_secs(5), || host.log().contains("stopping in order"));
    host.signal(Signal::INT);
    until_true("it hears again", Duration::from_secs(5), || host.log().contains("already stopping"));
    host.signal(Signal::TERM);
    let (exit, printed) = host.ended();
    assert_eq!(exit.code(), Some(0));
    assert!(printed.contains("killed after its grace: signal 9 (SIGKILL)"), "{printed}");
    assert!(printed.contains("host/persister"), "the report is whole: {printed}");
    assert!(!exists(pid_of(&status, "a")));
}

#[test]
fn a_host_that_is_killed_leaves_no_plugin_and_its_successor_takes_its_place_prc_04_sec_02() {
    let stage = Stage::new(
        &(allocation("a", "zfs", "monolith", &[], "") + &allocation("b", "zfs", "monolith", &[], "")),
    );
    let mut generation = 0;
    for run in 1..=5 {
        let host = stage.run();
        let status = host.until("both", |status| {
            ["a", "b"].iter().all(|name| task(status, name)["state"] == "registered")
                && plugin(status, "csi-node", "zfs")["health"] == "healthy"
        });
        assert_eq!(status["host"]["run"], run);
        let now = plugin(&status, "csi-node", "zfs")["generation"].as_u64().expect("a number");
        assert!(now > generation, "generations never go back");
        generation = now;
        let pids = ["a", "b"].map(|name| pid_of(&status, name));
        host.kill();
        for pid in pids {
            until_true("its plugins are gone", Duration::from_secs(1), || !lives(pid));
        }
    }
}

/// A shell that starts the plugin and waits for it: killing the shell does not kill the plugin.
#[test]
fn what_a_wrapper_started_ends_with_a_host_that_is_killed_prc_04() {
    let script = format!("{CALLBOARD} plugin hostpath --role node; echo over");
    let stage = Stage::new(&format!(
        "[[allocation]]\nname = \"a\"\nplugin = \"zfs\"\ntype = \"node\"\ncommand = [\"/bin/sh\", \"-c\", {script:?}]\n"
    ));
    for _ in 0..3 {
        let host = stage.run();
        host.until_active("csi-node", "zfs", "a");
        let wrapper = pid_of(&host.json(&["status"]), "a");
        let children = std::fs::read_to_string(format!("/proc/{wrapper}/task/{wrapper}/children"));
        let children: Vec<u64> =
            children.expect("a list").split_whitespace().map(|pid| pid.parse().expect("a number")).collect();
        assert_eq!(children.len(), 1, "the plugin is a child of its wrapper");
        host.kill();
        for pid in [wrapper, children[0]] {
            until_true("nothing is left", Duration::from_secs(5), || !lives(pid));
        }
    }
}

#[test]
fn a_secret_of_a_plugins_environment_reaches_the_plugin_and_is_nowhere_on_disk_p6_c025() {
    const CANARY: &str = "canary-7c1e2a90";
    let stage =
        Stage::new(&allocation("a", "zfs", "node", &[], &format!("env = {{ POOL_KEY = {CANARY:?} }}")));
    let host = stage.run();
    host.until_active("csi-node", "zfs", "a");
    let status = host.json(&["status"]);
    let environment = std::fs::read(format!("/proc/{}/environ", pid_of(&status, "a"))).expect("it runs");
    assert!(String::from_utf8_lossy(&environment).contains(CANARY), "the plugin has it");
    let shown = [host.json(&["status"]), host.json(&["tree"])].map(|json| json.to_string());
    assert!(host.ask(&["shutdown"]).status.success());
    assert!(shown.iter().chain([&host.log()]).all(|text| !text.contains(CANARY)), "it is shown nowhere");
    let mut directories = vec![stage.data_dir()];
    let mut files = 0;
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).expect("it can be read") {
            let path = entry.expect("it can be read").path();
            if path.is_dir() {
                directories.push(path);
            } else if path.is_file() {
                files += 1;
                let bytes = std::fs::read(&path).expect("it can be read");
                let is_there = bytes.windows(CANARY.len()).any(|window| window == CANARY.as_bytes());
                assert!(!is_there, "{} holds the secret", path.display());
            }
        }
    }
    assert!(files >= 3, "database, lock and log were searched");
}

#[test]
fn a_second_host_on_the_same_directory_is_refused_and_the_first_goes_on_p5() {
    let stage = Stage::new(&allocation("a", "zfs", "node", &[], ""));
    let host = stage.run();
    let first = host.until_active("csi-node", "zfs", "a");
    let output =
        Command::new(CALLBOARD).args(["run", "--config"]).arg(stage.config()).output().expect("it runs");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().last().expect("it says why");
    let pid = host.json(&["status"])["host"]["pid"].to_string();
    assert!(last.starts_with("callboard: ") && last.contains(&pid), "it names the first: {last}");
    assert_eq!(host.until_active("csi-node", "zfs", "a")["generation"], first["generation"]);
}

#[test]
fn a_wrong_configuration_is_told_whole_with_exit_code_2_and_nothing_is_made() {
    let stage = Stage::new(
        "colour = 1\n[[allocation]]\nname = \"a\"\nplugin = \"p\"\ntype = \"nodes\"\ncommand = \"/nowhere\"\n",
    );
    let output =
        Command::new(CALLBOARD).args(["run", "--config"]).arg(stage.config()).output().expect("it runs");
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    let file = stage.config().display().to_string();
    let places: Vec<_> = said.lines().map(|line| line.replace(&file, "F")).collect();
    assert_eq!(places.len(), 3, "{said}");
    for (line, place) in places.iter().zip(["F:2:1: ", "F:6:8: ", "F:7:11: "]) {
        assert!(line.starts_with(&format!("callboard: {place}")), "{line}");
    }
    assert!(!stage.data_dir().exists());
}

#[test]
fn who_asks_where_no_host_runs_is_told_so_log_05() {
    let stage = Stage::new("");
    let ask = |words: &[&str]| Command::new(CALLBOARD).args(words).output().expect("it runs");
    let data_dir = stage.data_dir().display().to_string();
    let (code, said) = refusal(&ask(&["status", "--data-dir", &data_dir]));
    assert_eq!((code, said), (1, format!("callboard: no host runs here: there is no {data_dir}/admin.sock")));
    let host = stage.run();
    host.kill();
    let (code, said) = refusal(&ask(&["tree", "--data-dir", &data_dir]));
    assert_eq!(code, 1);
    assert!(said.contains("no process listens on") && said.contains("the last one was killed"), "{said}");
    let (code, said) = refusal(&ask(&["status", "--config", "/nowhere.toml"]));
    assert_eq!(code, 2);
    assert!(said.starts_with("callboard: cannot read configuration /nowhere.toml"), "{said}");
    assert!(said.contains("name the host by --data-dir or --socket"), "{said}");
    assert_eq!(ask(&["status"]).status.code(), Some(2), "a host has to be named");
    assert_eq!(ask(&["stats"]).status.code(), Some(2));
}

#[test]
fn a_host_is_asked_by_a_configuration_whose_programs_have_gone_meanwhile() {
    let stage = Stage::new("");
    let host = stage.run();
    let lost = "[[allocation]]\nname = \"a\"\nplugin = \"zfs\"\ntype = \"node\"\ncommand = \"/nowhere/plugin\"\n\
                [[driver]]\nname = \"exec\"\ncommand = \"/nowhere/driver\"\n";
    stage.configure(lost);
    let ask = |word: &str| {
        let output = Command::new(CALLBOARD).args([word, "--config"]).arg(stage.config()).output();
        output.expect("it runs")
    };
    for word in ["status", "health", "tree"] {
        let output = ask(word);
        assert!(output.status.success(), "{word}: {}", String::from_utf8_lossy(&output.stderr));
    }
    host.kill();
    let refused = ask("run");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2));
    assert!(said.contains("/nowhere/plugin") && said.contains("/nowhere/driver"), "{said}");
}

#[test]
fn a_plugin_that_ends_by_itself_is_started_again_and_given_up_when_it_does_so_too_often_log_05() {
    let restart = "[restart]\nattempts = 2\nwindow = \"1m\"\ndelay = \"10ms\"\n";
    let falling = allocation("a", "zfs", "node", &["--exit-after", "50ms", "--exit-code", "3"], "");
    let stage = Stage::new(&format!("{restart}{falling}"));
    let host = stage.run();
    let status = host.until("its failure", |status| task(status, "a")["task"] == "failed");
    let a = task(&status, "a");
    assert_eq!((&a["restarts"], &a["pid"]), (&Value::from(2), &Value::Null));
    let event = a["last_event"].as_str().expect("a text");
    assert!(event.contains("exit code 3") && event.contains("given up after 2 restarts"), "{event}");
}

#[test]
fn a_plugin_that_is_never_ready_is_started_again_with_the_cause_a2() {
    let never = allocation("a", "zfs", "node", &["--never-ready"], "health_timeout = \"500ms\"");
    let stage = Stage::new(&format!("[restart]\ndelay = \"10ms\"\n{never}"));
    let host = stage.run();
    let first = host.until("its process", |status| task(status, "a")["pid"].is_u64());
    host.until("its restart", |status| {
        let a = task(status, "a");
        a["restarts"].as_u64() > Some(0) && a["pid"].is_u64() && a["pid"] != task(&first, "a")["pid"]
    });
    assert!(host.log().contains("not ready"), "{}", host.log());
}

#[test]
fn a_plugin_that_hangs_is_restarted_when_its_configuration_says_so_and_else_waited_for_a2() {
    let quick = "probe_interval = \"100ms\"\ncall_deadline = \"300ms\"\nstop_grace = \"100ms\"";
    let restarted =
        allocation("a", "zfs", "node", &[], &format!("{quick}\nrestart_when = \"unhealthy-for 1s\""));
    let stage = Stage::new(&format!("{restarted}{}", allocation("b", "nfs", "node", &[], quick)));
    let host = stage.run();
    let pid = |status: &Value, name: &str| task(status, name)["pid"].as_u64().expect("a process");
    host.until_active("csi-node", "zfs", "a");
    host.until_active("csi-node", "nfs", "b");
    let before = host.json(&["status"]);
    let (a, b) = (pid(&before, "a"), pid(&before, "b"));
    [a, b].into_iter().for_each(|pid| signal(pid, Signal::STOP));
    let after = host.until("a process of a that does not hang", |status| {
        let (a_now, b_now) = (task(status, "a"), task(status, "b"));
        a_now["pid"].is_u64()
            && a_now["pid"] != a
            && a_now["health"] == "healthy"
            && b_now["health"] == "unhealthy"
    });
    assert!(host.log().contains("the plugin has been unhealthy for 1s"), "{}", host.log());
    assert_eq!(pid(&after, "b"), b, "{after:#}");
    signal(b, Signal::CONT);
    let status = host.until("a healthy b", |status| task(status, "b")["health"] == "healthy");
    assert_eq!((pid(&status, "b"), &task(&status, "b")["restarts"]), (b, &0.into()), "{status:#}");
    let watching = &task(&status, "a")["watching"];
    assert_eq!(
        (&watching["probe_interval_ms"], &watching["restart_when"]),
        (&100.into(), &"unhealthy-for 1s".into())
    );
}

#[test]
fn a_name_with_an_underscore_and_a_negative_limit_are_remarked_on_or_refused_where_that_is_said_c030_c147() {
    let odd = ["--name=odd_zfs.example", "--max-volumes=-1"];
    let quick = "health_timeout = \"500ms\"";
    let taken = allocation("a", "zfs", "node", &odd, "strict = false");
    let refused = allocation("b", "nfs", "node", &odd, quick);
    let limited = allocation("c", "smb", "node", &odd[1..], "");
    let stage = Stage::new(&format!("strict = true\n{taken}{refused}{limited}"));
    let host = stage.run();
    let node = host.until_active("csi-node", "zfs", "a");
    let remarks: Vec<_> =
        node["remarks"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    let [name, limit] = remarks[..] else { panic!("{node:#}") };
    assert!(name.contains("\"odd_zfs.example\", expected a domain name"), "{name}");
    assert_eq!(limit, "max_volumes_per_node is -1, below zero; it counts as no limit");
    assert_eq!((&node["health"], &node["max_volumes"]), (&"healthy".into(), &0.into()));
    let shown = String::from_utf8(host.ask(&["status", "zfs"]).stdout).expect("it is text");
    assert!(shown.contains("expected a domain name") && shown.contains("it counts as no limit"), "{shown}");

    let status =
        host.until("a refused answer", |status| plugin(status, "csi-node", "smb")["health"] == "unhealthy");
    let refused = plugin(&status, "csi-node", "smb");
    let reason = refused["reason"].as_str().expect("a text");
    assert!(reason.contains("max_volumes_per_node is -1, below zero"), "{reason}");
    host.until("why b is not healthy", |status| {
        task(status, "b")["last_event"].as_str().is_some_and(|event| event.contains("expected a domain name"))
    });
    let strict = |name| &task(&status, name)["watching"]["strict"];
    assert_eq!((strict("a"), strict("b")), (&false.into(), &true.into()));
}

#[test]
fn one_thing_is_shown_whole_with_its_last_events_and_the_end_of_its_log_log_05() {
    let broken = "[[allocation]]\nname = \"b\"\nplugin = \"nfs\"\ntype = \"node\"\n\
         command = [\"/bin/sh\", \"-c\", \"echo no server named tank; exit 3\"]\n";
    let stage = Stage::new(&(allocation("a", "zfs", "node", &[], "") + broken));
    let host = stage.run();
    let first = host.until_active("csi-node", "zfs", "a");
    assert_eq!(first["events"], serde_json::json!([]), "only when it is asked for");
    signal(pid_of(&host.json(&["status"]), "a"), Signal::KILL);
    let events = |name: &str, list: &str| -> Vec<String> {
        let told = host.json(&["status", name]);
        let events = told[list][0]["events"].as_array().expect("a list").clone();
        assert!(events.iter().all(|event| event["last_unix_ms"].as_u64() > Some(0)), "{events:?}");
        events.iter().map(|event| event["text"].as_str().expect("a text").to_owned()).collect()
    };
    // The latest event may not have reached the list yet.
    let until_told = |name: &str, list: &str, words: &str| {
        until_true(words, Duration::from_secs(30), || {
            events(name, list).iter().any(|event| event.contains(words))
        });
    };
    host.until("it is killed and healthy again", |status| {
        task(status, "a")["restarts"] == 1 && task(status, "a")["health"] == "healthy"
    });
    until_told("a", "allocations", "process ended: signal 9 (SIGKILL)");
    until_told("a", "allocations", "healthy as");
    until_told("zfs", "plugins", "a is healthy, generation");

    host.until("b was given up or waits", |status| task(status, "b")["restarts"].as_u64() > Some(0));
    let shown = String::from_utf8(host.ask(&["status", "b"]).stdout).expect("it is text");
    let log = shown.split_once("  log\n").expect("it has a log").1;
    assert!(log.starts_with("    no server named tank\n"), "{shown}");
    assert!(shown.contains(" ago  process ended: exit code 3"), "{shown}");
}

fn signal(pid: u64, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).expect("a pid")).expect("a pid");
    kill_process(pid, signal).expect("it lives");
}

#[test]
fn what_json_shows_has_the_keys_that_are_promised() {
    let stage = Stage::new(&allocation("a", "zfs", "monolith", &["--topology", "zone=z1"], ""));
    let host = stage.run();
    let node = host.until_active("csi-node", "zfs", "a");
    let status = host.json(&["status"]);
    let keys =
        |value: &Value| -> BTreeSet<String> { value.as_object().expect("a map").keys().cloned().collect() };
    let set = |text: &str| -> BTreeSet<String> { text.split_whitespace().map(str::to_owned).collect() };
    assert_eq!(keys(&status), set("host plugins allocations drivers tasks volumes gone"));
    assert_eq!(
        keys(&status["host"]),
        set("version pid data_dir run started_at_unix_ms cores cpu_mhz cpu_speed_guessed control_groups \
              data_dir_problem disk stopping")
    );
    let plugin_keys = "type name health reason since_unix_ms generation provider version manifest capabilities node_id \
        max_volumes topology requires_controller requires_topology active standby provisional restarting expected \
        registered healthy volumes_in_use leases calls_in_flight remarks policy active_reason registrations events";
    assert_eq!(keys(&node), set(plugin_keys));
    assert_eq!(keys(&node["capabilities"]), set("plugin controller group_controller node expansion"));
    let allocation_keys = "name plugin type task pid restarts state health reason since_unix_ms exit \
        last_event due_unix_ms socket watching survives leases calls_in_flight events";
    assert_eq!(keys(task(&status, "a")), set(allocation_keys));
    assert_eq!(
        keys(&task(&status, "a")["watching"]),
        set(
            "probe_interval_ms call_deadline_ms failures_until_unhealthy restart_grace_ms restart_when strict listener"
        )
    );
    let tree = host.json(&["tree"]);
    assert_eq!(
        keys(&tree),
        set(
            "name kind state restarts crashes mailbox_depth message stops_within_ms kills_within_ms ended children"
        )
    );
    assert_eq!(node["topology"], serde_json::json!({ "zone": "z1" }));
    assert_eq!(node["provider"], "hostpath.callboard.example");
    assert_eq!(plugin(&status, "csi-controller", "zfs")["node_id"], Value::Null, "a controller has no node");
    let documented = include_str!("../docs/command-line.md");
    for key in set(&format!(
        "{plugin_keys} {allocation_keys} version pid data_dir run started_at_unix_ms cores cpu_mhz cpu_speed_guessed control_groups data_dir_problem stopping stops_within_ms plugin controller node expansion kind crashes mailbox_depth message children child ending took_ms number at_unix_ms news about missed"
    )) {
        assert!(documented.contains(&format!("`{key}`")), "docs/command-line.md does not describe {key}");
    }
}

#[test]
fn people_see_tables_and_a_tree() {
    let stage = Stage::new(&allocation("a", "zfs", "monolith", &[], ""));
    let host = stage.run();
    host.until_active("csi-node", "zfs", "a");
    let shown = |words: &[&str]| String::from_utf8(host.ask(words).stdout).expect("it is text");
    let status = shown(&["status"]);
    assert!(
        status.contains("PLUGIN") && status.contains("csi-controller") && status.contains("registered"),
        "{status}"
    );
    assert!(!status.contains('\u{1b}'), "no colours into a pipe");
    let tree = shown(&["tree"]);
    for node in ["supervisor host", "instance csi-node/zfs", "allocation a", "task a"] {
        assert!(tree.contains(node), "{node} in {tree}");
    }
}

#[test]
fn changes_are_watched_as_they_happen() {
    let stage = Stage::new(&allocation("a", "zfs", "node", &[], "start = false"));
    let host = stage.run();
    let mut watching = Command::new(CALLBOARD)
        .args(["watch", "--json", "--data-dir"])
        .arg(stage.data_dir())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut lines = BufReader::new(watching.stdout.take().expect("a pipe")).lines();
    let mut next = || -> Value {
        serde_json::from_str(&lines.next().expect("a line").expect("it is text")).expect("it is JSON")
    };
    assert_eq!(next()["news"], "snapshot");
    assert!(host.ask(&["start", "a"]).status.success());
    let mut seen = BTreeSet::new();
    while !(seen.contains("running") && seen.contains("healthy")) {
        let news = next();
        for key in ["task", "health"] {
            seen.extend(news["about"][key].as_str().map(str::to_owned));
        }
    }
    host.signal(Signal::TERM);
    assert_eq!(host.ended().0.code(), Some(0), "a watcher does not hold the end up");
    // Its stream ends with its host, and the watcher reports that.
    assert_eq!(watching.wait().expect("it is our child").code(), Some(1));
}

#[test]
fn a_reader_who_leaves_early_is_no_error() {
    let stage = Stage::new("");
    let _host = stage.run();
    let mut watching = Command::new(CALLBOARD)
        .args(["status", "--data-dir"])
        .arg(stage.data_dir())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    drop(watching.stdout.take());
    let output = watching.wait_with_output().expect("it is our child");
    assert_eq!((output.status.code(), &*String::from_utf8_lossy(&output.stderr)), (Some(0), ""));
}

#[test]
fn a_host_is_shut_down_over_its_socket_with_its_report() {
    let stage = Stage::new(&allocation("a", "zfs", "node", &[], ""));
    let host = stage.run();
    host.until_active("csi-node", "zfs", "a");
    let report = host.json(&["shutdown"]);
    let children: Vec<_> = report["report"].as_array().expect("a list").iter().map(|s| &s["child"]).collect();
    assert_eq!(children[..2], [&Value::from("host/tasks"), &Value::from("allocation/a")]);
    assert_eq!(children.last(), Some(&&Value::from("host/persister")));
    assert_eq!(host.ended().0.code(), Some(0));
}

#[test]
fn a_data_directory_of_two_hundred_characters_serves_plugins_and_people_sec_01() {
    let long = Stage::new("");
    let data_dir = long.directory.path().join("d".repeat(200));
    let runtime = tempfile::tempdir_in("/tmp").expect("a short directory");
    let text = format!(
        "data_dir = {data_dir:?}\nruntime_dir = {:?}\n{}",
        runtime.path(),
        allocation("a", "zfs", "node", &[], "")
    );
    std::fs::write(long.config(), text).expect("it can be written");
    let host = long.begin();
    let ask = || {
        Command::new(CALLBOARD)
            .args(["status", "--json", "--data-dir"])
            .arg(&data_dir)
            .output()
            .expect("it runs")
    };
    until_true("it is healthy", program::TIMEOUT, || {
        let status: Value = serde_json::from_slice(&ask().stdout).unwrap_or_default();
        status["plugins"].is_array() && plugin(&status, "csi-node", "zfs")["health"] == "healthy"
    });
    host.signal(Signal::TERM);
    assert!(host.ended().0.success());
    let names = std::fs::read_dir(runtime.path()).expect("it is there").flatten();
    let left: Vec<_> = names.map(|entry| entry.file_name()).collect();
    assert!(left.is_empty(), "left behind: {left:?}");
}

/// Otherwise its socket would stay forever, since that allocation is no longer prepared.
#[test]
fn the_socket_of_an_allocation_goes_that_was_taken_out_of_the_configuration_while_no_host_ran_sec_02() {
    let stage = Stage::new(&allocation("old", "zfs", "node", &[], ""));
    let host = stage.run();
    host.until_active("csi-node", "zfs", "old");
    host.kill();
    let socket = stage.data_dir().join("csi/plugins/old/csi.sock");
    assert!(socket.exists(), "a killed host leaves it");
    let plugins = stage.data_dir().join("csi/plugins");
    std::fs::create_dir(plugins.join("living")).expect("a directory");
    let _other = UnixListener::bind(plugins.join("living/csi.sock")).expect("a socket");
    stage.configure(&allocation("new", "zfs", "node", &[], ""));
    let host = stage.run();
    host.until_active("csi-node", "zfs", "new");
    assert!(!socket.exists() && !plugins.join("old").exists());
    assert!(plugins.join("living/csi.sock").exists(), "a process listens there");
    assert!(host.log().contains("living was left: a process listens there"), "{}", host.log());
}
