//! The baselines of the disk: a bare sync, and a bare redb with one commit per message.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use tempfile::TempDir;

use super::curve::{Stretch, nanos};
use super::figures::Samples;

const TABLE: TableDefinition<'static, &'static [u8], &'static [u8]> = TableDefinition::new("registrations");

/// A directory on the file system of the build, so that a sync reaches a disk.
pub(crate) fn directory() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory can be made below target/")
}

/// How often per second 4 KiB are appended to a file and synced.
pub(crate) fn syncs_per_second(directory: &Path, lasting: Duration) -> f64 {
    let mut file = File::create(directory.join("sync")).expect("a file can be made");
    let page = [7; 4096];
    let (begun, mut syncs) = (Instant::now(), 0);
    while begun.elapsed() < lasting {
        file.write_all(&page).and_then(|()| file.sync_data()).expect("the disk works");
        syncs += 1;
    }
    super::figures::per_second(syncs, begun.elapsed())
}

/// The first row that the registry wrote into a closed database: the baseline's rows have the same length.
pub(crate) fn first_row(database: &Path) -> Vec<u8> {
    let database = Database::open(database).expect("the persister left it in order");
    let transaction = database.begin_read().expect("it can be read");
    let table = transaction.open_table(TABLE).expect("the registry has written");
    let (_, row) = table.first().expect("it can be read").expect("a registration is held");
    row.value().to_vec()
}

/// redb without our code.
pub(crate) struct BareRedb {
    database: Database,
    row: Vec<u8>,
    next: u64,
}

impl BareRedb {
    /// Creates a database with `held` rows like this one.
    pub(crate) fn holding(held: u64, row: Vec<u8>, directory: &Path) -> Self {
        let database = Database::create(directory.join("bare.redb")).expect("a database can be made");
        let transaction = database.begin_write().expect("it can be written");
        let mut table = transaction.open_table(TABLE).expect("it can be written");
        for key in 0..held {
            table.insert(key.to_be_bytes().as_slice(), row.as_slice()).expect("it can be written");
        }
        drop(table);
        transaction.commit().expect("it can be written");
        Self { database, row, next: held }
    }

    /// Messages per second with one commit per message: each pair inserts and deletes a row.
    pub(crate) fn messages_per_second(&mut self, lasting: Duration) -> f64 {
        let (begun, mut messages) = (Instant::now(), 0);
        while begun.elapsed() < lasting {
            self.insert();
            self.remove();
            messages += 2;
        }
        super::figures::per_second(messages, begun.elapsed())
    }

    /// Commits batches of this many messages, which insert and delete rows in turn. A message's latency is that of its commit.
    pub(crate) fn batches(&mut self, messages: u64, pairs: u64) -> Stretch {
        let (begun, mut latencies) = (Instant::now(), Samples::default());
        for commit in 0..2 * pairs {
            let asked = Instant::now();
            self.batch(messages, commit.is_multiple_of(2));
            latencies.push(nanos(asked.elapsed()));
        }
        Stretch::new(2 * pairs * messages, begun.elapsed(), latencies)
    }

    fn batch(&mut self, messages: u64, is_coming: bool) {
        let transaction = self.database.begin_write().expect("it can be written");
        let mut table = transaction.open_table(TABLE).expect("it can be written");
        for key in self.next..self.next + messages {
            let key = key.to_be_bytes();
            if is_coming {
                table.insert(key.as_slice(), self.row.as_slice()).expect("it can be written");
            } else {
                table.remove(key.as_slice()).expect("it can be written");
            }
        }
        drop(table);
        transaction.commit().expect("it can be written");
        if !is_coming {
            self.next += messages;
        }
    }

    /// Commits one row.
    pub(crate) fn insert(&mut self) {
        let transaction = self.database.begin_write().expect("it can be written");
        let mut table = transaction.open_table(TABLE).expect("it can be written");
        table.insert(self.next.to_be_bytes().as_slice(), self.row.as_slice()).expect("it can be written");
        drop(table);
        transaction.commit().expect("it can be written");
    }

    /// Commits the removal of the row that was inserted last.
    pub(crate) fn remove(&mut self) {
        let transaction = self.database.begin_write().expect("it can be written");
        let mut table = transaction.open_table(TABLE).expect("it can be written");
        table.remove(self.next.to_be_bytes().as_slice()).expect("it can be written");
        drop(table);
        transaction.commit().expect("it can be written");
        self.next += 1;
    }
}

/// The time to open a database and read all `held` rows of its registrations.
pub(crate) fn read_through(database: &Path, held: u64) -> Duration {
    let begun = Instant::now();
    let database = Database::open(database).expect("the persister left it in order");
    let transaction = database.begin_read().expect("it can be read");
    let table = transaction.open_table(TABLE).expect("the registry has written");
    let mut rows = 0;
    let mut bytes = 0;
    for row in table.iter().expect("it can be read") {
        let (_, row) = row.expect("it can be read");
        rows += 1;
        bytes += std::hint::black_box(row.value()).len();
    }
    let took = begun.elapsed();
    assert!(rows == held && bytes > 0, "everything was read");
    took
}
