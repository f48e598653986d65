//! A disk that fails on request.
//!
//! It holds two images of the file: the bytes that a program sees, and the bytes that survive a power cut. A sync copies the first
//! to the second, page by page.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use callboard_actors::persister::{MakeBackend, OpenError, Options, Persister};
use redb::StorageBackend;

const PAGE: usize = 4_096;

/// When the power is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// In the middle of the sync of this number.
    AtSync(u64),
    /// Before the write of this number.
    AtWrite(u64),
}

/// A fault that lasts until the disk is repaired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Every write fails this way.
    Writes(rustix::io::Errno),
    /// Every sync fails this way, and forgets what was to be synced, as Linux does.
    Syncs(rustix::io::Errno),
    /// Every fifth sync or so fails with an I/O error, and forgets what was to be synced.
    SyncNowAndThen { seed: u64 },
    /// Everything fails this way.
    All(rustix::io::Errno),
}

/// The unsynced pages that reach the disk before the cut.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Unsynced {
    Nothing,
    Everything,
    /// The pages that a pseudo-random number generator with this seed selects.
    Some(u64),
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Disk(Arc<Mutex<Images>>);

#[derive(Debug, Default)]
struct Images {
    seen: Vec<u8>,
    durable: Vec<u8>,
    unsynced: BTreeSet<usize>,
    syncs: u64,
    writes: u64,
    cut: Option<Cut>,
    powerless: bool,
    fault: Option<Fault>,
}

impl Disk {
    pub(crate) fn holding(bytes: Vec<u8>) -> Self {
        Self(Arc::new(Mutex::new(Images { durable: bytes.clone(), seen: bytes, ..Images::default() })))
    }

    pub(crate) fn cut_at(&self, cut: Cut) {
        self.images().cut = Some(cut);
    }

    /// Whether the power has been cut.
    pub(crate) fn is_powerless(&self) -> bool {
        self.images().powerless
    }

    pub(crate) fn fail(&self, fault: Fault) {
        self.images().fault = Some(fault);
    }

    pub(crate) fn mend(&self) {
        self.images().fault = None;
    }

    pub(crate) fn syncs(&self) -> u64 {
        self.images().syncs
    }

    /// The bytes that a program sees in the file now.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.images().seen.clone()
    }

    /// A new disk with the bytes that survive.
    pub(crate) fn after_the_cut(&self, unsynced: Unsynced) -> Self {
        let images = self.images();
        let mut survived = images.durable.clone();
        let mut random = Random(match unsynced {
            Unsynced::Some(seed) => seed,
            Unsynced::Nothing | Unsynced::Everything => 0,
        });
        let mut reached = || match unsynced {
            Unsynced::Nothing => false,
            Unsynced::Everything => true,
            Unsynced::Some(_) => random.next().is_multiple_of(2),
        };
        if reached() {
            survived.resize(images.seen.len(), 0);
        }
        for page in images.unsynced.iter().filter(|_| reached()) {
            copy_page(*page, &images.seen, &mut survived);
        }
        Self::holding(survived)
    }

    /// Opens a persister on this disk. The directory only holds the lock.
    pub(crate) async fn open(&self, data_dir: &Path) -> Result<Persister, OpenError> {
        let disk = self.clone();
        let backend: MakeBackend = Arc::new(move || Ok(Box::new(disk.clone())));
        Persister::open(Options { backend: Some(backend), ..Options::new(data_dir) }).await
    }

    fn images(&self) -> MutexGuard<'_, Images> {
        self.0.lock().expect("no test panics while it holds the images")
    }
}

impl Images {
    fn check(&self, is_failing: impl Fn(Fault) -> Option<rustix::io::Errno>) -> io::Result<()> {
        if self.powerless {
            return Err(io::Error::other("the power is cut"));
        }
        self.fault.and_then(is_failing).map_or(Ok(()), |error| Err(error.into()))
    }

    fn cut_if(&mut self, due: Cut) -> io::Result<()> {
        self.powerless |= self.cut == Some(due);
        self.check(|_| None)
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        let images = self.images();
        images.check(all)?;
        Ok(images.seen.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let images = self.images();
        images.check(all)?;
        let start = usize::try_from(offset).expect("a small file");
        let bytes = images.seen.get(start..start + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(bytes);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut images = self.images();
        images.check(all)?;
        images.seen.resize(usize::try_from(len).expect("a small file"), 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut images = self.images();
        images.syncs += 1;
        let due = Cut::AtSync(images.syncs);
        images.cut_if(due)?;
        let syncs = images.syncs;
        if let Err(error) = images.check(|fault| match fault {
            Fault::Syncs(error) | Fault::All(error) => Some(error),
            Fault::SyncNowAndThen { seed } => {
                Random(seed ^ (syncs << 32)).next().is_multiple_of(5).then_some(rustix::io::Errno::IO)
            }
            Fault::Writes(_) => None,
        }) {
            images.unsynced.clear();
            return Err(error);
        }
        let Images { seen, durable, unsynced, .. } = &mut *images;
        durable.resize(seen.len(), 0);
        for page in std::mem::take(unsynced) {
            copy_page(page, seen, durable);
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut images = self.images();
        images.writes += 1;
        let due = Cut::AtWrite(images.writes);
        images.cut_if(due)?;
        images.check(|fault| match fault {
            Fault::Writes(error) | Fault::All(error) => Some(error),
            Fault::Syncs(_) | Fault::SyncNowAndThen { .. } => None,
        })?;
        let start = usize::try_from(offset).expect("a small file");
        let end = start + data.len();
        if images.seen.len() < end {
            images.seen.resize(end, 0);
        }
        images.seen[start..end].copy_from_slice(data);
        images.unsynced.extend(start / PAGE..end.div_ceil(PAGE));
        Ok(())
    }
}

fn all(fault: Fault) -> Option<rustix::io::Errno> {
    match fault {
        Fault::All(error) => Some(error),
        Fault::Writes(_) | Fault::Syncs(_) | Fault::SyncNowAndThen { .. } => None,
    }
}

fn copy_page(page: usize, from: &[u8], to: &mut Vec<u8>) {
    let start = page * PAGE;
    let end = (start + PAGE).min(from.len());
    if start < end {
        if to.len() < end {
            to.resize(end, 0);
        }
        to[start..end].copy_from_slice(&from[start..end]);
    }
}

/// The same numbers for the same seed, everywhere.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
