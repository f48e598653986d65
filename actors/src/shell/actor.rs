//! The actor that runs a machine: messages become inputs, effects become replies, news, calls, timers and writes.

use std::collections::{BTreeMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use actix::{Actor, AsyncContext, Context, Handler, SpawnHandle};

use super::address::{Address, Door, Letter, Permit, ReplySender};
use super::calls::{Calls, Returned, panic_message};
use super::doing::Doing;
use super::feed::FeedSender;
use super::machine::{AskId, Effect, Effects, Input, Machine, StopMode};
use super::notice::DeadLetterCause;
use super::outbox::{Item, Outbox};
use super::spawn::{EndingCell, Settings};
use super::store::{Store, Ticket, Written};
use super::timers::Timers;
use crate::persister::Settled;
use crate::vocabulary::{BackoffState, Moment, RestartHistory, Timestamp};

/// Where the shell stands with its machine.
pub(super) enum Phase<M> {
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
pub(super) enum Event<M: Machine> {
    Letter(Letter<M>),
    AskedAgain(AskId, Parked<M>),
    Returned(Returned<M>),
}

/// Who asked, and the place it takes at the door.
pub(super) struct Asker<M: Machine> {
    pub(super) reply: Option<ReplySender<M>>,
    pub(super) permit: Option<Permit>,
}

/// A question that no step has answered yet. It is asked again when the machine is rebuilt.
pub(super) struct Parked<M: Machine> {
    pub(super) ask: M::Ask,
    pub(super) asked_at: Timestamp,
    pub(super) reply: Option<ReplySender<M>>,
}

pub(crate) struct Shell<M: Machine, D, S> {
    pub(super) config: M::Config,
    pub(super) settings: Settings,
    pub(super) door: Arc<Door>,
    pub(super) doing: D,
    pub(super) store: S,
    pub(super) ending: EndingCell,
    pub(super) random: fastrand::Rng,
    pub(super) phase: Phase<M>,
    pub(super) effects: Effects<M>,
    pub(super) outbox: Outbox<M>,
    pub(super) calls: Calls<M>,
    pub(super) timers: Timers<M::Timer>,
    pub(super) armed: Option<(Timestamp, SpawnHandle)>,
    pub(super) readers: BTreeMap<u64, FeedSender<M::News, M::View>>,
    pub(super) readers_ever: u64,
    pub(super) unattached: Vec<FeedSender<M::News, M::View>>,
    pub(super) published: u64,
    pub(super) parked: BTreeMap<AskId, Parked<M>>,
    pub(super) asked: u64,
    pub(super) deferred: VecDeque<Event<M>>,
    pub(super) ticket: Ticket,
    pub(super) restarts: RestartHistory,
    pub(super) rebuild_pauses: BackoffState,
    pub(super) failed_epoch: Option<u64>,
    pub(super) built_before: bool,
    pub(super) stop_requested: Option<StopMode>,
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

    pub(super) fn moment(&mut self) -> Moment {
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

    pub(super) fn handle_event(&mut self, event: Event<M>, context: &mut Context<Self>) {
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

    pub(super) fn attach(&mut self, reader: FeedSender<M::News, M::View>, context: &mut Context<Self>) {
        if let Phase::Running(machine) = &self.phase {
            self.outbox.push(Item::Attach(reader, machine.view()));
            self.flush(context);
        } else {
            self.unattached.push(reader);
        }
    }

    /// Gives a new snapshot to every reader that fell behind, or to all.
    pub(super) fn refresh(&mut self, everyone: bool, context: &mut Context<Self>) {
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

    pub(super) fn step(&mut self, input: Input<M>, mut asker: Option<Asker<M>>, context: &mut Context<Self>) {
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
