//! What reaches the shell's mailbox: letters, calls that come back, and word of writes.

use actix::{Actor, AsyncContext, Context, Handler};

use super::actor::Shell;
use super::address::Letter;
use super::calls::Returned;
use super::doing::Doing;
use super::journal::JournalEntry;
use super::machine::Machine;
use super::phase::{Event, Phase};
use super::store::Store;
use crate::persister::Settled;

/// The shell is never pinned structurally: actix only asks that it may be moved.
impl<M: Machine, D, S> Unpin for Shell<M, D, S> {}

impl<M: Machine, D: Doing<M>, S: Store<M>> Actor for Shell<M, D, S> {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Context<Self>) {
        self.store.open(context.address().recipient());
        self.load(context);
    }
}

impl<M: Machine, D: Doing<M>, S: Store<M>> Handler<Letter<M>> for Shell<M, D, S> {
    type Result = ();

    fn handle(&mut self, letter: Letter<M>, context: &mut Context<Self>) {
        match self.phase {
            Phase::Running(_) => self.handle_letter(letter, None, context),
            Phase::Loading | Phase::Settling(_) | Phase::Pausing | Phase::Ended => {
                let now = self.settings.clock.now();
                self.defer(Event::Letter(letter, now));
            }
        }
    }
}

impl<M: Machine, D: Doing<M>, S: Store<M>> Handler<Returned<M>> for Shell<M, D, S> {
    type Result = ();

    fn handle(&mut self, returned: Returned<M>, context: &mut Context<Self>) {
        match self.phase {
            Phase::Running(_) => self.returned(returned, context),
            Phase::Loading | Phase::Settling(_) | Phase::Pausing | Phase::Ended => {
                self.defer(Event::Returned(returned))
            }
        }
    }
}

impl<M: Machine, D: Doing<M>, S: Store<M>> Handler<Settled> for Shell<M, D, S> {
    type Result = ();

    fn handle(&mut self, settled: Settled, context: &mut Context<Self>) {
        if matches!(self.phase, Phase::Ended) || settled.epoch < self.first_epoch {
            return;
        }
        match settled.outcome {
            Ok(()) => {
                self.note(|| JournalEntry::OnDisk { through: settled.through });
                self.outbox.settle(settled.through);
            }
            // Later writes of an epoch fail with its first one, and that has been dealt with.
            Err(_) if self.failed_epoch >= Some(settled.epoch) => return,
            Err(error) => {
                self.write_failed(&error.to_string(), context);
                return;
            }
        }
        self.flush(context);
        self.go_on_if_settled(context);
    }
}
