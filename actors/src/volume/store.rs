//! Stores the ledger of a volume: in the database, or, for tests and scripts, in memory.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use actix::Recipient;
use futures_util::future::LocalBoxFuture;

use super::images::Images;
use super::order_row::{OrderRow, order_key};
use super::row::{
    AbandonedRow, AuditRow, ClaimRow, LostClaimRow, VolumeRow, abandoned_key, audit_key, claim_key, key,
};
use super::{Abandoned, Volume, VolumeChange, VolumeImage, VolumeKey};
use crate::persister::{Disk, Operation, Owner, Settled};
use crate::shell::{Database, Ledger, Store, Ticket, Written};
use crate::vocabulary::Attempt;

/// The kind of the owners of these writes. Each incarnation of the actor of a volume is a separate owner, so that none receives the results
/// of another one's writes.
pub const OWNER_KIND: &str = "volume";

/// The ledger of one volume in the database, for one incarnation of its actor. Damaged records that are found on loading are posted as
/// notices (RES-08).
#[derive(Debug, Clone)]
pub struct DurableStore {
    ledger: Ledger,
    volume: VolumeKey,
    /// The ledger as the owner of the volumes has read it already, for the first load.
    read: Option<VolumeImage>,
}

impl DurableStore {
    /// The ledger of this volume, for this incarnation of its actor. No two incarnations on a database have the same number.
    #[must_use]
    pub fn new(database: &Database, volume: VolumeKey, life: Attempt) -> Self {
        Self { ledger: database.ledger(Owner::numbered(OWNER_KIND, life.get())), volume, read: None }
    }

    /// Uses this for the first load. It was read before any actor of this volume had written to its ledger.
    pub(crate) fn beginning_with(self, read: Option<VolumeImage>) -> Self {
        Self { read, ..self }
    }
}

impl Store<Volume> for DurableStore {
    fn open(&mut self, settled: Recipient<Settled>) {
        self.ledger.open(settled);
    }

    fn disk(&self) -> Option<Disk> {
        Some(self.ledger.disk())
    }

    fn write(&mut self, ticket: Ticket, change: VolumeChange) -> Written {
        self.ledger.write(ticket, operations_of(&self.volume, change))
    }

    fn load(&mut self) -> LocalBoxFuture<'static, Result<VolumeImage, String>> {
        let read = self.read.take();
        let Self { ledger, volume, .. } = self.clone();
        Box::pin(async move {
            ledger.reopen().await?;
            if let Some(image) = read {
                return Ok(image);
            }
            let below = key(&volume);
            let mut images = ledger.read(move |tables| Images::read(tables, &below)).await?.into_map();
            Ok(images.remove(&volume).unwrap_or_default())
        })
    }
}

/// The database operations of a change. All of them are one write.
fn operations_of(volume: &VolumeKey, change: VolumeChange) -> Vec<Operation> {
    let keep = |row| Operation::put(key(volume), &VolumeRow(row));
    let abandoned = |Abandoned { path, is_released, .. }| {
        Operation::put(abandoned_key(volume, &path), &AbandonedRow { is_released })
    };
    match change {
        VolumeChange::KeepVolume(row) => vec![keep(row)],
        VolumeChange::KeepClaim(row) => {
            vec![Operation::put(claim_key(volume, &row.allocation), &ClaimRow(row))]
        }
        VolumeChange::ForgetClaim(id) => vec![Operation::delete::<ClaimRow>(claim_key(volume, &id))],
        VolumeChange::ForgetVolume => vec![Operation::delete::<VolumeRow>(key(volume))],
        VolumeChange::KeepOrder(row) => {
            vec![Operation::put(order_key(volume, row.number), &OrderRow(row))]
        }
        VolumeChange::ForgetOrder(number) => vec![Operation::delete::<OrderRow>(order_key(volume, number))],
        VolumeChange::KeepAbandoned(target) => vec![abandoned(target)],
        VolumeChange::ForgetAbandoned(path) => {
            vec![Operation::delete::<AbandonedRow>(abandoned_key(volume, &path))]
        }
        VolumeChange::Force { claims, volume: row, orders, abandoned: targets, audit } => {
            let forgotten = claims.iter().flat_map(|id| {
                let key = claim_key(volume, id);
                [Operation::delete::<LostClaimRow>(key.clone()), Operation::delete::<ClaimRow>(key)]
            });
            let orders =
                orders.into_iter().map(|number| Operation::delete::<OrderRow>(order_key(volume, number)));
            let audit = Operation::put(audit_key(volume, audit.number), &AuditRow(audit));
            let targets = targets.into_iter().map(abandoned);
            forgotten.chain(orders).chain(targets).chain(row.map(keep)).chain([audit]).collect()
        }
        VolumeChange::ForgetAudits(numbers) => {
            let forget = |number| Operation::delete::<AuditRow>(audit_key(volume, number));
            numbers.into_iter().map(forget).collect()
        }
    }
}

/// The ledgers of all volumes in memory. Clones share the content, so that a test can end everything and start the next run on the
/// remaining content, or change it.
#[derive(Debug, Clone, Default)]
pub struct MemoryLedgers {
    kept: Rc<RefCell<BTreeMap<VolumeKey, VolumeImage>>>,
}

impl MemoryLedgers {
    /// The ledger of one volume, for any incarnation of its actor.
    #[must_use]
    pub fn store(&self, volume: VolumeKey) -> MemoryStore {
        MemoryStore { ledgers: self.clone(), volume }
    }

    /// The contents of all ledgers that are not empty.
    #[must_use]
    pub fn images(&self) -> BTreeMap<VolumeKey, VolumeImage> {
        self.kept.borrow().clone()
    }

    /// Replaces the contents of the ledger of a volume.
    pub fn put(&self, volume: VolumeKey, image: VolumeImage) {
        let mut kept = self.kept.borrow_mut();
        if image == VolumeImage::default() {
            kept.remove(&volume);
        } else {
            kept.insert(volume, image);
        }
    }
}

/// The ledger of one volume in memory; [`MemoryLedgers::store`] makes it.
#[derive(Debug, Clone)]
pub struct MemoryStore {
    ledgers: MemoryLedgers,
    volume: VolumeKey,
}

impl MemoryStore {
    fn image(&self) -> VolumeImage {
        self.ledgers.kept.borrow().get(&self.volume).cloned().unwrap_or_default()
    }
}

impl Store<Volume> for MemoryStore {
    fn write(&mut self, _ticket: Ticket, change: VolumeChange) -> Written {
        let mut image = self.image();
        image.apply(&change);
        self.ledgers.put(self.volume.clone(), image);
        Written::Now
    }

    fn load(&mut self) -> LocalBoxFuture<'static, Result<VolumeImage, String>> {
        Box::pin(std::future::ready(Ok(self.image())))
    }
}
