//! Takes the next item: a commit, a waiting job, or a refusal.

use std::sync::Arc;

use callboard_actors::persister::{Next, Operations};

use super::*;

impl<D: Medium> DatabaseModel<D> {
    /// Takes the next item; a commit takes at most this number of writes.
    pub(crate) fn go_on(&mut self, writes_max: usize) -> Step {
        loop {
            match self.queue.next(writes_max) {
                None => {
                    if !self.waiting.is_empty() {
                        self.verdict.violation(Law::P1, || "something waits and is never done".to_owned());
                    }
                    return Step::Idle;
                }
                Some(Next::Refuse(progress, _)) => self.refuse(&[progress]),
                Some(Next::Commit(batch)) => {
                    let is_written = self.commit(batch, writes_max);
                    return Step::Committed { is_written };
                }
                Some(Next::Job(job)) => return self.do_job(job),
            }
        }
    }

    /// The waiting writes between two jobs are merged by row.
    pub(crate) fn merge(&mut self) {
        self.queue.merge();
        let mut is_behind_a_write = false;
        for waits in &mut self.waiting {
            match waits {
                Waits::Write { is_joined, .. } => {
                    *is_joined = std::mem::replace(&mut is_behind_a_write, true)
                }
                Waits::Refusal { .. } | Waits::Job => is_behind_a_write = false,
            }
        }
    }

    fn do_job(&mut self, job: Job) -> Step {
        if !matches!(self.waiting.pop_front(), Some(Waits::Job)) {
            self.verdict.violation(Law::P1, || format!("{job:?} overtook what came before it"));
        }
        match job {
            Job::Load(owner) => {
                let read = self.read(Law::P2);
                Step::Loaded(owner, read.map(|reading| reading.lines.into_iter().collect()))
            }
            Job::Close => {
                self.volume.carry_out(Action::Close);
                self.database = DatabaseState::Closed;
                Step::Closed
            }
        }
    }

    /// The writes of the next commit by the plain list, and their minimal number: merged ones may be fewer.
    fn take_writes(&mut self, writes_max: usize) -> (Vec<(Life, u64, u64)>, Changes, usize) {
        let (mut writes, mut all, mut least) = (Vec::new(), Changes::new(), 0);
        loop {
            let is_full = writes.len() >= writes_max.min(BATCH_WRITES_MAX);
            match self.waiting.pop_front() {
                Some(Waits::Write { life, epoch, sequence, changes, is_joined }) if is_joined || !is_full => {
                    least += usize::from(!is_joined);
                    writes.push((life, epoch, sequence));
                    all.extend(changes);
                }
                Some(other) => {
                    self.waiting.push_front(other);
                    break;
                }
                None => break,
            }
        }
        (writes, all, least)
    }

    /// Carries out a commit. Returns whether it is on disk.
    fn commit(&mut self, batch: Batch, writes_max: usize) -> bool {
        let (writes, changes, least) = self.take_writes(writes_max);
        if batch.writes < least || batch.writes > writes.len() {
            let (taken, due) = (batch.writes, writes.len());
            // A commit of too many writes includes writes that depend on a failure.
            let law = if taken > due { Law::P3 } else { Law::P1 };
            self.verdict.violation(law, || format!("a commit takes {taken} writes where {due} wait"));
        }
        let batch = Rc::new(batch);
        let outcome = self.bring_to_disk(&batch, writes.len() > least);
        let is_written = match &*outcome {
            ActionOutcome::Done { is_synced } => {
                if !is_synced {
                    self.verdict
                        .violation(Law::P1, || "a commit is done, and a power cut would undo it".to_owned());
                }
                self.plain.committed(changes);
                true
            }
            ActionOutcome::Failed { is_transient, what } => {
                self.check_failure(*is_transient, what);
                if self.database == DatabaseState::Open {
                    self.plain.doubted(changes);
                }
                self.has_failed = true;
                false
            }
            ActionOutcome::Opened(_) | ActionOutcome::Read(_) => unreachable!("a commit is done or not"),
        };
        self.finished.push_back(Finished { batch, is_written, writes });
        if is_written {
            self.read_after(Law::P1);
        }
        is_written
    }

    /// Writes a commit to disk, correctly or with the persister's fault.
    fn bring_to_disk(&mut self, batch: &Rc<Batch>, is_merged: bool) -> Rc<ActionOutcome> {
        let whole = Rc::clone(batch);
        let Some(fault) = self.fault else { return self.volume.carry_out(Action::Commit(whole)) };
        let part =
            |operations: Operations| Rc::new(Batch { operations: Arc::new(operations), ..Batch::default() });
        let (mut first, all) = (Operations::clone(&batch.operations), batch.operations.iter().count());
        match fault {
            PersisterFault::AnswersBeforeTheSync => Rc::new(ActionOutcome::Done { is_synced: true }),
            PersisterFault::DropsARow if batch.writes > 1 => {
                let most = first.take_first(all - 1, Operations::default());
                self.volume.carry_out(Action::Commit(part(most)))
            }
            PersisterFault::ReversesACommit if batch.writes > 1 => {
                let half = first.take_first(all / 2, Operations::default());
                self.volume.carry_out(Action::Commit(part(first)));
                self.volume.carry_out(Action::Commit(part(half)))
            }
            PersisterFault::TakesHalvesOfAMerge if !is_merged => self.volume.carry_out(Action::Commit(whole)),
            PersisterFault::TakesHalves | PersisterFault::TakesHalvesOfAMerge => {
                let half = first.take_first(all / 2, Operations::default());
                self.volume.carry_out(Action::Commit(part(half)));
                self.volume.carry_out(Action::Commit(part(first)))
            }
            PersisterFault::StaysBroken if self.has_failed => {
                Rc::new(ActionOutcome::Failed { is_transient: true, what: "it failed before".to_owned() })
            }
            _ => self.volume.carry_out(Action::Commit(whole)),
        }
    }
}
