//! Tests that the status of a running host is true at every moment.

mod program;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use program::{CALLBOARD, Stage, TIMEOUT, allocation, driven, pid_of, plugin, task, until_true};
use rustix::process::Signal;
use serde_json::{Value, json};

/// The status of the node half of a plugin.
fn shown<'v>(status: &'v Value, name: &str) -> &'v Value {
    plugin(status, "csi-node", name)
}

#[test]
fn a_plugin_is_shown_as_what_is_known_of_it_now_hlt_08() {
    let serves = allocation("serves", "zfs", "node", &[], "");
    let falls = "[[allocation]]\nname = \"falls\"\nplugin = \"bad\"\ntype = \"node\"\ncommand = [\"/bin/sh\", \"-c\", \"exit 3\"]\n";
    let idle = allocation("idle", "off", "node", &[], "start = false");
    let stage = Stage::new(&format!("[restart]\nattempts = 1\ndelay = \"10ms\"\n{serves}{falls}{idle}"));
    let host = stage.run();
    host.until_active("csi-node", "zfs", "serves");
    let status = host.until("a task that is given up", |status| task(status, "falls")["task"] == "failed");
    let counts = |plugin: &Value| {
        json!([plugin["health"], plugin["expected"], plugin["registered"], plugin["healthy"]])
    };
    assert_eq!(counts(shown(&status, "zfs")), json!(["healthy", 1, 1, 1]));
    assert_eq!(task(&status, "serves")["health"], "healthy", "as its plugin");
    assert_eq!(counts(shown(&status, "bad")), json!(["gone", 1, 0, 0]), "it never came, and is listed");
    let reason = shown(&status, "bad")["reason"].as_str().expect("a reason");
    assert!(reason.starts_with("falls: process ended: exit code 3; given up"), "{reason}");
    let exit = &task(&status, "falls")["exit"];
    assert_eq!((&exit["how"], &exit["code"]), (&json!("exited"), &json!(3)));
    assert!(task(&status, "falls")["since_unix_ms"].as_u64() >= exit["at_unix_ms"].as_u64());
    assert_eq!(counts(shown(&status, "off")), json!(["gone", 0, 0, 0]));
    assert_eq!(shown(&status, "off")["reason"], "idle: not started");

    assert!(host.ask(&["stop", "serves"]).status.success());
    let status = host.json(&["status"]);
    assert_eq!(counts(shown(&status, "zfs")), json!(["gone", 0, 0, 0]), "it is not expected back");
    assert_eq!(shown(&status, "zfs")["restarting"], false);
    let text = String::from_utf8(host.ask(&["status"]).stdout).expect("text");
    let row = text.lines().find(|line| line.starts_with("zfs ")).expect("it is listed");
    assert!(row.contains(" gone "), "text and JSON agree: {row}");
}

#[test]
fn a_plugin_whose_process_was_killed_is_not_healthy_from_the_first_look_on() {
    let stage =
        Stage::new(&("[restart]\ndelay = \"1h\"\n".to_owned() + &allocation("a", "zfs", "node", &[], "")));
    let host = stage.run();
    host.until_active("csi-node", "zfs", "a");
    let pid = pid_of(&host.json(&["status"]), "a");
    program::left::kill_if_there(pid);
    let status = host.until("its end", |status| task(status, "a")["task"] == "waiting");
    let row = shown(&status, "zfs");
    assert_eq!((&row["health"], &row["healthy"]), (&json!("restarting"), &json!(0)));
    assert_eq!(task(&status, "a")["health"], "restarting", "as its plugin");
    let reason = row["reason"].as_str().expect("a reason");
    assert!(reason.starts_with("a: process ended: signal 9 (SIGKILL)"), "{reason}");
    // The time of the next start is stored, and the remaining time is shown on request.
    let waiting = host.until("the decision", |status| task(status, "a")["due_unix_ms"].is_u64());
    let waiting = task(&waiting, "a");
    assert!(waiting["due_unix_ms"].as_u64() > waiting["since_unix_ms"].as_u64(), "{waiting:#}");
    assert_eq!(waiting["last_event"], "process ended: signal 9 (SIGKILL); starts again", "{waiting:#}");
    let text = String::from_utf8(host.ask(&["status"]).stdout).expect("text");
    let row_of_table = text.lines().find(|line| line.starts_with("a ")).expect("it is listed");
    assert!(row_of_table.contains("; starts again in "), "{text}");
    for line in ["the process of an allocation ended by itself", "an allocation is started again"] {
        let log = host.log();
        let said = log.lines().find(|one| one.contains(line)).unwrap_or_else(|| panic!("{line}: {log}"));
        assert!(said.contains(" WARN ") && said.contains("allocation=a attempt=1"), "{said}");
        assert!(
            said.contains("exit=signal 9 (SIGKILL)") || said.contains("exit=\"signal 9 (SIGKILL)\""),
            "{said}"
        );
    }
    assert!(!host.log().contains("an allocation is not started"), "it has run before: {}", host.log());
}

#[test]
fn a_host_that_stops_tells_what_has_ended_what_it_waits_for_and_until_when_s3() {
    let stubborn = allocation("a", "zfs", "node", &["--ignore-sigterm"], "stop_grace = \"4s\"");
    let quick = allocation("b", "nfs", "node", &[], "");
    let stage = Stage::new(&(stubborn + &quick));
    let host = stage.run();
    host.until_active("csi-node", "zfs", "a");
    host.until_active("csi-node", "nfs", "b");
    assert_eq!(host.json(&["status"])["host"]["stopping"], Value::Null);
    host.signal(Signal::TERM);
    let status = host.until("the end of b", |status| {
        status["host"]["stopping"].is_object() && task(status, "b")["task"] == "stopped"
    });
    let stopping = &status["host"]["stopping"];
    let names = |list: &Value, key: &str| -> Vec<String> {
        let all = list.as_array().expect("a list").iter();
        all.map(|one| one[key].as_str().expect("a text").to_owned()).collect()
    };
    assert_eq!(names(&stopping["waits_for"], "name"), ["host/agent", "task/a"]);
    let until = stopping["waits_for"][0]["until_unix_ms"].as_u64().expect("a time");
    assert!(until > stopping["since_unix_ms"].as_u64().expect("a time"));
    assert_eq!(
        names(&stopping["ended"], "child"),
        ["host/tasks", "allocation/b", "process/b", "allocation/a"]
    );
    // Its process gets SIGKILL before the latest end of its stop; both times are shown in every form.
    let of_a = &stopping["waits_for"][1];
    let [kill, by] = ["kill_unix_ms", "until_unix_ms"].map(|key| of_a[key].as_u64().expect("a time"));
    assert!(kill < by && by <= until, "{stopping:#}");
    let gone = &status["gone"][0];
    assert_eq!((&gone["name"], &gone["ended"]), (&json!("tasks"), &json!(true)));
    let nfs = shown(&status, "nfs");
    assert_eq!(nfs["health"], "gone", "nothing comes back to a host that stops");
    assert!(nfs["since_unix_ms"].as_u64() >= stopping["since_unix_ms"].as_u64(), "{nfs}");
    let healths = (&shown(&status, "zfs")["health"], &task(&status, "a")["health"]);
    assert_eq!(healths, (&json!("gone"), &json!("gone")), "both say the same");
    let text = String::from_utf8(host.ask(&["status"]).stdout).expect("text");
    assert!(
        text.contains("waits for host/agent") && text.contains("waits for task/a: ending process"),
        "{text}"
    );
    let of_a = text.lines().find(|line| line.contains("waits for task/a")).expect("it is there");
    assert!(of_a.contains(", SIGKILL in ") && of_a.contains(", stops within "), "{of_a}");
    assert!(!text.contains("does not answer"), "{text}");
    let tree = host.json(&["tree"]);
    let agent = tree["children"][0]["children"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|node| node["name"] == "agent");
    let agent = agent.expect("it is there");
    assert!(agent["stops_within_ms"].is_u64(), "{tree}");
    let part =
        |name: &str| agent["children"].as_array().expect("a list").iter().find(|one| one["name"] == name);
    let (a, b) = (part("a").expect("it is there"), part("b").expect("it is there"));
    assert!(a["kills_within_ms"].as_u64() < a["stops_within_ms"].as_u64(), "{a:#}");
    assert_eq!((&b["stops_within_ms"], &b["kills_within_ms"]), (&Value::Null, &Value::Null), "{b:#}");
    assert_eq!(names(&b["ended"], "child"), ["allocation/b", "process/b"]);
    // A stop of an allocation that has ended already is not refused but returns its report, also while the others still stop.
    let report = host.json(&["stop", "b"]);
    assert_eq!(names(&report["report"], "child"), ["allocation/b", "process/b"]);
    assert_eq!(
        host.refusal(&["start", "b"]),
        (1, "callboard: b is not started: the host is stopping".to_owned())
    );
    let report = host.json(&["stop", "a"]);
    assert_eq!(names(&report["report"], "child"), ["allocation/a", "process/a"]);
    assert_eq!(host.ended().0.code(), Some(0));
}

#[test]
fn a_host_that_detaches_warns_of_nothing_that_it_ends_itself_s3() {
    let stage = Stage::new(&allocation("a", "zfs", "monolith", &[], ""));
    let host = stage.run();
    host.until_active("csi-node", "zfs", "a");
    host.until_active("csi-controller", "zfs", "a");
    let log = stage.directory.path().join("stderr");
    let ended = host.ask(&["shutdown", "--detach"]);
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    assert_eq!(host.ended().0.code(), Some(0));
    let log = std::fs::read_to_string(log).expect("it is there");
    let (_, ending) =
        log.split_once("stopping in order, as requested through the admin socket").expect("it is said");
    let warnings: Vec<&str> = ending.lines().filter(|line| line.contains(" WARN ")).collect();
    assert!(warnings.is_empty(), "{warnings:#?}");
    assert!(ending.contains("the process of an allocation ended when asked to"), "{ending}");
}

#[test]
fn the_dead_socket_of_an_allocation_that_is_not_started_is_removed_by_the_next_run_s4() {
    let stage = Stage::new(&allocation("idle", "off", "node", &[], "start = false"));
    let host = stage.run();
    assert!(host.ask(&["start", "idle"]).status.success());
    host.until_active("csi-node", "off", "idle");
    let socket = task(&host.json(&["status"]), "idle")["socket"].as_str().expect("a path").to_owned();
    host.signal(Signal::KILL);
    drop(host);
    assert!(std::path::Path::new(&socket).exists(), "{socket} is what a killed host leaves");
    let host = stage.run();
    host.json(&["status"]);
    assert!(!std::path::Path::new(&socket).exists(), "{socket}");
    // It can still be started.
    assert!(host.ask(&["start", "idle"]).status.success());
    host.until_active("csi-node", "off", "idle");
}

/// The values of a key in all entries of a list.
fn texts(list: &Value, key: &str) -> Vec<String> {
    let all = list.as_array().expect("a list").iter();
    all.map(|one| one[key].as_str().unwrap_or_else(|| panic!("no {key} in {one}")).to_owned()).collect()
}

/// Starts `callboard watch` in this form.
fn watching(stage: &Stage, form: &[&str]) -> Child {
    let mut watch = Command::new(CALLBOARD);
    watch.arg("watch").args(form).arg("--data-dir").arg(stage.data_dir());
    watch.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs")
}

/// The step of the stop of an allocation that waits for the process, which ignores the order to end.
const ENDING: u8 = 2;

/// The progress of the stop of an allocation: not begun, deregistering, ending its process, done.
fn step_of(stopping: &Value, allocation: &str) -> u8 {
    let mut awaited = stopping["waits_for"].as_array().expect("a list").iter();
    let ended = texts(&stopping["ended"], "child");
    let has_ended = |what: &str| ended.contains(&format!("{what}/{allocation}"));
    let task = awaited.find(|one| one["name"] == format!("task/{allocation}").as_str());
    let message = task.map(|task| task["message"].as_str().expect("a text"));
    match (message, has_ended("allocation"), has_ended("process")) {
        (None, false, false) => 0,
        (Some("deregistering"), false, false) => 1,
        (Some(message), true, false) if message.starts_with("ending process ") => ENDING,
        (None, true, true) => 3,
        _ => panic!("{allocation} is in no step of a stop: {stopping:#}"),
    }
}

/// The log reports every 5 s what a stop still waits for.
#[test]
fn watch_follows_a_stop_to_its_end_and_the_log_tells_what_still_holds_it_up_s3() {
    let stubborn = |name: &str, plugin: &str, grace: &str| {
        allocation(name, plugin, "node", &["--ignore-sigterm"], &format!("stop_grace = {grace:?}"))
    };
    let stage = Stage::new(&(stubborn("slow", "zfs", "7500ms") + &stubborn("slower", "nfs", "12500ms")));
    let host = stage.run();
    host.until_active("csi-node", "zfs", "slow");
    host.until_active("csi-node", "nfs", "slower");
    let mut in_json = watching(&stage, &["--json"]);
    let mut in_words = watching(&stage, &[]);
    let mut lines = BufReader::new(in_json.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
    let mut words = BufReader::new(in_words.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
    assert!(lines.next().is_some_and(|line| line.contains("snapshot")), "it watches");
    let first = words.next().expect("it watches");
    host.signal(Signal::TERM);

    let mut lines = lines.map(|line| serde_json::from_str::<Value>(&line).expect("it is JSON"));
    let mut seen = Vec::new();
    while !seen.last().is_some_and(|line: &Value| line["about"]["stopping"].is_object()) {
        seen.push(lines.next().expect("it tells of the stop"));
    }
    // A watcher that starts now sees at once that the host stops and what it waits for, and then its end.
    let late = watching(&stage, &["--json"]).wait_with_output().expect("it is our child");
    let late = String::from_utf8_lossy(&late.stdout).into_owned();
    let late: Vec<Value> = late.lines().map(|line| serde_json::from_str(line).expect("it is JSON")).collect();
    let stopping = &late[0]["about"]["host"]["stopping"];
    assert!(texts(&stopping["waits_for"], "name").contains(&"task/slower".to_owned()), "{:#}", late[0]);
    let last = late.iter().rfind(|line| line["news"] == "host_changed").expect("it changes");
    assert_eq!(last["about"]["stopping"]["waits_for"], json!([]), "{last:#}");

    let lines: Vec<Value> = seen.into_iter().chain(lines).collect();
    let of_host = lines.iter().filter(|line| line["news"] == "host_changed");
    let stops: Vec<&Value> = of_host.map(|line| &line["about"]["stopping"]).collect();
    let (both, one) = (["host/agent", "task/slow", "task/slower"], ["host/agent", "task/slower"]);
    // Each is deregistered first, and then its process ends (SHD-04); it does not come back.
    for name in ["slow", "slower"] {
        let steps: Vec<u8> = stops.iter().map(|stopping| step_of(stopping, name)).collect();
        assert!(steps.is_sorted(), "{name} goes through {steps:?}: {stops:#?}");
    }
    let waits_for = |names: &[&str]| {
        let is_meant = |stopping: &&Value| {
            texts(&stopping["waits_for"], "name") == names
                && names[1..].iter().all(|name| step_of(stopping, &name["task/".len()..]) == ENDING)
        };
        let place = stops.iter().position(is_meant);
        place.unwrap_or_else(|| panic!("a wait for {names:?} is not in {stops:#?}"))
    };
    let (both, one) = (waits_for(&both), waits_for(&one));
    assert!(both < one, "{stops:#?}");
    let last = stops.last().expect("one");
    assert_eq!(last["waits_for"], json!([]), "{last:#}");
    let ended = texts(&last["ended"], "child");
    let is_in = |name: &str| ended.iter().any(|child| child == name);
    assert!(
        ["allocation/slow", "process/slow", "allocation/slower", "process/slower"]
            .iter()
            .all(|name| is_in(name))
    );
    // The other one ends with the agent, which reports allocations.
    let of_it = |line: &&Value| line["news"] == "allocation_changed" && line["about"]["name"] == "slow";
    let slow = lines.iter().rfind(of_it).expect("it changes");
    assert_eq!(slow["about"]["task"], "stopped", "{slow:#}");

    let words: Vec<String> = [first].into_iter().chain(words).collect();
    let words = words.join("\n");
    for told in [
        "the host is stopping for",
        "waits for task/slow: ending process",
        "waits for task/slower: ending process",
    ] {
        assert!(words.contains(told), "{told} is not in {words}");
    }
    for watching in [in_json, in_words] {
        let ended = watching.wait_with_output().expect("it is our child");
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.code() == Some(1) && said.contains("the host has ended"), "{said}");
    }

    let log = stage.directory.path().join("stderr");
    assert_eq!(host.ended().0.code(), Some(0));
    let log = std::fs::read_to_string(log).expect("it is there");
    let still = |name: &str| {
        let told = format!("still stopping waits_for=\"{name}\" state=\"ending process ");
        log.lines().filter(|line| line.contains(" INFO ") && line.contains(&told)).count()
    };
    // The slower one is reported at least as often, also on a slow machine.
    assert!(still("task/slow") >= 1 && still("task/slower") >= still("task/slow"), "{log}");
    assert!(log.contains("waits_for=\"host/agent\" state=\"\" stops_within_ms="), "{log}");
}

/// An allocation whose process ends at once.
const FALLS: &str = "[[allocation]]\nname = \"falls\"\nplugin = \"bad\"\ntype = \"node\"\ncommand = [\"/bin/sh\", \"-c\", \"exit 3\"]\n";

#[test]
fn an_allocation_that_crashes_in_a_loop_is_given_up_in_the_log_and_shown_so_hlt_08() {
    for format in ["text", "json"] {
        let stage =
            Stage::new(&format!("[restart]\nattempts = 2\nwindow = \"1m\"\ndelay = \"10ms\"\n{FALLS}"));
        let host = stage.run_as(&["--log-format", format], &[]);
        let status = host.until("one that is given up", |status| task(status, "falls")["task"] == "failed");
        let row = task(&status, "falls");
        assert_eq!((&row["restarts"], &row["pid"]), (&json!(2), &Value::Null), "{row:#}");
        let why = "process ended: exit code 3; given up after 2 restarts within 60s";
        assert_eq!(row["last_event"], why, "{row:#}");
        let bad = shown(&status, "bad");
        assert_eq!((&bad["health"], &bad["expected"]), (&json!("gone"), &json!(1)), "{bad:#}");
        assert_eq!(bad["reason"], format!("falls: {why}"), "{bad:#}");
        let table = String::from_utf8(host.ask(&["status"]).stdout).expect("text");
        let row_of_table = table.lines().find(|line| line.starts_with("falls ")).expect("it is listed");
        assert!(row_of_table.contains(" failed ") && table.contains(why), "{table}");
        let whole = String::from_utf8(host.ask(&["status", "falls"]).stdout).expect("text");
        assert!(whole.contains("failed") && whole.contains(why), "{whole}");
        let check = host.ask(&["health", "falls"]);
        assert_eq!(check.status.code(), Some(3), "{check:?}");

        let line = "an allocation was given up";
        until_true(line, TIMEOUT, || host.log().contains(line));
        let log = host.log();
        let said: Vec<&str> = log.lines().filter(|one| one.contains(line)).collect();
        let [said] = said[..] else { panic!("it is said once: {log}") };
        if format == "text" {
            let fields = format!(
                "allocation=falls attempt=3 restarts=2 health=\"gone\" exit=\"exit code 3\" error={why:?}"
            );
            assert!(said.contains(" ERROR ") && said.contains(&fields), "{said}");
        } else {
            let said: Value = serde_json::from_str(said).expect("it is JSON");
            assert_eq!(said["level"], "error", "{said}");
            let fields = &said["fields"];
            let keys = ["allocation", "attempt", "restarts", "health", "exit", "error"];
            let told = keys.map(|key| fields[key].clone());
            assert_eq!(
                told,
                [json!("falls"), json!(3), json!(2), json!("gone"), json!("exit code 3"), json!(why)],
                "{said}"
            );
        }
    }
}

/// A driver with these additional lines in its table, and a task that runs this script.
fn job(driver: &str, more: &str, script: &str) -> String {
    format!(
        "[[driver]]\nname = {driver:?}\n{more}\n[[task]]\nname = \"job\"\ndriver = {driver:?}\n\
         config = {{ command = \"/bin/sh\", args = [\"-c\", {script:?}] }}\n"
    )
}

#[test]
fn an_exit_that_its_driver_loses_in_the_wait_is_read_from_what_it_has_recorded_t148() {
    let command = [CALLBOARD, "plugin", "exec", "--name", "exec", "--allow-builtin-name", "--lose-exits"];
    let more = format!("command = {command:?}\n");
    let stage = Stage::new(&format!("[restart]\nattempts = 0\n{}", job("exec", &more, "exit 7")));
    let host = stage.run();
    let status = host.until("its end", |status| driven::find(status, "tasks", "job")["state"] == "failed");
    let exit = &driven::find(&status, "tasks", "job")["exit"];
    assert_eq!((&exit["how"], &exit["code"]), (&json!("exited"), &json!(7)), "{status:#}");
}

#[test]
fn the_log_tells_of_each_task_what_became_of_it_in_fields_that_can_be_parsed() {
    let stage = Stage::new("");
    let go = stage.directory.path().join("go");
    let script = format!("until rm {}; do sleep 0.01; done; exit 3", go.display());
    stage.configure(&format!("[restart]\nattempts = 1\ndelay = \"10ms\"\n{}", job("exec", "", &script)));
    let host = stage.run_as(&["--log-format", "json"], &[]);
    for restarts in 0..2 {
        host.until("a task that runs", |status| {
            let job = driven::find(status, "tasks", "job");
            job["state"] == "running" && job["restarts"] == restarts
        });
        std::fs::write(&go, "").expect("it is writable");
    }
    host.until("a task that is given up", |status| driven::find(status, "tasks", "job")["state"] == "failed");
    host.signal(Signal::TERM);
    let log = stage.directory.path().join("stderr");
    assert_eq!(host.ended().0.code(), Some(0));
    let log = std::fs::read_to_string(log).expect("it is there");
    let lines: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    let said = |message: &str| -> Vec<&Value> {
        let of_it = lines.iter().filter(|line| line["message"] == message && line["fields"]["task"] == "job");
        of_it.collect()
    };
    assert_eq!(said("a task runs").len(), 2);
    let ended = said("a task ended");
    assert_eq!(ended.len(), 2);
    assert!(
        ended.iter().all(|line| line["level"] == "warn" && line["fields"]["exit"] == "exited with code 3")
    );
    let (again, given_up) = (said("a task is started again")[0], said("a task was given up")[0]);
    assert_eq!((&again["fields"]["restarts"], &again["fields"]["attempt"]), (&json!(1), &json!(1)));
    assert_eq!((&given_up["level"], &given_up["fields"]["attempt"]), (&json!("error"), &json!(2)));
    for line in [again, given_up] {
        assert_eq!(line["fields"]["exit"], "exited with code 3", "{line}");
    }
    for line in &lines {
        let fields = line["fields"].as_object().into_iter().flatten();
        let is_nested = |text: &str| ["Some(", "None", "[\""].iter().any(|start| text.starts_with(start));
        let nested: Vec<_> = fields.filter(|(_, value)| value.as_str().is_some_and(is_nested)).collect();
        assert!(nested.is_empty(), "{line}");
    }
}

/// Whether a text is a duration in Rust's debug format: `1.500000001s`, `30ms`.
fn is_debug_duration(text: &str) -> bool {
    let text = text.trim_matches(|c: char| c == '"' || c == ',');
    let unit = ["ns", "µs", "ms", "s"].iter().find_map(|unit| text.strip_suffix(unit));
    unit.is_some_and(|number| !number.is_empty() && number.parse::<f64>().is_ok())
}

/// The places where a text shows a value in Rust's debug format: `Some(..)`, `Name { field: .. }`, and in fields `name=1.5s`.
fn debug_forms(text: &str) -> Vec<&str> {
    let is_debug = |line: &&str| {
        let has_fields = line.match_indices(" { ").any(|(at, _)| {
            let before = line[..at].rsplit(|c: char| !c.is_alphanumeric()).next();
            before.is_some_and(|word| word.starts_with(char::is_uppercase))
        });
        let fields = line.split(' ').filter_map(|word| word.split_once('=').or_else(|| word.split_once(':')));
        let has_duration = fields.into_iter().any(|(_, value)| is_debug_duration(value));
        has_fields || has_duration || ["Some(", "None", "Ok(", "Err("].iter().any(|form| line.contains(form))
    };
    text.lines().filter(is_debug).collect()
}

#[test]
fn no_output_shows_a_value_as_rust_does_to_programmers_log_02() {
    assert_eq!(debug_forms("exit=Some(3)\nLastExit { at: 1 }\nits { and }\n").len(), 2);
    assert_eq!(debug_forms("pause=1.500000001s\ntook=30ms\ntook_ms=30\nin 3s\n").len(), 2);
    for format in ["text", "json"] {
        let stage = Stage::new("");
        let (volumes, directory) =
            (stage.directory.path().join("volumes"), stage.directory.path().display().to_string());
        let volumes = volumes.to_str().expect("text");
        let serves = allocation("serves", "zfs", "monolith", &["--volumes", volumes], "");
        let idle = allocation("idle", "off", "node", &[], "start = false");
        let broken = "[[driver]]\nname = \"broken\"\ncommand = \"/bin/false\"\n";
        let waits = "[[task]]\nname = \"waits\"\ndriver = \"broken\"\nconfig = { command = \"/bin/true\" }\n";
        let web = driven::task(&directory, "web", "");
        let restart = "[restart]\nattempts = 1\ndelay = \"10ms\"\n";
        let jobs = job("exec", "", "exit 3");
        stage.configure(&format!("{restart}{serves}{FALLS}{idle}{broken}{waits}{jobs}{web}"));
        let host = stage.run_as(&["--log-format", format], &[]);
        let watches = [&[][..], &["--json"], &["--timeline"]].map(|form| watching(&stage, form));
        host.until_active("csi-node", "zfs", "serves");
        let created = ["volume", "create", "data", "--plugin", "zfs", "--capacity", "1MiB"];
        let refused = ["volume", "create", "more", "--plugin", "off", "--capacity", "1MiB"];
        let mut said: Vec<Output> = [created, refused].iter().map(|words| host.ask(words)).collect();
        host.until("all that is to fail", |status| {
            let is = |list, name, key, value: &str| driven::find(status, list, name)[key] == value;
            is("allocations", "falls", "task", "failed")
                && is("tasks", "job", "state", "failed")
                && is("tasks", "waits", "state", "waiting")
                && is("tasks", "web", "state", "running")
                && status["volumes"] != json!([])
        });
        let names =
            ["zfs", "bad", "serves", "falls", "idle", "exec", "broken", "web", "job", "waits", "data"];
        let of_each = names.iter().flat_map(|name| [vec!["status", name], vec!["health", name]]);
        let all: [&[&str]; 5] =
            [&["status"], &["tree"], &["health"], &["volume", "list"], &["volume", "status", "data"]];
        let of_all = all.into_iter().flat_map(|words| [words.to_vec(), [words, &["--json"][..]].concat()]);
        said.extend(of_each.chain(of_all).map(|words| host.ask(&words)));
        said.extend(
            [["start", "serves"], ["stop", "serves"], ["stop", "web"], ["stop", "nothing"]]
                .map(|words| host.ask(&words)),
        );
        let log = stage.directory.path().join("stderr");
        said.push(host.ask(&["shutdown"]));
        let (_, printed) = host.ended();
        said.extend(watches.map(|watching| watching.wait_with_output().expect("it is our child")));
        let log = std::fs::read_to_string(log).expect("it is there");
        let said = said.iter().flat_map(|output| [&output.stdout, &output.stderr]);
        let said = said.map(|text| String::from_utf8_lossy(text).into_owned()).chain([printed, log]);
        let said: String = said.collect();
        assert!(said.contains("was given up") && said.contains("default/data"), "{said}");
        let found = debug_forms(&said);
        assert!(found.is_empty(), "{found:#?}");
    }
}

#[test]
fn the_first_inventory_of_a_fresh_start_has_what_is_configured_and_an_ordered_stop_removes_it_at_once_n1_hlt_08()
 {
    let slow = allocation("slow", "zfs", "node", &["--listen-after", "500ms"], "");
    let falls = "[[allocation]]\nname = \"falls\"\nplugin = \"bad\"\ntype = \"node\"\ncommand = [\"/bin/sh\", \"-c\", \"exit 3\"]\n";
    let stage = Stage::new(&format!("[restart]\nattempts = 1\ndelay = \"10ms\"\n{slow}{falls}"));
    let host = stage.run();
    let published = "first fingerprints are published";
    until_true("the first inventory", TIMEOUT, || host.log().contains(published));
    let log = host.log();
    let summary = log.lines().find(|line| line.contains(published)).expect("it is there");
    assert!(summary.contains("healthy=1 unhealthy=0 gone=1 undetected=0 no_answer=0"), "{log}");
    assert!(log.contains("first fingerprint plugin=csi-node/bad state=\"gone\""), "{log}");
    assert!(!log.contains("no answer yet"), "{log}");

    assert!(host.ask(&["stop", "slow"]).status.success());
    let removed = "offer removed plugin=csi-node/zfs";
    until_true("the removal", Duration::from_secs(5), || host.log().contains(removed));
}

#[test]
fn the_events_of_what_starts_with_the_host_begin_with_its_start() {
    let stage = Stage::new(&allocation("a", "zfs", "node", &[], ""));
    let host = stage.run();
    host.until_active("csi-node", "zfs", "a");
    let whole = host.json(&["status", "a"]);
    let first = &whole["allocations"][0]["events"][0]["text"];
    assert_eq!(first, "preparing", "{whole:#}");
}

#[test]
fn the_exit_code_tells_whether_a_host_or_a_thing_is_well() {
    let idle = allocation("b", "nfs", "node", &[], "start = false");
    let stage = Stage::new(
        &("[restart]\ndelay = \"1h\"\n".to_owned() + &allocation("a", "zfs", "node", &[], "") + &idle),
    );
    let host = stage.run();
    host.until_active("csi-node", "zfs", "a");
    host.until("a healthy allocation", |status| task(status, "a")["health"] == "healthy");
    let code = |words: &[&str]| host.ask(words).status.code();
    let said = |words: &[&str]| String::from_utf8(host.ask(words).stdout).expect("text");
    assert_eq!((code(&["health"]), said(&["health"])), (Some(0), "all is well\n".to_owned()));
    assert_eq!(code(&["status", "--check"]), Some(0));
    assert!(said(&["status"]).contains("all is well"));
    assert_eq!(code(&["health", "unknown"]), Some(1));

    program::left::kill_if_there(pid_of(&host.json(&["status"]), "a"));
    host.until("its end", |status| task(status, "a")["task"] != "running");
    let log = host.log();
    let is_untrue = |line: &&str| {
        line.contains("allocation changed") && !line.contains(" health=") && line.contains("event=\"healthy")
    };
    assert_eq!(log.lines().find(is_untrue), None, "{log}");
    assert_eq!(
        (code(&["health", "zfs"]), code(&["status", "--check"]), code(&["status"])),
        (Some(3), Some(3), Some(0))
    );
    let told: Value = serde_json::from_slice(&host.ask(&["health", "--json"]).stdout).expect("it is JSON");
    assert_eq!((&told["well"], &told["not_well"][0]["name"]), (&json!(false), &json!("csi-node/zfs")));
    let whole = said(&["status", "zfs"]);
    assert!(
        whole.contains("plugin zfs") && whole.contains("allocation a") && !whole.contains("allocation b"),
        "{whole}"
    );
    // The host runs, but does not answer.
    host.signal(Signal::STOP);
    assert_eq!(code(&["health"]), Some(3));
    host.signal(Signal::CONT);
    host.signal(Signal::TERM);
    host.ended();
    let after = Command::new(CALLBOARD);
    let ended = |mut command: Command| {
        command.args(["health", "--data-dir"]).arg(stage.data_dir()).output().expect("it runs")
    };
    assert_eq!(ended(after).status.code(), Some(4));
    let mut file = Command::new(CALLBOARD);
    let refused = file.args(["health", "--socket", CALLBOARD]).output().expect("it runs");
    let told = String::from_utf8_lossy(&refused.stderr);
    assert!(told.contains("it is not a socket") && refused.status.code() == Some(1), "{told}");
}

#[test]
fn a_task_whose_driver_cannot_be_had_keeps_one_state_and_holds_up_no_stop() {
    let driver = "[[driver]]\nname = \"exec\"\ncommand = \"/bin/false\"\n";
    let job = "[[task]]\nname = \"job\"\ndriver = \"exec\"\nconfig = { command = \"/bin/true\" }\n";
    let stage = Stage::new(&format!("{driver}{job}"));
    let host = stage.run();
    let waits = |status: &Value| driven::find(status, "tasks", "job").clone();
    let first = waits(&host.until("a task that waits", |status| waits(status)["state"] == "waiting"));
    assert!(
        first["last_event"].as_str().is_some_and(|note| note.starts_with("cannot be started yet")),
        "{first}"
    );
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(2) {
        let now = waits(&host.json(&["status"]));
        assert_eq!(
            (&now["state"], &now["since_unix_ms"]),
            (&first["state"], &first["since_unix_ms"]),
            "{now}"
        );
    }
    let asked = Instant::now();
    host.signal(Signal::TERM);
    assert_eq!(host.ended().0.code(), Some(0));
    assert!(asked.elapsed() < Duration::from_secs(2), "it waited for the driver");
}

#[test]
fn failures_come_first_in_each_table_below_a_line_that_sums_up_log_05() {
    let good = allocation("a", "aaa", "node", &[], "");
    let bad = "[[allocation]]\nname = \"z\"\nplugin = \"zzz\"\ntype = \"node\"\ncommand = [\"/bin/sh\", \"-c\", \"exit 3\"]\n";
    let drivers = "[[driver]]\nname = \"exec\"\n[[driver]]\nname = \"raw\"\ncommand = \"/bin/false\"\n";
    let task = |name: &str, key: &str| {
        format!(
            "[[task]]\nname = {name:?}\ndriver = \"exec\"\nconfig = {{ {key} = \"/bin/sleep\", args = [\"1000\"] }}\n"
        )
    };
    let tasks = task("fine", "command") + &task("lost", "comand");
    let stage = Stage::new(&format!("[restart]\nattempts = 0\n{good}{bad}{drivers}{tasks}"));
    let host = stage.run();
    host.until("what is well and what is not", |status| {
        shown(status, "aaa")["health"] == "healthy"
            && task_is(status, "fine", "running")
            && task_is(status, "lost", "failed")
            && program::task(status, "z")["task"] == "failed"
            && driven::find(status, "drivers", "raw")["health"] == "unhealthy"
    });
    let text = String::from_utf8(host.ask(&["status"]).stdout).expect("text");
    let lines: Vec<&str> = text.lines().collect();
    let at = |start: &str| {
        let found = lines.iter().position(|line| line.starts_with(start));
        found.unwrap_or_else(|| panic!("{start:?} in {text}"))
    };
    let summary = at("4 not well: plugin csi-node/zzz, allocation z, driver raw, task lost");
    for (head, bad, good) in [
        ("PLUGIN ", "zzz ", "aaa "),
        ("ALLOCATION ", "z ", "a "),
        ("DRIVER ", "raw ", "exec "),
        ("TASK ", "lost ", "fine "),
    ] {
        assert!(summary < at(head) && at(head) + 1 == at(bad) && at(bad) < at(good), "{head}: {text}");
    }
}

fn task_is(status: &Value, name: &str, state: &str) -> bool {
    driven::find(status, "tasks", name)["state"] == state
}

/// A call that never gets an answer, made by another client of the host.
struct Hanging(Child);

impl Drop for Hanging {
    fn drop(&mut self) {
        // The process may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn leases_and_calls_in_flight_are_shown_and_a_stop_waits_for_them_within_its_bound_and_says_what_it_cut_a4_shd_04()
 {
    let stage = Stage::new("");
    let volumes = stage.directory.path().join("volumes");
    let arguments = ["--volumes", volumes.to_str().expect("text"), "--fault", "GetCapacity=hang"];
    stage.configure(&allocation("a", "zfs", "controller", &arguments, "probe_interval = \"1h\""));
    let host = stage.run();
    host.until_active("csi-controller", "zfs", "a");
    let ask = |words: &[&str]| {
        let mut command = Command::new(CALLBOARD);
        command.args(words).arg("--data-dir").arg(stage.data_dir());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Hanging(command.spawn().expect("it runs"))
    };
    let counts = |of: &Value| json!([of["leases"], of["calls_in_flight"]]);
    let of_plugin = |status: &Value| counts(plugin(status, "csi-controller", "zfs"));
    let mut asking = ask(&["volume", "capacity", "zfs"]);
    let status = host.until("its call in flight", |status| of_plugin(status) == json!([1, 1]));
    assert_eq!(counts(task(&status, "a")), json!([1, 1]));
    let text = |words: &[&str]| String::from_utf8(host.ask(words).stdout).expect("text");
    let whole = text(&["status", "zfs"]);
    assert_eq!(whole.matches("  leases  1\n").count(), 2, "of the plugin and its allocation: {whole}");
    assert_eq!(whole.matches("  calls in flight  1\n").count(), 2, "{whole}");
    let tree = text(&["tree"]);
    let node = tree.lines().find(|line| line.contains("instance csi-controller/zfs")).expect("it is there");
    assert!(node.contains("leases: 1, calls in flight: 1"), "{node}");

    let began = Instant::now();
    let mut stopping = ask(&["stop", "a"]);
    host.until("a stop that waits for the call", |status| {
        let a = task(status, "a");
        a["state"] == "stopping" && counts(a) == json!([1, 1])
    });
    assert!(stopping.0.wait().expect("it is our child").success());
    let took = began.elapsed();
    // The call has four seconds to end.
    assert!(took >= Duration::from_secs(3) && took < Duration::from_secs(20), "{took:?}");
    let said = host.log();
    let cut =
        said.lines().find(|line| line.contains("calls were aborted")).unwrap_or_else(|| panic!("{said}"));
    assert!(
        cut.contains(" WARN ") && cut.contains("plugin=csi-controller/zfs") && cut.contains("calls=1"),
        "{cut}"
    );
    assert_eq!(asking.0.wait().expect("it is our child").code(), Some(1));
    let mut error = String::new();
    std::io::Read::read_to_string(&mut asking.0.stderr.take().expect("a pipe"), &mut error)
        .expect("it is text");
    assert!(error.contains("csi-controller/zfs of allocation a") && error.contains("was aborted"), "{error}");
    assert_eq!(counts(task(&host.json(&["status"]), "a")), json!([0, 0]));
}
