//! Reads any number of tables in one visit to the thread of the database.

use callboard_machines::persister::{Damaged, Loaded, Record};

use super::errors::LoadError;
use super::store::Store;
use super::taken::TakenNames;

/// The tables of the database at one point in the order of all writes.
///
/// A reader of several tables reads them in one visit: each visit wakes two threads, and no commit runs during it.
#[derive(Debug)]
pub struct Tables<'a> {
    store: &'a mut Store,
    damaged: Vec<Damaged>,
    taken: TakenNames,
}

impl<'a> Tables<'a> {
    pub(super) const fn new(store: &'a mut Store) -> Self {
        Self { store, damaged: Vec::new(), taken: TakenNames::NONE }
    }

    /// Refuses the tables of these names from now on.
    pub(crate) const fn refuse(&mut self, taken: TakenNames) {
        self.taken = taken;
    }

    /// Loads the table of a record type, ordered by key. Damaged records are set aside (RES-08).
    ///
    /// # Errors
    ///
    /// [`LoadError`], and then this table was not changed. Single damaged records are not an error: see [`Loaded::damaged`].
    pub fn load<R: Record>(&mut self) -> Result<Loaded<R>, LoadError> {
        self.load_below(&[])
    }

    /// Like [`load`](Self::load), for the records whose keys begin with these bytes. Other records are not read, however many there are.
    ///
    /// # Errors
    /// As for [`load`](Self::load).
    pub fn load_below<R: Record>(&mut self, prefix: &[u8]) -> Result<Loaded<R>, LoadError> {
        self.taken.check_table(R::TABLE)?;
        let loaded = self.store.load_below(prefix)?;
        self.damaged.extend_from_slice(&loaded.damaged);
        Ok(loaded)
    }

    /// The damaged records that were found so far.
    #[must_use]
    pub fn damaged(&self) -> &[Damaged] {
        &self.damaged
    }

    pub(super) fn into_damaged(self) -> Vec<Damaged> {
        self.damaged
    }
}
