//! Tests drivers and tasks of `callboard run`, with the real reference driver: killed drivers, killed hosts, and leftovers.

mod program;

use std::collections::BTreeSet;
use std::fs::Permissions;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use program::driven::{driver_pid, find, kill, starts, task, until_running};
use program::{CALLBOARD, Program, Stage, TIMEOUT, exists, lives, until_true};
use rustix::process::Signal;
use serde_json::{Value, json};

/// A stage with the reference driver and one running task.
fn stage() -> Stage {
    let stage = Stage::new("");
    let directory = stage.directory.path().display().to_string();
    stage.configure(&format!(
        "[[driver]]\nname = \"exec\"\n{}",
        task(&directory, "web", "env = { TOKEN = \"canary-7\" }")
    ));
    stage
}

/// The events of a task that the driver reported, as text and count.
fn told(status: &Value, name: &str) -> Vec<(String, u64)> {
    let events = find(status, "tasks", name)["events"].as_array().expect("a list").clone();
    let event = |event: &Value| {
        (event["text"].as_str().expect("a text").to_owned(), event["count"].as_u64().expect("a number"))
    };
    events.iter().map(event).collect()
}

#[test]
fn a_task_outlives_its_driver_and_its_host_and_no_event_is_lost_or_doubled_prc_04_evt_03() {
    let stage = stage();
    let program = stage.run();
    let status = until_running(&program, "web");
    assert!(
        !program.log().contains("has not reported its capabilities yet"),
        "its driver is healthy when it is asked: {}",
        program.log()
    );
    until_true("the task has begun", TIMEOUT, || starts(&stage, "web").len() == 1);
    let own = starts(&stage, "web")[0];
    let first_driver = driver_pid(&status);

    // The driver is killed: another process of it recovers the task, and nothing is started twice.
    kill(first_driver);
    let status = program.until("another driver with the task", |status| {
        let driver = find(status, "drivers", "exec");
        driver["health"] == "healthy"
            && driver["pid"] != first_driver
            && find(status, "tasks", "web")["state"] == "running"
    });
    let second_driver = driver_pid(&status);
    assert!(lives(own) && starts(&stage, "web") == [own], "the task is the same: {status:#}");

    // The host is killed: the next host finds the same driver process and the same task.
    program.kill();
    assert!(lives(second_driver) && lives(own), "both outlive the host");
    let program = stage.run();
    let status = until_running(&program, "web");
    let driver = find(&status, "drivers", "exec");
    assert_eq!(
        (driver_pid(&status), &driver["adopted"], &driver["launches"]),
        (second_driver, &true.into(), &0.into())
    );
    assert_eq!(starts(&stage, "web"), [own]);

    let database = std::fs::read(stage.data_dir().join("callboard.redb")).expect("it is there");
    assert!(!database.windows(8).any(|window| window == b"canary-7"), "no secret is stored (P6)");

    // The task is stopped through its driver, and each event was reported exactly once in all.
    let report = program.json(&["stop", "web"]);
    assert_eq!(report["report"][0]["child"], "task/web", "{report:#}");
    until_true("its process is gone", TIMEOUT, || !lives(own));
    let status = program.until("the last event", |status| {
        find(status, "tasks", "web")["state"] == "stopped" && told(status, "web").len() >= 2
    });
    let task = find(&status, "tasks", "web");
    assert_eq!(task["exit"]["success"], false, "{task:#}");
    assert!(told(&status, "web").iter().all(|(_, count)| *count == 1), "each once: {task:#}");
    assert_eq!(task["events_missed"], 0, "{task:#}");
    assert_eq!(task["events_told"], told(&status, "web").len(), "{task:#}");

    program.signal(Signal::TERM);
    let (ended, printed) = program.ended();
    assert!(ended.success(), "{printed}");
    until_true("the driver is gone", TIMEOUT, || !exists(second_driver));
}

#[test]
fn a_driver_whose_arguments_were_corrected_is_launched_anew_by_the_next_host_and_its_task_goes_on_prc_04() {
    let stage = Stage::new("");
    let directory = stage.directory.path().display().to_string();
    let configure = |arguments: &str| {
        let driver = format!("[[driver]]\nname = \"exec\"\n{arguments}\n");
        stage.configure(&format!("{driver}{}", task(&directory, "web", "")));
    };
    configure("args = [\"--fail\", \"TaskStats=UNIMPLEMENTED\"]");
    let program = stage.run();
    let status = until_running(&program, "web");
    until_true("the task has begun", TIMEOUT, || starts(&stage, "web").len() == 1);
    let (wrong, own) = (driver_pid(&status), starts(&stage, "web")[0]);
    program.kill();
    assert!(lives(wrong) && lives(own), "both outlive the host");

    configure("");
    let program = stage.run();
    let status = program.until("another process of the driver, with the task", |status| {
        let driver = find(status, "drivers", "exec");
        driver["health"] == "healthy"
            && driver["pid"] != wrong
            && find(status, "tasks", "web")["state"] == "running"
    });
    let driver = find(&status, "drivers", "exec");
    assert_eq!((&driver["adopted"], &driver["launches"]), (&false.into(), &1.into()), "{status:#}");
    assert!(program.log().contains("started with another configuration"), "{}", program.log());
    assert!(!lives(wrong) && lives(own), "the driver has ended, and its task has not");
    assert_eq!(starts(&stage, "web"), [own]);
    let right = driver_pid(&status);
    program.kill();

    // An unchanged configuration keeps the process of the driver.
    let program = stage.run();
    assert_eq!(driver_pid(&until_running(&program, "web")), right);
    program.signal(Signal::TERM);
    assert!(program.ended().0.success());
    until_true("nothing is left", TIMEOUT, || !exists(right) && !exists(own));
}

#[test]
fn a_host_that_detaches_leaves_its_drivers_and_tasks_and_one_that_stops_leaves_nothing_s3_s4() {
    let stage = stage();
    let program = stage.run();
    let status = until_running(&program, "web");
    let driver = driver_pid(&status);
    until_true("the task has begun", TIMEOUT, || starts(&stage, "web").len() == 1);
    let own = starts(&stage, "web")[0];
    let tree = String::from_utf8(program.ask(&["tree"]).stdout).expect("it is text");
    assert!(tree.contains("task web  running") && tree.contains("driver exec"), "{tree}");

    let report = program.ask(&["shutdown", "--detach"]);
    assert!(report.status.success(), "{}", String::from_utf8_lossy(&report.stderr));
    let printed = String::from_utf8(report.stdout).expect("it is text");
    assert!(printed.contains("left running with driver exec"), "{printed}");
    let is_left = |line: &str| line.starts_with("driver/exec") && line.ends_with("it was left running");
    assert!(printed.lines().any(is_left), "{printed}");
    let (ended, _) = program.ended();
    assert!(ended.success());
    assert!(lives(driver) && lives(own), "both are left");

    let program = stage.run();
    let status = until_running(&program, "web");
    assert_eq!(driver_pid(&status), driver);
    assert_eq!(starts(&stage, "web"), [own]);

    let report = program.json(&["shutdown"]);
    let children: Vec<_> =
        report["report"].as_array().expect("a list").iter().map(|child| &child["child"]).collect();
    let place = |name: &str| children.iter().position(|child| **child == name);
    assert!(
        place("task/web").expect("it is told") < place("host/drivers").expect("it is told"),
        "{report:#}"
    );
    until_true("nothing is left", TIMEOUT, || !exists(driver) && !exists(own));
}

#[test]
fn a_task_whose_configuration_does_not_fit_fails_with_its_place_and_a_command_that_is_not_there_too() {
    let stage = Stage::new("");
    stage.configure(
        "[[driver]]\nname = \"exec\"\n\
         [[task]]\nname = \"bad\"\ndriver = \"exec\"\nconfig = { comand = \"/bin/true\" }\n\
         [[task]]\nname = \"job\"\ndriver = \"exec\"\nrestart = \"none\"\nconfig = { command = \"/bin/sh\", args = [\"-c\", \"exit 3\"] }\n",
    );
    let program = stage.run();
    let status = program.until("both are over", |status| {
        find(status, "tasks", "bad")["state"] == "failed"
            && find(status, "tasks", "job")["state"] == "ended"
            && find(status, "tasks", "job")["events_told"] != 0
    });
    let said = find(&status, "tasks", "bad")["last_event"].as_str().expect("a text").to_owned();
    assert!(said.contains("line 7:12: config.comand: the plugin knows no such key"), "{said}");
    assert!(said.contains("line 7:10: config.command: a string is required here"), "{said}");
    let job = find(&status, "tasks", "job");
    assert_eq!((&job["exit"]["how"], &job["exit"]["code"]), (&"exited".into(), &3.into()), "{job:#}");
    the_keys_of_drivers_and_tasks_are_those_that_are_promised(&status);
    let (code, said) = program.refusal(&["stop", "job"]);
    assert_eq!((code, said.contains("task job does not run: it is ended")), (1, true), "{said}");
    let (code, said) = program.refusal(&["start", "unknown"]);
    assert_eq!((code, said.contains("neither an allocation nor a task")), (1, true), "{said}");
    let shown = String::from_utf8(program.ask(&["status"]).stdout).expect("it is text");
    assert!(shown.contains("DRIVER") && shown.contains("TASK"), "{shown}");
    let driver = driver_pid(&status);
    program.signal(Signal::TERM);
    assert!(program.ended().0.success());
    until_true("the driver is gone", TIMEOUT, || !exists(driver));
}

fn the_keys_of_drivers_and_tasks_are_those_that_are_promised(status: &Value) {
    let keys =
        |value: &Value| -> BTreeSet<String> { value.as_object().expect("a map").keys().cloned().collect() };
    let set = |text: &str| -> BTreeSet<String> { text.split_whitespace().map(str::to_owned).collect() };
    let driver = "name health reason since_unix_ms stage generation pid adopted version attributes capabilities socket \
                  leases calls_in_flight launches lines_dropped bytes_dropped events";
    let exec = find(status, "drivers", "exec");
    assert_eq!(keys(exec), set(driver));
    let capabilities = "send_signals exec fs_isolation network_modes must_create_network mounts \
                        disable_log_collection dynamic_workload_users";
    assert_eq!(keys(&exec["capabilities"]), set(capabilities));
    let job = find(status, "tasks", "job");
    let task = "name driver state since_unix_ms id exit restarts last_event due_unix_ms events events_told events_missed removed logs \
                usage";
    assert_eq!(keys(job), set(task));
    let exit = "how code signal reason success oom_killed at_unix_ms";
    assert_eq!(keys(&job["exit"]), set(exit));
    let event = "text first_unix_ms last_unix_ms count";
    assert_eq!(keys(&job["events"][0]), set(event));
    let documented = include_str!("../docs/command-line.md");
    for key in set(&format!("{driver} {capabilities} {task} {exit} {event}")) {
        assert!(documented.contains(&format!("`{key}`")), "docs/command-line.md does not describe {key}");
    }
}

#[test]
fn a_driver_and_a_task_are_shown_whole_with_their_last_events_and_the_ends_of_their_logs_log_05() {
    let stage = Stage::new("");
    let script = "echo a word; echo a complaint >&2; exec sleep 1000";
    stage.configure(&format!(
        "[[driver]]\nname = \"exec\"\n\
         [[task]]\nname = \"web\"\ndriver = \"exec\"\nconfig = {{ command = \"/bin/sh\", args = [\"-c\", {script:?}] }}\n"
    ));
    let program = stage.run();
    let status = until_running(&program, "web");
    let first = driver_pid(&status);
    assert_eq!(find(&status, "drivers", "exec")["events"], json!([]), "only when it is asked for");
    kill(first);
    program.until("another process of the driver, with its task", |status| {
        let exec = find(status, "drivers", "exec");
        exec["pid"] != first
            && exec["health"] == "healthy"
            && find(status, "tasks", "web")["state"] == "running"
    });

    let of_driver = || program.json(&["status", "exec"]);
    let has_event = |whole: &Value, words: &str| {
        let events = find(whole, "drivers", "exec")["events"].as_array().expect("a list").clone();
        assert!(events.iter().all(|event| event["last_unix_ms"].as_u64() > Some(0)), "{events:?}");
        events.iter().any(|event| event["text"].as_str().expect("a text").contains(words))
    };
    // The latest event may not have reached the list yet, nor the lease of the task that is dispensed again.
    until_true("the events and the leases of the driver", TIMEOUT, || {
        let whole = of_driver();
        let exec = find(&whole, "drivers", "exec");
        has_event(&whole, "signal 9")
            && has_event(&whole, "watching, healthy")
            && exec["leases"].as_u64() >= Some(1)
            && exec["calls_in_flight"].as_u64() >= Some(1)
    });
    let whole = of_driver();
    let exec = find(&whole, "drivers", "exec");
    let capabilities = &exec["capabilities"];
    assert_eq!(
        [&capabilities["send_signals"], &capabilities["exec"], &capabilities["fs_isolation"]],
        [&json!(true), &json!(true), &json!("none")]
    );
    let socket = std::fs::metadata(exec["socket"].as_str().expect("it listens")).expect("it is there");
    assert!(socket.file_type().is_socket());
    let log = exec["log"].as_array().expect("lines");
    assert!(log.iter().any(|line| line.as_str().is_some_and(|line| line.contains("serving"))), "{log:?}");
    assert_eq!((&whole["plugins"], &whole["tasks"][0]["name"]), (&json!([]), &json!("web")));

    until_true("both logs of the task", TIMEOUT, || {
        let web = find(&program.json(&["status", "web"]), "tasks", "web").clone();
        (&web["log"], &web["log_stderr"]) == (&json!(["a word"]), &json!(["a complaint"]))
    });
    let web = program.json(&["status", "web"]);
    assert_eq!(web["drivers"], json!([]), "only what was asked for");
    let shown = |name: &str| String::from_utf8(program.ask(&["status", name]).stdout).expect("it is text");
    let (driver, task) = (shown("exec"), shown("web"));
    let socket = format!("  socket  {}\n", exec["socket"].as_str().expect("it was there"));
    for line in ["driver exec\n", "    exec  true\n", "  health  healthy\n", "  stage  watching\n", &*socket]
    {
        assert!(driver.contains(line), "{line:?} is not in {driver}");
    }
    assert!(
        driver.contains(" ago  watching, healthy") && driver.contains("callboard logs driver/exec"),
        "{driver}"
    );
    for line in ["task web\n", "  state  running\n", "  log\n    a word\n", "  log stderr\n    a complaint\n"]
    {
        assert!(task.contains(line), "{line:?} is not in {task}");
    }
    assert!(task.contains("  events\n    ") && task.contains(" ago  "), "{task}");
    let tree = String::from_utf8(program.ask(&["tree"]).stdout).expect("it is text");
    let node = tree.lines().find(|line| line.contains("driver exec")).expect("it is there");
    assert!(node.contains("leases: ") && node.contains("calls in flight: "), "{node}");
}

#[test]
fn a_task_is_told_of_itself_and_one_that_asks_for_more_than_there_is_fails_alone_th001_th061_t206() {
    let stage = Stage::new("");
    let out = stage.directory.path().join("environment");
    let run =
        format!("config = {{ command = '/bin/sh', args = ['-c', 'env > {}; sleep 600'] }}", out.display());
    stage.configure(&format!(
        "[host]\nnode_name = 'n1'\ndatacenter = 'dc7'\ntask_env_inherit = ['PATH']\n\
         [[driver]]\nname = 'exec'\n\
         [[task]]\nname = 'web'\ndriver = 'exec'\nenv = {{ NOMAD_REGION = 'mine' }}\nmeta = {{ owner = 'me' }}\n\
         resources = {{ cpu = 50, memory = '64MiB' }}\n{run}\n\
         [[task]]\nname = 'large'\ndriver = 'exec'\nrestart = 'none'\nresources = {{ memory = '4000TiB' }}\n{run}\n\
         [[task]]\nname = 'broad'\ndriver = 'exec'\nrestart = 'none'\nresources = {{ cores = 60000 }}\n{run}\n"
    ));
    let program = stage.run();
    let status = program.until("one runs and the others have failed", |status| {
        find(status, "tasks", "web")["state"] == "running"
            && find(status, "tasks", "large")["state"] == "failed"
            && find(status, "tasks", "broad")["state"] == "failed"
    });
    let said = |name: &str| find(&status, "tasks", name)["last_event"].as_str().expect("a text").to_owned();
    assert!(
        said("large").contains("asks for 4194304000 MiB of memory, and this machine has"),
        "{}",
        said("large")
    );
    assert!(
        said("broad").contains("asks for 60000 exclusive cores, but tasks may use only"),
        "{}",
        said("broad")
    );
    assert!(status["host"]["cpu_mhz"].as_u64().is_some_and(|mhz| mhz > 0), "{status:#}");
    let is_told = || std::fs::read_to_string(&out).is_ok_and(|text| text.contains("NOMAD_TASK_NAME="));
    until_true("the task has told its environment", TIMEOUT, is_told);
    let text = std::fs::read_to_string(&out).expect("it was there");
    let variable =
        |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('=')).unwrap_or("");
    let allocation = variable("NOMAD_ALLOC_ID").to_owned();
    assert_eq!((allocation.len(), &allocation[..8]), (36, variable("NOMAD_SHORT_ALLOC_ID")));
    let own = format!("{allocation}/web/");
    assert!(
        find(&status, "tasks", "web")["id"].as_str().is_some_and(|id| id.starts_with(&own)),
        "{status:#}"
    );
    assert!(variable("NOMAD_TASK_DIR").ends_with(&format!("/{own}local")), "{text}");
    assert_eq!((variable("NOMAD_DC"), variable("NOMAD_REGION")), ("dc7", "mine"));
    assert_eq!((variable("NOMAD_CPU_LIMIT"), variable("NOMAD_MEMORY_LIMIT")), ("50", "64"));
    assert_eq!((variable("NOMAD_META_OWNER"), variable("NOMAD_JOB_ID")), ("me", "web"));
    assert!(!variable("PATH").is_empty(), "{text}");
    program.signal(Signal::TERM);
    assert!(program.ended().0.success());
}

/// A plugin directory with this program in it: its arguments decide which plugin it is.
fn plugin_dir(stage: &Stage) -> PathBuf {
    let directory = stage.directory.path().join("plugins");
    std::fs::create_dir(&directory).expect("it is new");
    std::fs::copy(CALLBOARD, directory.join("callboard-raw")).expect("it can be copied");
    directory
}

#[test]
fn a_driver_of_the_plugin_directory_is_asked_who_it_is_and_a_broken_one_keeps_no_other_from_serving_sec_05() {
    let stage = Stage::new("");
    let plugins = plugin_dir(&stage);
    let driver = |name: &str, more: &str| {
        format!(
            "[[driver]]\nname = {name:?}\nplugin = \"callboard-{name}\"\n\
             args = [\"plugin\", \"exec\", \"--name\", {name:?}]\n{more}\n"
        )
    };
    let wrong = driver("raw", "config = { colour = \"red\" }");
    let task = "[[task]]\nname = \"web\"\ndriver = \"raw\"\nconfig = { command = \"/bin/sleep\", args = [\"1000\"] }\n";
    let head = format!("plugin_dir = {plugins:?}\nblock_plugins = [\"callboard-blocked\"]\n");
    let others = format!(
        "{}{}[[driver]]\nname = \"exec\"\n",
        driver("absent", "survives = false"),
        driver("blocked", "")
    );
    stage.configure(&format!("{head}{others}{wrong}{task}"));
    let program = stage.run();
    let refused = |status: &Value, name: &str| find(status, "drivers", name)["health"] == "refused";
    let status = program.until("the good one, and why the others are none", |status| {
        find(status, "drivers", "exec")["health"] == "healthy"
            && ["raw", "absent", "blocked"].iter().all(|name| refused(status, name))
            && find(status, "tasks", "web")["state"] == "failed"
    });
    let reason = |name: &str| find(&status, "drivers", name)["reason"].as_str().expect("a reason").to_owned();
    // An error is reported with its line, like an error in the table of a task.
    let written = std::fs::read_to_string(stage.config()).expect("it was written");
    let line = 1 + written.lines().position(|line| line.contains("colour")).expect("it is there");
    let mistake = format!("line {line}:12: config.colour: the plugin knows no such key");
    assert!(reason("raw").contains(&mistake), "{mistake} is not in {}", reason("raw"));
    assert!(reason("blocked").contains("blocked"), "{}", reason("blocked"));
    // The first inventory waited for all of them.
    for (name, state) in [("exec", "healthy"), ("raw", "unhealthy"), ("absent", "unhealthy")] {
        let told = format!("first fingerprint plugin=driver/{name} state=\"{state}\"");
        until_true(&told, TIMEOUT, || program.log().contains(&told));
    }
    let failed = find(&status, "tasks", "web")["last_event"].as_str().expect("a text").to_owned();
    assert!(failed.contains("driver raw is unavailable") && failed.contains(&mistake), "{failed}");
    program.signal(Signal::TERM);
    assert!(program.ended().0.success());

    // The corrected driver serves. It is bound to its host, so it ends with it, however the host ends.
    let right = driver("raw", "survives = false");
    stage.configure(&format!("{head}{others}{right}{task}"));
    let program = stage.run();
    let status = program.until("the mended driver with its task", |status| {
        find(status, "drivers", "raw")["health"] == "healthy"
            && find(status, "tasks", "web")["state"] == "running"
    });
    let pid = find(&status, "drivers", "raw")["pid"].as_u64().expect("it runs");
    program.kill();
    until_true("a bound driver has ended with its host", TIMEOUT, || !lives(pid));
    let program = stage.run();
    let status = program.until("another process of it, with the same task", |status| {
        find(status, "drivers", "raw")["health"] == "healthy"
            && find(status, "tasks", "web")["state"] == "running"
    });
    assert_eq!(find(&status, "drivers", "raw")["adopted"], false);
    assert_eq!(find(&status, "tasks", "web")["restarts"], 0, "it was recovered and not started again");
    assert_eq!(
        told(&status, "web").iter().filter(|(text, _)| text.contains("tarted")).count(),
        1,
        "{status:#}"
    );
    program.signal(Signal::TERM);
    assert!(program.ended().0.success());
}

#[test]
fn a_task_out_of_reach_is_looked_at_again_by_itself_and_goes_on_when_its_driver_can_be_had_t2() {
    let stage = Stage::new("");
    let plugins = plugin_dir(&stage);
    let directory = stage.directory.path().display().to_string();
    let driver = "[[driver]]\nname = \"exec\"\nplugin = \"callboard-raw\"\nsurvives = false\n\
        args = [\"plugin\", \"exec\", \"--name\", \"exec\", \"--allow-builtin-name\"]\n";
    let task = task(&directory, "web", "look_again = \"1s\"");
    stage.configure(&format!("plugin_dir = {plugins:?}\n{driver}{task}"));
    let program = stage.run();
    let driver = driver_pid(&until_running(&program, "web"));
    until_true("the task has begun", TIMEOUT, || starts(&stage, "web").len() == 1);
    let own = starts(&stage, "web")[0];
    program.kill();
    until_true("the driver has ended with its host", TIMEOUT, || !lives(driver));

    // Its driver is unavailable, so the task is neither recovered nor started again, but checked again and again.
    let (file, away) = (plugins.join("callboard-raw"), stage.directory.path().join("away"));
    std::fs::rename(&file, &away).expect("it is there");
    let program = stage.run();
    let pause = |status: &Value| {
        let task = find(status, "tasks", "web");
        let event = task["last_event"].as_str().filter(|_| task["state"] == "out-of-reach")?;
        let (why, next) = event.split_once("; looked at again in ")?;
        assert!(why.contains("driver exec is unavailable: "), "{event}");
        next.split_once(" s, ")?.0.parse::<u64>().ok()
    };
    let status = program.until("a task out of reach", |status| pause(status).is_some());
    let first = pause(&status);
    program.until("a later pause before the next look", |status| pause(status) > first);
    assert!(lives(own), "nothing has ended it");

    std::fs::rename(&away, &file).expect("it is there");
    until_running(&program, "web");
    assert!(lives(own) && starts(&stage, "web") == [own], "it was recovered and not started again");
    program.signal(Signal::TERM);
    assert!(program.ended().0.success());
    until_true("nothing is left", TIMEOUT, || !lives(own));
}

#[test]
fn a_mute_plugin_delays_no_other_is_reported_after_its_own_time_and_leaves_nothing() {
    let stage = Stage::new("");
    let plugins = plugin_dir(&stage);
    let mute = plugins.join("callboard-mute");
    let script = format!("printf '#!/bin/sh\\nexec sleep 1000\\n' > {mute:?} && chmod 755 {mute:?}");
    assert!(Command::new("/bin/sh").args(["-c", &script]).status().expect("it runs").success());
    let driver = |name: &str, file: &str, more: &str| {
        format!("[[driver]]\nname = {name:?}\nplugin = \"callboard-{file}\"\n{more}\n")
    };
    let good = driver("raw", "raw", "args = [\"plugin\", \"exec\", \"--name\", \"raw\"]");
    let configuration = |start_timeout: &str| {
        let mute = driver("mute", "mute", &format!("start_timeout = {start_timeout:?}"));
        format!("plugin_dir = {plugins:?}\n{mute}{good}")
    };

    // The mute plugin may take as long as it likes: the good one serves meanwhile.
    stage.configure(&configuration("600s"));
    let program = stage.run();
    program.until("the good driver, while the other one says nothing", |status| {
        find(status, "drivers", "raw")["health"] == "healthy"
            && find(status, "drivers", "mute")["health"] == "looked for"
    });
    program.kill();

    // Its own start timeout is that of its configuration.
    stage.configure(&configuration("300ms"));
    let program = stage.run();
    program.until("why the mute one is none", |status| {
        let reason = &find(status, "drivers", "mute")["reason"];
        reason.as_str().is_some_and(|reason| reason.contains("300ms"))
    });
    program.signal(Signal::TERM);
    assert!(program.ended().0.success());

    // Nothing is left of plugins that were only asked for their identity, even if their host was killed meanwhile.
    let left = std::fs::read_dir(stage.data_dir().join("processes")).expect("it is there");
    let left: Vec<_> = left.map(|entry| entry.expect("it can be read").file_name()).collect();
    assert_eq!(left, ["driver-raw"], "{left:?}");
}

#[test]
fn a_start_that_goes_on_although_its_host_was_killed_leads_to_no_second_run_prc_09() {
    let stage = Stage::new("");
    let directory = stage.directory.path().display().to_string();
    let driver = "[[driver]]\nname = \"exec\"\nargs = [\"--late-start\", \"1500ms\"]\n";
    stage.configure(&format!("{driver}{}", task(&directory, "web", "")));
    let program = stage.run();
    program.until("a start under way", |status| {
        find(status, "drivers", "exec")["health"] == "healthy"
            && find(status, "tasks", "web")["last_event"] == "starting"
    });
    let log = stage.data_dir().join("processes/driver-exec/stderr.log");
    let is_told = || std::fs::read_to_string(&log).is_ok_and(|log| log.contains("--late-start"));
    until_true("the driver is told of it", TIMEOUT, is_told);
    program.kill();
    assert!(starts(&stage, "web").is_empty(), "it is not begun yet");

    // The driver answers that it knows no such task, but starts it a second later.
    let program = stage.run();
    let status = until_running(&program, "web");
    assert_eq!(find(&status, "drivers", "exec")["adopted"], true, "{status:#}");
    until_true("the second run has begun", TIMEOUT, || starts(&stage, "web").len() == 2);
    let [first, second] = starts(&stage, "web")[..] else { panic!("two runs") };
    assert!(
        !lives(first) && lives(second),
        "the first one was ended before the second began: {}",
        program.log()
    );
    program.signal(Signal::TERM);
    assert!(program.ended().0.success());
    until_true("nothing is left", TIMEOUT, || !lives(second));
}

#[test]
fn a_host_that_is_killed_at_any_moment_of_a_start_never_runs_a_task_twice_prc_09() {
    const ROUNDS: u64 = 24;
    let stage = Stage::new("");
    let directory = stage.directory.path().display().to_string();
    let restart = "[restart]\nattempts = 1000\ndelay = \"5ms\"\n";
    stage.configure(&format!("{restart}[[driver]]\nname = \"exec\"\n{}", task(&directory, "web", "")));
    let living = || starts(&stage, "web").into_iter().filter(|pid| lives(*pid)).collect::<Vec<_>>();
    let mut random = fastrand::Rng::with_seed(7);
    for round in 0..ROUNDS {
        // Half of the rounds stop the task first, so that the next host starts it again.
        let program = if round % 2 == 0 { stage.begin() } else { stage.run() };
        if round % 2 == 1 {
            let status = until_running(&program, "web");
            until_true("the task has begun", TIMEOUT, || living().len() == 1);
            assert_eq!(living().len(), 1, "{status:#}");
            program.json(&["stop", "web"]);
            assert!(living().is_empty(), "round {round}: {}", program.log());
            assert!(program.ask(&["start", "web"]).status.success());
        }
        std::thread::sleep(Duration::from_millis(random.u64(0..120)));
        program.kill();
        assert!(living().len() <= 1, "round {round}: {:?}", living());
    }
    let program = stage.run();
    let status = until_running(&program, "web");
    until_true("the task has begun", TIMEOUT, || living().len() == 1);
    assert_eq!(find(&status, "tasks", "web")["events_missed"], 0, "{status:#}");
    let (running, driver) = (living(), driver_pid(&status));
    program.signal(Signal::TERM);
    assert!(program.ended().0.success());
    until_true("nothing is left", TIMEOUT, || !exists(driver) && !running.iter().any(|pid| exists(*pid)));
}

#[test]
fn a_refused_driver_is_not_launched_until_its_file_is_another_one_and_its_task_says_so_sec_07() {
    let stage = Stage::new("");
    let directory = stage.directory.path().display().to_string();
    let written = |name: &str, script: &str| {
        let file = stage.directory.path().join(name);
        std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).expect("it is written");
        std::fs::set_permissions(&file, Permissions::from_mode(0o755)).expect("it is ours");
        file
    };
    let arguments = format!("plugin exec --name exec --allow-builtin-name --state-dir {directory}/state");
    let sound = written("sound", &format!("exec {CALLBOARD} {arguments}"));
    let digest = Command::new("sha256sum").arg(&sound).output().expect("it runs").stdout;
    let digest = String::from_utf8(digest).expect("a text")[..64].to_owned();
    let file = written("driver", &format!("touch {directory}/ran"));
    let place = file.display().to_string();
    stage.configure(&format!(
        "[[driver]]\nname = \"exec\"\nsha256 = {digest:?}\ncommand = [{place:?}]\n{}",
        task(&directory, "web", "")
    ));

    let waits_refused = |program: &Program<'_>| {
        program.until("a refused driver whose task says so", |status| {
            let task = find(status, "tasks", "web");
            let event = task["last_event"].as_str().unwrap_or_default();
            assert!(!event.contains("it is not known whether"), "it cannot have begun: {status:#}");
            find(status, "drivers", "exec")["stage"] == "refused"
                && task["state"] == "waiting"
                && event.starts_with("cannot be started yet: driver exec is refused: ")
        })
    };
    // A host that is killed meanwhile leaves a start behind; the next host knows that it had no effect.
    let program = stage.run();
    waits_refused(&program);
    program.kill();
    let program = stage.run();
    waits_refused(&program);
    program.signal(Signal::TERM);
    let (ended, printed) = program.ended();
    assert!(ended.success() && !printed.contains("it may still run"), "{printed}");

    let program = stage.run();
    let status = waits_refused(&program);
    let driver = find(&status, "drivers", "exec");
    assert_eq!((&driver["health"], &driver["launches"]), (&"unhealthy".into(), &0.into()), "{status:#}");
    assert!(driver["reason"].as_str().expect("a text").contains("SHA-256"), "{status:#}");

    std::fs::rename(&sound, &file).expect("it is replaced");
    let status = until_running(&program, "web");
    assert_eq!(find(&status, "drivers", "exec")["launches"], 1, "{status:#}");
    assert!(!stage.directory.path().join("ran").exists(), "what is refused is never run");
    program.json(&["stop", "web"]);
}
