//! Handles the events of an actor.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::machine::{AskId, CallLost, Ending, Input, Machine, StopMode};
use super::phase::{Deferred, Phase, Unfinished};
use super::port::{Event, JournalEntry, Port, Refusal, Terms};
use super::state::{Item, Kernel};
use crate::vocabulary::Timestamp;

impl<M: Machine, T: Terms<M>> Kernel<M, T> {
    /// Handles an event.
    pub fn handle(&mut self, event: Event<M, T>, port: &mut impl Port<M, T>) {
        self.happened(event, port);
        self.hear_of_calls(port);
    }

    fn happened(&mut self, event: Event<M, T>, port: &mut impl Port<M, T>) {
        match event {
            Event::Asked { ask, asker } => {
                let now = port.now();
                if matches!(self.phase, Phase::Running(_)) {
                    // An event that is handled at once costs one reading of the clock.
                    self.question(ask, now, asker, now, port);
                } else {
                    self.take_in(Deferred::Question { ask, asked_at: now, asker }, port);
                }
            }
            Event::StopRequested(mode) => self.take_in(Deferred::Stop(mode), port),
            Event::Subscribed(reader) => self.take_in(Deferred::Subscriber(reader), port),
            Event::Resync => self.take_in(Deferred::Resync, port),
            Event::Describe => self.take_in(Deferred::Describe, port),
            Event::Crash(why) => self.take_in(Deferred::Crash(why), port),
            Event::GiveUp(why) => self.take_in(Deferred::GiveUp(why), port),
            Event::Loaded(loaded) => self.loaded(loaded, port),
            Event::Woken => self.woken(port),
            Event::Returned { number, outcome } => self.returned(number, outcome, port),
            Event::Settled { epoch, through, outcome } => self.settled(epoch, through, outcome, port),
            Event::Disk(sick) => self.disk(sick, port),
            Event::TimersDue => self.timers_due(port),
        }
    }

    fn returned(&mut self, number: u64, outcome: Result<M::Outcome, CallLost>, port: &mut impl Port<M, T>) {
        match self.calls.finish(number) {
            Some((key, call)) => self.step(Input::Returned { key, call, outcome }, None, port),
            None if self.has_ended() => {}
            None => port.note(JournalEntry::Stale { outcome: &outcome }),
        }
    }

    /// Delivers to the machine the calls that returned as soon as they were made.
    fn hear_of_calls(&mut self, port: &mut impl Port<M, T>) {
        while let Some((number, outcome)) = port.take_returned() {
            self.returned(number, outcome, port);
        }
    }

    /// Delivers a question to the machine, unless a sick disk refuses it.
    fn question(
        &mut self,
        ask: M::Ask,
        asked_at: Timestamp,
        asker: T::Asker,
        now: Timestamp,
        port: &mut impl Port<M, T>,
    ) {
        if self.is_refused(&ask) {
            let reason = self.sick.as_deref().unwrap_or_default();
            port.refuse(asker, Refusal::NotBegun(reason));
            return;
        }
        let id = self.next_id();
        self.step_at(now, Input::Asked { id, asked_at, ask }, Some(asker), port);
    }

    /// Handles an input if there is a machine, and defers it if there will be one.
    fn take_in(&mut self, deferred: Deferred<M, T>, port: &mut impl Port<M, T>) {
        match self.phase {
            Phase::Running(_) => self.handle_deferred(deferred, port),
            Phase::Loading | Phase::Settling(_) | Phase::Pausing(_) => self.defer(deferred),
            Phase::Ended => {}
        }
    }

    /// Defers an input for the next machine. Several requests to end are merged into one: after the weaker of two requests the machine
    /// could end before it receives the stronger one.
    fn defer(&mut self, deferred: Deferred<M, T>) {
        if let Deferred::Stop(mode) = deferred {
            let told = self.again.values_mut().chain(self.unfinished.values_mut()).find_map(Unfinished::stop);
            let first = told.or_else(|| self.deferred.iter_mut().find_map(Deferred::stop));
            if let Some(first) = first {
                *first = first.stronger(mode);
                return;
            }
        }
        self.deferred.push_back(deferred);
    }

    fn handle_deferred(&mut self, deferred: Deferred<M, T>, port: &mut impl Port<M, T>) {
        match deferred {
            Deferred::Question { ask, asked_at, asker } => {
                let now = port.now();
                self.question(ask, asked_at, asker, now, port);
            }
            Deferred::Stop(mode) => {
                let id = self.next_id();
                self.stop(id, mode, port);
            }
            Deferred::Subscriber(reader) => self.attach(reader, port),
            Deferred::Resync => self.refresh(false, port),
            Deferred::Describe => self.describe(port),
            Deferred::Crash(why) => self.crashed(&format_args!("{why}"), None, why, port),
            Deferred::GiveUp(why) => self.end(Ending::Failed(why.to_owned()), port),
        }
    }

    /// Delivers the deferred inputs to the machine: first those that a former machine had not finished, then those that came since.
    pub(super) fn catch_up(&mut self, port: &mut impl Port<M, T>) {
        while matches!(self.phase, Phase::Running(_)) {
            self.hear_of_calls(port);
            if let Some((id, unfinished)) = self.again.pop_first() {
                match unfinished {
                    Unfinished::Question { ask, asked_at, asker } => {
                        self.step(Input::Asked { id, asked_at, ask }, Some(asker), port);
                    }
                    Unfinished::Stop(mode) => self.stop(id, mode, port),
                }
            } else if let Some(deferred) = self.deferred.pop_front() {
                self.handle_deferred(deferred, port);
            } else {
                break;
            }
        }
    }

    /// Whether this is a new promise, which a sick disk would not keep.
    fn is_refused(&self, ask: &M::Ask) -> bool {
        self.sick.is_some() && self.machine().is_some_and(|machine| machine.is_new_promise(ask))
    }

    fn next_id(&mut self) -> AskId {
        self.asked += 1;
        AskId::new(self.asked)
    }

    /// Asks the machine to end. It is asked again after a rebuild, once for all requests so far: in the place of the first of them,
    /// and to stop if one of them requested a stop.
    fn stop(&mut self, id: AskId, mode: StopMode, port: &mut impl Port<M, T>) {
        let mode = match self.unfinished.values_mut().find_map(Unfinished::stop) {
            Some(first) => {
                *first = first.stronger(mode);
                *first
            }
            None => {
                self.unfinished.insert(id, Unfinished::Stop(mode));
                mode
            }
        };
        self.step(Input::StopRequested(mode), None, port);
        let Phase::Running(machine) = &self.phase else { return };
        // After a panic here the parent uses its own deadline.
        if let Ok(Some(within)) = catch_unwind(AssertUnwindSafe(|| machine.stops_within())) {
            port.stops_within(within);
        }
    }

    fn timers_due(&mut self, port: &mut impl Port<M, T>) {
        let now = port.now();
        let mark = self.timers.settings();
        while matches!(self.phase, Phase::Running(_)) {
            let Some(timer) = self.timers.pop_due(now, mark) else { break };
            self.step(Input::Elapsed(timer), None, port);
            self.hear_of_calls(port);
        }
    }

    // === Subscribers ===

    pub(super) fn attach(&mut self, reader: T::Reader, port: &mut impl Port<M, T>) {
        match self.view(port) {
            Some(view) => {
                self.tell(Item::Attach(reader, view), port);
            }
            None => self.unattached.push(reader),
        }
    }

    /// Gives a snapshot to the journal.
    pub(super) fn describe(&mut self, port: &mut impl Port<M, T>) {
        if let Some(view) = self.view(port) {
            self.tell(Item::Description(view), port);
        }
    }

    /// Gives a new snapshot to every subscriber that lags, or to all.
    pub(super) fn refresh(&mut self, everyone: bool, port: &mut impl Port<M, T>) {
        let due = port.due(everyone);
        if due.is_empty() {
            return;
        }
        for reader in due {
            let Some(view) = self.view(port) else { return };
            self.tell(Item::Snapshot(reader, view), port);
        }
    }
}
