//! Tests plugins whose every text is a forged log line or an escape sequence, under a real `callboard run`: the log has one line for
//! each event, whatever the text, and a bounded number of lines.

mod program;

use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use program::driven::find;
use program::{CALLBOARD, Program, Stage, TIMEOUT, until_true};
use rustix::process::Signal;
use serde_json::Value;

/// The text of a plugin that imitates another plugin or the host.
const FORGED: &str =
    "no pool\n2026-11-22T10:00:00.000000Z  INFO forged: all is well\r\u{1b}[2J\u{9b}31m\u{202e}";
/// The beginning of a log line, if the forgery succeeded.
const FORGED_LINE: &str = "2026-11-22T10:00:00.000000Z";
/// The escaped form of the text, which the log must contain.
const ESCAPED: &str =
    "no pool\\n2026-11-22T10:00:00.000000Z  INFO forged: all is well\\r\\u{1b}[2J\\u{9b}31m\\u{202e}";

/// A driver that is a shell script, with the reference driver as `$CALLBOARD` and the forgery as `$FORGED`.
fn driver(name: &str, script: &str) -> String {
    format!(
        "[[driver]]\nname = {name:?}\ncommand = \"/bin/sh\"\nargs = [\"-c\", {script:?}]\n\
         env = {{ CALLBOARD = {CALLBOARD:?}, NAME = {name:?}, FORGED = {} }}\n",
        Value::from(FORGED)
    )
}

/// Every line of the log; checks that none contains a control sequence for a terminal.
fn lines(program: &Program<'_>) -> Vec<String> {
    let log = program.log();
    let is_harmless = |c: char| c == '\n' || c == '\t' || callboard::actors::vocabulary::text::is_harmless(c);
    assert!(log.chars().all(is_harmless), "a terminal would obey: {log:?}");
    let lines: Vec<String> = log.lines().map(str::to_owned).collect();
    for line in &lines {
        assert!(!line.starts_with(FORGED_LINE), "forged: {line}");
        assert!(line.starts_with("20"), "every line begins with its time: {line}");
    }
    lines
}

fn until_logged(program: &Program<'_>, what: &str, is_meant: impl Fn(&str) -> bool) {
    until_true(what, TIMEOUT, || program.log().lines().any(&is_meant));
}

/// One driver for each way in which a text reaches the host.
fn hostile_stage() -> Stage {
    let exec = |arguments: &str| format!("exec \"$CALLBOARD\" plugin exec --name \"$NAME\" {arguments}");
    let hclog = r#"{"@level":"warn","@message":"said\n2026-11-22T10:00:00.000000Z forged","@module":"m\u001b[2J","@caller":"x.go:7","pool":{"name":"tank\n\u202e"},"count":3}"#;
    let drivers = [
        driver("describes", &exec("--say-of-health \"$FORGED\"")),
        driver("fingerprints", &exec("--say-of-fingerprints \"$FORGED\"")),
        driver("refuses", &exec("--fail SetConfig=INTERNAL --say-of-failures \"$FORGED\"")),
        driver("events", &exec("--odd-events 1 --odd-events-of \"$FORGED\"")),
        driver("logs", &format!("printf '%s\\n' '{hclog}' \"[WARN] $FORGED\" >&2; {}", exec(""))),
        driver("dies", "printf '%s\\n' \"panic: $FORGED\" >&2; exit 3"),
        driver("garbage", "printf '%s\\n' \"$FORGED|1|2\"; exit 3"),
    ];
    Stage::new(&drivers.join("\n"))
}

/// Waits until the text of each driver is in the log.
fn until_all_have_spoken(program: &Program<'_>) {
    for name in ["describes", "fingerprints", "refuses", "dies", "garbage"] {
        until_logged(program, name, |line| line.contains(name) && line.contains("all is well"));
    }
    until_logged(program, "the event", |line| line.contains("events") && line.contains("dead letter"));
    until_logged(program, "the line of hclog", |line| line.contains("said") && line.contains("x.go:7"));
}

#[test]
fn no_text_of_a_plugin_forges_a_line_of_the_log_or_moves_a_terminal_log_02() {
    let stage = hostile_stage();
    let program = stage.run();
    until_all_have_spoken(&program);
    let lines = lines(&program);
    let line = |name: &str, words: &str| {
        let found = lines.iter().find(|line| line.contains(name) && line.contains(words));
        found.unwrap_or_else(|| panic!("{name}: {words} is not in {lines:#?}")).clone()
    };
    line("driver=describes", ESCAPED);
    line("driver=fingerprints", ESCAPED);
    line("driver=refuses", ESCAPED);
    line("plugin=driver-logs", ESCAPED.split_once("\\n").expect("two lines").0);
    let hclog = line("plugin=driver-logs", "x.go:7");
    assert!(hclog.contains("callboard::plugin: said\\n2026-11-22T10:00:00.000000Z forged "), "{hclog}");
    assert!(hclog.contains("module=\"m\\u{1b}[2J\" caller=\"x.go:7\""), "{hclog}");
    assert!(hclog.contains(r#"plugin_fields={"count":3,"pool":{"name":"tank"#), "{hclog}");

    let tables = String::from_utf8(program.ask(&["status"]).stdout).expect("it is text");
    let is_harmless = |c: char| c == '\n' || callboard::actors::vocabulary::text::is_harmless(c);
    assert!(
        tables.chars().all(is_harmless) && !tables.lines().any(|line| line.starts_with("2026")),
        "{tables}"
    );
    for name in ["describes", "fingerprints", "refuses", "dies", "garbage"] {
        assert_eq!(tables.lines().filter(|line| line.starts_with(name)).count(), 1, "{tables}");
    }
    let status = program.json(&["status"]);
    let reason = find(&status, "drivers", "describes")["reason"].as_str().expect("a text").to_owned();
    assert_eq!(reason, ESCAPED, "JSON has it whole");
}

#[test]
fn a_log_in_json_has_one_object_on_each_line_with_what_a_plugin_logs_as_an_object_log_02() {
    let stage = hostile_stage();
    let program = stage.run_as(&["--log-format", "json", "--log-level", "debug"], &[]);
    until_all_have_spoken(&program);
    let log = program.log();
    assert!(log.chars().all(|c| c == '\n' || callboard::actors::vocabulary::text::is_harmless(c)), "{log:?}");
    let read =
        |line: &str| serde_json::from_str::<Value>(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    // The last line may be incomplete.
    let whole = log.rsplit_once('\n').expect("it has lines").0;
    let lines: Vec<Value> = whole.lines().map(read).collect();
    for line in &lines {
        let keys: BTreeSet<_> = line.as_object().expect("an object").keys().map(String::as_str).collect();
        assert!(keys.is_superset(&["timestamp", "level", "target", "message", "fields"].into()), "{line}");
    }
    assert!(lines.iter().any(|line| line["level"] == "debug"), "as --log-level says");
    let hclog = lines.iter().find(|line| line["fields"]["caller"] == "x.go:7").expect("it is there");
    assert_eq!((&hclog["level"], &hclog["target"]), (&"warn".into(), &"callboard::plugin".into()));
    assert_eq!(hclog["fields"]["plugin"], "driver-logs");
    assert_eq!(hclog["fields"]["module"], "m\\u{1b}[2J");
    let given = serde_json::json!({ "count": 3, "pool": { "name": "tank\\n\\u{202e}" } });
    assert_eq!(hclog["fields"]["plugin_fields"], given);
}

#[test]
fn fifty_thousand_bad_events_are_some_lines_and_a_count_log_03() {
    const EVENTS: u64 = 50_000;
    let script = format!("exec \"$CALLBOARD\" plugin exec --name noisy --odd-events {EVENTS}");
    let stage = Stage::new(&driver("noisy", &script));
    let program = stage.run();
    let is_bad = |line: &&str| line.contains("driver=noisy") && line.contains("dead letter");
    let left_out = |log: &str| -> u64 {
        let counts = log.lines().filter(|line| line.contains("plugin=noisy left_out="));
        counts.filter_map(|line| line.rsplit_once('=')?.1.parse::<u64>().ok()).sum()
    };
    until_true("every one of them is told or counted", TIMEOUT, || {
        let log = program.log();
        log.lines().filter(is_bad).count() as u64 + left_out(&log) == EVENTS
    });
    let log = program.log();
    let told = log.lines().filter(is_bad).count();
    assert!((1..=100).contains(&told), "{told} lines");
    program.signal(Signal::TERM);
    assert!(program.ended().0.success());
}

#[test]
fn what_the_log_is_to_be_is_refused_in_words_when_it_cannot_be() {
    let stage = Stage::new("");
    let run = |arguments: &[&str], variable: Option<&str>| {
        let mut command = Command::new(CALLBOARD);
        command.args(["run", "--config"]).arg(stage.config()).args(arguments).stdin(Stdio::null());
        command.env_remove("RUST_LOG").envs(variable.map(|value| ("RUST_LOG", value)));
        let output = command.output().expect("it runs");
        (output.status.code(), String::from_utf8(output.stderr).expect("it is text"))
    };
    let (code, told) = run(&["--log-level", "loud"], None);
    assert!(code == Some(2) && told.contains("error, warn, info, debug, trace"), "{told}");
    let (code, told) = run(&["--log-format", "xml"], None);
    assert!(code == Some(2) && told.contains("text, json"), "{told}");
    let (code, told) = run(&[], Some("callboard=loud"));
    assert!(code == Some(2) && told.contains("RUST_LOG is \"callboard=loud\", which is no filter"), "{told}");
    assert!(told.contains("--log-level"), "{told}");
}

#[test]
fn the_command_line_decides_what_is_logged_before_rust_log_does() {
    let stage = Stage::new("");
    let logged = |arguments: &[&str], variable: &str| {
        let program = stage.run_as(arguments, &[("RUST_LOG", variable)]);
        program.signal(Signal::TERM);
        assert!(program.ended().0.success());
        std::fs::read_to_string(stage.directory.path().join("stderr")).expect("it is there")
    };
    assert!(logged(&[], "error").is_empty(), "the variable counts");
    assert!(logged(&["--log-level", "info"], "error").contains("the host runs"), "the argument counts first");
    assert!(logged(&["--log-level", "off"], "callboard=loud").is_empty(), "the variable is not even read");
    assert!(logged(&[], "").contains("the host runs"), "an empty variable says nothing");
}
