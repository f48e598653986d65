//! Reads an `[[allocation]]` table.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use callboard_actors::allocations::RestartWhen;
use callboard_actors::process::{MalformedProcessName, ProcessName};
use callboard_actors::vocabulary::{
    AllocationId, FailoverPolicy, ListenerRule, MalformedPolicy, PluginName, Probing, Role, SocketPath,
};
use toml::de::DeTable;

use super::problem::Faults;
use super::table::{Found, Table};
use super::volume_use::{self, VolumePlugins};
use super::words::{self, Names};
use super::{
    AllocationConfig, program,
    read::{read_span, span_of_time},
    suggest,
};

const KEYS: &[&str] = &[
    "name",
    "plugin",
    "type",
    "command",
    "args",
    "env",
    "health_timeout",
    "restart_when",
    "probe_interval",
    "call_deadline",
    "failures_until_unhealthy",
    "restart_grace",
    "strict",
    "listener",
    "failover",
    "volumes",
    "start",
    "survives",
    "stop_grace",
];
const HEALTH_TIMEOUT: Duration = Duration::from_secs(30);
/// The shortest time for which a plugin may be unhealthy before it is restarted.
const UNHEALTHY_LEAST: Duration = Duration::from_secs(1);
/// The most consecutive failures that can be tolerated.
const FAILURES_MAX: u32 = 1_000;
const STOP_GRACE: Duration = Duration::from_secs(5);

/// Reads one allocation. `strict` is the value for the whole file, `volumes` are its volumes; `seen` holds the names read before.
pub(super) fn read(
    entries: &DeTable<'_>,
    span: &Range<usize>,
    strict: Option<bool>,
    volumes: &VolumePlugins,
    seen: &mut Names,
    faults: &mut Faults,
) -> Option<AllocationConfig> {
    let table = Table::open(entries, span, "the allocation", KEYS, faults);
    let name = words::name(&table, "allocation", |text| AllocationId::new(text), seen, faults);
    let plugin = plugin(&table, faults);
    let role = role(&table, faults);
    let command = command(&table, faults);
    let environment = environment(&table, faults);
    let health_timeout = span_of_time(&table, "health_timeout", Duration::from_millis(1), faults);
    let restart_when = restart_when(&table, faults);
    let probing = probing(&table, strict, faults);
    let stop_grace = span_of_time(&table, "stop_grace", Duration::ZERO, faults);
    let failover = failover(&table, name.as_ref(), faults);
    let start = table.boolean("start", faults);
    let volumes = volume_use::of_allocation(&table, plugin.as_ref(), &environment, volumes, faults);
    let survives = survives(&table, name.as_ref(), faults);
    let (program, arguments) = command?;
    Some(AllocationConfig {
        name: name?,
        plugin: plugin?,
        role: role?,
        program,
        arguments,
        environment,
        health_timeout: health_timeout.unwrap_or(HEALTH_TIMEOUT),
        restart_when: restart_when.unwrap_or(RestartWhen::Never),
        probing,
        failover,
        volumes,
        start: start.unwrap_or(true),
        survives,
        stop_grace: stop_grace.unwrap_or(STOP_GRACE),
    })
}

fn plugin(table: &Table<'_>, faults: &mut Faults) -> Option<PluginName> {
    let found = table.required_text("plugin", faults)?;
    PluginName::new(&found.value).map_err(|error| faults.add(found.at, format!("`plugin`: {error}"))).ok()
}

fn role(table: &Table<'_>, faults: &mut Faults) -> Option<Role> {
    let found = table.required_text("type", faults)?;
    let role = Role::ALL.into_iter().find(|role| role.as_str() == found.value);
    if role.is_none() {
        let words = Role::ALL.map(Role::as_str);
        let advice = suggest::advice(&found.value, &words);
        faults.add(found.at, format!("`type` {:?} is no type of allocation; {advice}", found.value));
    }
    role
}

fn probing(table: &Table<'_>, strict: Option<bool>, faults: &mut Faults) -> Probing {
    Probing {
        interval: span_of_time(table, "probe_interval", Duration::from_millis(100), faults),
        call_deadline: span_of_time(table, "call_deadline", Duration::from_millis(100), faults),
        failures_until_unhealthy: table.number_within("failures_until_unhealthy", 1..=FAILURES_MAX, faults),
        restart_grace: span_of_time(table, "restart_grace", Duration::ZERO, faults),
        strict: table.boolean("strict", faults).or(strict),
        listener: listener(table, faults),
    }
}

fn listener(table: &Table<'_>, faults: &mut Faults) -> ListenerRule {
    match table.text("listener", faults) {
        Some(found) if found.value == "any" => ListenerRule::Any,
        Some(found) if found.value != "own" => {
            let text = format!("`listener` {:?} is unknown; give \"own\" or \"any\"", found.value);
            faults.add(found.at, text);
            ListenerRule::Own
        }
        Some(_) | None => ListenerRule::Own,
    }
}

/// Reads `never`, or `unhealthy-for` and a time.
fn restart_when(table: &Table<'_>, faults: &mut Faults) -> Option<RestartWhen> {
    let found = table.text("restart_when", faults)?;
    let words: Vec<&str> = found.value.split_whitespace().collect();
    let message = match words.as_slice() {
        ["never"] => return Some(RestartWhen::Never),
        ["unhealthy-for", time] => match read_span("restart_when", time, UNHEALTHY_LEAST) {
            Ok(time) => return Some(RestartWhen::UnhealthyFor(time)),
            Err(message) => message,
        },
        _ => format!(
            "`restart_when` {:?} is unknown; give \"never\", or as in \"unhealthy-for 2m\"",
            found.value
        ),
    };
    faults.add(found.at, message);
    None
}

fn failover(table: &Table<'_>, name: Option<&AllocationId>, faults: &mut Faults) -> Option<FailoverPolicy> {
    let found = table.text("failover", faults)?;
    if found.value == "pinned" {
        return Some(FailoverPolicy::Pinned(name?.clone()));
    }
    let refused = match found.value.parse() {
        Ok(FailoverPolicy::Pinned(pinned)) if Some(&pinned) != name => {
            "`failover` of an allocation pins no other one; write `pinned`, or name the plugin in `failover.plugins`".to_owned()
        }
        Ok(policy) => return Some(policy),
        Err(MalformedPolicy::Unknown { text }) => {
            format!("`failover` {text:?} is no policy; write `newest-healthy`, `newest` or `pinned`")
        }
        Err(MalformedPolicy::Name(error)) => format!("`failover`: {error}"),
    };
    faults.add(found.at, refused);
    None
}

/// The prefix of the names of these processes.
pub(crate) const PROCESS_PREFIX: &str = "allocation-";

/// The name of the process of an allocation, if the process survives its host.
///
/// # Errors
/// When the name of the allocation has characters that the name of a process may not have.
pub fn process_name(allocation: &AllocationId) -> Result<ProcessName, MalformedProcessName> {
    ProcessName::new(format!("{PROCESS_PREFIX}{allocation}"))
}

fn survives(table: &Table<'_>, name: Option<&AllocationId>, faults: &mut Faults) -> bool {
    let survives = table.boolean("survives", faults).unwrap_or(false);
    if survives && let Some(Err(error)) = name.map(process_name) {
        faults.add(table.at, format!("`survives`: its process is named after it: {error}"));
    }
    survives
}

/// Reads an argument. An argument that names its socket as Kubernetes or a shell would is probably a mistake, unless it is a shell script.
fn argument(found: Found<String>, faults: &mut Faults) -> Option<String> {
    let is_script = found.value.contains(char::is_whitespace);
    let meant = [("$(CSI_ENDPOINT)", true), ("$CSI_ENDPOINT", !is_script)];
    if let Some((spelt, _)) = meant.iter().find(|(spelt, is_odd)| *is_odd && found.value.contains(spelt)) {
        let advice = format!("the plugin gets `{spelt}` literally; write `${{CSI_ENDPOINT}}` for its socket");
        faults.warn(found.at, advice);
    }
    words::argument(found, faults)
}

fn command(table: &Table<'_>, faults: &mut Faults) -> Option<(PathBuf, Vec<String>)> {
    table.require("command", faults);
    let words = table.text_or_texts("command", faults);
    let arguments = table.texts("args", faults);
    let mut words = words.into_iter();
    let command = words.next();
    let all: Vec<_> = words.chain(arguments).filter_map(|found| argument(found, faults)).collect();
    Some((program::read(&command?, faults)?, all))
}

/// Reads the environment; a `CSI_ENDPOINT` in it has to be valid.
fn environment(table: &Table<'_>, faults: &mut Faults) -> BTreeMap<String, String> {
    let endpoint = |name: &str, value: &str| match name {
        "CSI_ENDPOINT" => {
            SocketPath::from_endpoint(value).map(drop).map_err(|error| format!("`CSI_ENDPOINT`: {error}"))
        }
        _ => Ok(()),
    };
    words::environment(table, endpoint, faults)
}
