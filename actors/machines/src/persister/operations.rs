//! The operations of many writes, stored in few contiguous buffers.
//!
//! With hundreds of pending writes, a few small allocations for each would cost more than all other work before the disk.

use super::messages::{Operation, Table};
use super::record::{self, SEAL_BYTES};

/// Up to this size an unused buffer is kept for reuse.
const SPARE_BYTES_MAX: usize = 1024 * 1024;

/// A list of operations, and the names of the records that they delete.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Operations {
    laid: Vec<Laid>,
    /// Keys and sealed records, concatenated.
    bytes: Vec<u8>,
}

/// The table of one operation, and the lengths of its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Laid {
    table: Table,
    key: usize,
    /// Length of record and seal; `None` for a delete.
    sealed: Option<usize>,
    /// Length of the name of the deleted record.
    name: usize,
}

impl Laid {
    fn bytes(self) -> usize {
        self.key + self.sealed.unwrap_or(0) + self.name
    }
}

/// One operation, as it is committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change<'a> {
    /// The table of the record.
    pub table: Table,
    /// Its key.
    pub key: &'a [u8],
    /// The record to write, with its seal; `None` for a delete.
    pub sealed: Option<&'a [u8]>,
    /// The name for people of the deleted record; empty if its key is readable.
    pub name: &'a [u8],
}

impl Change<'_> {
    /// The record to write, without its seal.
    #[must_use]
    pub fn record(&self) -> Option<&[u8]> {
        self.sealed?.get(SEAL_BYTES..)
    }
}

impl Operations {
    /// Appends an operation, and seals its record on the calling thread, to relieve the committing thread.
    pub fn push(&mut self, operation: &Operation) {
        let (table, key, record, name) = match operation {
            Operation::Put { table, key, record } => (*table, key, Some(record), ""),
            Operation::Delete { table, key, name } => (*table, key, None, name.as_str()),
        };
        self.bytes.extend_from_slice(key);
        if let Some(record) = record {
            self.bytes.extend_from_slice(&record::seal(table, key, record));
            self.bytes.extend_from_slice(record);
        }
        self.bytes.extend_from_slice(name.as_bytes());
        let sealed = record.map(|record| SEAL_BYTES + record.len());
        self.laid.push(Laid { table, key: key.len(), sealed, name: name.len() });
    }

    /// Appends a copy of an operation of another list.
    pub(super) fn copy(&mut self, change: &Change<'_>) {
        let Change { table, key, sealed, name } = *change;
        for part in [key, sealed.unwrap_or_default(), name] {
            self.bytes.extend_from_slice(part);
        }
        self.laid.push(Laid { table, key: key.len(), sealed: sealed.map(<[u8]>::len), name: name.len() });
    }

    /// Moves the first `count` out, into the `unused` buffer. If they are all, the buffers are swapped.
    pub fn take_first(&mut self, count: usize, mut unused: Self) -> Self {
        unused.clear();
        if count >= self.laid.len() {
            return std::mem::replace(self, unused);
        }
        let bytes = self.laid.iter().take(count).map(|laid| laid.bytes()).sum();
        unused.laid.extend(self.laid.drain(..count));
        unused.bytes.extend_from_slice(&self.bytes[..bytes]);
        self.bytes.drain(..bytes);
        unused
    }

    /// Appends copies of the first `count` operations of another list.
    pub(super) fn copy_first(&mut self, count: usize, of: &Self) {
        let laid = &of.laid[..count.min(of.laid.len())];
        let bytes = laid.iter().map(|laid| laid.bytes()).sum();
        self.laid.extend_from_slice(laid);
        self.bytes.extend_from_slice(&of.bytes[..bytes]);
    }

    /// Keeps the operations for which `is_kept` returns true; it is called once for each, in order.
    pub(super) fn retain(&mut self, mut is_kept: impl FnMut() -> bool) {
        let mut kept = Self::default();
        let mut rest = self.bytes.as_slice();
        for laid in &self.laid {
            let (bytes, behind) = rest.split_at(laid.bytes());
            rest = behind;
            if is_kept() {
                kept.laid.push(*laid);
                kept.bytes.extend_from_slice(bytes);
            }
        }
        *self = kept;
    }

    /// The operations, in order.
    pub fn iter(&self) -> impl Iterator<Item = Change<'_>> {
        let mut rest = self.bytes.as_slice();
        self.laid.iter().map(move |laid| {
            let (bytes, behind) = rest.split_at(laid.bytes());
            rest = behind;
            let (key, rest) = bytes.split_at(laid.key);
            let (sealed, name) = rest.split_at(laid.sealed.unwrap_or(0));
            Change { table: laid.table, key, sealed: laid.sealed.map(|_| sealed), name }
        })
    }

    /// Removes all, and keeps the buffer unless it is large.
    pub(super) fn clear(&mut self) {
        self.laid.clear();
        self.bytes.clear();
        if self.bytes.capacity() > SPARE_BYTES_MAX {
            *self = Self::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: Table = Table("t");

    fn put(key: &[u8], record: &[u8]) -> Operation {
        Operation::Put { table: TABLE, key: key.to_vec(), record: record.to_vec() }
    }

    fn delete(key: &[u8]) -> Operation {
        Operation::Delete { table: TABLE, key: key.to_vec(), name: String::new() }
    }

    fn laid(operations: &[Operation]) -> Operations {
        let mut laid = Operations::default();
        operations.iter().for_each(|operation| laid.push(operation));
        laid
    }

    /// All keys and records; asserts that each seal matches.
    fn told(operations: &Operations) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
        let told = operations.iter().map(|Change { table, key, sealed, .. }| {
            let record = sealed.map(|sealed| {
                let (seal, record) = sealed.split_first_chunk().expect("a seal comes first");
                assert_eq!(*seal, record::seal(table, key, record));
                record.to_vec()
            });
            (key.to_vec(), record)
        });
        told.collect()
    }

    fn row(key: &[u8], record: &[u8]) -> (Vec<u8>, Option<Vec<u8>>) {
        (key.to_vec(), Some(record.to_vec()))
    }

    fn gone(key: &[u8]) -> (Vec<u8>, Option<Vec<u8>>) {
        (key.to_vec(), None)
    }

    #[test]
    fn what_is_laid_down_comes_out_in_its_order_whatever_is_empty_p1() {
        let operations = laid(&[put(b"k", b"one"), delete(b"k"), put(b"", b""), put(b"long", b"r")]);
        let expected = [row(b"k", b"one"), gone(b"k"), row(b"", b""), row(b"long", b"r")];
        assert_eq!(told(&operations), expected);
    }

    #[test]
    fn the_first_are_taken_and_the_rest_stays_as_it_was_p1() {
        let mut operations = laid(&[put(b"a", b"1"), delete(b"b"), put(b"c", b"333")]);
        let first = operations.take_first(2, laid(&[put(b"old", b"old")]));
        assert_eq!(told(&first), [row(b"a", b"1"), gone(b"b")]);
        assert_eq!(told(&operations), [row(b"c", b"333")]);
        let rest = operations.take_first(7, first);
        assert_eq!(told(&rest), [row(b"c", b"333")]);
        assert_eq!(told(&operations), []);
    }

    #[test]
    fn the_first_are_copied_behind_others_and_stay_where_they_are() {
        let operations = laid(&[put(b"a", b"1"), delete(b"b"), put(b"c", b"333")]);
        let mut copies = laid(&[put(b"z", b"9")]);
        copies.copy_first(2, &operations);
        assert_eq!(told(&copies), [row(b"z", b"9"), row(b"a", b"1"), gone(b"b")]);
        assert_eq!(told(&operations).len(), 3);
    }

    #[test]
    fn those_that_depend_on_a_failure_are_taken_out_of_the_middle_p3() {
        let mut operations = laid(&[put(b"a", b"1"), delete(b"b"), put(b"c", b"333"), delete(b"d")]);
        let mut kept = [true, false, false, true].into_iter();
        operations.retain(|| kept.next().unwrap());
        assert_eq!(told(&operations), [row(b"a", b"1"), gone(b"d")]);
    }

    #[test]
    fn much_memory_is_given_back() {
        let mut operations = laid(&[put(b"a", &vec![0; SPARE_BYTES_MAX + 1])]);
        operations.clear();
        assert_eq!(operations.bytes.capacity(), 0);
        let mut operations = laid(&[put(b"a", &[0; 100])]);
        operations.clear();
        assert!(operations.bytes.capacity() >= 100);
        assert_eq!(told(&operations), []);
        let bytes = Vec::with_capacity(SPARE_BYTES_MAX);
        let mut operations = Operations { laid: Vec::new(), bytes };
        operations.clear();
        assert!(operations.bytes.capacity() >= SPARE_BYTES_MAX, "that much may be kept");
    }
}
