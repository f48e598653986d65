//! Crashes, failed writes, and the way back: how a machine is given up and built again from its store.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::Ordering;

use actix::{ActorContext, ActorFutureExt, AsyncContext, Context, WrapFuture};
use futures_util::FutureExt;

use super::actor::Shell;
use super::address::{AskError, Asker};
use super::calls::panic_message;
use super::doing::Doing;
use super::journal::JournalEntry;
use super::machine::{Input, Machine};
use super::notice::{DeadLetterCause, Notice};
use super::outbox::Item;
use super::phase::{AfterSettling, Event, Phase};
use super::spawn::Ending;
use super::store::Store;

impl<M: Machine, D: Doing<M>, S: Store<M>> Shell<M, D, S> {
    pub(super) fn crashed(
        &mut self,
        input: String,
        asker: Option<Asker<M>>,
        message: &str,
        context: &mut Context<Self>,
    ) {
        let crashes = self.door.crashes.fetch_add(1, Ordering::Relaxed) + 1;
        let actor = self.door.name.clone();
        self.note(|| JournalEntry::Crashed { message });
        self.settings.notices.post(Notice::Crashed {
            actor: actor.clone(),
            message: message.to_owned(),
            crashes,
        });
        self.bury(input, DeadLetterCause::Crashed(message.to_owned()));
        if let Some(reply) = asker.and_then(|asker| asker.reply) {
            let _ = reply.send(Err(AskError::Crashed { actor, message: message.to_owned() }));
        }
        self.abandon_life(AfterSettling::Load);
        if self.restarts.charge(&self.settings.budget, self.settings.clock.now()) {
            self.go_on_if_settled(context);
        } else {
            self.end(Ending::BudgetSpent(message.to_owned()), context);
        }
    }

    /// The store told that writes of this epoch are lost: nothing that still waits for one will leave.
    pub(super) fn write_failed(&mut self, error: &str, context: &mut Context<Self>) {
        self.failed_epoch = Some(self.ticket.epoch);
        self.abandon_life(AfterSettling::Pause);
        let behind = self.outbox.take_all();
        self.refuse(behind, error);
        self.go_on_if_settled(context);
    }

    /// The store refused its latest write: what comes behind it is refused too, and what came before it may still leave.
    pub(super) fn write_failed_at_once(&mut self, error: &str, context: &mut Context<Self>) {
        let behind = self.outbox.take_behind(self.ticket.sequence);
        self.abandon_life(AfterSettling::Pause);
        self.refuse(behind, error);
        self.flush(context);
        self.go_on_if_settled(context);
    }

    /// Answers everyone who waited behind a write that failed.
    fn refuse(&mut self, behind: Vec<Item<M>>, error: &str) {
        let actor = self.door.name.clone();
        self.note(|| JournalEntry::WriteFailed { error });
        self.settings.notices.post(Notice::WriteFailed { actor: actor.clone(), error: error.to_owned() });
        for item in behind {
            match item {
                Item::Reply { asker: Asker { reply: Some(reply), .. }, .. } => {
                    let error = AskError::NotDurable { actor: actor.clone(), error: error.to_owned() };
                    let _ = reply.send(Err(error));
                }
                Item::Attach(reader, _) => self.unattached.push(reader),
                // Nobody may see these; the rebuilt machine says and asks again what still holds.
                Item::Reply { asker: Asker { reply: None, .. }, .. }
                | Item::Publish(_)
                | Item::Refresh(_)
                | Item::Call { .. }
                | Item::Stop(_) => {}
            }
        }
    }

    /// Goes back to the store as soon as nothing is on its way there any more.
    pub(super) fn go_on_if_settled(&mut self, context: &mut Context<Self>) {
        let Phase::Settling(next) = self.phase else { return };
        if self.outbox.is_waiting() {
            return;
        }
        match next {
            AfterSettling::Load => self.load(context),
            AfterSettling::Pause => self.pause_before_load(context),
        }
    }

    fn pause_before_load(&mut self, context: &mut Context<Self>) {
        self.phase = Phase::Pausing;
        let moment = self.moment();
        let pause = self.rebuild_pauses.failed(&self.settings.rebuild_backoff, moment);
        context.run_later(pause, |shell, context| shell.load(context));
    }

    /// Lets go of everything that belongs to the life of one machine.
    fn abandon_life(&mut self, next: AfterSettling) {
        self.phase = Phase::Settling(next);
        self.effects.clear();
        // The next machine asks again for the calls that this one wanted to make.
        self.outbox.retain(|item| !matches!(item, Item::Call { .. }));
        self.calls.abandon();
        self.timers.clear();
        self.ticket.epoch += 1;
    }

    pub(super) fn load(&mut self, context: &mut Context<Self>) {
        if matches!(self.phase, Phase::Ended) {
            return;
        }
        self.phase = Phase::Loading;
        let store = &mut self.store;
        let load = match std::panic::catch_unwind(AssertUnwindSafe(|| store.load())) {
            Ok(load) => load,
            Err(panic) => Box::pin(async move { std::panic::resume_unwind(panic) }),
        };
        let load = AssertUnwindSafe(load).catch_unwind().into_actor(self);
        context.spawn(load.map(|loaded, shell, context| match loaded {
            Ok(Ok(image)) => shell.rebuild(image, context),
            Ok(Err(error)) => shell.load_failed(error, context),
            Err(panic) => {
                shell.load_failed(format!("the store crashed: {}", panic_message(&*panic)), context);
            }
        }));
    }

    fn load_failed(&mut self, error: String, context: &mut Context<Self>) {
        let actor = self.door.name.clone();
        self.settings.notices.post(Notice::LoadFailed { actor, error: error.clone() });
        let now = self.settings.clock.now();
        if self.restarts.charge(&self.settings.budget, now) {
            self.pause_before_load(context);
        } else {
            self.end(Ending::BudgetSpent(error), context);
        }
    }

    fn rebuild(&mut self, image: M::Image, context: &mut Context<Self>) {
        let moment = self.moment();
        let config = &self.config;
        match std::panic::catch_unwind(AssertUnwindSafe(|| M::restore(config, image, moment))) {
            Ok(machine) => self.phase = Phase::Running(machine),
            Err(panic) => {
                self.crashed("what its store holds".to_owned(), None, &panic_message(&*panic), context);
                return;
            }
        }
        let is_rebuilt = std::mem::replace(&mut self.built_before, true);
        self.note(|| JournalEntry::Built { is_rebuilt });
        self.door.rebuilds.fetch_add(u64::from(is_rebuilt), Ordering::Relaxed);
        self.again.append(&mut self.unfinished);
        self.step(Input::Resumed, None, context);
        for reader in std::mem::take(&mut self.unattached) {
            self.attach(reader, context);
        }
        // A commit that failed may have reached the disk all the same, so what readers were told may no longer hold.
        self.refresh(is_rebuilt, context);
        while matches!(self.phase, Phase::Running(_)) {
            let Some(event) = self.next_deferred() else { break };
            self.handle_event(event, context);
        }
    }

    /// What waits: first what a former life had not finished, then what came since.
    fn next_deferred(&mut self) -> Option<Event<M>> {
        match self.again.pop_first() {
            Some((id, unfinished)) => Some(Event::Again(id, unfinished)),
            None => self.deferred.pop_front(),
        }
    }

    pub(super) fn bury(&self, input: String, cause: DeadLetterCause) {
        self.settings.notices.post(Notice::DeadLetter { actor: self.door.name.clone(), input, cause });
    }

    pub(super) fn end(&mut self, ending: Ending, context: &mut Context<Self>) {
        let is_waiting = self.outbox.is_waiting();
        self.note(|| JournalEntry::Ended { ending: &ending, is_waiting });
        self.abandon_life(AfterSettling::Load);
        self.phase = Phase::Ended;
        self.ending.set(ending);
        self.unfinished.clear();
        self.again.clear();
        self.outbox.take_all();
        self.deferred.clear();
        self.unattached.clear();
        self.readers.clear();
        context.stop();
    }
}
