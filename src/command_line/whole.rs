//! Shows one object of a status completely: everything that `--json` shows of it, as lines, and the last lines of its log.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::logs::{LogName, last_lines};
use super::times::{ago, when};
use crate::output::{Palette, Tone, harmless};

/// The lists of a status, and the name of one entry of each.
const LISTS: [(&str, &str); 5] = [
    ("plugins", "plugin"),
    ("allocations", "allocation"),
    ("drivers", "driver"),
    ("tasks", "task"),
    ("volumes", "volume"),
];

/// The values with keys of a plugin, which are shown unchanged.
const KEYS_OF_PLUGINS: [&str; 4] = ["attributes", "context", "manifest", "topology"];

/// How many lines of a log are shown.
const LOG_LINES: u64 = 10;

/// Adds the last lines of each log, if it exists: `log`, and for tasks also `log_stderr`. A log that cannot be read is null, and
/// `log_problem` gives the reason.
pub(super) fn with_logs(mut status: Value) -> Value {
    let data_dir = status["host"]["data_dir"].as_str().unwrap_or_default().to_owned();
    let logs = logs(&status);
    let names: Vec<_> = logs.iter().map(|(_, _, name)| name.clone()).collect();
    let read = last_lines(Path::new(&data_dir), &names, LOG_LINES);
    for ((list, number, LogName { stderr, .. }), read) in logs.into_iter().zip(read) {
        let key = if stderr { "log_stderr" } else { "log" };
        let (lines, problem) = match read {
            Ok(lines) => (json!(lines), Value::Null),
            Err(problem) => (Value::Null, json!(problem.to_string())),
        };
        let thing = &mut status[list][number];
        thing[key] = lines;
        thing[format!("{key}_problem")] = problem;
    }
    status
}

/// The logs of all objects in a status, each with the list and the index of its writer.
fn logs(status: &Value) -> Vec<(&'static str, usize, LogName)> {
    let mut logs = Vec::new();
    for (list, kind) in LISTS.into_iter().filter(|(_, kind)| is_logged(kind)) {
        for (number, thing) in status[list].as_array().into_iter().flatten().enumerate() {
            let full_name = format!("{kind}/{}", thing["name"].as_str().unwrap_or_default());
            let streams: &[bool] = if kind == "task" { &[false, true] } else { &[false] };
            let names = streams.iter().map(|&stderr| LogName { full_name: full_name.clone(), stderr });
            logs.extend(names.map(|name| (list, number, name)));
        }
    }
    logs
}

/// Whether objects of a kind have a log.
fn is_logged(kind: &str) -> bool {
    !matches!(kind, "plugin" | "volume")
}

/// Every object in a status, with all that is known of it.
pub(super) fn text(status: &Value, palette: Palette) -> String {
    let mut text = String::new();
    for (list, kind) in LISTS {
        for thing in status[list].as_array().into_iter().flatten() {
            let name = harmless(thing["name"].as_str().unwrap_or_default());
            text.push_str(&format!("{kind} {}\n", palette.paint(Tone::Good, &name)));
            lines(thing, "  ", palette, &mut text);
            if is_logged(kind) {
                text.push_str(&format!(
                    "  {}  callboard logs {kind}/{name}\n",
                    palette.paint(Tone::Faint, "whole log")
                ));
            }
        }
    }
    text
}

/// The known values of an object: no empty or unknown values, and the long lists last.
fn lines(thing: &Value, indent: &str, palette: Palette, text: &mut String) {
    let all = || thing.as_object().into_iter().flatten();
    for (key, value) in all().filter(|(key, _)| !is_long(key)) {
        line(key, value, indent, palette, text);
    }
    for (key, value) in all().filter(|(key, _)| is_long(key)) {
        let rows: Vec<_> = value.as_array().into_iter().flatten().collect();
        if !rows.is_empty() {
            text.push_str(&format!("{indent}{}\n", palette.paint(Tone::Faint, &label(key))));
        }
        for row in rows {
            let row = if key == "events" { event(row) } else { plain(row) };
            text.push_str(&format!("{indent}  {row}\n"));
        }
    }
}

/// Whether a key has the events of an object, or lines of its log.
fn is_long(key: &str) -> bool {
    key == "events" || key == "log" || key == "log_stderr"
}

/// A key of the JSON, as words.
fn label(key: &str) -> String {
    let words = key.strip_suffix("_unix_ms").or(key.strip_suffix("_ms")).unwrap_or(key);
    harmless(&words.replace('_', " "))
}

fn line(key: &str, value: &Value, indent: &str, palette: Palette, text: &mut String) {
    let label = palette.paint(Tone::Faint, &label(key));
    let entries = if KEYS_OF_PLUGINS.contains(&key) { entries_as_they_are } else { lines };
    match value {
        Value::Null => {}
        Value::Array(all) if all.is_empty() => {}
        Value::Array(all) if all.iter().all(|one| !one.is_object()) => {
            let all: Vec<_> = all.iter().map(plain).collect();
            let between = if all.iter().any(|one| one.contains(' ')) { " | " } else { " " };
            text.push_str(&format!("{indent}{label}  {}\n", all.join(between)));
        }
        Value::Array(all) => {
            text.push_str(&format!("{indent}{label}\n"));
            for one in all {
                text.push_str(&format!("{indent}  -\n"));
                entries(one, &format!("{indent}    "), palette, text);
            }
        }
        Value::Object(map) if map.is_empty() => {}
        Value::Object(_) => {
            text.push_str(&format!("{indent}{label}\n"));
            entries(value, &format!("{indent}  "), palette, text);
        }
        Value::Number(none) if key == "max_volumes" && none.as_u64() == Some(0) => {
            text.push_str(&format!("{indent}{label}  no limit\n"));
        }
        Value::Number(at) if key.ends_with("_unix_ms") => {
            text.push_str(&format!("{indent}{label}  {}\n", when(at.as_u64().unwrap_or_default())));
        }
        Value::Number(span) if key.ends_with("_ms") => {
            let span = Duration::from_millis(span.as_u64().unwrap_or_default());
            text.push_str(&format!("{indent}{label}  {span:?}\n"));
        }
        value => text.push_str(&format!("{indent}{label}  {}\n", plain(value))),
    }
}

/// The entries of a map with keys of a plugin.
fn entries_as_they_are(map: &Value, indent: &str, palette: Palette, text: &mut String) {
    for (key, value) in map.as_object().into_iter().flatten() {
        let key = palette.paint(Tone::Faint, &harmless(key));
        text.push_str(&format!("{indent}{key}  {}\n", plain(value)));
    }
}

/// An event on one line.
fn event(event: &Value) -> String {
    let last = ago(event["last_unix_ms"].as_u64().unwrap_or_default());
    let times = match event["count"].as_u64() {
        Some(count) if count > 1 => format!(" ({count} times)"),
        _ => String::new(),
    };
    format!("{last} ago  {}{times}", plain(&event["text"]))
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => harmless(text),
        other => harmless(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use serde_json::json;

    use super::*;

    #[test]
    fn a_key_that_a_plugin_gives_is_shown_as_it_is() {
        let driver = json!({ "name": "exec", "attributes": { "driver.my_exec.limit_ms": "5" } });
        let volume = json!({ "name": "v", "topology": [{ "zone_unix_ms": "a" }] });
        let shown = text(&json!({ "drivers": [driver], "volumes": [volume] }), Palette::plain());
        let expected = "driver exec\n  attributes\n    driver.my_exec.limit_ms  5\n  name  exec\n  whole log  callboard logs driver/exec\n\
                        volume v\n  name  v\n  topology\n    -\n      zone_unix_ms  a\n";
        assert_eq!(shown, expected);
    }

    #[test]
    fn all_that_is_known_of_a_thing_is_shown_and_nothing_that_is_not() {
        let now = u64::try_from(UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap();
        let (since, calm_until) = (now - 91_800_000, now + 91_800_000);
        let plugin = json!({ "name": "zfs", "since_unix_ms": since, "calm_until_unix_ms": calm_until, "probe_interval_ms": 1_500, "max_volumes": 0, "node_id": "n1\u{1b}[2J", "reason": null, "standby": ["a", "b"], "remarks": ["is odd", "and new"], "capabilities": { "node": ["STAGE_UNSTAGE_VOLUME"] } });
        let shown = text(&json!({ "plugins": [plugin] }), Palette::plain());
        let expected = "plugin zfs\n  calm until  in 1d 1h\n  capabilities\n    node  STAGE_UNSTAGE_VOLUME\n  max volumes  no limit\n  name  zfs\n  node id  n1\\u{1b}[2J\n  probe interval  1.5s\n  remarks  is odd | and new\n  since  1d 1h ago\n  standby  a b\n";
        assert_eq!(shown, expected);
        assert_eq!(text(&json!({ "plugins": [{ "remarks": [] }] }), Palette::plain()), "plugin \n");
        let events =
            json!([{ "text": "is healthy", "count": 2, "first_unix_ms": 0, "last_unix_ms": u64::MAX }]);
        let task =
            json!({ "name": "a", "events": events, "log": ["one line", "another \u{7}"], "log_stderr": [] });
        let expected = "task a\n  name  a\n  events\n    0s ago  is healthy (2 times)\n  log\n    one line\n    another \\u{7}\n  whole log  callboard logs task/a\n";
        assert_eq!(text(&json!({ "tasks": [task] }), Palette::plain()), expected);
    }

    #[test]
    fn a_log_that_cannot_be_read_is_null_and_the_rest_is_shown() {
        let data_dir = tempfile::tempdir().expect("a temporary directory");
        // A file takes the place of the directory for the logs of tasks.
        std::fs::write(data_dir.path().join("logmon"), "").expect("a file");
        let whole = with_logs(json!({
            "host": { "data_dir": data_dir.path() },
            "tasks": [{ "name": "web" }],
            "allocations": [{ "name": "a" }],
        }));
        let (web, a) = (&whole["tasks"][0], &whole["allocations"][0]);
        for log in ["log", "log_stderr"] {
            assert_eq!(web[log], Value::Null, "{web}");
            let problem = web[format!("{log}_problem")].as_str().expect("a reason");
            assert!(problem.starts_with("cannot be read: "), "{web}");
        }
        assert_eq!((&a["log"], &a["log_problem"]), (&json!([]), &Value::Null));
        let shown = text(&whole, Palette::plain());
        assert!(shown.contains("  log problem  cannot be read: "), "{shown}");
        assert!(shown.contains("allocation a\n"), "{shown}");
    }
}
