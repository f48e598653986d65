//! A database, its disk and two or three actors that write, small enough to try every order of events.

use std::collections::BTreeSet;

use callboard_actors::persister::{Operation, Owner, RECORD_BYTES_MAX, Reached, Record, Table, Write};
use serde::{Deserialize, Serialize};

use super::super::law::Law;
use super::super::law_checker::{Violation, found, violation};
use super::super::search::{Play, World};
use super::event::{DatabaseBounds, DatabaseEvent, Trouble};
use super::faults::PersisterFault;
use super::model::{DatabaseModel, Job, Step};
use super::replayed::Replayed;
use super::volume::{Reader, read_table};

/// The record of the actors.
#[derive(Serialize, Deserialize)]
struct Line(String);

impl Record for Line {
    const TABLE: Table = Table("lines");
    const SCHEMA: u16 = 1;
}

const READERS: &[Reader] = &[read_table::<Line>];
const OWNERS: [Owner; 3] = [Owner::new("first"), Owner::new("second"), Owner::new("third")];

/// An actor that writes.
#[derive(Debug, Clone, Hash)]
struct Author {
    phase: Phase,
    epoch: u64,
    sequence: u64,
    writes_left: u8,
    /// The writes without a reported outcome: epoch and sequence.
    unsettled: BTreeSet<(u64, u64)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Phase {
    Writing,
    /// A failure was reported to it, and it begins again from the rows on disk.
    Failed,
    Loading,
}

/// The world, with its remaining bounds.
#[derive(Debug, Clone, Hash)]
pub struct DatabaseWorld {
    model: DatabaseModel<Replayed>,
    authors: Vec<Author>,
    left: DatabaseBounds,
    is_closing: bool,
    /// It could not be opened, and a retry would fail too.
    is_shut_out: bool,
}

impl DatabaseWorld {
    /// A world with these bounds, with a fault in the persister if one is given.
    #[must_use]
    pub fn new(bounds: DatabaseBounds, fault: Option<PersisterFault>) -> Self {
        let author = Author {
            phase: Phase::Writing,
            epoch: 1,
            sequence: 0,
            writes_left: bounds.writes_each,
            unsettled: BTreeSet::new(),
        };
        let mut world = Self {
            model: DatabaseModel::new(Replayed::new(READERS), fault),
            authors: vec![author; usize::from(bounds.owners)],
            left: bounds,
            is_closing: false,
            is_shut_out: false,
        };
        world.open();
        world
    }

    fn owners(&self) -> impl Iterator<Item = (u8, &Author)> {
        (0..).zip(&self.authors)
    }

    /// A host opens the database, and all actors have read their rows.
    fn open(&mut self) {
        self.is_closing = false;
        self.is_shut_out = !self.model.open();
        if !self.is_shut_out {
            for (author, owner) in self.authors.iter_mut().zip(OWNERS) {
                author.phase = Phase::Writing;
                author.epoch += 1;
                author.unsettled.clear();
                self.model.open_ledger(owner);
            }
        }
    }

    /// Each write has a row of its own, a row that it puts and deletes in turn, and a row in common with all others.
    fn write(&mut self, who: u8, is_large: bool) {
        let author = &mut self.authors[usize::from(who)];
        author.sequence += 1;
        author.unsettled.insert((author.epoch, author.sequence));
        let number = author.sequence;
        let put = |key: u8| {
            let line = Line(format!("{number} of {who} at {key}"));
            Operation::put([key], &line)
        };
        let own = 2 * who + 1;
        let comes =
            if number.is_multiple_of(2) { Operation::delete::<Line>([own + 1]) } else { put(own + 1) };
        let mut operations = vec![put(own), comes, put(0)];
        if is_large {
            let record = vec![0; RECORD_BYTES_MAX + 1];
            operations.push(Operation::Put { table: Line::TABLE, key: vec![own], record });
        }
        let (owner, epoch) = (OWNERS[usize::from(who)], author.epoch);
        self.model.write(&Write { owner, epoch, sequence: number, operations });
    }

    fn load(&mut self, who: u8) {
        let author = &mut self.authors[usize::from(who)];
        author.phase = Phase::Loading;
        author.epoch += 1;
        // Earlier callers receive nothing more.
        author.unsettled.clear();
        self.model.open_ledger(OWNERS[usize::from(who)]);
        self.model.words.retain(|word| word.owner != OWNERS[usize::from(who)]);
        self.model.lay(Job::Load(OWNERS[usize::from(who)]));
    }

    fn go_on(&mut self, takes_all: bool) {
        match self.model.go_on(if takes_all { usize::MAX } else { 1 }) {
            Step::Loaded(owner, rows) => {
                let places = OWNERS.iter().zip(&mut self.authors).find(|(known, _)| **known == owner);
                if let Some((_, author)) = places {
                    author.phase = if rows.is_some() { Phase::Writing } else { Phase::Failed };
                }
            }
            Step::Idle | Step::Committed { .. } | Step::Closed => {}
        }
    }

    fn hear(&mut self, who: u8) {
        let owner = OWNERS[usize::from(who)];
        let Some(place) = self.model.words.iter().position(|word| word.owner == owner) else { return };
        let Some(word) = self.model.words.remove(place) else { return };
        let author = &mut self.authors[usize::from(who)];
        if word.is_written {
            author.unsettled.retain(|(epoch, sequence)| *epoch != word.epoch || *sequence > word.through);
        } else {
            author.unsettled.retain(|(epoch, _)| *epoch > word.epoch);
            if author.phase == Phase::Writing && word.epoch == author.epoch {
                (author.phase, author.epoch) = (Phase::Failed, author.epoch + 1);
            }
        }
    }

    fn has_word_for(&self, who: u8) -> bool {
        self.model.words.iter().any(|word| word.owner == OWNERS[usize::from(who)])
    }

    fn begin_trouble(&mut self, trouble: Option<Trouble>) {
        if let Some(Trouble { after, fault }) = trouble {
            self.left.troubles_max -= 1;
            self.model.fails_after(after, fault);
        }
    }

    /// No fault, and each fault that may begin now.
    fn troubles(&self) -> Vec<Option<Trouble>> {
        let may_come = self.left.troubles_max > 0 && self.model.trouble().is_none();
        let more = self.left.troubles.iter().filter(|_| may_come).copied().map(Some);
        std::iter::once(None).chain(more).collect()
    }

    fn of_owners(&self, events: &mut Vec<DatabaseEvent>) {
        for (who, author) in self.owners() {
            if author.phase == Phase::Writing && author.writes_left > 0 && !self.model.is_gone() {
                events.push(DatabaseEvent::Write(who));
                if self.left.large > 0 {
                    events.push(DatabaseEvent::WriteTooMuch(who));
                }
            }
            if self.has_word_for(who) {
                events.push(DatabaseEvent::Hear(who));
            }
            let must_load = author.phase == Phase::Failed && self.model.trouble().is_none();
            let may_load = author.phase != Phase::Loading && self.left.successors > 0;
            if self.model.is_open() && (must_load || may_load) {
                events.push(DatabaseEvent::Load(who));
            }
        }
    }

    fn of_the_host(&self, events: &mut Vec<DatabaseEvent>) {
        let is_open = self.model.is_open();
        if is_open && self.left.closes > 0 && !self.is_closing {
            events.push(DatabaseEvent::Close);
        }
        if self.left.cuts > 0 && !self.model.is_gone() {
            let reached = [Reached::Nothing, Reached::Everything, Reached::Chosen(1), Reached::Chosen(2)];
            events.extend(reached.map(DatabaseEvent::Cut));
        }
        if !is_open && !self.is_shut_out {
            events.extend(self.troubles().into_iter().map(DatabaseEvent::Open));
        }
        let is_shut = !is_open && !self.model.is_gone() && self.model.trouble().is_none();
        if is_shut && self.left.damages > 0 && self.model.some_row().is_some() {
            events.push(DatabaseEvent::Damage);
        }
        if self.model.trouble().is_some() {
            events.push(DatabaseEvent::Mend);
        }
        if self.left.merges > 0 && self.model.waiting() > 1 {
            events.push(DatabaseEvent::Merge);
        }
    }
}

impl World for DatabaseWorld {
    fn events(&self) -> Vec<DatabaseEvent> {
        let mut events = Vec::new();
        self.of_owners(&mut events);
        if self.model.may_go_on() {
            let several = self.model.waiting() > 1 && self.model.is_write_next();
            for takes_all in if several { &[true, false][..] } else { &[true] } {
                let go_on = |trouble| DatabaseEvent::GoOn { takes_all: *takes_all, trouble };
                events.extend(self.troubles().into_iter().map(go_on));
            }
        }
        if self.model.may_tell() {
            events.push(DatabaseEvent::Tell);
        }
        self.of_the_host(&mut events);
        events
    }
}

impl Play for DatabaseWorld {
    type Event = DatabaseEvent;

    fn can(&self, event: &DatabaseEvent) -> bool {
        self.events().contains(event)
    }

    fn take(&mut self, event: &DatabaseEvent) -> Result<(), Violation> {
        match *event {
            DatabaseEvent::Write(who) | DatabaseEvent::WriteTooMuch(who) => {
                let is_large = *event == DatabaseEvent::WriteTooMuch(who);
                self.left.large -= u8::from(is_large);
                self.authors[usize::from(who)].writes_left -= 1;
                self.write(who, is_large);
            }
            DatabaseEvent::GoOn { takes_all, trouble } => {
                self.begin_trouble(trouble);
                self.go_on(takes_all);
            }
            DatabaseEvent::Tell => self.model.tell(),
            DatabaseEvent::Hear(who) => self.hear(who),
            DatabaseEvent::Load(who) => {
                if self.authors[usize::from(who)].phase == Phase::Writing {
                    self.left.successors -= 1;
                }
                self.load(who);
            }
            DatabaseEvent::Merge => {
                self.left.merges -= 1;
                self.model.merge();
            }
            DatabaseEvent::Mend => {
                self.is_shut_out = false;
                self.model.is_mended();
            }
            DatabaseEvent::Close => {
                self.left.closes -= 1;
                self.is_closing = true;
                self.model.lay(Job::Close);
            }
            DatabaseEvent::Damage => {
                self.left.damages -= 1;
                if let Some((place, record)) = self.model.some_row() {
                    self.model.is_damaged(place, &record);
                }
            }
            DatabaseEvent::Cut(reached) => {
                self.left.cuts -= 1;
                self.model.is_cut(reached);
            }
            DatabaseEvent::Open(trouble) => {
                self.begin_trouble(trouble);
                self.open();
            }
        }
        found(self.model.verdict.broken())
    }

    /// On a repaired disk every owner receives the outcome of its writes, and can write again.
    fn settle(&mut self) -> Result<(), Violation> {
        self.calm_down()?;
        if !self.model.is_open() {
            self.open();
        }
        (0..self.left.owners).for_each(|who| self.write(who, false));
        let epochs: Vec<u64> = self.authors.iter().map(|author| author.epoch).collect();
        self.calm_down()?;
        if self.authors.iter().map(|author| author.epoch).ne(epochs) {
            return violation(Law::P3, "the disk is mended, and a write fails");
        }
        Ok(())
    }
}

impl DatabaseWorld {
    fn calm_down(&mut self) -> Result<(), Violation> {
        if self.model.trouble().is_some() {
            self.model.is_mended();
        }
        if self.model.is_gone() {
            self.open();
        }
        for _ in 0..64 {
            let heard = (0..self.left.owners).filter(|who| self.has_word_for(*who)).collect::<Vec<_>>();
            let failed = self.owners().find(|(_, author)| author.phase == Phase::Failed);
            let must_load = failed.map(|(who, _)| who).filter(|_| self.model.is_open());
            if self.model.may_tell() {
                self.model.tell();
            } else if !heard.is_empty() {
                heard.into_iter().for_each(|who| self.hear(who));
            } else if let Some(who) = must_load {
                self.load(who);
            } else if self.model.may_go_on() {
                self.go_on(true);
            } else {
                break;
            }
        }
        found(self.model.verdict.broken())?;
        match self.owners().find(|(_, author)| !author.unsettled.is_empty()) {
            Some((who, author)) => {
                violation(Law::P1, format!("{who} never heard how {:?} ended", author.unsettled))
            }
            None => Ok(()),
        }
    }
}
