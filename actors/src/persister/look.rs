//! Inspects a database without writing to it.
//!
//! redb writes when it opens a file: it sets an in-use flag and repairs the effects of a crash. Neither may happen to a file
//! of a newer version. So the first open goes through [`Overlay`], which keeps all writes in memory. A table can be read in
//! the same way when its file system has become read-only.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use redb::StorageBackend;

const PAGE: u64 = 4_096;

/// A storage backend that reads from another one, and keeps writes in memory.
#[derive(Debug)]
pub(super) struct Overlay {
    below: Box<dyn StorageBackend>,
    written: Mutex<Written>,
}

#[derive(Debug)]
struct Written {
    len: u64,
    /// Up to where the bytes of the backend below are valid: a file truncated and then extended is zero behind the cut.
    below_len: u64,
    pages: BTreeMap<u64, Box<[u8]>>,
}

impl Overlay {
    pub(super) fn over(below: Box<dyn StorageBackend>) -> io::Result<Self> {
        let len = below.len()?;
        Ok(Self { below, written: Mutex::new(Written { len, below_len: len, pages: BTreeMap::new() }) })
    }

    fn written(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read_below(&self, offset: u64, out: &mut [u8], below_len: u64) -> io::Result<()> {
        let there = usize::try_from(below_len.saturating_sub(offset)).unwrap_or(usize::MAX).min(out.len());
        if there > 0 {
            self.below.read(offset, &mut out[..there])?;
        }
        out[there..].fill(0);
        Ok(())
    }
}

impl StorageBackend for Overlay {
    fn len(&self) -> io::Result<u64> {
        Ok(self.written().len)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let written = self.written();
        if offset.checked_add(out.len() as u64).is_none_or(|end| end > written.len) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.read_below(offset, out, written.below_len)?;
        for piece in pieces(offset, out.len()) {
            if let Some(page) = written.pages.get(&piece.page) {
                out[piece.outside()].copy_from_slice(&page[piece.inside()]);
            }
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut written = self.written();
        if len < written.len {
            written.below_len = written.below_len.min(len);
            let first_gone = len.div_ceil(PAGE);
            written.pages.split_off(&first_gone);
            let rest = usize::try_from(len % PAGE).expect("less than a page");
            if rest > 0
                && let Some(last) = written.pages.get_mut(&(len / PAGE))
            {
                last[rest..].fill(0);
            }
        }
        written.len = len;
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut written = self.written();
        let below_len = written.below_len;
        for piece in pieces(offset, data.len()) {
            let page = match written.pages.remove(&piece.page) {
                Some(page) => page,
                None => {
                    let mut page = vec![0; PAGE as usize].into_boxed_slice();
                    self.read_below(piece.page * PAGE, &mut page, below_len)?;
                    page
                }
            };
            let page = written.pages.entry(piece.page).or_insert(page);
            page[piece.inside()].copy_from_slice(&data[piece.outside()]);
        }
        written.len = written.len.max(offset + data.len() as u64);
        Ok(())
    }

    fn close(&self) -> io::Result<()> {
        self.below.close()
    }
}

/// The part of a byte range in one page.
struct Piece {
    page: u64,
    from: usize,
    at: usize,
    len: usize,
}

impl Piece {
    fn inside(&self) -> std::ops::Range<usize> {
        self.from..self.from + self.len
    }

    fn outside(&self) -> std::ops::Range<usize> {
        self.at..self.at + self.len
    }
}

fn pieces(offset: u64, len: usize) -> impl Iterator<Item = Piece> {
    let mut at = 0;
    std::iter::from_fn(move || {
        if at == len {
            return None;
        }
        let position = offset + at as u64;
        let from = usize::try_from(position % PAGE).expect("less than a page");
        let piece = Piece { page: position / PAGE, from, at, len: (PAGE as usize - from).min(len - at) };
        at += piece.len;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use redb::backends::InMemoryBackend;

    #[derive(Debug, Clone)]
    enum Step {
        Write(u64, Vec<u8>),
        SetLen(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0..20_000_u64, proptest::collection::vec(1..255_u8, 1..6_000))
                .prop_map(|(offset, data)| Step::Write(offset, data)),
            (0..30_000_u64).prop_map(Step::SetLen),
        ]
    }

    proptest! {
        #[test]
        fn what_is_read_through_an_overlay_is_what_a_real_file_would_hold(steps in proptest::collection::vec(step(), 1..12)) {
            let below = InMemoryBackend::new();
            let first: Vec<u8> = (0..10_000_u32).map(|n| (n % 251 + 1) as u8).collect();
            below.set_len(10_000).unwrap();
            below.write(0, &first).unwrap();
            let overlay = Overlay::over(Box::new(below)).unwrap();
            let mut model = first;
            for step in steps {
                match step {
                    Step::Write(offset, data) => {
                        let start = offset as usize;
                        if model.len() < start + data.len() {
                            model.resize(start + data.len(), 0);
                        }
                        model[start..start + data.len()].copy_from_slice(&data);
                        overlay.write(offset, &data).unwrap();
                    }
                    Step::SetLen(len) => {
                        model.resize(len as usize, 0);
                        overlay.set_len(len).unwrap();
                    }
                }
                let mut read = vec![9; model.len()];
                overlay.read(0, &mut read).unwrap();
                prop_assert!(read == model);
                prop_assert!(overlay.read(model.len() as u64, &mut [0]).is_err());
            }
        }
    }
}
