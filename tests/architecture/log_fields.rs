//! Checks the fields of events of the log: plain values, and durations in one unit.

use super::{SOURCES, below_root, complain, is_test_file, production_code, root, rust_files};

/// `?name` in a line of code: a field of the log that is written as Debug text.
fn debug_fields(line: &str) -> Vec<String> {
    let parts = line.split([' ', '(', ',']).filter_map(|part| part.strip_prefix('?'));
    let names = parts.filter(|name| name.starts_with(|first: char| first.is_ascii_alphabetic()));
    names.map(str::to_owned).collect()
}

#[test]
fn fields_of_the_log_are_plain_values() {
    let mut complaints = Vec::new();
    for below in SOURCES {
        for file in rust_files(&root().join(below)).into_iter().filter(|file| !is_test_file(file)) {
            let code = production_code(&file);
            // A trace is for developers of Callboard.
            let lines = code.lines().filter(|line| !line.contains("trace!("));
            complaints.extend(lines.flat_map(debug_fields).map(|field| {
                format!("{} logs {field} as Debug text, which no program can read", below_root(&file))
            }));
        }
    }
    complain(&complaints);
    let found = debug_fields("debug!(pid = self.pid()?, ?signal, key = ?damaged.key, \"what?\")");
    assert_eq!(found, ["signal", "damaged.key"], "the rule finds what it is about");
    assert_eq!(debug_fields("info!(grace = ?GRACE, \"off\")"), ["GRACE"], "a constant as well");
}

/// The fields of the events in a source text, each with its value if it has one of its own.
fn log_fields(code: &str) -> Vec<(String, String)> {
    let mut fields = Vec::new();
    for (at, _) in code.match_indices("tracing::") {
        let rest = &code[at + "tracing::".len()..];
        let Some(level) =
            ["error!(", "warn!(", "info!(", "debug!("].into_iter().find(|l| rest.starts_with(l))
        else {
            continue;
        };
        let rest = &rest[level.len()..];
        // The message follows the fields, and no value is a string literal.
        let end = rest.find('"').unwrap_or(rest.len());
        for field in rest[..end].split(',').map(str::trim).filter(|field| !field.is_empty()) {
            let (name, value) = field.split_once('=').unwrap_or((field, ""));
            let name = name.trim().trim_start_matches(['%', '?']);
            fields.push((name.to_owned(), value.trim().to_owned()));
        }
    }
    fields
}

/// Whether the name of a field indicates a duration, but not in the common unit.
fn is_other_duration(name: &str) -> bool {
    let units = ["_s", "_secs", "_seconds", "_us", "_ns", "_minutes"];
    let bare =
        ["seconds", "took", "pause", "grace", "uptime", "elapsed", "within", "timeout", "deadline", "late"];
    units.iter().any(|unit| name.ends_with(unit)) || bare.contains(&name)
}

#[test]
fn durations_in_the_log_are_whole_milliseconds() {
    let mut complaints = Vec::new();
    for below in SOURCES {
        for file in rust_files(&root().join(below)).into_iter().filter(|file| !is_test_file(file)) {
            let fields = log_fields(&production_code(&file));
            let is_float = |value: &str| value.contains("as_secs") || value.contains("as_millis");
            let wrong = fields.iter().filter(|(name, value)| is_other_duration(name) || is_float(value));
            complaints.extend(wrong.map(|(name, _)| {
                format!("{} logs the duration {name} not as `..._ms = milliseconds(..)`", below_root(&file))
            }));
        }
    }
    complain(&complaints);
    let found = log_fields("tracing::warn!(\n    pause = a.as_secs(), %name, took_s, \"it, is = late\"\n);");
    let names: Vec<&str> = found.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["pause", "name", "took_s"], "the rule finds what it is about");
    assert!(is_other_duration("pause") && is_other_duration("took_s") && !is_other_duration("took_ms"));
}
