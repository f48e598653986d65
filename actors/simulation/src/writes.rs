//! Writes that wait for a disk. They settle, fail and are cut off on request, like those of the real persister.

use std::collections::VecDeque;

use callboard_actors::shell::{Ticket, Written};

use super::stand_in::Settlement;

/// How waiting writes settle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Outcome {
    /// They are on disk.
    Written,
    /// They are not on disk.
    Failed,
    /// The commit reports failure, and yet they are on disk.
    FailedButWritten,
}

/// The writes of one actor that are not on disk yet.
#[derive(Debug, Clone, Hash)]
pub struct Writes<C> {
    waiting: VecDeque<(Ticket, C)>,
    failed_epoch: Option<u64>,
    /// How many of the next writes are refused at once.
    refused: u32,
}

impl<C> Default for Writes<C> {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), failed_epoch: None, refused: 0 }
    }
}

impl<C> Writes<C> {
    /// The number of waiting writes.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The waiting writes in order: a machine that is built while the disk is sick reads them as if they were on disk.
    pub fn changes(&self) -> impl Iterator<Item = &C> + '_ {
        self.waiting.iter().map(|(_, change)| change)
    }

    /// Refuses one more of the next writes at once.
    pub const fn refuse_next(&mut self) {
        self.refused += 1;
    }

    /// Takes a change, as [`Disk::write`](super::Disk::write) does.
    pub fn take(&mut self, ticket: Ticket, change: C) -> Written {
        if self.failed_epoch >= Some(ticket.epoch) {
            // Its owner is about to be notified.
            return Written::Later;
        }
        if self.refused > 0 {
            self.refused -= 1;
            return Written::Failed("the disk is full at once".to_owned());
        }
        self.waiting.push_back((ticket, change));
        Written::Later
    }

    /// Settles this number of writes as one commit; `apply` receives those that are on disk then. `None` if none waits.
    pub fn settle(&mut self, count: usize, outcome: Outcome, mut apply: impl FnMut(C)) -> Option<Settlement> {
        let (first, _) = self.waiting.front()?;
        let (epoch, mut through) = (first.epoch, first.sequence);
        for _ in 0..count.max(1) {
            if self.waiting.front().is_none_or(|(ticket, _)| ticket.epoch != epoch) {
                break;
            }
            let Some((ticket, change)) = self.waiting.pop_front() else { break };
            through = ticket.sequence;
            if outcome != Outcome::Failed {
                apply(change);
            }
        }
        let is_written = outcome == Outcome::Written;
        if !is_written {
            self.failed_epoch = self.failed_epoch.max(Some(epoch));
            self.waiting.retain(|(ticket, _)| ticket.epoch > epoch);
        }
        Some(Settlement { epoch, through, is_written })
    }

    /// The host is gone, and this number of writes had reached the disk; `apply` receives these.
    pub fn begin_run(&mut self, reached: usize, apply: impl FnMut(C)) {
        let waiting = std::mem::take(self).waiting;
        waiting.into_iter().take(reached).map(|(_, change)| change).for_each(apply);
    }
}
