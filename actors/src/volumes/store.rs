//! Stores the data of the owner of the volumes: in the database, or, for tests and scripts, in memory.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use actix::Recipient;
use futures_util::future::LocalBoxFuture;

use super::row::{DeletionRow, KnownRow};
use super::{KnownVolume, Volumes, VolumesChange, VolumesImage};
use crate::persister::{Disk, Operation, Owner, Settled, Tables};
use crate::shell::{Database, Ledger, Store, Ticket, Written};
use crate::vocabulary::Attempt;
use crate::volume::{self, Images, MemoryLedgers, VolumeImage, VolumeKey, VolumeSpec, key};

/// The owner of these writes.
pub const OWNER: Owner = Owner::new("volumes");

/// Stores the known volumes in the database, and reads which volumes have a ledger there. Damaged records that are found on loading are
/// posted as notices (RES-08). Clones share the result of the reading.
#[derive(Debug, Clone)]
pub struct DurableStore {
    database: Database,
    ledger: Ledger,
    first: Rc<RefCell<FirstReading>>,
}

/// The ledgers of the volumes from the first load of a host, until the actor of each volume takes its ledger: otherwise thousands of actors
/// would each ask the database thread for their own rows. A later load keeps no ledgers, since actors have written to them by then.
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
            // An actor that reads its own rows writes from then on.
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

    /// The ledger of a volume, for this incarnation of its actor. No two incarnations on a database have the same number.
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
            // A second reading is without the damaged rows, which are set aside.
            let read = |tables: &mut Tables<'_>| {
                let images = Images::read(tables, &[])?;
                Ok((images.into_map(), tables.damaged().is_empty()))
            };
            let (images, is_sound) = ledger.read(read).await?;
            let in_ledger = specs_of(&images, &known);
            first.borrow_mut().done(if is_sound { images } else { BTreeMap::new() });
            Ok(VolumesImage { known, in_ledger, deleting })
        })
    }
}

/// The volumes that have ledgers. If no row contains the spec of a volume, only a known volume gets an actor.
fn specs_of(ledgers: &BTreeMap<VolumeKey, VolumeImage>, known: &[Arc<KnownVolume>]) -> Vec<Arc<VolumeSpec>> {
    let spec = |(volume, image): (&VolumeKey, &VolumeImage)| {
        let known = || known.iter().map(|known| &known.spec).find(|spec| spec.key == *volume);
        image.spec().or_else(known).cloned()
    };
    ledgers.iter().filter_map(spec).collect()
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
        let in_ledger = specs_of(&ledgers, &kept.known);
        let image = VolumesImage { in_ledger, ..kept };
        Box::pin(std::future::ready(Ok(image)))
    }
}
