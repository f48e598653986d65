//! The plain model of a database: rows, and the commits with an unknown outcome.

use super::volume::{Lines, Place};

/// The changes of a commit, row by row; without a record the row is removed.
pub(super) type Changes = Vec<(Place, Option<Vec<u8>>)>;

/// The required content of the database.
#[derive(Debug, Clone, Hash, Default)]
pub(super) struct Plain {
    /// The rows at the last read, with the commits since that are certain.
    lines: Lines,
    /// The commits from the first doubtful one on.
    unread: Vec<Commit>,
}

#[derive(Debug, Clone, Hash)]
struct Commit {
    changes: Changes,
    is_certain: bool,
}

fn apply(lines: &mut Lines, changes: &Changes) {
    for (place, record) in changes {
        match record {
            Some(record) => lines.insert(place.clone(), record.clone()),
            None => lines.remove(place),
        };
    }
}

impl Plain {
    /// These changes are on disk.
    pub(super) fn committed(&mut self, changes: Changes) {
        if self.unread.is_empty() {
            apply(&mut self.lines, &changes);
        } else {
            self.unread.push(Commit { changes, is_certain: true });
        }
    }

    /// These changes are on disk or not, all of them or none.
    pub(super) fn doubted(&mut self, changes: Changes) {
        self.unread.push(Commit { changes, is_certain: false });
    }

    /// Whether the outcome of any commit is unknown.
    pub(super) const fn is_doubtful(&self) -> bool {
        !self.unread.is_empty()
    }

    /// A record was set aside.
    pub(super) fn loses(&mut self, place: &Place) {
        self.lines.remove(place);
    }

    /// The rows that are certainly there.
    pub(super) const fn lines(&self) -> &Lines {
        &self.lines
    }

    /// Whether the database may contain this. If so, it is known from now on which of the doubtful commits took effect: returned for
    /// each, in order.
    pub(super) fn is_found(&mut self, found: &Lines) -> Option<Vec<bool>> {
        let doubtful = self.unread.iter().filter(|commit| !commit.is_certain).count();
        if doubtful == 0 {
            return (self.lines == *found).then(Vec::new);
        }
        let ways = (0..1_u32 << doubtful.min(16)).map(|way| (0..doubtful).map(move |at| way >> at & 1 == 1));
        let took_effect = ways.map(Iterator::collect::<Vec<bool>>).find(|way| self.after(way) == *found)?;
        self.lines = found.clone();
        self.unread.clear();
        Some(took_effect)
    }

    fn after(&self, took_effect: &[bool]) -> Lines {
        let (mut lines, mut took_effect) = (self.lines.clone(), took_effect.iter());
        for commit in &self.unread {
            if commit.is_certain || took_effect.next() == Some(&true) {
                apply(&mut lines, &commit.changes);
            }
        }
        lines
    }
}
