//! The kernel's port in the shell: a real clock, a real store, futures for calls, real askers and subscribers.

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use actix::fut::wrap_future;
use actix::{ActorContext, ActorFutureExt, AsyncContext, Context, SpawnHandle};
use callboard_machines::AskError;
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use tokio::task::AbortHandle;

use super::actor::{Returned, Shell, ShellTerms};
use super::address::Asker;
use super::effect_handler::{EffectHandler, Started};
use super::feed::{Delivery, FeedSender, SubscriberReport};
use super::journal::{Journal, Recorded};
use super::mailbox::Mailbox;
use super::notice::{DeadLetterCause, Notice};
use super::spawn::{EndingCell, Settings};
use super::store::Store;
use crate::kernel::{
    CallLost, Ending, Event, Input, JournalEntry, Machine, Outgoing, Port, Refusal, StepContext, StopStep,
    Ticket, Written, panic_message,
};
use crate::pauses;
use crate::vocabulary::Timestamp;
use crate::vocabulary::text::bounded;

/// The limit of the bytes of a call's outcome that a dead letter shows.
const OUTCOME_BYTES_MAX: usize = 512;

/// The journal, if it has a reader.
fn read_journal(settings: &Settings) -> Option<&Journal> {
    settings.journal.as_ref().filter(|journal| journal.is_read())
}

type Readers<M> = Vec<(u64, FeedSender<<M as Machine>::News, <M as Machine>::View>)>;

/// The environment of a kernel in an actor.
pub(super) struct Environment<M: Machine, D, S> {
    pub(super) settings: Settings,
    pub(super) mailbox: Arc<Mailbox>,
    pub(super) handler: D,
    pub(super) store: S,
    pub(super) ending: EndingCell,
    pub(super) random: fastrand::Rng,
    pub(super) calls: HashMap<u64, AbortHandle>,
    /// The calls that have returned and that the machine has not received.
    pub(super) returned: VecDeque<Returned<M>>,
    /// The present or the last load.
    pub(super) loading: Option<SpawnHandle>,
    /// The subscribers by number, in the order of their subscription.
    pub(super) readers: Readers<M>,
    pub(super) readers_ever: u64,
}

impl<M: Machine, D, S> Drop for Environment<M, D, S> {
    fn drop(&mut self) {
        self.calls.drain().for_each(|(_, task)| task.abort());
    }
}

/// The environment of an actor, and the context of its mailbox.
pub(super) struct ShellPort<'a, M: Machine, D: EffectHandler<M>, S: Store<M>> {
    pub(super) environment: &'a mut Environment<M, D, S>,
    pub(super) context: &'a mut Context<Shell<M, D, S>>,
}

impl<M: Machine, D: EffectHandler<M>, S: Store<M>> Port<M, ShellTerms> for ShellPort<'_, M, D, S> {
    fn now(&mut self) -> Timestamp {
        self.environment.settings.clock.now()
    }

    fn random(&mut self) -> u64 {
        self.environment.random.u64(..)
    }

    fn step(&mut self, machine: &mut M, input: &Input<M>, cx: &mut StepContext<M>) -> Result<(), String> {
        tracing::trace!(actor = %self.environment.mailbox.name, ?input, "step");
        machine.step(input, cx);
        Ok(())
    }

    fn write(&mut self, ticket: Ticket, change: M::Change) -> Written {
        self.environment.store.write(ticket, change)
    }

    fn load(&mut self) {
        let store = &mut self.environment.store;
        let load = catch_unwind(AssertUnwindSafe(|| store.load()));
        let load = load.unwrap_or_else(|panic| Box::pin(async move { std::panic::resume_unwind(panic) }));
        let load = AssertUnwindSafe(load).catch_unwind().map(|loaded| {
            let crashed = |panic: Box<_>| Err(format!("the store crashed: {}", panic_message(&*panic)));
            loaded.unwrap_or_else(crashed)
        });
        let loading =
            self.context.spawn(wrap_future(load).map(|loaded, shell: &mut Shell<M, D, S>, context| {
                shell.handle_event(Event::Loaded(loaded), context);
            }));
        if let Some(former) = self.environment.loading.replace(loading) {
            self.context.cancel_future(former);
        }
    }

    fn pause(&mut self, pause: Duration) {
        self.context.run_later(pause, |shell, context| shell.handle_event(Event::Woken, context));
    }

    fn send(&mut self, outgoing: Outgoing<M, ShellTerms>, _behind: u64) {
        match outgoing {
            Outgoing::Answer { asker: Some(asker), answer } => asker.hear(answer),
            // The message has no asker, or the asker has left.
            Outgoing::Answer { asker: None, .. } => {}
            Outgoing::News { number, news } => self.publish(number, news),
            Outgoing::Attach { reader, number, view } => self.attach(reader, number, view),
            Outgoing::Snapshot { reader, number, view } => {
                let place = self.environment.readers.binary_search_by_key(&reader, |(number, _)| *number);
                if let Ok(place) = place {
                    self.environment.readers[place].1.snapshot(number, view);
                }
            }
            Outgoing::Described { number, view } => {
                self.record(Recorded::Holds { number, view: Arc::new(view) });
            }
            Outgoing::Call { number, deadline, call } => self.call(number, deadline, call),
            Outgoing::Lost { number, lost } => {
                self.context.address().do_send(Returned { number, outcome: Err(lost) });
            }
        }
    }

    fn refuse(&mut self, asker: Asker<M>, refusal: Refusal<'_>) {
        let actor = self.environment.mailbox.name.to_string();
        let error = match refusal {
            Refusal::Crashed(message) => AskError::Crashed { actor, message: message.to_owned() },
            Refusal::NotDurable(error) => {
                AskError::NotDurable { actor, error: error.to_owned(), is_begun: true }
            }
            Refusal::NotBegun(error) => {
                AskError::NotDurable { actor, error: error.to_owned(), is_begun: false }
            }
            Refusal::NotWritten(error) => AskError::NotWritten { actor, error: error.to_owned() },
        };
        asker.refuse(error);
    }

    fn set_aside(&mut self, asker: &mut Asker<M>) {
        asker.permit = None;
    }

    fn due(&mut self, everyone: bool) -> Vec<u64> {
        let is_due = |reader: &FeedSender<_, _>| reader.is_behind() || everyone && reader.takes_snapshots();
        let due = self.environment.readers.iter().filter(|(_, reader)| is_due(reader));
        due.map(|(number, _)| *number).collect()
    }

    fn take_returned(&mut self) -> Option<(u64, Result<M::Outcome, CallLost>)> {
        let Returned { number, outcome } = self.environment.returned.pop_front()?;
        Some((number, outcome))
    }

    fn abandon_calls(&mut self) {
        self.environment.returned.clear();
        self.environment.calls.drain().for_each(|(_, task)| task.abort());
    }

    fn note(&mut self, entry: JournalEntry<'_, M>) {
        let Environment { settings, mailbox, .. } = &*self.environment;
        if let Some(journal) = &settings.journal {
            journal.note(&mailbox.name, &settings.clock, &entry);
        }
        self.tell(&entry);
    }

    fn is_followed(&self) -> bool {
        read_journal(&self.environment.settings).is_some()
    }

    fn stops_within(&mut self, within: Duration) {
        self.environment.ending.set_bound(within);
    }

    fn stopped(&mut self, steps: Vec<StopStep>) {
        self.environment.ending.set_steps(steps);
    }

    fn end(&mut self, ending: Ending) {
        self.environment.ending.set(ending);
        self.environment.readers.clear();
        self.context.stop();
    }
}

impl<M: Machine, D: EffectHandler<M>, S: Store<M>> ShellPort<'_, M, D, S> {
    /// Counts events, and posts notices for the host.
    fn tell(&self, entry: &JournalEntry<'_, M>) {
        let Environment { mailbox, settings, .. } = &*self.environment;
        let post = |notice| settings.notices.post(notice);
        let actor = || mailbox.name.to_string();
        match entry {
            JournalEntry::Stepped { .. } => {
                mailbox.steps.fetch_add(1, Ordering::Relaxed);
            }
            JournalEntry::Built { is_rebuilt } => {
                mailbox.rebuilds.fetch_add(u64::from(*is_rebuilt), Ordering::Relaxed);
            }
            JournalEntry::Crashed { input, message } => {
                let crashes = mailbox.crashes.fetch_add(1, Ordering::Relaxed) + 1;
                post(Notice::Crashed { actor: actor(), message: (*message).to_owned(), crashes });
                let cause = DeadLetterCause::Crashed((*message).to_owned());
                post(Notice::DeadLetter { actor: actor(), input: format!("{input:?}"), cause });
            }
            JournalEntry::Stale { outcome } => {
                let input = format!(
                    "the outcome of a call of an earlier incarnation: {}",
                    bounded(&format!("{outcome:?}"), OUTCOME_BYTES_MAX)
                );
                post(Notice::DeadLetter { actor: actor(), input, cause: DeadLetterCause::Stale });
            }
            JournalEntry::WriteFailed { error } => {
                post(Notice::WriteFailed { actor: actor(), error: (*error).to_owned() });
            }
            JournalEntry::LoadFailed { error } => {
                post(Notice::LoadFailed { actor: actor(), error: (*error).to_owned() });
            }
            JournalEntry::Called { .. }
            | JournalEntry::Writing { .. }
            | JournalEntry::OnDisk { .. }
            | JournalEntry::Published { .. }
            | JournalEntry::Ended { .. } => {}
        }
    }

    /// Records an event in the journal, if it has a reader.
    fn record(&self, entry: Recorded) {
        let Environment { settings, mailbox, .. } = &*self.environment;
        if let Some(journal) = read_journal(settings) {
            journal.record(M::KIND, &mailbox.name, settings.clock.now(), entry);
        }
    }

    fn publish(&mut self, number: u64, news: M::News) {
        let Environment { handler, readers, mailbox, settings, .. } = &mut *self.environment;
        handler.published(&news);
        let deliver = |reader: &FeedSender<M::News, M::View>, news| match reader.change(number, news) {
            Delivery::Done => true,
            Delivery::Abandoned => false,
            Delivery::Lags => {
                if let Some(SubscriberReport { name: subscriber, lags, .. }) = reader.report() {
                    if let Some(journal) = read_journal(settings) {
                        let lagged = Recorded::Lagged { subscriber: subscriber.clone() };
                        journal.record(M::KIND, &mailbox.name, settings.clock.now(), lagged);
                    }
                    if lags.is_power_of_two() {
                        let actor = mailbox.name.to_string();
                        settings.notices.post(Notice::Lagged { actor, subscriber, lags });
                    }
                }
                true
            }
        };
        let Some(((_, last), others)) = readers.split_last() else { return };
        let mut is_left = false;
        for (_, reader) in others {
            is_left |= !deliver(reader, news.clone());
        }
        is_left |= !deliver(last, news);
        if is_left {
            readers.retain(|(_, reader)| !reader.is_abandoned());
        }
    }

    fn attach(&mut self, reader: FeedSender<M::News, M::View>, number: u64, view: M::View) {
        let Environment { readers, readers_ever, .. } = &mut *self.environment;
        reader.snapshot(number, view);
        // Publishing removes abandoned subscriptions; if nothing is published, they are removed here now and then.
        if readers.len().is_power_of_two() {
            readers.retain(|(_, reader)| !reader.is_abandoned());
        }
        *readers_ever += 1;
        readers.push((*readers_ever, reader));
    }

    /// Makes a call.
    fn call(&mut self, number: u64, deadline: Duration, call: M::Call) {
        let handler = &mut self.environment.handler;
        match catch_unwind(AssertUnwindSafe(|| handler.call(call))) {
            Ok(Started::Running(future)) => self.run(number, deadline, future),
            Ok(Started::Done(outcome)) => {
                self.environment.returned.push_back(Returned { number, outcome: Ok(outcome) });
            }
            // Sent as a message: a machine that repeats the call at once must not block the thread.
            Err(panic) => {
                let lost = CallLost::Crashed(panic_message(&*panic));
                self.context.address().do_send(Returned { number, outcome: Err(lost) });
            }
        }
    }

    /// Runs a call concurrently, under its deadline; its outcome comes back as a message.
    fn run(&mut self, number: u64, deadline: Duration, future: LocalBoxFuture<'static, M::Outcome>) {
        let to = self.context.address();
        let task = actix_rt::spawn(async move {
            // Dropping a call at its deadline may panic too.
            let bounded = pauses::within(deadline, future);
            let outcome = match AssertUnwindSafe(bounded).catch_unwind().await {
                Ok(Ok(outcome)) => Ok(outcome),
                Ok(Err(_elapsed)) => Err(CallLost::DeadlineExceeded(deadline)),
                Err(panic) => Err(CallLost::Crashed(panic_message(&*panic))),
            };
            to.do_send(Returned { number, outcome });
        });
        self.environment.calls.insert(number, task.abort_handle());
    }
}
