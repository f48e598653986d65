//! The table `host`: the data about the host that tasks get, and their limits on it.

use std::path::PathBuf;

use callboard_actors::driver::{MAX_PORT, MIN_PORT};
use callboard_actors::task_config::{HOST_VARIABLES, is_never_inherited};
use callboard_actors::topology::CpuList;
use callboard_actors::vocabulary::text::is_harmless;

use super::problem::Faults;
use super::read::absolute;
use super::table::{Found, Table};

const KEYS: &[&str] = &[
    "alloc_dir",
    "node_name",
    "region",
    "datacenter",
    "control_groups",
    "client_ports",
    "task_env_inherit",
    "cpu_total_compute",
    "cpu_reserved",
    "reserved_cores",
];
/// The longest name of a node, a region or a data centre, in bytes.
const NAME_BYTES_MAX: usize = 255;
/// The most variables in a list.
const VARIABLES_MAX: usize = 1_024;

/// The data about the host that tasks get, and their limits on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostConfig {
    /// The directory of allocations. Key `alloc_dir`; `alloc` in the data directory by default.
    pub alloc_dir: Option<PathBuf>,
    /// The name of this node. Key `node_name`; the machine's host name by default.
    pub node_name: Option<String>,
    /// Its region. Key `region`, `global` by default.
    pub region: String,
    /// Its data centre. Key `datacenter`, `dc1` by default.
    pub datacenter: String,
    /// Whether tasks get control groups, where the host may create them. Key `control_groups`, true by default.
    pub control_groups: bool,
    /// The lowest and the highest port that drivers may assign (T005). Key `client_ports`, `14000-14512` by default.
    pub client_ports: (u16, u16),
    /// The variables that tasks inherit from the host (TH061). Key `task_env_inherit`; PATH, LANG and TZ by default.
    pub task_env_inherit: Vec<String>,
    /// The machine's compute in MHz, instead of the sum over its cores (T015); 0 for that sum. Key `cpu_total_compute`.
    pub cpu_total_compute: u32,
    /// The part of it that is reserved, in MHz. Key `cpu_reserved`, 0 by default.
    pub cpu_reserved: u32,
    /// The cores that no task may use (T015). Key `reserved_cores`, none by default.
    pub reserved_cores: CpuList,
}

impl Default for HostConfig {
    fn default() -> Self {
        let port = |port: u32| u16::try_from(port).unwrap_or(u16::MAX);
        Self {
            alloc_dir: None,
            node_name: None,
            region: "global".to_owned(),
            datacenter: "dc1".to_owned(),
            control_groups: true,
            client_ports: (port(MIN_PORT), port(MAX_PORT)),
            task_env_inherit: HOST_VARIABLES.map(str::to_owned).to_vec(),
            cpu_total_compute: 0,
            cpu_reserved: 0,
            reserved_cores: CpuList::default(),
        }
    }
}

pub(super) fn read(root: &Table<'_>, faults: &mut Faults) -> HostConfig {
    let usual = HostConfig::default();
    let Some((entries, span)) = root.table("host", faults) else { return usual };
    let table = Table::open(entries, &span, "`host`", KEYS, faults);
    let alloc_dir = table.text("alloc_dir", faults);
    HostConfig {
        alloc_dir: alloc_dir.and_then(|found| absolute("alloc_dir", found, faults)),
        node_name: name(&table, "node_name", faults),
        region: name(&table, "region", faults).unwrap_or(usual.region),
        datacenter: name(&table, "datacenter", faults).unwrap_or(usual.datacenter),
        control_groups: table.boolean("control_groups", faults).unwrap_or(usual.control_groups),
        client_ports: ports(&table, faults).unwrap_or(usual.client_ports),
        task_env_inherit: variables(&table, faults).unwrap_or(usual.task_env_inherit),
        cpu_total_compute: table.number("cpu_total_compute", u32::MAX, faults).unwrap_or(0),
        cpu_reserved: table.number("cpu_reserved", u32::MAX, faults).unwrap_or(0),
        reserved_cores: cores(&table, faults).unwrap_or_default(),
    }
}

/// Reads a name that drivers may use as a label.
pub(super) fn name(table: &Table<'_>, key: &str, faults: &mut Faults) -> Option<String> {
    let found = table.text(key, faults)?;
    let is_name = !found.value.is_empty()
        && found.value.len() <= NAME_BYTES_MAX
        && !found.value.chars().any(|c| c.is_whitespace() || !is_harmless(c));
    if is_name {
        return Some(found.value);
    }
    let start: String = found.value.chars().take(24).collect();
    let message = format!(
        "`{key}` {start:?} is no name; give 1 to {NAME_BYTES_MAX} bytes without blanks and control characters"
    );
    faults.add(found.at, message);
    None
}

fn ports(table: &Table<'_>, faults: &mut Faults) -> Option<(u16, u16)> {
    let found = table.text("client_ports", faults)?;
    let read = found.value.split_once('-').and_then(|(low, high)| {
        let (low, high) = (low.parse::<u16>().ok()?, high.parse::<u16>().ok()?);
        (1..=high).contains(&low).then_some((low, high))
    });
    if read.is_none() {
        let message =
            format!("`client_ports` {:?} is no range of ports; give one as in \"14000-14512\"", found.value);
        faults.add(found.at, message);
    }
    read
}

fn variables(table: &Table<'_>, faults: &mut Faults) -> Option<Vec<String>> {
    table.has("task_env_inherit").then(|| {
        let listed = table.texts("task_env_inherit", faults).into_iter().take(VARIABLES_MAX);
        listed.filter_map(|found| variable(found, faults)).collect()
    })
}

fn variable(found: Found<String>, faults: &mut Faults) -> Option<String> {
    let name = &found.value;
    let problem = if name.is_empty() || name.contains(['=', '\0']) {
        "cannot be a variable of the environment"
    } else if is_never_inherited(name) {
        "is never passed on, since such variables hold secrets or are about the host itself; a task that needs its value gets \
        it in its own `env`"
    } else {
        return Some(found.value);
    };
    faults.add(found.at, format!("{name:?} in `task_env_inherit` {problem}"));
    None
}

fn cores(table: &Table<'_>, faults: &mut Faults) -> Option<CpuList> {
    let found = table.text("reserved_cores", faults)?;
    CpuList::parse(&found.value)
        .map_err(|error| faults.add(found.at, format!("`reserved_cores`: {error}")))
        .ok()
}
