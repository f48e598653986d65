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
use crate::vocabulary::Attempt;
use crate::volume::{
    self, AbandonedRow, AuditRow, ClaimRow, LostClaimRow, MemoryLedgers, OrderRow, VolumeImage, VolumeKey,
    VolumeRow, VolumeSpec, abandoned_targets, key, lost_claims, volume_of_order,
};

/// The owner of these writes.
pub const OWNER: Owner = Owner::new("volumes");

/// Stores the known volumes in the database, and reads which volumes have a ledger there. Damaged records that are found on loading are
/// posted as notices (RES-08). Clones share what was read.
#[derive(Debug, Clone)]
pub struct DurableStore {
    database: Database,
    ledger: Ledger,
    first: Rc<RefCell<FirstReading>>,
}

/// What the first load of a host found in the ledgers of the volumes, until the actor of each one takes it: thousands of volumes that
/// each read their own rows would ask the thread of the database some five times each. A later load leaves nothing to take, since
/// actors have written to the ledgers by then.
#[derive(Debug, Default)]
enum FirstReading {
    #[default]
    Expected,
    Done(BTreeMap<VolumeKey, VolumeImage>),
}

impl FirstReading {
    fn done(&mut self, found: BTreeMap<VolumeKey, VolumeImage>) {
        *self = Self::Done(match self {
            Self::Expected => found,
            Self::Done(_) => BTreeMap::new(),
        });
    }

    fn take(&mut self, volume: &VolumeKey) -> Option<VolumeImage> {
        match self {
            // An actor that reads for itself writes from then on.
            Self::Expected => {
                *self = Self::Done(BTreeMap::new());
                None
            }
            Self::Done(found) => found.remove(volume),
        }
    }
}

impl DurableStore {
    /// A store in this database.
    #[must_use]
    pub fn new(database: &Database) -> Self {
        Self { database: database.clone(), ledger: database.ledger(OWNER), first: Rc::default() }
    }

    /// The ledger of a volume, for this life of its actor. No two lives on a database have the same number.
    #[must_use]
    pub fn ledger(&self, volume: &VolumeKey, life: Attempt) -> volume::DurableStore {
        let read = self.first.borrow_mut().take(volume);
        volume::DurableStore::new(&self.database, volume.clone(), life).beginning_with(read)
    }
}

impl Store<Volumes> for DurableStore {
    fn open(&mut self, settled: Recipient<Settled>) {
        self.ledger.open(settled);
    }

    fn disk(&self) -> Option<Disk> {
        Some(self.ledger.disk())
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
        self.ledger.write(ticket, operations)
    }

    fn load(&mut self) -> LocalBoxFuture<'static, Result<VolumesImage, String>> {
        let Self { ledger, first, .. } = self.clone();
        Box::pin(async move {
            ledger.reopen().await?;
            let known = ledger.rows::<KnownRow>().await?;
            let deleting = ledger.rows::<DeletionRow>().await?;
            let deleting = deleting.into_iter().map(|(_, row)| row.0).collect();
            let known: Vec<_> = known.into_iter().map(|(_, row)| Arc::new(row.0)).collect();
            let Ledgers { images, others, is_sound } = Ledgers::read(&ledger).await?;
            let mut in_ledger = specs_of(&images);
            add_known(&mut in_ledger, &others, &known);
            first.borrow_mut().done(if is_sound { images } else { BTreeMap::new() });
            Ok(VolumesImage { known, in_ledger, deleting })
        })
    }
}

/// The ledgers of all volumes.
struct Ledgers {
    images: BTreeMap<VolumeKey, VolumeImage>,
    /// The volumes of rows that do not say what volume it is.
    others: BTreeSet<VolumeKey>,
    /// Whether no row is damaged. What is read again is without those that were set aside.
    is_sound: bool,
}

impl Ledgers {
    async fn read(ledger: &Ledger) -> Result<Self, String> {
        let volumes = ledger.load::<VolumeRow>().await?;
        let claims = ledger.load::<ClaimRow>().await?;
        let lost = ledger.load::<LostClaimRow>().await?;
        let orders = ledger.load::<OrderRow>().await?;
        let abandoned = ledger.load::<AbandonedRow>().await?;
        let audits = ledger.load::<AuditRow>().await?;
        let damaged = [
            &volumes.damaged,
            &claims.damaged,
            &lost.damaged,
            &orders.damaged,
            &abandoned.damaged,
            &audits.damaged,
        ];
        let is_sound = damaged.into_iter().all(Vec::is_empty);
        let (mut images, mut others) = (BTreeMap::<VolumeKey, VolumeImage>::new(), BTreeSet::new());
        for (volume, allocation) in lost_claims(&claims, &lost) {
            others.insert(volume.clone());
            images.entry(volume).or_default().lost.insert(allocation);
        }
        for (_, VolumeRow(record)) in volumes.rows {
            let key = record.spec.key.clone();
            images.entry(key).or_default().volume = Some(Arc::unwrap_or_clone(record));
        }
        for (_, ClaimRow(record)) in claims.rows {
            let claims = &mut images.entry(record.spec.key.clone()).or_default().claims;
            claims.push(Arc::unwrap_or_clone(record));
        }
        for (key, OrderRow(record)) in orders.rows {
            let Some(volume) = volume_of_order(&key) else { continue };
            others.insert(volume.clone());
            images.entry(volume).or_default().orders.push(record);
        }
        for (volume, target) in abandoned_targets(&abandoned) {
            others.insert(volume.clone());
            images.entry(volume).or_default().abandoned.insert(target);
        }
        for (_, AuditRow(record)) in audits.rows {
            images.entry(record.spec.key.clone()).or_default().audits.push(record);
        }
        Ok(Self { images, others, is_sound })
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
