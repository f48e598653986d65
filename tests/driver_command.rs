//! Tests `callboard driver`, with the real reference driver.

mod program;

use program::driven::{driver_pid, find, starts, task, until_running};
use program::{CALLBOARD, Stage, TIMEOUT, exists, lives, until_true};
use rustix::process::Signal;
use serde_json::{Value, json};

#[test]
fn a_driver_is_restarted_by_hand_and_its_tasks_go_on() {
    let stage = Stage::new("");
    let directory = stage.directory.path().display().to_string();
    let others = task(&directory, "job", "start = false");
    let driver = "[[driver]]\nname = \"exec\"\n";
    stage.configure(&format!("{driver}{}{others}", task(&directory, "web", "")));
    let program = stage.run();
    let first = driver_pid(&until_running(&program, "web"));
    until_true("the task has begun", TIMEOUT, || starts(&stage, "web").len() == 1);
    let own = starts(&stage, "web")[0];

    let told = program.json(&["driver", "restart", "exec"]);
    assert_eq!(told, json!({ "restarting": "exec", "pid": first, "resolving": false, "tasks": ["web"] }));
    let another = |status: &Value, before: u64| {
        let driver = find(status, "drivers", "exec");
        driver["health"] == "healthy"
            && driver["pid"] != before
            && find(status, "tasks", "web")["state"] == "running"
    };
    let status =
        program.until("another process of the driver, with the task", |status| another(status, first));
    let second = driver_pid(&status);
    assert!(!lives(first) && lives(own) && starts(&stage, "web") == [own], "{status:#}");

    let output = program.ask(&["driver", "restart", "exec"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let expected = format!(
        "driver exec is being restarted: its process {second} is ended, and another one launched; its task goes on and is recovered: \
         web; `callboard status exec` shows the result\n"
    );
    assert_eq!((output.status.code(), text), (Some(0), expected));
    let status = program.until("a third process of the driver", |status| another(status, second));
    let third = driver_pid(&status);
    assert!(lives(own) && starts(&stage, "web") == [own], "{status:#}");
    assert!(program.log().contains("a driver is to be restarted"), "{}", program.log());

    // The answer to an unknown name lists the known names.
    let (code, error) = program.refusal(&["driver", "restart", "exce"]);
    assert_eq!(code, 1, "{error}");
    assert!(error.contains("the host has no driver exce; it has exec"), "{error}");
    program.json(&["stop", "web"]);
    program.signal(Signal::TERM);
    assert!(program.ended().0.success());
    until_true("nothing is left", TIMEOUT, || !exists(third) && !exists(own));
}

#[test]
fn a_driver_whose_plugin_was_refused_is_looked_for_again_by_hand() {
    let stage = Stage::new("");
    let plugins = stage.directory.path().join("plugins");
    std::fs::create_dir(&plugins).expect("it is new");
    let directory = stage.directory.path().display().to_string();
    let driver = "[[driver]]\nname = \"exec\"\nplugin = \"callboard-raw\"\nsurvives = false\n\
        args = [\"plugin\", \"exec\", \"--name\", \"exec\", \"--allow-builtin-name\"]\n";
    stage.configure(&format!(
        "plugin_dir = {plugins:?}\n{driver}{}",
        task(&directory, "web", "start = false")
    ));
    let program = stage.run();
    program.until("a refused driver", |status| find(status, "drivers", "exec")["health"] == "refused");
    std::fs::copy(CALLBOARD, plugins.join("callboard-raw")).expect("it can be copied");
    let told = program.json(&["driver", "restart", "exec"]);
    assert_eq!(told, json!({ "restarting": "exec", "pid": null, "resolving": true, "tasks": [] }));
    program.until("a healthy driver", |status| find(status, "drivers", "exec")["health"] == "healthy");
    program.signal(Signal::TERM);
    assert!(program.ended().0.success());
}
