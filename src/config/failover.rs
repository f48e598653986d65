//! Reads the table `failover`: which allocation of a plugin is active, and when it is replaced by a standby.

use std::collections::BTreeMap;
use std::time::Duration;

use callboard_actors::instances::InstancesOptions;
use callboard_actors::registry::RegistryOptions;
use callboard_actors::vocabulary::{FailoverPolicy, PluginName};

use super::problem::Faults;
use super::read::span_of_time;
use super::table::{Found, Table};
use super::{AllocationConfig, suggest};

const KEYS: &[&str] = &["policy", "plugins", "tolerance", "calm"];
/// The most consecutive failures that can be tolerated.
const TOLERANCE_MAX: u32 = 1_000;

/// Which allocation of a plugin is active, and when a standby takes over.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FailoverConfig {
    /// The default for how the active allocation is chosen. Key `policy`, `newest-healthy` by default.
    pub policy: FailoverPolicy,
    /// How the active allocation of these plugins is chosen, whatever their allocations set. Table `plugins`.
    pub plugins: BTreeMap<PluginName, FailoverPolicy>,
    /// How many consecutive rounds must fail before a standby takes over. Key `tolerance`, 3 by default.
    pub tolerance: Option<u32>,
    /// How long an allocation that failed while it was active must be fit before it is active again; doubled with each further failure.
    /// Key `calm`, 10 s by default.
    pub calm: Option<Duration>,
}

impl FailoverConfig {
    /// The options of a registry with this failover configuration.
    #[must_use]
    pub fn registry(&self) -> RegistryOptions {
        let mut options = RegistryOptions {
            policy: self.policy.clone(),
            policies: self.plugins.clone(),
            ..RegistryOptions::default()
        };
        if let Some(calm) = self.calm {
            options.calm.first = calm;
            options.calm.longest = options.calm.longest.max(calm);
        }
        options
    }

    /// The options of instances with this failover configuration.
    #[must_use]
    pub fn instances(&self) -> InstancesOptions {
        let mut options = InstancesOptions::default();
        if let Some(tolerance) = self.tolerance {
            options.limits.failures_until_unfit = tolerance;
        }
        options
    }
}

pub(super) fn read(
    root: &Table<'_>,
    allocations: &[AllocationConfig],
    faults: &mut Faults,
) -> FailoverConfig {
    let Some((entries, span)) = root.table("failover", faults) else { return FailoverConfig::default() };
    let table = Table::open(entries, &span, "`failover`", KEYS, faults);
    let usual = table.text("policy", faults);
    let usual = usual.and_then(|found| known_policy("policy", &found, allocations.iter(), faults));
    let mut plugins = BTreeMap::new();
    for (name, found) in table.text_map("plugins", faults) {
        let serving = allocations.iter().filter(|allocation| allocation.plugin.as_str() == name);
        if serving.clone().next().is_none() {
            let known: Vec<_> = allocations.iter().map(|allocation| allocation.plugin.as_str()).collect();
            let advice = suggest::advice(&name, &known);
            faults.add(found.at, format!("no allocation serves a plugin {name:?}; {advice}"));
            continue;
        }
        let policy = known_policy(&name, &found, serving, faults);
        if let (Ok(name), Some(policy)) = (PluginName::new(&name), policy) {
            plugins.insert(name, policy);
        }
    }
    FailoverConfig {
        policy: usual.unwrap_or_default(),
        plugins,
        tolerance: table.number_within("tolerance", 1..=TOLERANCE_MAX, faults),
        calm: span_of_time(&table, "calm", Duration::from_millis(1), faults),
    }
}

/// Reads a policy. An allocation that it pins must be one of these.
fn known_policy<'a>(
    key: &str,
    found: &Found<String>,
    allocations: impl Iterator<Item = &'a AllocationConfig>,
    faults: &mut Faults,
) -> Option<FailoverPolicy> {
    let policy = read_policy(key, found, faults)?;
    let FailoverPolicy::Pinned(pinned) = &policy else { return Some(policy) };
    let known: Vec<_> = allocations.map(|allocation| allocation.name.as_str()).collect();
    if known.contains(&pinned.as_str()) {
        return Some(policy);
    }
    let advice = suggest::advice(pinned.as_str(), &known);
    faults.add(
        found.at,
        format!("`{key}` pins the allocation {:?}, which does not serve it; {advice}", pinned.as_str()),
    );
    None
}

pub(super) fn read_policy(key: &str, found: &Found<String>, faults: &mut Faults) -> Option<FailoverPolicy> {
    found.value.parse().map_err(|error| faults.add(found.at, format!("`{key}`: {error}"))).ok()
}
