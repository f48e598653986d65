//! Handles crashes and failed writes: how a machine is given up and rebuilt from its store.

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::machine::{Ending, Input, Machine, Ticket, Written, panic_message};
use super::phase::{AfterSettling, Phase};
use super::port::{JournalEntry, Port, Refusal, Terms};
use super::state::{Item, Kernel, Waiting};
use crate::vocabulary::Moment;

impl<M: Machine, T: Terms<M>> Kernel<M, T> {
    pub(super) fn crashed(
        &mut self,
        input: &dyn Debug,
        asker: Option<T::Asker>,
        message: &str,
        port: &mut impl Port<M, T>,
    ) {
        port.note(JournalEntry::Crashed { input, message });
        if let Some(asker) = asker {
            port.refuse(asker, Refusal::Crashed(message));
        }
        self.abandon_life(AfterSettling::Load, port);
        if !M::is_rebuilt() {
            self.end(Ending::Panicked(message.to_owned()), port);
        } else if self.restarts.charge(&self.limits.budget, port.now()) {
            self.go_on_if_settled(port);
        } else {
            self.end(Ending::BudgetSpent(message.to_owned()), port);
        }
    }

    /// The store reports its progress.
    pub(super) fn settled(
        &mut self,
        epoch: u64,
        through: u64,
        outcome: Result<(), String>,
        port: &mut impl Port<M, T>,
    ) {
        if self.has_ended() || epoch < self.first_epoch {
            return;
        }
        match outcome {
            Ok(()) => {
                self.kept.forget_through(through);
                let through = through.max(self.on_disk_through());
                port.note(JournalEntry::OnDisk { through });
                self.told.settle(through);
                self.promises.settle(through);
                self.flush(port);
                self.go_on_if_settled(port);
            }
            // Later writes of an epoch are lost with its first one, and that has been handled.
            Err(_) if self.failed_epoch >= Some(epoch) => {}
            Err(error) => self.write_lost(&error, port),
        }
    }

    /// All writes that are not on disk are lost, and will be handed over again in their order: output that has left already, such as that
    /// something has ended, is not taken back by a lost write. Callers that wait for a promise are answered.
    fn write_lost(&mut self, error: &str, port: &mut impl Port<M, T>) {
        if self.is_loading() {
            // The state that is being read may lack the lost writes.
            self.phase = Phase::Settling(AfterSettling::Load);
        }
        self.failed_epoch = Some(self.ticket.epoch);
        self.ticket.epoch += 1;
        self.handed_through = self.promises.durable_through();
        let behind = self.promises.take(|waiting| matches!(waiting.item, Item::Answer(Some(_), _)));
        self.refuse(behind, error, Refusal::NotDurable(error), port);
        self.hand_over_later(port);
    }

    fn hand_over_later(&mut self, port: &mut impl Port<M, T>) {
        let moment = Moment { now: port.now(), random: port.random() };
        let pause = self.pauses.failed(&self.limits.rebuild_backoff, moment);
        self.hands_again_at = Some(moment.now + pause);
        port.pause(pause);
    }

    /// Hands over the lost changes, and those that have come since. Nothing is handed over behind a later change, and changes that can be
    /// merged are one change: the disk may have taken what it reported as lost, and the earlier of two must not undo the later one there.
    fn hand_over_again(&mut self, port: &mut impl Port<M, T>) {
        self.hands_again_at = None;
        let (epoch, handed_through, mut has_failed) = (self.ticket.epoch, self.handed_through, false);
        self.kept.merge_after(handed_through, M::merge);
        for kept in self.kept.take() {
            let is_due = kept.last > handed_through && !has_failed;
            let ticket = Ticket { epoch, sequence: kept.last };
            match if is_due { self.hand_over(ticket, &kept.change, port) } else { Written::Later } {
                // It needs no disk. That proves nothing about the changes before it.
                Written::Now => continue,
                Written::Later => {}
                Written::Failed(error) => {
                    has_failed = true;
                    port.note(JournalEntry::WriteFailed { error: &error });
                    self.hand_over_later(port);
                }
            }
            self.kept.push_again(kept);
        }
        let through = self.on_disk_through();
        if through > self.promises.durable_through() {
            self.settled(epoch, through, Ok(()), port);
        } else {
            self.go_on_if_settled(port);
        }
    }

    /// The last change up to which everything is on disk, or does not need to be.
    fn on_disk_through(&self) -> u64 {
        self.kept.first().map_or(self.written_through, |first| first - 1)
    }

    /// The store refused its latest write: output behind it is refused too, and output before it may still leave.
    pub(super) fn write_failed_at_once(&mut self, error: &str, port: &mut impl Port<M, T>) {
        let mut behind = self.told.take_behind(self.ticket.sequence);
        behind.extend(self.promises.take_behind(self.ticket.sequence));
        self.abandon_life(AfterSettling::Pause, port);
        self.ticket.epoch += 1;
        self.refuse(behind, error, Refusal::NotWritten(error), port);
        self.flush(port);
        self.go_on_if_settled(port);
    }

    /// Answers all callers that waited behind a write that failed.
    fn refuse(
        &mut self,
        behind: Vec<Waiting<Item<M, T>>>,
        error: &str,
        refusal: Refusal<'_>,
        port: &mut impl Port<M, T>,
    ) {
        port.note(JournalEntry::WriteFailed { error });
        for Waiting { item, .. } in behind {
            match item {
                Item::Answer(Some(asker), _) => port.refuse(asker, refusal),
                Item::Attach(reader, _) => self.unattached.push(reader),
                // These must not leave; the rebuilt machine publishes and requests again what still holds.
                Item::Answer(None, _)
                | Item::News(_)
                | Item::Snapshot(..)
                | Item::Description(_)
                | Item::Call(..)
                | Item::Stop(_) => {}
            }
        }
    }

    /// Reads the store again as soon as no write is pending there. A machine that reads ahead does not wait for a sick
    /// disk: pending writes are read as if they were on disk, and stay pending.
    pub(super) fn go_on_if_settled(&mut self, port: &mut impl Port<M, T>) {
        let Phase::Settling(next) = self.phase else { return };
        let may_read_ahead = M::reads_ahead() && self.sick.is_some() && self.hands_again_at.is_none();
        if self.is_waiting() && !may_read_ahead {
            return;
        }
        match next {
            AfterSettling::Load => {
                self.phase = Phase::Loading;
                port.load();
            }
            AfterSettling::Pause => self.pause(port),
        }
    }

    fn pause(&mut self, port: &mut impl Port<M, T>) {
        let moment = Moment { now: port.now(), random: port.random() };
        let pause = self.pauses.failed(&self.limits.rebuild_backoff, moment);
        self.phase = Phase::Pausing(moment.now + pause);
        port.pause(pause);
    }

    /// The pause is over.
    pub(super) fn woken(&mut self, port: &mut impl Port<M, T>) {
        if self.hands_again_at.is_some() {
            self.hand_over_again(port);
        } else if matches!(self.phase, Phase::Pausing(_)) {
            self.phase = Phase::Loading;
            port.load();
        }
    }

    /// Releases everything that belongs to the life of one machine.
    fn abandon_life(&mut self, next: AfterSettling, port: &mut impl Port<M, T>) {
        self.phase = Phase::Settling(next);
        self.cx.clear();
        // The next machine requests again the calls that this one wanted to make.
        for outbox in [&mut self.told, &mut self.promises] {
            drop(outbox.take(|waiting| matches!(waiting.item, Item::Call(..))));
        }
        self.calls.abandon();
        port.abandon_calls();
        self.timers.clear();
    }

    /// The store was read: the machine is built, resumes, and receives the deferred inputs.
    pub(super) fn loaded(&mut self, loaded: Result<M::Image, String>, port: &mut impl Port<M, T>) {
        if !self.is_loading() {
            return;
        }
        match loaded {
            Ok(image) => self.build(image, port),
            Err(error) => {
                port.note(JournalEntry::LoadFailed { error: &error });
                if self.restarts.charge(&self.limits.budget, port.now()) {
                    self.pause(port);
                } else {
                    self.end(Ending::BudgetSpent(error), port);
                }
            }
        }
    }

    fn build(&mut self, image: M::Image, port: &mut impl Port<M, T>) {
        let moment = Moment { now: port.now(), random: port.random() };
        let config = &self.config;
        match catch_unwind(AssertUnwindSafe(|| M::restore(config, image, moment))) {
            Ok(machine) => {
                port.built(moment, &machine);
                self.phase = Phase::Running(machine);
            }
            Err(panic) => {
                let message = panic_message(&*panic);
                self.crashed(&format_args!("what its store holds"), None, &message, port);
                return;
            }
        }
        let is_rebuilt = std::mem::replace(&mut self.was_built, true);
        port.note(JournalEntry::Built { is_rebuilt });
        self.again.append(&mut self.unfinished);
        self.step(Input::Resumed, None, port);
        for reader in std::mem::take(&mut self.unattached) {
            self.attach(reader, port);
        }
        // The news that the former machine published right before its crash may not hold for this one.
        if is_rebuilt {
            self.refresh(true, port);
        }
        if port.is_followed() {
            self.describe(port);
        }
        self.catch_up(port);
    }

    pub(super) fn end(&mut self, ending: Ending, port: &mut impl Port<M, T>) {
        let is_waiting = self.is_waiting();
        port.note(JournalEntry::Ended { ending: &ending, is_waiting });
        self.abandon_life(AfterSettling::Load, port);
        self.phase = Phase::Ended;
        self.unfinished.clear();
        self.again.clear();
        self.told.take_all();
        self.promises.take_all();
        self.kept.clear();
        self.hands_again_at = None;
        self.deferred.clear();
        self.unattached.clear();
        port.end(ending);
    }
}
