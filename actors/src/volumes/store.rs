//! The store of the owner of the volumes: in the database, or, for tests and scripts, in memory.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use actix::Recipient;
use futures_util::future::LocalBoxFuture;

use super::row::{DeletionRow, KnownRow};
use super::{KnownVolume, Volumes, VolumesChange, VolumesImage};
use crate::persister::{Disk, Operation, Owner, Settled};
use crate::shell::{Database, Ledger, Store, Ticket, Written};
use crate::volume::{
    AuditRow, ClaimRow, LostClaimRow, MemoryLedgers, OrderRow, VolumeImage, VolumeKey, VolumeRow, VolumeSpec,
    key, lost_claims, volume_of_order,
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
            let orders = ledger.rows::<OrderRow>().await?;
            let of_orders = orders.iter().filter_map(|(key, _)| volume_of_order(key));
            let others = lost.into_iter().map(|(key, _)| key).chain(of_orders).collect();
            add_known(&mut in_ledger, &others, &known);
            Ok(VolumesImage { known, in_ledger, deleting })
        })
    }
}

/// Adds those of which the ledger has only rows that do not say what volume it is: such a volume has to be known to have an actor.
fn add_known(in_ledger: &mut Vec<Arc<VolumeSpec>>, others: &BTreeSet<VolumeKey>, known: &[Arc<KnownVolume>]) {
    let is_missing = |spec: &&Arc<VolumeSpec>| {
        others.contains(&spec.key) && !in_ledger.iter().any(|it| it.key == spec.key)
    };
    let missing: Vec<_> = known.iter().map(|known| &known.spec).filter(is_missing).cloned().collect();
    in_ledger.extend(missing);
}

/// The volumes that have ledgers which say what volume it is.
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
        let kept = self.kept.borrow().clone();
        let ledgers = self.ledgers.images();
        let mut in_ledger = specs_of(&ledgers);
        add_known(&mut in_ledger, &ledgers.into_keys().collect(), &kept.known);
        let image = VolumesImage { in_ledger, ..kept };
        Box::pin(std::future::ready(Ok(image)))
    }
}
