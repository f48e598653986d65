//! Decides which plugins are usable: the highest version of each, with a valid configuration.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::messages::{
    BlockedBy, BlockedPlugin, KnownPlugin, Listing, PluginSource, RefusedPlugin, ResolvedPlugin,
    ShadowedPlugin,
};
use super::options::{CatalogOptions, ConfigSource};
use super::refusal::{Refusal, ResolveError};
use super::spec::spec_of;
use super::state::{Candidate, CandidateSchema, Draft};
use super::version::{PluginVersion, negotiate};
use crate::hclspec::{Config, ConfigErrors, Schema};
use crate::vocabulary::{PluginKey, Timestamp};

/// A candidate that is usable if its configuration is valid.
struct Eligible {
    info: KnownPlugin,
    api_version: String,
    schema: Option<Schema>,
}

/// Builds a listing from the results of a scan.
pub(super) fn choose(draft: Draft, options: &CatalogOptions, now: Timestamp) -> Listing {
    let Draft { candidates, refused, blocked, directory_error } = draft;
    let mut listing =
        Listing { refused, blocked, directory_error, scanned_at: Some(now), ..Listing::default() };
    let mut by_plugin: BTreeMap<PluginKey, Vec<Eligible>> = BTreeMap::new();
    for candidate in candidates {
        let (source, plugin) = (candidate.source.clone(), candidate.plugin.clone());
        if options.blocked.contains(plugin.name.as_str()) {
            let by = BlockedBy::Name;
            listing.blocked.push(BlockedPlugin { source, plugin: Some(plugin), by });
            continue;
        }
        match eligible(candidate, options) {
            Ok(eligible) => by_plugin.entry(plugin).or_default().push(eligible),
            Err(reason) => listing.refused.push(RefusedPlugin { source, plugin: Some(plugin), reason }),
        }
    }
    for (plugin, rivals) in by_plugin {
        list_best(plugin, rivals, options, &mut listing);
    }
    listing.refused.sort_by(|one, other| one.source.cmp(&other.source));
    listing.blocked.sort_by(|one, other| one.source.cmp(&other.source));
    listing
}

/// Resolves one candidate, independent of others.
pub(super) fn usable(candidate: Candidate, options: &CatalogOptions) -> Result<ResolvedPlugin, Refusal> {
    configured(eligible(candidate, options)?, options)
}

fn eligible(candidate: Candidate, options: &CatalogOptions) -> Result<Eligible, Refusal> {
    let Candidate { source, plugin, version, api_versions, schema } = candidate;
    let version = PluginVersion::new(&version).map_err(Refusal::Version)?;
    let Some(spoken) = options.api_versions.get(&plugin.plugin_type).cloned() else {
        return Err(Refusal::Unsupported(plugin.plugin_type));
    };
    let Some(api_version) = negotiate(&api_versions, &spoken) else {
        return Err(Refusal::ApiVersion { offered: api_versions, spoken });
    };
    let schema = match schema {
        CandidateSchema::Told(spec) => Some(Schema::from_sent(&spec).map_err(Refusal::Schema)?),
        CandidateSchema::Given(schema) => Some(schema),
        CandidateSchema::Nothing => None,
    };
    Ok(Eligible { info: KnownPlugin { plugin, version, api_versions, source }, api_version, schema })
}

/// Chooses the highest version. Among equal versions, a plugin from the directory takes precedence over a plugin of the host program,
/// since an operator installed it on purpose; otherwise the first name.
fn list_best(plugin: PluginKey, mut rivals: Vec<Eligible>, options: &CatalogOptions, listing: &mut Listing) {
    rivals.sort_by_cached_key(|rival| (Reverse(rival.info.version.clone()), rival.info.source.clone()));
    let mut rivals = rivals.into_iter();
    let Some(best) = rivals.next() else { return };
    let (by_version, by) = (best.info.version.clone(), best.info.source.clone());
    listing.shadowed.extend(rivals.map(|rival| ShadowedPlugin {
        info: rival.info,
        by_version: by_version.clone(),
        by: by.clone(),
    }));
    match configured(best, options) {
        Ok(resolved) => {
            listing.found.insert(plugin, resolved);
        }
        // There is no fallback to a lower version: that would be an unrequested downgrade.
        Err(reason) => listing.refused.push(RefusedPlugin { source: by, plugin: Some(plugin), reason }),
    }
}

fn configured(eligible: Eligible, options: &CatalogOptions) -> Result<ResolvedPlugin, Refusal> {
    let Eligible { info, api_version, schema } = eligible;
    let Some(process) = spec_of(&info.source, options) else { return Err(Refusal::Absent) };
    let source = options.entries.get(info.source.name()).and_then(|entry| entry.config.as_ref());
    let config = encoded(schema.as_ref(), source).map_err(Refusal::Config)?;
    Ok(ResolvedPlugin { info, api_version, process, config })
}

/// The encoded configuration; empty for a plugin that takes no configuration.
fn encoded(schema: Option<&Schema>, source: Option<&ConfigSource>) -> Result<Vec<u8>, ConfigErrors> {
    let config = match source {
        Some(ConfigSource::Toml(table)) => Config::from_toml(table)?,
        Some(ConfigSource::Hcl(text)) => Config::from_hcl(text)?,
        None => Config::default(),
    };
    match schema {
        Some(schema) => Ok(schema.decode(&config)?.to_msgpack()),
        None => Schema::nothing().decode(&config).map(|_| Vec::new()),
    }
}

pub(super) fn resolve(
    listing: &Listing,
    plugin: &PluginKey,
    options: &CatalogOptions,
) -> Result<Box<ResolvedPlugin>, ResolveError> {
    if let Some(found) = listing.found.get(plugin) {
        return Ok(Box::new(found.clone()));
    }
    // A plugin with an unknown name is assumed to have the name of its file.
    let is_it = |told: &Option<PluginKey>, source: &PluginSource| match told {
        Some(told) => told == plugin,
        None => source.name() == plugin.name.as_str(),
    };
    if let Some(refused) = listing.refused.iter().find(|refused| is_it(&refused.plugin, &refused.source)) {
        let (source_name, reason) = (refused.source.clone(), Box::new(refused.reason.clone()));
        return Err(ResolveError::Refused { plugin: plugin.clone(), source_name, reason });
    }
    if let Some(blocked) = listing.blocked.iter().find(|blocked| is_it(&blocked.plugin, &blocked.source)) {
        return Err(ResolveError::Blocked { plugin: plugin.clone(), by: blocked.by });
    }
    if let Some(error) = &listing.directory_error {
        return Err(ResolveError::Unread { plugin: plugin.clone(), error: error.clone() });
    }
    Err(ResolveError::Unknown { plugin: plugin.clone(), directory: options.directory.clone() })
}
