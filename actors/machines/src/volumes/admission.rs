//! Decides which claims are sent to their volumes (V12).

use super::errors::ClaimError;
use super::messages::Claim;
use super::reasons::{TooManyCallers, UnknownVolume};
use super::state::{Entry, KnownVolume, Volumes};
use crate::vocabulary::{NodeInfo, PluginName};
use crate::volume::{self, Exists, VolumeKey, VolumeSpec};

impl Volumes {
    /// Whether a claim may be made at all. The volume decides whether it can be held beside others.
    pub(super) fn admit(&self, asked: &Claim) -> Result<(), ClaimError> {
        let key = &asked.volume;
        if self.stop.is_some() {
            return Err(ClaimError::Stopping { volume: key.clone() });
        }
        let known = self.known.get(key).ok_or_else(|| self.unknown(key))?;
        if self.is_letting_go(key, &asked.allocation) {
            let allocation = asked.allocation.clone();
            return Err(volume::ClaimError::Leaving { volume: key.clone(), allocation }.into());
        }
        let has_one = self.used(key).is_some_and(|entry| entry.is_claimed_by(&asked.allocation));
        if !has_one || self.may_be_over(key, &asked.allocation) {
            self.check_stays(key, &known.spec.plugin)?;
        }
        self.room_for(&known.spec.plugin, self.config.options.waiting_max / 2)?;
        asked.usage.capability.check().map_err(|fault| {
            let reason = fault.to_string();
            volume::ClaimError::Invalid { volume: key.clone(), reason }
        })?;
        if self.used(key).is_some_and(Entry::is_here) {
            // It is on this node already, and counted. A volume that was only created here is not counted.
            return Ok(());
        }
        let Some(node) = self.node_info(&known.spec.plugin) else { return Ok(()) };
        check_topology(known, node)?;
        self.check_limit(known, node)
    }

    /// The reason that an unknown volume cannot be claimed: it is missing, does not exist yet, or is to be deleted.
    fn unknown(&self, key: &VolumeKey) -> ClaimError {
        let exists = self.entries.get(key).and_then(Entry::changes);
        match exists.and_then(Exists::why_unclaimed) {
            Some(state) => {
                volume::ClaimError::NotThere { volume: key.clone(), state, is_transient: true }.into()
            }
            None => UnknownVolume { volume: key.clone() }.into(),
        }
    }

    /// Whether one more caller may wait for volumes of a plugin, under this limit.
    pub(super) fn room_for(&self, plugin: &PluginName, limit: usize) -> Result<(), TooManyCallers> {
        let waiting = self.waiting.get(plugin).copied().unwrap_or_default();
        if waiting >= limit {
            return Err(TooManyCallers { plugin: plugin.clone(), waiting });
        }
        Ok(())
    }

    /// The latest information of the node half of a plugin about this node.
    fn node_info(&self, plugin: &PluginName) -> Option<&NodeInfo> {
        let report = self.plugins.get(plugin)?.node.as_ref()?;
        report.fingerprint.as_ref()?.node_info.as_ref()
    }

    /// The plugin's limit counts every other volume that is claimed or set up on this node, or may be (C147).
    fn check_limit(&self, known: &KnownVolume, node: &NodeInfo) -> Result<(), ClaimError> {
        let Some(limit) = node.max_volumes.filter(|limit| *limit > 0) else { return Ok(()) };
        let VolumeSpec { key, plugin, .. } = &*known.spec;
        let others = self.users_of(plugin).filter(|entry| entry.spec.key != *key);
        let used = others.filter(|entry| entry.is_on_node()).count();
        let used = u64::try_from(used).unwrap_or(u64::MAX);
        if used >= limit {
            return Err(ClaimError::NodeFull { plugin: plugin.clone(), limit, used });
        }
        Ok(())
    }
}

fn check_topology(known: &KnownVolume, node: &NodeInfo) -> Result<(), ClaimError> {
    if known.is_reachable_from(node.topology.as_ref()) {
        return Ok(());
    }
    Err(ClaimError::Unreachable {
        volume: known.spec.key.clone(),
        node: node.topology.clone().unwrap_or_default(),
        volume_at: known.accessible_topology.clone(),
    })
}
