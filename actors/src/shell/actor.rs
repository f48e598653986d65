//! The actor that runs a machine: messages become inputs, effects become replies, news, calls, timers and writes.

use std::collections::{BTreeMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use actix::{Actor, ActorContext, ActorFutureExt, AsyncContext, Context, Handler, SpawnHandle, WrapFuture};

use super::address::{Address, AskError, Door, Letter, Permit, ReplySender};
use super::calls::{Calls, Planned, Returned, panic_message};
use super::doing::Doing;
use super::feed::FeedSender;
use super::machine::{AskId, Effect, Effects, Input, Machine, StopMode};
use super::notice::{DeadLetterCause, Notice};
use super::outbox::{Item, Outbox};
use super::spawn::{Ending, EndingCell, Settings};
use super::store::{Store, Ticket, Written};
use super::timers::Timers;
use crate::persister::Settled;
use crate::vocabulary::{BackoffState, Moment, RestartHistory, Timestamp};

/// Where the shell stands with its machine.
enum Phase<M> {
    /// It reads the store, and will build the machine from it.
    Loading,
    /// The machine lives.
    Running(M),
    /// The machine crashed; what it had written before must settle first.
    Settling,
    /// A write or a load failed; it is tried again after a pause.
    Pausing,
    /// It is over.
    Ended,
}

/// Something that came in, as long as it has not been handled.
enum Event<M: Machine> {
    Letter(Letter<M>),
    AskedAgain(AskId, Parked<M>),
    Returned(Returned<M>),
}

/// Who asked, and the place it takes at the door.
struct Asker<M: Machine> {
    reply: Option<ReplySender<M>>,
    permit: Option<Permit>,
}

/// A question that no step has answered yet. It is asked again when the machine is rebuilt.
struct Parked<M: Machine> {
    ask: M::Ask,
    asked_at: Timestamp,
    reply: Option<ReplySender<M>>,
}

pub(crate) struct Shell<M: Machine, D, S> {
    config: M::Config,
    settings: Settings,
    door: Arc<Door>,
    doing: D,
    store: S,
    ending: EndingCell,
    random: fastrand::Rng,
    phase: Phase<M>,
    effects: Effects<M>,
    outbox: Outbox<M>,
    calls: Calls<M>,
    timers: Timers<M::Timer>,
    armed: Option<(Timestamp, SpawnHandle)>,
    readers: BTreeMap<u64, FeedSender<M::News, M::View>>,
    readers_ever: u64,
    unattached: Vec<FeedSender<M::News, M::View>>,
    published: u64,
    parked: BTreeMap<AskId, Parked<M>>,
    asked: u64,
    deferred: VecDeque<Event<M>>,
    ticket: Ticket,
    restarts: RestartHistory,
    rebuild_pauses: BackoffState,
    failed_epoch: Option<u64>,
    built_before: bool,
    stop_requested: Option<StopMode>,
}

impl<M: Machine, D: Doing<M>, S: Store<M>> Shell<M, D, S> {
    pub(crate) fn new(
        address: &Address<M>,
        config: M::Config,
        doing: D,
        store: S,
        settings: Settings,
        ending: EndingCell,
    ) -> Self {
        Self {
            config,
            door: address.door(),
            doing,
            store,
            ending,
            random: settings.seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed),
            phase: Phase::Loading,
            effects: Effects::default(),
            outbox: Outbox::default(),
            calls: Calls::new(settings.calls_running_max, settings.calls_waiting_max),
            timers: Timers::default(),
            armed: None,
            readers: BTreeMap::new(),
            readers_ever: 0,
            unattached: Vec::new(),
            published: 0,
            parked: BTreeMap::new(),
            asked: 0,
            deferred: VecDeque::new(),
            ticket: Ticket { epoch: 0, sequence: 0 },
            restarts: RestartHistory::default(),
            rebuild_pauses: BackoffState::default(),
            failed_epoch: None,
            built_before: false,
            stop_requested: None,
            settings,
        }
    }

    fn moment(&mut self) -> Moment {
        Moment { now: self.settings.clock.now(), random: self.random.u64(..) }
    }

    // === What comes in ===

    fn accept(&mut self, event: Event<M>, context: &mut Context<Self>) {
        match self.phase {
            Phase::Running(_) => self.handle_event(event, context),
            Phase::Loading | Phase::Settling | Phase::Pausing => self.deferred.push_back(event),
            Phase::Ended => {}
        }
    }

    fn handle_event(&mut self, event: Event<M>, context: &mut Context<Self>) {
        match event {
            Event::Letter(Letter::Ask { ask, reply, permit }) => {
                self.asked += 1;
                let id = AskId::new(self.asked);
                let asker = Asker { reply, permit: Some(permit) };
                let asked_at = self.settings.clock.now();
                self.step(Input::Asked { id, asked_at, ask }, Some(asker), context);
            }
            Event::AskedAgain(id, Parked { ask, asked_at, reply }) => {
                let asker = Asker { reply, permit: None };
                self.step(Input::Asked { id, asked_at, ask }, Some(asker), context);
            }
            Event::Letter(Letter::Subscribe(reader)) => self.attach(reader, context),
            Event::Letter(Letter::Resync) => self.refresh(false, context),
            Event::Letter(Letter::Stop(mode)) => {
                self.stop_requested = Some(mode);
                self.step(Input::StopRequested(mode), None, context);
            }
            Event::Returned(returned) => self.returned(returned, context),
        }
    }

    fn attach(&mut self, reader: FeedSender<M::News, M::View>, context: &mut Context<Self>) {
        if let Phase::Running(machine) = &self.phase {
            self.outbox.push(Item::Attach(reader, machine.view()));
            self.flush(context);
        } else {
            self.unattached.push(reader);
        }
    }

    /// Gives a new snapshot to every reader that fell behind, or to all.
    fn refresh(&mut self, everyone: bool, context: &mut Context<Self>) {
        let Phase::Running(machine) = &self.phase else { return };
        let waiting = self.readers.iter().filter(|(_, reader)| everyone || reader.is_behind());
        let views: Vec<(u64, M::View)> = waiting.map(|(number, _)| (*number, machine.view())).collect();
        if !views.is_empty() {
            self.outbox.push(Item::Refresh(views));
            self.flush(context);
        }
    }

    fn returned(&mut self, returned: Returned<M>, context: &mut Context<Self>) {
        let Returned { number, key, call, outcome } = returned;
        if self.calls.finished(number) {
            self.step(Input::Returned { key, call, outcome }, None, context);
        } else {
            self.bury(format!("{call:?}"), DeadLetterCause::Stale);
        }
    }

    // === One step ===

    fn step(&mut self, input: Input<M>, mut asker: Option<Asker<M>>, context: &mut Context<Self>) {
        let moment = self.moment();
        let Phase::Running(machine) = &mut self.phase else { return };
        tracing::trace!(actor = %self.door.name, ?input, "step");
        let effects = &mut self.effects;
        let stepped = std::panic::catch_unwind(AssertUnwindSafe(|| machine.step(moment, &input, effects)));
        if let Err(panic) = stepped {
            self.crashed(&input, asker, &panic_message(&*panic), context);
            return;
        }
        self.door.steps.fetch_add(1, Ordering::Relaxed);
        let failed = self.queue_effects(&input, &mut asker);
        if let (Some(Asker { reply: reply @ Some(_), .. }), Input::Asked { id, asked_at, ask }) =
            (asker, input)
        {
            self.parked.insert(id, Parked { ask, asked_at, reply });
        }
        if let Some(error) = failed {
            self.write_failed(&error, context);
        }
        self.flush(context);
    }

    /// Puts the effects of a step into the outbox. Gives the error of a write that failed at once.
    fn queue_effects(&mut self, input: &Input<M>, asker: &mut Option<Asker<M>>) -> Option<String> {
        let mut effects = std::mem::take(&mut self.effects);
        let mut failed = None;
        for effect in effects.drain() {
            match effect {
                Effect::Persist(change) => {
                    self.ticket.sequence += 1;
                    match self.store.write(self.ticket, change) {
                        Written::Now => {}
                        Written::Later => self.outbox.push(Item::Gate(self.ticket.sequence)),
                        Written::Failed(error) => {
                            self.outbox.push(Item::Gate(self.ticket.sequence));
                            failed = Some(error);
                        }
                    }
                }
                Effect::Reply(id, answer) => {
                    let item = self.reply_item(id, answer, input, asker);
                    self.outbox.push(item);
                }
                Effect::Publish(news) => self.outbox.push(Item::Publish(news)),
                Effect::Call { key, deadline, call } => {
                    self.outbox.push(Item::Call { key, deadline, call });
                }
                Effect::StartTimer(timer, at) => self.timers.start(timer, at),
                Effect::CancelTimer(timer) => self.timers.cancel(&timer),
                Effect::Stop(ending) => self.outbox.push(Item::Stop(ending)),
            }
        }
        self.effects = effects;
        failed
    }

    fn reply_item(
        &mut self,
        id: AskId,
        answer: M::Answer,
        input: &Input<M>,
        asker: &mut Option<Asker<M>>,
    ) -> Item<M> {
        let is_current = matches!(input, Input::Asked { id: current, .. } if *current == id);
        if let (true, Some(asker)) = (is_current, asker.as_mut()) {
            return Item::Reply { answer, reply: asker.reply.take(), permit: asker.permit.take() };
        }
        let reply = self.parked.remove(&id).and_then(|parked| parked.reply);
        Item::Reply { answer, reply, permit: None }
    }

    // === What goes out ===

    fn flush(&mut self, context: &mut Context<Self>) {
        while let Some(item) = self.outbox.pop_released() {
            self.release(item, context);
        }
        self.start_calls(context);
        self.arm(context);
    }

    fn release(&mut self, item: Item<M>, context: &mut Context<Self>) {
        match item {
            // Gates are taken out by the outbox itself.
            Item::Gate(_) => {}
            Item::Reply { answer, reply, permit } => {
                drop(permit);
                if let Some(reply) = reply {
                    // Whoever gave up waiting does not need the answer.
                    let _ = reply.send(Ok(answer));
                }
            }
            Item::Publish(news) => self.publish(&news),
            Item::Attach(reader, view) => {
                reader.snapshot(self.published, view);
                self.readers_ever += 1;
                self.readers.insert(self.readers_ever, reader);
            }
            Item::Refresh(views) => {
                for (number, view) in views {
                    if let Some(reader) = self.readers.get(&number) {
                        reader.snapshot(self.published, view);
                    }
                }
            }
            Item::Call { key, deadline, call } => {
                self.calls.plan(Planned { key, deadline, call }, &context.address());
            }
            Item::Stop(ending) => self.end(ending, context),
        }
    }

    fn publish(&mut self, news: &M::News) {
        self.published += 1;
        self.doing.published(news);
        self.readers.retain(|_, reader| !reader.is_abandoned());
        for reader in self.readers.values() {
            reader.change(self.published, news.clone());
        }
    }

    fn start_calls(&mut self, context: &mut Context<Self>) {
        if !matches!(self.phase, Phase::Running(_)) {
            return;
        }
        while let Some(planned) = self.calls.next_due() {
            let call = planned.call.clone();
            let doing = &mut self.doing;
            let future = match std::panic::catch_unwind(AssertUnwindSafe(|| doing.call(call))) {
                Ok(future) => future,
                Err(panic) => Box::pin(async move { std::panic::resume_unwind(panic) }),
            };
            self.calls.start(planned, future, context.address());
        }
    }

    // === Time ===

    fn arm(&mut self, context: &mut Context<Self>) {
        let Some(next) = self.timers.next() else { return };
        match self.armed {
            Some((at, _)) if at <= next => return,
            Some((_, handle)) => {
                context.cancel_future(handle);
            }
            None => {}
        }
        let pause = next.since(self.settings.clock.now());
        let handle = context.run_later(pause, |shell, context| {
            shell.armed = None;
            shell.timers_due(context);
        });
        self.armed = Some((next, handle));
    }

    fn timers_due(&mut self, context: &mut Context<Self>) {
        let now = self.settings.clock.now();
        while matches!(self.phase, Phase::Running(_)) {
            let Some(timer) = self.timers.pop_due(now) else { break };
            self.step(Input::Elapsed(timer), None, context);
        }
        self.arm(context);
    }

    // === Crashes, failed writes, and the way back ===

    fn crashed(
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

    fn write_failed(&mut self, error: &str, context: &mut Context<Self>) {
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

    fn load(&mut self, context: &mut Context<Self>) {
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

    fn bury(&self, input: String, cause: DeadLetterCause) {
        self.settings.notices.post(Notice::DeadLetter { actor: self.door.name.clone(), input, cause });
    }

    fn end(&mut self, ending: Ending, context: &mut Context<Self>) {
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
        self.accept(Event::Letter(letter), context);
    }
}

impl<M: Machine, D: Doing<M>, S: Store<M>> Handler<Returned<M>> for Shell<M, D, S> {
    type Result = ();

    fn handle(&mut self, returned: Returned<M>, context: &mut Context<Self>) {
        self.accept(Event::Returned(returned), context);
    }
}

impl<M: Machine, D: Doing<M>, S: Store<M>> Handler<Settled> for Shell<M, D, S> {
    type Result = ();

    fn handle(&mut self, settled: Settled, context: &mut Context<Self>) {
        if matches!(self.phase, Phase::Ended) {
            return;
        }
        match settled.outcome {
            Ok(()) => self.outbox.settle(settled.through),
            // Later writes of an epoch fail with its first one, and that has been dealt with.
            Err(_) if self.failed_epoch >= Some(settled.epoch) => return,
            Err(error) => {
                self.write_failed(&error.to_string(), context);
                return;
            }
        }
        self.flush(context);
        if matches!(self.phase, Phase::Settling) && !self.outbox.is_waiting() {
            self.load(context);
        }
    }
}
