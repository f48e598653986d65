//! From one `[[task]]` table to one task.

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

use callboard_actors::vocabulary::{AllocationId, DriverName, MalformedName, TaskName};
use toml::de::DeTable;

use super::problem::{Faults, Place};
use super::read::span_of_time;
use super::table::Table;
use super::words::{self, Names};
use super::{TaskConfig, TaskRestart, suggest};

const KEYS: &[&str] = &["name", "driver", "config", "env", "user", "restart", "start", "stop_grace"];
const STOP_GRACE: Duration = Duration::from_secs(5);
/// Longest name of a user, in bytes.
const USER_BYTES_MAX: usize = 256;

/// Reads one task. `seen` holds the names of allocations and of the tasks before it, `drivers` those of all drivers.
pub(super) fn read(
    entries: &DeTable<'_>,
    span: &Range<usize>,
    text: &str,
    drivers: &BTreeSet<String>,
    seen: &mut Names,
    faults: &mut Faults,
) -> Option<TaskConfig> {
    let table = Table::open(entries, span, "the task", KEYS, faults);
    let name = words::name(&table, "allocation or task", task_name, seen, faults);
    let driver = driver(&table, drivers, faults);
    let (config, config_at) = words::plugin_config(&table, faults);
    let environment = words::environment(&table, |_, _| Ok(()), faults);
    let user = user(&table, faults);
    let restart = restart(&table, faults);
    let start = table.boolean("start", faults);
    let stop_grace = span_of_time(&table, "stop_grace", Duration::ZERO, faults);
    Some(TaskConfig {
        name: name?,
        driver: driver?,
        config,
        config_place: Place::of(text, config_at),
        environment,
        user,
        restart,
        start: start.unwrap_or(true),
        stop_grace: stop_grace.unwrap_or(STOP_GRACE),
    })
}

/// A task has an allocation to itself, and its name is that of both.
fn task_name(text: &str) -> Result<AllocationId, MalformedName> {
    TaskName::new(text).and_then(|name| AllocationId::new(name.as_str()))
}

fn driver(table: &Table<'_>, drivers: &BTreeSet<String>, faults: &mut Faults) -> Option<DriverName> {
    let found = table.required_text("driver", faults)?;
    if !drivers.contains(&found.value) {
        let known: Vec<_> = drivers.iter().map(String::as_str).collect();
        let advice = match suggest::nearest(&found.value, &known) {
            Some(word) => format!("did you mean `{word}`?"),
            None => "add it".to_owned(),
        };
        faults.add(found.at, format!("there is no [[driver]] named {:?}; {advice}", found.value));
        return None;
    }
    // Of a driver whose name cannot be one enough has been said.
    DriverName::new(&found.value).ok()
}

fn user(table: &Table<'_>, faults: &mut Faults) -> String {
    let Some(found) = table.text("user", faults) else { return String::new() };
    if found.value.len() > USER_BYTES_MAX || found.value.chars().any(char::is_control) {
        let message = format!(
            "`user` {:?} cannot be a user; give a name of at most {USER_BYTES_MAX} bytes",
            found.value.chars().take(24).collect::<String>()
        );
        faults.add(found.at, message);
        return String::new();
    }
    found.value
}

fn restart(table: &Table<'_>, faults: &mut Faults) -> TaskRestart {
    let Some(found) = table.text("restart", faults) else { return TaskRestart::OnFailure };
    let words = TaskRestart::ALL.map(TaskRestart::as_str);
    match TaskRestart::ALL.into_iter().find(|restart| restart.as_str() == found.value) {
        Some(restart) => restart,
        None => {
            let advice = suggest::advice(&found.value, &words);
            faults
                .add(found.at, format!("`restart` {:?} is no way to restart a task; {advice}", found.value));
            TaskRestart::OnFailure
        }
    }
}
