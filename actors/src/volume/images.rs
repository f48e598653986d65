//! Reads the ledgers of volumes, by volume.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::order_row::OrderRow;
use super::row::{
    AbandonedRow, AuditRow, ClaimRow, LostClaimRow, VolumeRow, abandoned_targets, lost_claims,
    read_volume_key,
};
use super::{VolumeImage, VolumeKey};
use crate::persister::{LoadError, Tables};

/// The ledgers of volumes, without the empty ones.
#[derive(Debug, Default)]
pub(crate) struct Images(BTreeMap<VolumeKey, VolumeImage>);

impl Images {
    /// Reads the ledgers of all volumes whose rows have keys that begin with these bytes.
    pub(crate) fn read(tables: &mut Tables<'_>, prefix: &[u8]) -> Result<Self, LoadError> {
        let mut images = Self::default();
        for (key, row) in tables.load_below::<VolumeRow>(prefix)?.rows {
            images.change(&key, |image| image.volume = Some(Arc::unwrap_or_clone(row.0)));
        }
        let claims = tables.load_below::<ClaimRow>(prefix)?;
        for (volume, allocation) in lost_claims(&claims, &tables.load_below::<LostClaimRow>(prefix)?) {
            images.0.entry(volume).or_default().lost.insert(allocation);
        }
        for (key, row) in claims.rows {
            images.change(&key, |image| image.claims.push(Arc::unwrap_or_clone(row.0)));
        }
        for (key, row) in tables.load_below::<OrderRow>(prefix)?.rows {
            images.change(&key, |image| image.orders.push(row.0));
        }
        for (volume, target) in abandoned_targets(&tables.load_below::<AbandonedRow>(prefix)?) {
            images.0.entry(volume).or_default().abandoned.insert(target);
        }
        for (key, row) in tables.load_below::<AuditRow>(prefix)?.rows {
            images.change(&key, |image| image.audits.push(row.0));
        }
        Ok(images)
    }

    /// Adds to the ledger of the volume in the prefix of a row's key. A sound row has a sound key.
    fn change(&mut self, key: &[u8], add: impl FnOnce(&mut VolumeImage)) {
        if let Some((volume, _)) = read_volume_key(key) {
            add(self.0.entry(volume).or_default());
        }
    }

    /// By volume.
    pub(crate) fn into_map(self) -> BTreeMap<VolumeKey, VolumeImage> {
        self.0
    }
}
