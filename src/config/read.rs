//! From text to configuration.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use callboard_actors::vocabulary::SocketPath;
use toml::de::DeTable;

use super::problem::Faults;
use super::table::{Found, Table};
use super::{ALLOCATIONS_MAX, AllocationConfig, Config, RestartPolicy, allocation};
use crate::duration::parse_duration;

const ROOT_KEYS: &[&str] = &["data_dir", "admin_socket", "runtime_dir", "restart", "allocation"];
const RESTART_KEYS: &[&str] = &["attempts", "window", "delay"];
/// More restarts than this within one window is no policy.
const ATTEMPTS_MAX: u32 = 10_000;
/// The longest span of time that makes sense in a configuration.
const SPAN_LONGEST: Duration = Duration::from_secs(30 * 24 * 3_600);

/// Reads and checks the whole text.
pub(super) fn config(text: &str) -> Result<Config, Faults> {
    let mut faults = Faults::default();
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let at = error.span().map_or(0, |span| span.start);
        faults.add(at, error.message().to_owned());
    }
    if !faults.is_empty() {
        // What the parser made of broken text would only lead to complaints about things that nobody wrote.
        return Err(faults);
    }
    let root = Table::open(document.get_ref(), &(0..0), "the configuration", ROOT_KEYS, &mut faults);
    let data_dir = data_dir(&root, &mut faults);
    let config = Config {
        admin_socket: admin_socket(&root, &mut faults),
        runtime_dir: root
            .text("runtime_dir", &mut faults)
            .and_then(|found| absolute("runtime_dir", found, &mut faults)),
        restart: restart(&root, &mut faults),
        allocations: allocations(&root, &mut faults),
        data_dir: data_dir.unwrap_or_default(),
    };
    if faults.is_empty() { Ok(config) } else { Err(faults) }
}

fn data_dir(root: &Table<'_>, faults: &mut Faults) -> Option<PathBuf> {
    let found = root.required_text("data_dir", faults)?;
    let at = found.at;
    let path = absolute("data_dir", found, faults)?;
    if path.exists() && !path.is_dir() {
        faults.add(at, format!("`data_dir` {} is a file; name a directory", path.display()));
    }
    Some(path)
}

fn admin_socket(root: &Table<'_>, faults: &mut Faults) -> Option<SocketPath> {
    let found = root.text("admin_socket", faults)?;
    SocketPath::new(&found.value)
        .map_err(|error| faults.add(found.at, format!("`admin_socket`: {error}")))
        .ok()
}

fn absolute(key: &str, found: Found<String>, faults: &mut Faults) -> Option<PathBuf> {
    if !Path::new(&found.value).is_absolute() {
        let message = format!("`{key}` {:?} is a relative path; give an absolute one", found.value);
        faults.add(found.at, message);
        return None;
    }
    if found.value.contains('\0') {
        faults.add(found.at, format!("`{key}` {:?} holds a zero byte", found.value));
        return None;
    }
    Some(PathBuf::from(found.value))
}

fn restart(root: &Table<'_>, faults: &mut Faults) -> RestartPolicy {
    let usual = RestartPolicy::default();
    let Some((entries, span)) = root.table("restart", faults) else { return usual };
    let table = Table::open(entries, &span, "`restart`", RESTART_KEYS, faults);
    RestartPolicy::new(
        table.number("attempts", ATTEMPTS_MAX, faults).unwrap_or(usual.budget.limit),
        span_of_time(&table, "window", Duration::from_millis(1), faults).unwrap_or(usual.budget.window),
        span_of_time(&table, "delay", Duration::ZERO, faults).unwrap_or(usual.backoff.first),
    )
}

/// A span of time that is at least `least`.
pub(super) fn span_of_time(
    table: &Table<'_>,
    key: &str,
    least: Duration,
    faults: &mut Faults,
) -> Option<Duration> {
    let found = table.text(key, faults)?;
    let message = match parse_duration(&found.value) {
        Ok(span) if span < least => format!("`{key}` is {:?}; give at least {least:?}", found.value),
        Ok(span) if span > SPAN_LONGEST => format!("`{key}` is {:?}; give at most 720h", found.value),
        Ok(span) => return Some(span),
        Err(error) => format!("`{key}`: {error}"),
    };
    faults.add(found.at, message);
    None
}

fn allocations(root: &Table<'_>, faults: &mut Faults) -> Vec<AllocationConfig> {
    let tables = root.tables("allocation", faults);
    if tables.len() > ALLOCATIONS_MAX {
        let message = format!("there are {} allocations; at most {ALLOCATIONS_MAX} are run", tables.len());
        faults.add(tables[ALLOCATIONS_MAX].1.start, message);
    }
    let mut seen = BTreeSet::new();
    let one = |(entries, span)| allocation::read(entries, &span, &mut seen, faults);
    tables.into_iter().take(ALLOCATIONS_MAX).filter_map(one).collect()
}
