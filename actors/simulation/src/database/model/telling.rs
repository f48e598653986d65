//! Notifies the owners of the outcome of their writes.

use callboard_actors::persister::Progress;

use super::*;

impl<D: Medium> DatabaseModel<D> {
    /// Notifies the owners of the first finished commit.
    pub(crate) fn tell(&mut self) {
        let Some(Finished { batch, is_written, writes }) = self.finished.pop_front() else { return };
        if !is_written {
            let failed: Vec<_> = writes.iter().map(|(life, epoch, _)| (*life, *epoch)).collect();
            self.drop_what_depends(&batch.progress, &failed);
        }
        // The order of notifications among owners that share a commit does not matter.
        let of_owner = |word: &Word| (word.owner, word.epoch);
        let mut due = self.words_due(&writes, is_written);
        due.sort_by_key(of_owner);
        let mut told = self.words_told(&batch.progress, is_written);
        told.sort_by_key(of_owner);
        if told != due {
            let law = if is_written { Law::P1 } else { Law::P3 };
            self.verdict.violation(law, || format!("{told:?} is told, and {due:?} is due"));
        }
        told.into_iter().for_each(|word| self.say(word));
    }

    /// A write that is not even tried: its owner is notified of the refusal.
    pub(super) fn refuse(&mut self, progress: &[Progress]) {
        let refused = match self.waiting.pop_front() {
            Some(Waits::Refusal { life, epoch }) => Some((life, epoch)),
            other => {
                self.verdict.violation(Law::P3, || format!("a refusal comes before {other:?}"));
                None
            }
        };
        self.drop_what_depends(progress, refused.as_slice());
        for word in self.words_told(progress, false) {
            if refused.is_some_and(|((owner, _), epoch)| (owner, epoch) == (word.owner, word.epoch)) {
                self.say(word);
            } else {
                self.verdict
                    .violation(Law::P3, || format!("{word:?} is told of a write that was not refused"));
            }
        }
    }

    /// Items that depend on a failed write are dropped with it, in the queue and in the plain list: also the writes of a former life of a
    /// ledger, which is not notified.
    fn drop_what_depends(&mut self, progress: &[Progress], failed: &[(Life, u64)]) {
        for ((owner, opening), epoch) in failed {
            let ledger = self.ledgers.entry(*owner).or_default();
            if ledger.opening == *opening {
                ledger.closed_through = ledger.closed_through.max(Some(*epoch));
            }
        }
        let before = self.waiting.len();
        let mut is_merged = false;
        self.waiting.retain(|waits| match waits {
            Waits::Write { life, epoch, .. } | Waits::Refusal { life, epoch } => {
                let depends = failed.iter().any(|(failed, through)| failed == life && epoch <= through);
                is_merged |= depends && matches!(waits, Waits::Write { is_joined: true, .. });
                !depends
            }
            Waits::Job => true,
        });
        if self.is_wrong(PersisterFault::GoesOnAfterAFailure) {
            return;
        }
        let (dropped, due) = (self.queue.fail(progress), before - self.waiting.len());
        // Of merged writes there may be fewer.
        if dropped > due || dropped < due && !is_merged {
            self.verdict.violation(Law::P3, || {
                format!("{dropped} writes are dropped behind a failure, and {due} are to be")
            });
        }
    }

    /// The notifications due by the plain list: each living owner is notified once of its last write in each epoch.
    fn words_due(&self, writes: &[(Life, u64, u64)], is_written: bool) -> Vec<Word> {
        let mut due: Vec<Word> = Vec::new();
        for ((owner, opening), epoch, through) in writes.iter().copied() {
            let is_heard = self.ledgers.get(&owner).is_some_and(|ledger| ledger.opening == opening);
            if !is_heard || opening == 0 {
                continue;
            }
            match due.iter_mut().find(|word| (word.owner, word.epoch) == (owner, epoch)) {
                Some(word) => word.through = through,
                None => due.push(Word { owner, epoch, through, is_written }),
            }
        }
        due
    }

    fn words_told(&self, progress: &[Progress], is_written: bool) -> Vec<Word> {
        let word = |one: &Progress| {
            let (owner, _) = *self.queue.listener(one)?;
            Some(Word { owner, epoch: one.epoch, through: one.through, is_written })
        };
        let mut told: Vec<Word> = progress.iter().filter_map(word).collect();
        match self.fault {
            Some(PersisterFault::ForgetsAnOwner) => told.truncate(1),
            Some(PersisterFault::TellsTwice) if !is_written => told.extend(told.clone()),
            Some(_) | None => {}
        }
        told
    }

    /// An owner is notified of each write once, in order, and of nothing after a refusal.
    fn say(&mut self, word: Word) {
        let ledger = self.ledgers.entry(word.owner).or_default();
        if ledger.told_no >= Some(word.epoch) {
            self.verdict.violation(Law::P3, || format!("{word:?} is told to one who was told no"));
        }
        if ledger.told >= Some((word.epoch, word.through)) {
            self.verdict.violation(Law::P1, || format!("{word:?} is told behind {:?}", ledger.told));
        }
        ledger.told = Some((word.epoch, word.through));
        if !word.is_written {
            ledger.told_no = Some(word.epoch);
        }
        self.words.push_back(word);
    }
}
