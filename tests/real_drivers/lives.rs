//! Tests whole lives of tasks under third-party drivers: start, output, signals, stop with a timeout, exit codes.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::program::Program;
use crate::program::driven::find;
use crate::program::left::kill_if_there;
use crate::rig::{DOCKER, EXEC, FORGETFUL, JAVA, Kind, LONG, MOCK, RAW_EXEC, Rig, driver};
use crate::support::go::{DRIVERS, GoPrograms, NEWER_DRIVERS};

/// Tests tasks that end by themselves, each in its own way, and the exits that their host reports.
fn play_ends(programs: &GoPrograms, kind: Kind) {
    let Some(plugins) = programs.or_say(&format!("ends of tasks of {}", kind.driver)) else { return };
    let rig = Rig::new(plugins);
    let job = |name: &str, script: &str| rig.shell(kind, name, script, "restart = \"none\"");
    // In its own process namespace it is the first process, which receives no signal from itself.
    let killed = if kind.is_chroot { "sh -c 'kill -9 $$'; exit $?" } else { "kill -9 $$" };
    rig.configure(kind, &(job("well", "exit 0") + &job("badly", "exit 3") + &job("killed", killed)));
    let program = rig.stage().run();
    let status = program.until_within(LONG, "the end of each", |status| {
        ["well", "badly", "killed"].iter().all(|name| find(status, "tasks", name)["state"] == "ended")
    });
    let exit = |name: &str| find(&status, "tasks", name)["exit"].clone();
    let told = |name: &str| (exit(name)["how"].clone(), exit(name)["success"].clone());
    assert_eq!(told("well"), ("exited".into(), true.into()), "{status:#}");
    assert_eq!(told("badly"), ("exited".into(), false.into()), "{status:#}");
    assert_eq!(exit("badly")["code"], 3, "{status:#}");
    let (how, key, number) =
        if kind.is_chroot { ("exited", "code", 137) } else { ("signalled", "signal", 9) };
    assert_eq!(told("killed"), (how.into(), false.into()), "{status:#}");
    assert_eq!(exit("killed")[key], number, "{status:#}");
    rig.stop(program);
}

#[test]
fn exit_codes_and_signals_of_a_raw_exec_are_told_as_they_were_t148() {
    play_ends(&DRIVERS, RAW_EXEC);
    play_ends(&NEWER_DRIVERS, RAW_EXEC);
}

#[test]
fn exit_codes_and_signals_of_an_exec_are_told_as_they_were_t148() {
    play_ends(&DRIVERS, EXEC);
    play_ends(&NEWER_DRIVERS, EXEC);
}

#[test]
fn a_driver_that_divides_by_cores_and_speeds_and_wants_both_halves_runs_its_task_t020_t021_t090_th001() {
    let Some(plugins) = NEWER_DRIVERS.or_say("a driver that needs topology and resources") else { return };
    let rig = Rig::new(plugins);
    rig.configure(FORGETFUL, &rig.web(FORGETFUL));
    let program = rig.stage().run();
    let status = rig.until_one_copy(&program, FORGETFUL);
    let cores = &find(&status, "drivers", "forgetful")["attributes"]["driver.forgetful.cores"];
    assert!(
        cores.as_str().is_some_and(|cores| cores.parse().is_ok_and(|cores: u32| cores > 0)),
        "{status:#}"
    );
    rig.stop(program);
}

/// Drivers with Nomad's SDK cannot report that they mount nothing.
#[test]
fn what_is_to_be_mounted_for_a_raw_exec_is_refused_and_not_left_out_t077() {
    for programs in [&DRIVERS, &NEWER_DRIVERS] {
        let Some(plugins) = programs.or_say("mounts of tasks of raw_exec") else { return };
        let rig = Rig::new(plugins);
        let more = format!("mounts = [{{ host_path = {:?}, task_path = \"/srv/data\" }}]", rig.path(""));
        rig.configure(RAW_EXEC, &rig.shell(RAW_EXEC, "web", "sleep 100", &more));
        let program = rig.stage().run();
        let status = program
            .until_within(LONG, "a refusal", |status| find(status, "tasks", "web")["state"] == "failed");
        let told = find(&status, "tasks", "web").to_string();
        assert!(told.contains("its driver mounts nothing"), "{status:#}");
        assert_eq!(find(&status, "drivers", "raw_exec")["capabilities"]["mounts"], false, "{status:#}");
        rig.stop(program);
    }
}

/// Drivers with Nomad's SDK record an error as code 0.
#[test]
fn an_error_of_the_wait_is_no_success_although_the_driver_has_recorded_code_0_evt_05() {
    for programs in [&DRIVERS, &NEWER_DRIVERS] {
        let Some(plugins) = programs.or_say("errors of a wait of mock_driver") else { return };
        let rig = Rig::new(plugins);
        let config = "{ run_for = \"1s\", exit_err_msg = \"executor died\" }";
        rig.configure(
            MOCK,
            &format!(
                "[[task]]\nname = \"web\"\ndriver = \"mock_driver\"\nconfig = {config}\nrestart = \"none\"\n"
            ),
        );
        let program = rig.stage().run();
        let status =
            program.until_within(LONG, "its end", |status| find(status, "tasks", "web")["exit"].is_object());
        let exit = &find(&status, "tasks", "web")["exit"];
        assert_eq!((&exit["how"], &exit["success"]), (&"unknown".into(), &false.into()), "{status:#}");
        rig.stop(program);
    }
}

/// The whole output of the task `web`, as `callboard logs` prints it.
fn output(program: &Program<'_>, name: &str) -> String {
    let printed = program.ask(&["logs", name]);
    assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    String::from_utf8(printed.stdout).expect("it is text")
}

/// Tests stops of tasks: with the default signal, with a named signal, and of a task that ignores signals.
fn play_stops(programs: &GoPrograms, kind: Kind) {
    let Some(plugins) = programs.or_say(&format!("stops of tasks of {}", kind.driver)) else { return };
    let rig = Rig::new(plugins);
    let task = |name: &str, script: &str, more: &str| rig.shell(kind, name, script, more);
    let wait = "echo began; while :; do sleep 0.05; done";
    rig.configure(
        kind,
        &(task("polite", &format!("trap 'echo asked; exit 0' INT; {wait}"), "stop_grace = \"30s\"")
            + &task("named", &format!("trap 'echo hup; exit 7' HUP; {wait}"), "kill_signal = \"SIGHUP\"")
            + &task("deaf", &format!("trap '' INT TERM HUP; {wait}"), "stop_grace = \"1s\"")),
    );
    let program = rig.stage().run();
    program.until_within(LONG, "three tasks that run", |status| {
        ["polite", "named", "deaf"].iter().all(|name| find(status, "tasks", name)["state"] == "running")
    });
    for name in ["polite", "named", "deaf"] {
        rig.until(&program, "its first line", || output(&program, name).starts_with("began\n"));
        let stopped = program.ask(&["stop", name]);
        assert!(stopped.status.success(), "{name}: {}", String::from_utf8_lossy(&stopped.stderr));
    }
    let status = program.until("all stopped", |status| {
        ["polite", "named", "deaf"].iter().all(|name| find(status, "tasks", name)["state"] == "stopped")
    });
    let exit = |name: &str| find(&status, "tasks", name)["exit"].clone();
    assert_eq!(
        (output(&program, "polite"), output(&program, "named")),
        ("began\nasked\n".into(), "began\nhup\n".into())
    );
    assert_eq!((&exit("polite")["code"], &exit("named")["code"]), (&0.into(), &7.into()), "{status:#}");
    // An older exec reports its forced end as an exit with code 1.
    assert_eq!(exit("deaf")["success"], false, "{status:#}");
    assert!(kind.is_chroot || exit("deaf")["signal"] == 9, "{status:#}");
    rig.stop(program);
}

#[test]
fn a_task_of_a_raw_exec_is_stopped_by_its_signal_or_after_its_time_th080_t145() {
    play_stops(&DRIVERS, RAW_EXEC);
    play_stops(&NEWER_DRIVERS, RAW_EXEC);
}

#[test]
fn a_task_of_an_exec_is_stopped_by_its_signal_or_after_its_time_th080_t145() {
    play_stops(&DRIVERS, EXEC);
    play_stops(&NEWER_DRIVERS, EXEC);
}

#[test]
fn a_host_that_is_killed_again_and_again_loses_no_line_of_a_raw_exec_t060_t063_t064() {
    let Some(plugins) = NEWER_DRIVERS.or_say("the log of a raw_exec over restarts") else { return };
    let rig = Rig::new(plugins);
    let script = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); echo line $i; sleep 0.005; done";
    rig.configure(RAW_EXEC, &rig.shell(RAW_EXEC, "web", script, ""));
    let mut program = rig.stage().run();
    let lines = |program: &Program<'_>| output(program, "web").lines().count();
    for _ in 0..4 {
        program.until_within(LONG, "the task", |status| find(status, "tasks", "web")["state"] == "running");
        let before = lines(&program);
        rig.until(&program, "some more lines", || lines(&program) > before + 20);
        program.kill();
        program = rig.stage().run();
    }
    let before = lines(&program);
    rig.until(&program, "some more lines", || lines(&program) > before + 20);
    assert!(program.ask(&["stop", "web"]).status.success());
    let said = output(&program, "web");
    let expected: String = (1..=said.lines().count()).map(|number| format!("line {number}\n")).collect();
    assert!(said == expected, "each line once and in order, from the first");
    rig.stop(program);
}

#[test]
fn the_mock_driver_writes_into_its_pipes_and_is_recovered_t127_t062() {
    for programs in [&DRIVERS, &NEWER_DRIVERS] {
        let Some(plugins) = programs.or_say("the mock driver") else { return };
        let rig = Rig::new(plugins);
        let task = "[[task]]\nname = \"web\"\ndriver = \"mock_driver\"\n\
                    config = { run_for = \"1h\", stdout_string = \"hello\" }\n";
        rig.configure(MOCK, task);
        let program = rig.stage().run();
        let until_it_runs = |generation: u64| {
            program.until_within(LONG, "the task", |status| {
                let driver = find(status, "drivers", "mock_driver");
                driver["health"] == "healthy"
                    && driver["generation"].as_u64().is_some_and(|own| own > generation)
                    && find(status, "tasks", "web")["state"] == "running"
            })
        };
        let status = until_it_runs(0);
        rig.until(&program, "its text", || output(&program, "web").contains("hello"));
        kill_if_there(driver(&status, MOCK));
        let generation = find(&status, "drivers", "mock_driver")["generation"].as_u64().expect("a number");
        let status = until_it_runs(generation);
        assert_eq!(
            find(&status, "tasks", "web")["restarts"],
            0,
            "recovered and not started again: {status:#}"
        );
        assert!(program.ask(&["stop", "web"]).status.success());
        rig.stop(program);
    }
}

#[test]
fn docker_without_a_daemon_is_undetected_and_stays_so_t124() {
    let Some(plugins) = DRIVERS.or_say("docker's driver") else { return };
    if Path::new("/var/run/docker.sock").exists() {
        return eprintln!("SKIPPED: docker without a daemon is not shown, since there is one");
    }
    let rig = Rig::new(plugins);
    rig.configure(DOCKER, "");
    let program = rig.stage().run();
    let health = |status: &Value| find(status, "drivers", "docker")["health"].clone();
    let status = program.until_within(LONG, "docker undetected", |status| health(status) == "undetected");
    let docker = find(&status, "drivers", "docker");
    assert!(docker["reason"].as_str().is_some_and(|reason| reason.contains("docker daemon")), "{status:#}");
    assert_eq!(docker["launches"], 1, "{status:#}");
    rig.stop(program);
}

/// The configuration of a task of java that runs this `main`, or the reason why there is none.
fn java_task(rig: &Rig, main: &str, more: &str) -> Result<String, String> {
    let classes = rig.path("classes");
    let source =
        format!("public class Main {{ public static void main(String[] a) throws Exception {{ {main} }} }}");
    std::fs::create_dir(&classes).expect("it is new");
    std::fs::write(format!("{classes}/Main.java"), source).expect("it can be written");
    let mut compiler = Command::new("javac");
    compiler.args(["-d", &classes, &format!("{classes}/Main.java")]);
    match compiler.status() {
        Ok(status) if status.success() => {}
        _ => return Err("there is no javac".to_owned()),
    }
    let token = rig.token();
    Ok(format!(
        "[[task]]\nname = \"web\"\ndriver = \"java\"\n{more}\n\
         config = {{ class = \"Main\", class_path = \"/classes\", args = [{token:?}] }}\n\
         mounts = [{{ host_path = {classes:?}, task_path = \"/classes\", read_only = true }}]\n"
    ))
}

#[test]
fn a_class_runs_through_java_and_its_exit_code_is_told_t123() {
    for programs in [&DRIVERS, &NEWER_DRIVERS] {
        let Some(plugins) = programs.or_say("java") else { return };
        let rig = Rig::new(plugins);
        let main = "System.out.println(\"it runs\"); System.exit(3);";
        let task = match java_task(&rig, main, "restart = \"none\"") {
            Ok(task) => task,
            Err(why) => return eprintln!("SKIPPED: java is not shown, since {why}"),
        };
        rig.configure(JAVA, &task);
        let program = rig.stage().run();
        let status = program.until_within(LONG, "its end", |status| {
            ["ended", "failed"].iter().any(|state| find(status, "tasks", "web")["state"] == *state)
        });
        assert_eq!(find(&status, "tasks", "web")["exit"]["code"], 3, "{status:#}\n{}", program.log());
        assert_eq!(output(&program, "web"), "it runs\n");
        rig.stop(program);
    }
}

#[test]
fn a_driver_is_configured_before_it_is_asked_to_recover_t020_t141() {
    let Some(plugins) = NEWER_DRIVERS.or_say("a newer java that is killed") else { return };
    let rig = Rig::new(plugins);
    let task = match java_task(&rig, "Thread.sleep(100000000L);", "") {
        Ok(task) => task,
        Err(why) => return eprintln!("SKIPPED: java is not shown, since {why}"),
    };
    rig.configure(JAVA, &task);
    let program = rig.stage().run();
    let mut status = rig.until_one_copy(&program, JAVA);
    let own = rig.copies();
    for round in 0..4 {
        let pid = driver(&status, JAVA);
        kill_if_there(pid);
        status = program.until_within(LONG, "another driver with the task", |status| {
            let java = find(status, "drivers", "java");
            java["health"] == "healthy"
                && java["pid"] != pid
                && find(status, "tasks", "web")["state"] == "running"
        });
        let told = format!("round {round}: {status:#}\n{}", program.log());
        assert_eq!(find(&status, "drivers", "java")["launches"], round + 2, "none of them fell: {told}");
        assert_eq!(rig.copies(), own, "{told}");
    }
    assert_eq!(find(&status, "tasks", "web")["restarts"], 0, "{status:#}");
    rig.stop(program);
}
