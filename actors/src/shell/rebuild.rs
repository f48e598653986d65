//! Crashes, failed writes, and the way back: how a machine is given up and built again from its store.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::Ordering;

use actix::{ActorContext, ActorFutureExt, AsyncContext, Context, WrapFuture};

use super::actor::{Asker, Event, Phase, Shell};
use super::address::{AskError, Letter};
use super::calls::panic_message;
use super::doing::Doing;
use super::machine::{Input, Machine};
use super::notice::{DeadLetterCause, Notice};
use super::outbox::Item;
use super::spawn::Ending;
use super::store::Store;

impl<M: Machine, D: Doing<M>, S: Store<M>> Shell<M, D, S> {
    pub(super) fn crashed(
        &mut self,
        input: &Input<M>,
        asker: Option<Asker<M>>,
        message: &str,
        context: &mut Context<Self>,
    ) {
        let crashes = self.door.crashes.fetch_add(1, Ordering::Relaxed) + 1;
        self.settings.notices.post(Notice::Crashed {
            actor: self.door.name.clone(),
            message: message.to_owned(),
            crashes,
        });
        self.bury(format!("{input:?}"), DeadLetterCause::Crashed(message.to_owned()));
        if let Some(reply) = asker.and_then(|asker| asker.reply) {
            let error = AskError::Crashed { actor: self.door.name.clone(), message: message.to_owned() };
            let _ = reply.send(Err(error));
        }
        self.abandon_life();
        self.outbox.forget_calls();
        self.phase = Phase::Settling;
        let now = self.settings.clock.now();
        if !self.restarts.charge(&self.settings.budget, now) {
            self.end(Ending::BudgetSpent(message.to_owned()), context);
        } else if !self.outbox.is_waiting() {
            self.flush(context);
            self.load(context);
        }
    }

    pub(super) fn write_failed(&mut self, error: &str, context: &mut Context<Self>) {
        let actor = self.door.name.clone();
        self.settings.notices.post(Notice::WriteFailed { actor: actor.clone(), error: error.to_owned() });
        self.failed_epoch = Some(self.ticket.epoch);
        self.abandon_life();
        for item in self.outbox.take_all() {
            match item {
                Item::Reply { reply: Some(reply), .. } => {
                    let error = AskError::NotDurable { actor: actor.clone(), error: error.to_owned() };
                    let _ = reply.send(Err(error));
                }
                Item::Attach(reader, _) => self.unattached.push(reader),
                // Nobody may see these; the rebuilt machine says and asks again what still holds.
                Item::Reply { reply: None, .. }
                | Item::Gate(_)
                | Item::Publish(_)
                | Item::Refresh(_)
                | Item::Call { .. }
                | Item::Stop(_) => {}
            }
        }
        self.pause_before_load(context);
    }

    fn pause_before_load(&mut self, context: &mut Context<Self>) {
        self.phase = Phase::Pausing;
        let moment = self.moment();
        let pause = self.rebuild_pauses.failed(&self.settings.rebuild_backoff, moment);
        context.run_later(pause, |shell, context| shell.load(context));
    }

    /// Lets go of everything that belongs to the life of one machine.
    fn abandon_life(&mut self) {
        self.effects.clear();
        self.calls.abandon();
        self.timers.clear();
        self.ticket.epoch += 1;
    }

    pub(super) fn load(&mut self, context: &mut Context<Self>) {
        if matches!(self.phase, Phase::Ended) {
            return;
        }
        self.phase = Phase::Loading;
        let load = self.store.load().into_actor(self);
        context.spawn(load.map(|loaded, shell, context| match loaded {
            Ok(image) => shell.rebuild(image, context),
            Err(error) => shell.load_failed(error, context),
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
                self.crashed(&Input::Resumed, None, &panic_message(&*panic), context);
                return;
            }
        }
        let is_rebuilt = std::mem::replace(&mut self.built_before, true);
        self.door.rebuilds.fetch_add(u64::from(is_rebuilt), Ordering::Relaxed);
        self.requeue_unfinished();
        self.step(Input::Resumed, None, context);
        for reader in std::mem::take(&mut self.unattached) {
            self.attach(reader, context);
        }
        // A commit that failed may have reached the disk all the same, so what readers were told may no longer hold.
        self.refresh(is_rebuilt, context);
        while matches!(self.phase, Phase::Running(_)) {
            let Some(event) = self.deferred.pop_front() else { break };
            self.handle_event(event, context);
        }
    }

    /// Puts what the former life had not answered in front of what waits since.
    fn requeue_unfinished(&mut self) {
        if let Some(mode) = self.stop_requested {
            self.deferred.push_front(Event::Letter(Letter::Stop(mode)));
        }
        for (id, parked) in std::mem::take(&mut self.parked).into_iter().rev() {
            self.deferred.push_front(Event::AskedAgain(id, parked));
        }
    }

    pub(super) fn bury(&self, input: String, cause: DeadLetterCause) {
        self.settings.notices.post(Notice::DeadLetter { actor: self.door.name.clone(), input, cause });
    }

    pub(super) fn end(&mut self, ending: Ending, context: &mut Context<Self>) {
        self.phase = Phase::Ended;
        self.ending.set(ending);
        self.abandon_life();
        self.parked.clear();
        self.outbox.take_all();
        self.deferred.clear();
        self.readers.clear();
        context.stop();
    }
}
