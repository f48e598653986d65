//! Reads a `[[driver]]` table.

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

use callboard_actors::driver::process_name;
use callboard_actors::process::{START_TIMEOUT, STOP_GRACE};
use callboard_actors::vocabulary::DriverName;
use toml::de::{DeTable, DeValue};

use super::problem::Faults;
use super::read::span_of_time;
use super::table::{Found, Table};
use super::{DriverConfig, DriverProgram, INTERNAL_PLUGINS, program, suggest, words};

const KEYS: &[&str] = &[
    "name",
    "plugin",
    "command",
    "args",
    "sha256",
    "config",
    "env",
    "survives",
    "stop_grace",
    "start_timeout",
];

/// The context of a driver: the whole text, and whether there is a plugin directory.
pub(super) struct Surroundings<'t> {
    pub(super) text: &'t str,
    pub(super) has_plugin_dir: bool,
}

/// Reads one driver. `seen` holds the names read before.
pub(super) fn read(
    entries: &DeTable<'_>,
    span: &Range<usize>,
    surroundings: &Surroundings<'_>,
    seen: &mut BTreeSet<DriverName>,
    faults: &mut Faults,
) -> Option<DriverConfig> {
    let table = Table::open(entries, span, "the driver", KEYS, faults);
    let name = name(&table, seen, faults);
    let (program, arguments) = program(&table, name.as_ref(), surroundings, faults).unzip();
    let more = table.texts("args", faults).into_iter();
    let more: Vec<_> = more.filter_map(|found| words::argument(found, faults)).collect();
    let sha256 = table.text("sha256", faults).and_then(|found| digest(&found, faults));
    let (config, config_at) = words::plugin_config(&table, faults);
    match &program {
        Some(DriverProgram::Command(_) | DriverProgram::Internal(_)) if !config.is_empty() => faults.add(
            config_at,
            "only a plugin of the plugin directory is asked what its `config` must look like; this driver can have none",
        ),
        Some(DriverProgram::Command(_) | DriverProgram::Internal(_) | DriverProgram::Plugin(_)) | None => {}
    }
    let environment = words::environment(&table, |_, _| Ok(()), faults);
    let survives = table.boolean("survives", faults);
    let stop_grace = span_of_time(&table, "stop_grace", Duration::ZERO, faults);
    let start_timeout = span_of_time(&table, "start_timeout", Duration::from_millis(1), faults);
    Some(DriverConfig {
        name: name?,
        program: program?,
        arguments: arguments.into_iter().flatten().chain(more).collect(),
        sha256,
        config,
        config_places: words::config_places(&table, surroundings.text, config_at),
        environment,
        survives: survives.unwrap_or(true),
        stop_grace: stop_grace.unwrap_or(STOP_GRACE),
        start_timeout: start_timeout.unwrap_or(START_TIMEOUT),
    })
}

/// The text under `name`, valid or not.
pub(super) fn written_name(entries: &DeTable<'_>) -> Option<String> {
    match entries.get("name")?.get_ref() {
        DeValue::String(name) => Some(name.to_string()),
        _ => None,
    }
}

fn name(table: &Table<'_>, seen: &mut BTreeSet<DriverName>, faults: &mut Faults) -> Option<DriverName> {
    let found = table.required_text("name", faults)?;
    let name = DriverName::new(&found.value).map_err(|error| error.to_string());
    let name = name.and_then(|name| match process_name(&name) {
        Ok(_) => Ok(name),
        Err(error) => Err(error.to_string()),
    });
    let name = name.map_err(|error| faults.add(found.at, format!("`name`: {error}"))).ok()?;
    if !seen.insert(name.clone()) {
        faults.add(found.at, format!("a second driver is named {name:?}; each needs a name of its own"));
        return None;
    }
    Some(name)
}

/// Reads the program, with the arguments in its `command`.
fn program(
    table: &Table<'_>,
    name: Option<&DriverName>,
    surroundings: &Surroundings<'_>,
    faults: &mut Faults,
) -> Option<(DriverProgram, Vec<String>)> {
    let plugin = table.text("plugin", faults);
    let mut command = table.text_or_texts("command", faults).into_iter();
    match (plugin, command.next()) {
        (Some(plugin), Some(command)) => {
            let at = plugin.at.max(command.at);
            faults.add(at, "the driver has both `plugin` and `command`; give one of them");
            None
        }
        (None, Some(found)) => {
            let arguments = command.filter_map(|found| words::argument(found, faults)).collect();
            Some((DriverProgram::Command(program::read(&found, faults)?), arguments))
        }
        (Some(found), None) => plugin_name(&found, surroundings, faults),
        (None, None) => {
            let found = Found { value: name?.as_str().to_owned(), at: table.at };
            plugin_name(&found, surroundings, faults)
        }
    }
}

/// Reads the name of a plugin: a file in the plugin directory, or a plugin built into this program.
fn plugin_name(
    found: &Found<String>,
    surroundings: &Surroundings<'_>,
    faults: &mut Faults,
) -> Option<(DriverProgram, Vec<String>)> {
    let name = &found.value;
    let is_plain = !name.is_empty()
        && !name.starts_with('.')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'));
    if !is_plain {
        let message = format!(
            "the plugin {name:?} cannot be a file of the plugin directory; use letters, digits, '.', '_' and '-'"
        );
        faults.add(found.at, message);
        return None;
    }
    if !surroundings.has_plugin_dir && !INTERNAL_PLUGINS.contains(&name.as_str()) {
        let meant = suggest::nearest(name, INTERNAL_PLUGINS).map(|word| format!("; did you mean `{word}`?"));
        let message = format!(
            "there is no `plugin_dir` to look for the plugin {name:?} in; give one, or a `command`{}",
            meant.unwrap_or_default()
        );
        faults.add(found.at, message);
        return None;
    }
    let program = match INTERNAL_PLUGINS.contains(&name.as_str()) {
        true => DriverProgram::Internal(name.clone()),
        false => DriverProgram::Plugin(name.clone()),
    };
    Some((program, Vec::new()))
}

/// Parses a hexadecimal digest.
fn digest(found: &Found<String>, faults: &mut Faults) -> Option<[u8; 32]> {
    let text = found.value.strip_prefix("sha256:").unwrap_or(&found.value);
    let mut digest = [0; 32];
    let is_hex = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_hex {
        faults.add(found.at, format!("`sha256` has to be 64 hexadecimal digits and has {}", text.len()));
        return None;
    }
    for (byte, pair) in digest.iter_mut().zip(text.as_bytes().chunks(2)) {
        let pair = std::str::from_utf8(pair).ok()?;
        *byte = u8::from_str_radix(pair, 16).ok()?;
    }
    Some(digest)
}
