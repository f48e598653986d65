//! The actor that runs a machine: messages become inputs, effects become replies, news, calls, timers and writes.

use std::collections::{BTreeMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use actix::{Context, SpawnHandle};

use super::address::{Address, Asker, Door, Drill, Letter};
use super::calls::{Calls, Returned, panic_message};
use super::doing::Doing;
use super::feed::FeedSender;
use super::journal::{JournalEntry, JournalLine};
use super::machine::{AskId, Effect, Effects, Input, Machine, StopMode};
use super::notice::DeadLetterCause;
use super::outbox::{Item, Outbox};
use super::phase::{Event, Phase, Unfinished};
use super::spawn::{Ending, EndingCell, Settings};
use super::store::{Store, Ticket, Written, first_epoch};
use super::timers::Timers;
use crate::vocabulary::{BackoffState, Moment, RestartHistory, Timestamp};

/// The subscribers, by number.
type Readers<M> = Vec<(u64, FeedSender<<M as Machine>::News, <M as Machine>::View>)>;

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
    pub(super) outbox: Outbox<Item<M>>,
    pub(super) calls: Calls<M>,
    pub(super) timers: Timers<M::Timer>,
    pub(super) armed: Option<(Timestamp, SpawnHandle)>,
    /// Who reads, by number, in the order in which they came.
    pub(super) readers: Readers<M>,
    pub(super) readers_ever: u64,
    pub(super) unattached: Vec<FeedSender<M::News, M::View>>,
    pub(super) published: u64,
    /// What the present machine has not finished, in the order in which it was told.
    pub(super) unfinished: BTreeMap<AskId, Unfinished<M>>,
    /// What a former machine had not finished and the present one has not been told again.
    pub(super) again: BTreeMap<AskId, Unfinished<M>>,
    pub(super) asked: u64,
    pub(super) deferred: VecDeque<Event<M>>,
    pub(super) ticket: Ticket,
    pub(super) restarts: RestartHistory,
    pub(super) rebuild_pauses: BackoffState,
    /// What settles of earlier epochs belongs to a former actor.
    pub(super) first_epoch: u64,
    pub(super) failed_epoch: Option<u64>,
    pub(super) built_before: bool,
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
        let first_epoch = first_epoch();
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
            readers: Vec::new(),
            readers_ever: 0,
            unattached: Vec::new(),
            published: 0,
            unfinished: BTreeMap::new(),
            again: BTreeMap::new(),
            asked: 0,
            deferred: VecDeque::new(),
            ticket: Ticket { epoch: first_epoch, sequence: 0 },
            first_epoch,
            restarts: RestartHistory::default(),
            rebuild_pauses: BackoffState::default(),
            failed_epoch: None,
            built_before: false,
            settings,
        }
    }

    pub(super) fn moment(&mut self) -> Moment {
        Moment { now: self.settings.clock.now(), random: self.random.u64(..) }
    }

    // === What comes in ===

    /// Keeps what came in for later, unless it is too late for it.
    pub(super) fn defer(&mut self, event: Event<M>) {
        match self.phase {
            Phase::Running(_) | Phase::Loading | Phase::Settling(_) | Phase::Pausing => {
                self.deferred.push_back(event);
            }
            Phase::Ended => {}
        }
    }

    pub(super) fn handle_event(&mut self, event: Event<M>, context: &mut Context<Self>) {
        match event {
            Event::Letter(letter, handed_in) => self.handle_letter(letter, Some(handed_in), context),
            Event::Again(id, Unfinished::Question { ask, asked_at, reply }) => {
                let asker = Asker { reply, permit: None };
                self.step(Input::Asked { id, asked_at, ask }, Some(asker), context);
            }
            Event::Again(id, Unfinished::Stop(mode)) => self.stop(id, mode, context),
            Event::Returned(returned) => self.returned(returned, context),
        }
    }

    /// Handles what was handed in then, or just now.
    pub(super) fn handle_letter(
        &mut self,
        letter: Letter<M>,
        handed_in: Option<Timestamp>,
        context: &mut Context<Self>,
    ) {
        match letter {
            Letter::Ask { ask, reply, permit } => {
                let moment = self.moment();
                let asked_at = handed_in.unwrap_or(moment.now);
                let asker = Asker { reply, permit: Some(permit) };
                let id = self.next_id();
                self.step_at(moment, Input::Asked { id, asked_at, ask }, Some(asker), context);
            }
            Letter::Stop(mode) => {
                let id = self.next_id();
                self.stop(id, mode, context);
            }
            Letter::Subscribe(reader) => self.attach(reader, context),
            Letter::Resync => self.refresh(false, context),
            Letter::Drill(Drill::Crash) => self.crashed("a drill".to_owned(), None, "a drill", context),
            Letter::Drill(Drill::GiveUp) => self.end(Ending::Failed("a drill".to_owned()), context),
        }
    }

    fn next_id(&mut self) -> AskId {
        self.asked += 1;
        AskId::new(self.asked)
    }

    /// Asks the machine to end. It is asked again after a rebuild, in the same place; of several wishes of one kind the last
    /// one counts.
    fn stop(&mut self, id: AskId, mode: StopMode, context: &mut Context<Self>) {
        self.unfinished.retain(|_, other| !matches!(other, Unfinished::Stop(other) if *other == mode));
        self.unfinished.insert(id, Unfinished::Stop(mode));
        self.step(Input::StopRequested(mode), None, context);
        self.tell_stop_bound();
    }

    /// Tells the parent how long the end takes at most.
    fn tell_stop_bound(&self) {
        let Phase::Running(machine) = &self.phase else { return };
        // A panic here leaves the parent with its own deadline.
        if let Ok(Some(within)) = std::panic::catch_unwind(AssertUnwindSafe(|| machine.stops_within())) {
            self.ending.set_bound(within);
        }
    }

    pub(super) fn attach(&mut self, reader: FeedSender<M::News, M::View>, context: &mut Context<Self>) {
        match self.view(context) {
            Some(view) => {
                self.outbox.push(Item::Attach(reader, view));
                self.flush(context);
            }
            None => self.unattached.push(reader),
        }
    }

    /// Gives a new snapshot to every reader that fell behind, or to all.
    pub(super) fn refresh(&mut self, everyone: bool, context: &mut Context<Self>) {
        let is_due = |reader: &FeedSender<_, _>| reader.is_behind() || everyone && reader.takes_snapshots();
        let due = self.readers.iter().filter(|(_, reader)| is_due(reader));
        let numbers: Vec<u64> = due.map(|(number, _)| *number).collect();
        let mut views = Vec::with_capacity(numbers.len());
        for number in numbers {
            let Some(view) = self.view(context) else { return };
            views.push((number, view));
        }
        if !views.is_empty() {
            self.outbox.push(Item::Refresh(views));
            self.flush(context);
        }
    }

    /// What readers may know, if the machine lives. To panic over it is a crash like any other.
    fn view(&mut self, context: &mut Context<Self>) -> Option<M::View> {
        let Phase::Running(machine) = &self.phase else { return None };
        match std::panic::catch_unwind(AssertUnwindSafe(|| machine.view())) {
            Ok(view) => Some(view),
            Err(panic) => {
                self.crashed("a look at its view".to_owned(), None, &panic_message(&*panic), context);
                None
            }
        }
    }

    pub(super) fn returned(&mut self, returned: Returned<M>, context: &mut Context<Self>) {
        let Returned { number, key, call, outcome } = returned;
        if self.calls.finished(number) {
            self.step(Input::Returned { key, call, outcome }, None, context);
        } else {
            self.bury(format!("{call:?}"), DeadLetterCause::Stale);
        }
    }

    // === One step ===

    pub(super) fn step(&mut self, input: Input<M>, asker: Option<Asker<M>>, context: &mut Context<Self>) {
        let moment = self.moment();
        self.step_at(moment, input, asker, context);
    }

    fn step_at(
        &mut self,
        moment: Moment,
        input: Input<M>,
        mut asker: Option<Asker<M>>,
        context: &mut Context<Self>,
    ) {
        let Phase::Running(machine) = &mut self.phase else { return };
        tracing::trace!(actor = %self.door.name, ?input, "step");
        let effects = &mut self.effects;
        let stepped = std::panic::catch_unwind(AssertUnwindSafe(|| machine.step(moment, &input, effects)));
        if let Err(panic) = stepped {
            self.crashed(format!("{input:?}"), asker, &panic_message(&*panic), context);
            return;
        }
        self.door.steps.fetch_add(1, Ordering::Relaxed);
        let failed = self.put_effects_out(&input, &mut asker);
        if let (Some(Asker { reply, .. }), Input::Asked { id, asked_at, ask }) = (asker, input) {
            self.unfinished.insert(id, Unfinished::Question { ask, asked_at, reply });
        }
        if let Some(error) = failed {
            self.write_failed_at_once(&error, context);
        }
        self.flush(context);
    }

    /// Puts the effects of a step into the outbox; answers and news, of which almost all effects are, skip an empty one.
    /// Gives the error of a write that failed at once.
    fn put_effects_out(&mut self, input: &Input<M>, asker: &mut Option<Asker<M>>) -> Option<String> {
        let mut effects = std::mem::take(&mut self.effects);
        let mut failed = None;
        for effect in effects.drain() {
            match effect {
                // It was decided on top of a write that failed.
                Effect::Persist(_) if failed.is_some() => {}
                Effect::Persist(change) => failed = self.write(change),
                Effect::Reply(id, answer) => {
                    let asker = self.asker_of(id, input, asker);
                    if self.outbox.is_empty() {
                        asker.hear(answer);
                    } else {
                        self.outbox.push(Item::Reply { answer, asker });
                    }
                }
                Effect::Publish(news) if self.outbox.is_empty() => self.publish(news),
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

    /// Hands a change to the store and closes the gate behind it. Gives the error if it failed at once.
    fn write(&mut self, change: M::Change) -> Option<String> {
        self.ticket.sequence += 1;
        let (store, ticket) = (&mut self.store, self.ticket);
        let written = std::panic::catch_unwind(AssertUnwindSafe(|| store.write(ticket, change)));
        let failed = match written {
            Ok(Written::Now) => return None,
            Ok(Written::Later) => None,
            Ok(Written::Failed(error)) => Some(error),
            Err(panic) => Some(format!("the store crashed: {}", panic_message(&*panic))),
        };
        self.note(|| JournalEntry::Writing { write: ticket.sequence });
        self.outbox.close_gate(ticket.sequence);
        failed
    }

    /// Notes what happens in the journal, if one is kept.
    pub(super) fn note<'a>(&self, entry: impl FnOnce() -> JournalEntry<'a>) {
        if let Some(journal) = &self.settings.journal {
            let published = self.published;
            journal.note(JournalLine { actor: &self.door.name, published, entry: entry() });
        }
    }

    /// Who waits for the answer to this question.
    fn asker_of(&mut self, id: AskId, input: &Input<M>, asker: &mut Option<Asker<M>>) -> Asker<M> {
        let is_current = matches!(input, Input::Asked { id: current, .. } if *current == id);
        if let Some(asker) = asker.take_if(|_| is_current) {
            return asker;
        }
        let reply = match self.unfinished.remove(&id) {
            Some(Unfinished::Question { reply, .. }) => reply,
            // Nobody waits for this answer, or no longer.
            Some(Unfinished::Stop(_)) | None => None,
        };
        Asker { reply, permit: None }
    }
}
