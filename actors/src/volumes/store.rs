//! The store of the owner of the volumes: in the database, or, for tests and scripts, in memory.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use actix::Recipient;
use futures_util::future::LocalBoxFuture;

use super::row::{DeletionRow, KnownRow};
use super::{KnownVolume, Volumes, VolumesChange, VolumesImage};
use crate::persister::{Disk, Operation, Owner, Settled};
use crate::shell::{Database, Ledger, Store, Ticket, Written};
use crate::volume::{
    AuditRow, ClaimRow, LostClaimRow, MemoryLedgers, VolumeImage, VolumeKey, VolumeRow, VolumeSpec, key,
    lost_claims,
};

/// The owner of these writes.
pub const OWNER: Owner = Owner::new("volumes");

/// Stores the known volumes in the database, and reads which volumes have a ledger there. Damaged records that are found on loading are
/// posted as notices (RES-08).
#[derive(Debug, Clone)]
pub struct DurableStore(Ledger);

impl DurableStore {
    /// A store in this database.
    #[must_use]
    pub fn new(database: &Database) -> Self {
        Self(database.ledger(OWNER))
    }
}

impl Store<Volumes> for DurableStore {
    fn open(&mut self, settled: Recipient<Settled>) {
        self.0.open(settled);
    }

    fn disk(&self) -> Option<Disk> {
        Some(self.0.disk())
    }

    fn write(&mut self, ticket: Ticket, change: VolumesChange) -> Written {
        let stays = |volume: &VolumeKey| Operation::delete::<DeletionRow>(key(volume));
        let operations = match change {
            VolumesChange::Keep(known) => {
                vec![Operation::put(key(&known.spec.key), &KnownRow(KnownVolume::clone(&known)))]
            }
            VolumesChange::Forget(volume) => {
                vec![Operation::delete::<KnownRow>(key(&volume)), stays(&volume)]
            }
            VolumesChange::Delete(volume) => vec![Operation::put(key(&volume), &DeletionRow(volume))],
            VolumesChange::Stay(volume) => vec![stays(&volume)],
        };
        self.0.write(ticket, operations)
    }

    fn load(&mut self) -> LocalBoxFuture<'static, Result<VolumesImage, String>> {
        let ledger = self.0.clone();
        Box::pin(async move {
            ledger.reopen().await?;
            let known = ledger.rows::<KnownRow>().await?;
            let deleting = ledger.rows::<DeletionRow>().await?;
            let deleting = deleting.into_iter().map(|(_, row)| row.0).collect();
            let mut ledgers = BTreeMap::<VolumeKey, VolumeImage>::new();
            for (_, VolumeRow(record)) in ledger.rows::<VolumeRow>().await? {
                let key = record.spec.key.clone();
                ledgers.entry(key).or_default().volume = Some(record);
            }
            let claims = ledger.load::<ClaimRow>().await?;
            let lost = lost_claims(&claims, &ledger.load::<LostClaimRow>().await?);
            for (_, ClaimRow(record)) in claims.rows {
                ledgers.entry(record.spec.key.clone()).or_default().claims.push(record);
            }
            for (_, AuditRow(record)) in ledger.rows::<AuditRow>().await? {
                ledgers.entry(record.spec.key.clone()).or_default().audits.push(record);
            }
            let known: Vec<_> = known.into_iter().map(|(_, row)| Arc::new(row.0)).collect();
            let mut in_ledger = specs_of(&ledgers);
            // A volume of which nothing else is left has to be known to have an actor.
            let of_lost = known.iter().map(|known| &known.spec).filter(|spec| {
                lost.iter().any(|(key, _)| *key == spec.key) && !in_ledger.iter().any(|it| it.key == spec.key)
            });
            let of_lost: Vec<_> = of_lost.cloned().collect();
            in_ledger.extend(of_lost);
            Ok(VolumesImage { known, in_ledger, deleting })
        })
    }
}

/// The volumes that have ledgers.
fn specs_of(ledgers: &BTreeMap<VolumeKey, VolumeImage>) -> Vec<Arc<VolumeSpec>> {
    ledgers.values().filter_map(VolumeImage::spec).cloned().collect()
}

/// Stores the known volumes in memory, beside the ledgers of the volumes. Clones share the content.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore {
    kept: Rc<RefCell<VolumesImage>>,
    ledgers: MemoryLedgers,
}

impl MemoryStore {
    /// An empty store, beside these ledgers of the volumes.
    #[must_use]
    pub fn new(ledgers: MemoryLedgers) -> Self {
        Self { kept: Rc::default(), ledgers }
    }

    /// The ledgers of the volumes.
    #[must_use]
    pub const fn ledgers(&self) -> &MemoryLedgers {
        &self.ledgers
    }
}

impl Store<Volumes> for MemoryStore {
    fn write(&mut self, _ticket: Ticket, change: VolumesChange) -> Written {
        self.kept.borrow_mut().apply(&change);
        Written::Now
    }

    fn load(&mut self) -> LocalBoxFuture<'static, Result<VolumesImage, String>> {
        let in_ledger = specs_of(&self.ledgers.images());
        let image = VolumesImage { in_ledger, ..self.kept.borrow().clone() };
        Box::pin(std::future::ready(Ok(image)))
    }
}
